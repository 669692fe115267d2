// The work: statements, with what a good answer to each holds.

/**
 * A statement with `{id}` in place of a number from 1 to `span`. For a batch, the JSON of its statements, as both `/v1/batch` and the peers
 * take it.
 */
export type Workload = {
  readonly name: string;
  readonly title: string;
  readonly kind: 'statement' | 'batch';
  readonly statement: string;
  readonly span: number;
  /** Rows of a reply; null for a write. All column names differ, so that a row as an object keeps them. */
  readonly rows: number | null;
};

const bulkColumns = 'id, customer, quantity, price, tax, made, shipped, status, name, note';

/** A number in the JSON of a request, so `{id}` is not in quotes. */
const batch = `[{"sql":"insert into inserted (number, name, price) values (?, 'Ada Lovelace', 12.50)","params":[{id}]},\
{"sql":"insert into ordered (item, name) values (?, 'Ada Lovelace')","params":[{id}]},\
{"sql":"update stock set n = n - 1 where id = ?","params":[{id}]}]`;

export const workloads: readonly Workload[] = [
  {
    name: 'bulk',
    title: '100,000 rows (25 MB)',
    kind: 'statement',
    statement: `select ${bulkColumns} from bulk where id >= {id}`,
    span: 1,
    rows: 100_000,
  },
  {
    name: 'point',
    title: 'point query',
    kind: 'statement',
    statement: 'select id, number, name, price, made from item where id = {id}',
    span: 100_000,
    rows: 1,
  },
  {
    name: 'join',
    title: '10-row join',
    kind: 'statement',
    statement:
      'select c.id, c.name, p.id as purchase, p.quantity, p.price from customer c ' +
      'join purchase p on p.customer = c.id where c.id = {id}',
    span: 10_000,
    rows: 10,
  },
  {
    name: 'thousand',
    title: '1,000 rows',
    kind: 'statement',
    statement: `select ${bulkColumns} from bulk where id >= {id} limit 1000`,
    span: 99_000,
    rows: 1_000,
  },
  {
    name: 'insert',
    title: 'insert',
    kind: 'statement',
    statement: "insert into inserted (number, name, price) values ({id}, 'Ada Lovelace', 12.50)",
    span: 1_000_000,
    rows: null,
  },
  {
    name: 'batch',
    title: 'batch of three writes',
    kind: 'batch',
    statement: batch,
    span: 100_000,
    rows: null,
  },
];

/** A file of named statements, one for each workload that is one statement. */
export function namedStatements(all: readonly Workload[]): string {
  return all
    .filter(({ kind }) => kind === 'statement')
    .map(({ name, statement, rows }) => {
      const sql = statement.replace('{id}', ':id');
      const kind = rows === null ? 'exec' : 'many';
      return `-- name: ${name} :${kind}\n-- for: *\n-- param id: int\n${sql};\n`;
    })
    .join('\n');
}

/** The statement's text before and after the id. */
export function splitStatement(workload: Workload): { before: string; after: string } {
  const [before = '', after = ''] = workload.statement.split('{id}');
  return { before, after };
}
