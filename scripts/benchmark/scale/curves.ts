// The dimensions in which a request may grow: points of each curve, and the request that each point sends.

/** A request as HTTP text, and what a good answer to it holds. */
export type Probe = {
  readonly request: string;
  /** This many letters come after `request`, then `end`. A long text does not fit into a command line. */
  readonly padding: { readonly bytes: number; readonly end: string };
  readonly rows: number;
  readonly columns: number;
  /** The least size of the whole body. */
  readonly bodyBytes: number;
};

/** One dimension. With `connections`, the points are numbers of connections, and a few of them ask at a time. */
export type Curve = {
  readonly name: 'rows' | 'columns' | 'cell' | 'connections' | 'statement';
  readonly title: string;
  readonly axis: string;
  readonly scale: 'count' | 'bytes';
  readonly points: readonly number[];
  readonly probe: (point: number) => Probe;
};

const host = 'Host: 127.0.0.1\r\n';
const mebibyte = 1024 * 1024;

const columnCounts = [1, 3, 10, 30, 100, 300, 1000];

/** The tables of the columns' curve, one row in each. */
export const wideTables = columnCounts
  .map((count) => {
    const each = (make: (index: number) => string) =>
      Array.from({ length: count }, (_, index) => make(index)).join(',');
    return `create table wide_${count} (${each((index) => `c${index} int not null`)});
insert into wide_${count} values (${each((index) => String(index))});`;
  })
  .join('\n');

type Sent = Pick<Probe, 'request' | 'padding'>;

function get(sql: string): Sent {
  const text = encodeURIComponent(JSON.stringify({ SQL: sql }));
  const request = `GET /db?${text} HTTP/1.1\r\n${host}\r\n`;
  return { request, padding: { bytes: 0, end: '' } };
}

/** A POST whose statement has `length` bytes: a string in it makes up the length. */
function post(length: number): Sent {
  const [begin, end] = ["select id from item where id = 1 and name <> '", "'"];
  const bytes = length - begin.length - end.length;
  const [open, close] = [`{"SQL":"${begin}`, `${end}"}`];
  const head = `POST /db HTTP/1.1\r\n${host}Content-Type: application/json\r\nContent-Length: ${open.length + bytes + close.length}\r\n\r\n`;
  return { request: head + open, padding: { bytes, end: close } };
}

export const curves: readonly Curve[] = [
  {
    name: 'rows',
    title: 'Rows of a result',
    axis: 'rows (a number, a decimal, a date, a word; 39 bytes each)',
    scale: 'count',
    points: [1, 10, 100, 1e3, 1e4, 3e4, 1e5, 3e5, 1e6],
    probe: (rows) => ({
      ...get(`select seq, 19.95, '2007-11-07', 'delivered' from seq_1_to_${rows}`),
      rows,
      columns: 4,
      bodyBytes: rows * 30,
    }),
  },
  {
    name: 'columns',
    title: 'Columns of a result',
    axis: 'columns (numbers, one row)',
    scale: 'count',
    points: columnCounts,
    probe: (columns) => ({
      ...get(`select * from wide_${columns}`),
      rows: 1,
      columns,
      bodyBytes: columns * 4,
    }),
  },
  {
    name: 'cell',
    title: 'Size of a cell',
    axis: 'bytes of the one cell',
    scale: 'bytes',
    points: [1, 16, 256, 4096, 65_536, mebibyte / 4, mebibyte, 4 * mebibyte, 16 * mebibyte],
    probe: (bytes) => ({
      ...get(`select repeat('x', ${bytes})`),
      rows: 1,
      columns: 1,
      bodyBytes: bytes,
    }),
  },
  {
    name: 'connections',
    title: 'Connections that are open',
    axis: 'keep-alive connections (16 at a time ask for one row, all of them in turn)',
    scale: 'count',
    points: [1, 10, 100, 300, 1000, 3000, 10_000],
    probe: () => ({
      ...get('select id, number, name, price, made from item where id = 50000'),
      rows: 1,
      columns: 5,
      bodyBytes: 100,
    }),
  },
  {
    name: 'statement',
    title: 'Length of a statement',
    axis: 'bytes of the statement (a POST; one row)',
    scale: 'bytes',
    points: [64, 512, 4096, 16_384, 65_536, mebibyte / 4, mebibyte],
    probe: (bytes) => ({ ...post(bytes), rows: 1, columns: 1, bodyBytes: 10 }),
  },
];
