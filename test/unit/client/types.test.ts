// The client's types: what the compiler takes and what it refuses. The build is the test: a refusal that is none any more is an error.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Client } from 'dbhttpd/client';
import { connect, DbhttpdError, sql } from 'dbhttpd/client';

type City = { id: string; name: string | null };

/** Never called. */
export async function typed(db: Client): Promise<void> {
  const id = 7n;
  const { rows, insertId } = await db.query<City>`select id, name from city where id = ${id}`;
  const name: string | null | undefined = rows[0]?.name;
  // @ts-expect-error a row has the columns of its type and no others
  rows[0]?.population;
  // @ts-expect-error rows are not to be changed
  rows.push({ id: '1', name });
  // @ts-expect-error an id may be a BigInt, or none
  const asText: string = insertId;

  const untyped = await db.query('select 1 as n', []);
  // @ts-expect-error nothing is known of a column without a type
  const n: number = untyped.rows[0]?.n;

  const pairs = await db.query<[string, bigint]>('select a, b from t', [], {
    rows: 'array',
    bigint: 'bigint',
  });
  const second: bigint | undefined = pairs.rows[0]?.[1];

  for await (const { id: next } of db.stream<City>`select id, name from city`) {
    // @ts-expect-error an id is text
    const wrong: number = next;
    void wrong;
  }
  await db.query('select :a, :b', { a: [1, 2], b: new Uint8Array(1) });
  await db.query`select ${[1, 'two', null]} ${sql`and ${true}`}`;
  // @ts-expect-error a Date has no text in SQL without a time zone
  await db.query`select ${new Date()}`;
  // @ts-expect-error NULL is null
  await db.query`select ${undefined}`;
  // @ts-expect-error an object is no value
  await db.query('select ?', [{ a: 1 }]);
  // @ts-expect-error lists do not nest
  await db.query('select ?', [[[1]]]);
  // @ts-expect-error a template in parentheses is a text whose values are SQL already
  await db.query(`select ${id}`);
  // @ts-expect-error the same with a type of rows
  await db.query<City>(`select ${id}`);
  // @ts-expect-error and in each other method
  db.stream(`select ${id}`);
  // @ts-expect-error and for one row
  await db.one(`select ${id}`);
  const one: City = await db.one<City>`select id, name from city where id = ${id}`;
  const perhaps: City | null = await db.maybeOne<City>('select id, name from city', []);
  // @ts-expect-error there may be no row
  const certainly: City = await db.maybeOne<City>`select id, name from city`;
  const parts: AsyncGenerator<string> = db.csv`select ${id}`;
  db.stream('select 1', [], { onProgress: ({ rows: count, bytes }) => void [count, bytes] });
  // @ts-expect-error a query has no progress
  await db.query('select 1', [], { onProgress: () => {} });
  await db.query('select 1', [], { section: 'world', requestId: 'order-7' });
  // @ts-expect-error an id belongs to one request
  connect({ url: 'http://host', requestId: 'order-7' });
  await db.query`insert into ${sql.id('t')} values ${sql.values([[1, null]])} ${sql.raw('')}`;
  // @ts-expect-error a separator is a piece of SQL
  sql.join([1, 2], ' or ');
  // @ts-expect-error the statement is text
  await db.query(sql`select 1`);
  // @ts-expect-error no such option
  await db.query('select 1', [], { timeout: 1 });
  // @ts-expect-error rows are objects or arrays
  db.with({ rows: 'tuple' });
  // @ts-expect-error a key is text, or true for one of the client's own
  db.with({ idempotencyKey: false });
  // @ts-expect-error a key by its name belongs to one request
  connect({ url: 'http://host', idempotencyKey: 'order-7' });
  connect({ url: 'http://host', idempotencyKey: true, maxAffected: 1, dryRun: true });
  // @ts-expect-error a stream cannot be undone
  db.stream('select 1', [], { dryRun: true });
  const { rolledBack, replayed }: { rolledBack: boolean; replayed: boolean } = untyped;
  // @ts-expect-error a gateway is somewhere
  connect({});
  connect({ url: 'http://host', token: 't', fetch, signal: AbortSignal.timeout(1) });

  try {
    await db.query('select 1', []);
  } catch (error) {
    if (!(error instanceof DbhttpdError)) throw error;
    const { errno, outcome }: { errno: number | null; outcome: string } = error;
    // @ts-expect-error there is no such outcome
    if (outcome === 'unknown' && error.outcome === 'lost') throw new Error(String(errno));
  }
  void [asText, n, second, rolledBack, replayed, one, perhaps, certainly, parts];
}

/** Never called. */
export async function typedBatch(db: Client): Promise<void> {
  const { results, reruns, replayed } = await db.batch(
    [
      sql<City>`select id, name from city where id = ${7n}`,
      { sql: 'update city set name = :name', params: { name: null }, expect: { affectedRows: 1 } },
      { sql: sql<{ n: number }>`select 1 as n`, expect: { rowCount: { min: 1 } } },
    ],
    { isolation: 'serializable', reruns: 5, idempotencyKey: true, bigint: 'bigint' },
  );
  const name: string | null | undefined = results[0].rows[0]?.name;
  const n: number | undefined = results[2].rows[0]?.n;
  const affected: number = results[1].affectedRows;
  // @ts-expect-error of a text nothing is known
  const unknown: number = results[1].rows[0]?.n;
  // @ts-expect-error there are three of them
  results[3];
  // @ts-expect-error a row has the columns of its type and no others
  results[0].rows[0]?.population;

  // As many results as there are values: each may be missing.
  const many = await db.batch([1, 2].map((id) => sql<City>`select ${id} as id, null as name`));
  const last: string | undefined = many.results.at(-1)?.rows[0]?.id;
  // @ts-expect-error it may be none
  many.results[0].rows;

  // @ts-expect-error a text alone is no statement: it might hold values
  await db.batch(['delete from city']);
  // @ts-expect-error a template has its parameters
  await db.batch([{ sql: sql`select 1`, params: [1] }]);
  // @ts-expect-error no such field
  await db.batch([{ sql: 'select 1', expects: { rowCount: 1 } }]);
  // @ts-expect-error one or the other is counted
  await db.batch([{ sql: 'select 1', expect: { rows: 1 } }]);
  // @ts-expect-error one of the two
  await db.batch([{ sql: 'select 1', expect: { rowCount: 1, affectedRows: 1 } }]);
  // @ts-expect-error a range has an end
  await db.batch([{ sql: 'select 1', expect: { rowCount: {} } }]);
  // @ts-expect-error no such level
  await db.batch([sql`do 1`], { isolation: 'snapshot' });
  // @ts-expect-error a batch has no dry run
  await db.batch([sql`do 1`], { dryRun: true });
  void [name, n, affected, unknown, last, reruns, replayed];
}

/** Never called. */
export async function typedTransaction(db: Client): Promise<void> {
  const name = await db.transaction(
    async (tx) => {
      const { rows } = await tx.query<City>`select id, name from city where id = ${7n}`;
      await tx.query('select :a', { a: 1 }, { rows: 'array', timeoutMs: 100 });
      for await (const { id } of tx.stream<City>`select id, name from city`) void id;
      // @ts-expect-error a statement of a transaction has no separate key
      await tx.query('do 1', [], { idempotencyKey: true });
      // @ts-expect-error it is the transaction that is aborted
      await tx.query('do 1', [], { signal: AbortSignal.timeout(1) });
      // @ts-expect-error a batch is a separate transaction
      tx.batch;
      return rows[0]?.name;
    },
    { isolation: 'serializable', section: 'world', readOnly: true, bigint: 'bigint' },
  );
  const same: string | null | undefined = name;
  // @ts-expect-error it may be none
  const always: string = name;
  // @ts-expect-error a transaction cannot be a dry run
  await db.transaction(async () => 1, { dryRun: true });
  // @ts-expect-error its function is asynchronous
  await db.transaction(() => 1);
  void [same, always];
}

test('the types are those of the package that others import', () => {
  assert.equal(typeof connect, 'function');
  assert.deepEqual(
    [typeof typed, typeof typedBatch, typeof typedTransaction],
    ['function', 'function', 'function'],
  );
});
