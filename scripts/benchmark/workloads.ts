// The work: statements, with what a good answer to each holds.
// Must not know who runs them, nor under which load.

/** A statement with `{id}` where a number between 1 and `span` goes. */
export type Workload = {
  readonly name: string;
  readonly title: string;
  readonly statement: string;
  readonly span: number;
  /** Rows of a reply; null for a write. Their columns all have names of their own: a row as an object keeps them. */
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
      'select c.id, c.name, p.id as purchase, p.quantity, p.price from customer c ' +
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

/** The statement's text before and after the id. */
export function splitStatement(workload: Workload): { before: string; after: string } {
  const [before = '', after = ''] = workload.statement.split('{id}');
  return { before, after };
}
