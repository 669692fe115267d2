// What is measured: statements, loads, and which peers stand beside the gateway in which cell.
// Must not know how a cell is run.

export const peers = ['gateway', 'fastify', 'constant', 'constant-none', 'client'] as const;

/** gateway; fastify + mysql2; node:http constant (round robin, or accepted by the workers); C client on MariaDB. */
export type Peer = (typeof peers)[number];

/** A statement with `{id}` where a number between 1 and `span` goes. */
export type Workload = {
  readonly name: string;
  readonly title: string;
  readonly statement: string;
  readonly span: number;
  /** Rows of a reply; null for a write. */
  readonly rows: number | null;
};

const bulkColumns = 'id, customer, quantity, price, tax, made, shipped, status, name, note';

export const workloads: readonly Workload[] = [
  {
    name: 'bulk',
    title: '100,000 rows (25 MB)',
    statement: `select ${bulkColumns} from bulk where id >= {id}`,
    span: 1,
    rows: 100_000,
  },
  {
    name: 'point',
    title: 'point query',
    statement: 'select id, number, name, price, made from item where id = {id}',
    span: 100_000,
    rows: 1,
  },
  {
    name: 'join',
    title: '10-row join',
    statement:
      'select c.id, c.name, p.id, p.quantity, p.price from customer c ' +
      'join purchase p on p.customer = c.id where c.id = {id}',
    span: 10_000,
    rows: 10,
  },
  {
    name: 'thousand',
    title: '1,000 rows',
    statement: `select ${bulkColumns} from bulk where id >= {id} limit 1000`,
    span: 99_000,
    rows: 1_000,
  },
  {
    name: 'insert',
    title: 'insert',
    statement: "insert into inserted (number, name, price) values ({id}, 'Ada Lovelace', 12.50)",
    span: 1_000_000,
    rows: null,
  },
];

/** How many connections ask at once, and whether each request has one of its own. */
export type Load = { readonly connections: number; readonly close: boolean };

/** One row of the result: a workload under a load, run by some peers in turn. */
export type Cell = {
  readonly id: string;
  readonly workload: Workload;
  readonly load: Load;
  readonly peers: readonly Peer[];
  /** One that a target looks at: measured longer, beside every peer. */
  readonly decides: boolean;
};

const loads: readonly Load[] = [
  { connections: 1, close: false },
  { connections: 16, close: false },
  { connections: 64, close: false },
  { connections: 256, close: false },
  { connections: 48, close: true },
];

const deciding = new Set([
  'point/64',
  'point/256',
  'point/48-close',
  'join/16',
  'thousand/16',
  'insert/16',
]);

function cellId(workload: Workload, load: Load): string {
  return `${workload.name}/${load.connections}${load.close ? '-close' : ''}`;
}

/** Whether a peer has a form of this cell. sysbench keeps its connections; large results it fetches either way. */
export function fits(peer: Peer, { workload, load }: Pick<Cell, 'workload' | 'load'>): boolean {
  return peer !== 'client' || !load.close || workload.name === 'bulk';
}

function choosePeers(load: Load, decides: boolean): readonly Peer[] {
  if (!decides) return ['gateway', 'fastify'];
  // How connections are handed out matters only where each request brings one.
  if (load.close) return ['gateway', 'fastify', 'constant', 'constant-none'];
  return ['gateway', 'fastify', 'constant', 'client'];
}

function bulkCells(workload: Workload): Cell[] {
  return [1, 8].map((connections): Cell => {
    const load = { connections, close: true };
    return {
      id: `${workload.name}/${connections}`,
      workload,
      load,
      peers:
        connections === 1 ? ['gateway', 'fastify', 'constant', 'client'] : ['gateway', 'fastify'],
      decides: true,
    };
  });
}

/** `64 keep-alive`, or `48 closing`. */
export function describeLoad({ connections, close }: Load): string {
  return `${connections} ${close ? 'closing' : 'keep-alive'}`;
}

/** All cells in the order of a round. Large results come first, so that memory growth is measured on fresh heaps. */
export function listCells(): Cell[] {
  return workloads.flatMap((workload) => {
    if (workload.name === 'bulk') return bulkCells(workload);
    return loads.map((load): Cell => {
      const id = cellId(workload, load);
      const decides = deciding.has(id);
      return { id, workload, load, peers: choosePeers(load, decides), decides };
    });
  });
}

/** The statement's text before and after the id. */
export function splitStatement(workload: Workload): { before: string; after: string } {
  const [before = '', after = ''] = workload.statement.split('{id}');
  return { before, after };
}
