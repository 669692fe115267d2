// The types of named statements: what the compiler takes and what it refuses. The build is the test: a refusal that is none any more is an error.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { BigintMode, Client } from 'dbhttpd/client';
import { connect, sql } from 'dbhttpd/client';

/** As `dbhttpd --types` prints it. */
type Named = {
  /** Orders of a customer, newest first. */
  orders_of: {
    kind: 'many';
    params: { status?: 'open' | 'paid' | null | undefined; page_size?: number | undefined };
    row: { created: string; id: string; note: string | null; parent: string | null };
    bigint: 'id' | 'parent';
  };
  order: {
    kind: 'one';
    params: { id: number | string | bigint };
    row: { id: string };
    bigint: 'id';
  };
  all: { kind: 'many'; params: Record<string, never>; row: { n: number } };
  pay: { kind: 'exec'; params: { id: number }; row: never; key: 'optional'; alone: true };
  touch: { kind: 'exec'; params: { id: number }; row: never; key: 'optional' };
  place: {
    kind: 'batch';
    params: { items: readonly { product: number; n: number }[] };
    row: { id: string };
    bigint: 'id';
    steps: { lines: { row: never }; sum: { row: { total: string | null }; bigint: 'total' } };
    key: 'required';
    alone: true;
  };
};

const options = { url: 'http://host' };

/** Never called. */
export async function calls(): Promise<void> {
  const db = connect<Named>(options);
  const { rows } = await db.named.orders_of({ status: 'paid' });
  const id: string | undefined = rows[0]?.id;
  const parent: string | null | undefined = rows[0]?.parent;
  await db.named.orders_of();
  await db.named.orders_of({}, { timeoutMs: 100, signal: AbortSignal.timeout(1), retry: false });
  // @ts-expect-error there is no such status
  await db.named.orders_of({ status: 'lost' });
  // @ts-expect-error there is no such parameter
  await db.named.orders_of({ state: 'paid' });
  // @ts-expect-error a size is a number
  await db.named.orders_of({ page_size: '20' });
  // @ts-expect-error only a parameter whose default is null may be null
  await db.named.orders_of({ page_size: null });
  // @ts-expect-error there is no such column
  rows[0]?.total;
  // @ts-expect-error a note may be null
  const note: string | undefined = rows[0]?.note;
  // @ts-expect-error there is no such statement
  await db.named.orders_by({});
  // @ts-expect-error no such option
  await db.named.orders_of({}, { timeout: 1 });
  // @ts-expect-error its rows are objects
  await db.named.orders_of({}, { rows: 'array' });
  // @ts-expect-error a read takes no key
  await db.named.orders_of({}, { idempotencyKey: true });
  await db.named.all({}, { readOnly: true });
  // @ts-expect-error it has no parameters
  await db.named.all({ n: 1 });

  const order: { id: string } = await db.named.order({ id: 7n });
  // @ts-expect-error its parameter is required
  await db.named.order();
  // @ts-expect-error and is its id
  await db.named.order({});
  // @ts-expect-error one row is no list
  order.rows;

  const { affectedRows, insertId } = await db.named.pay({ id: 1 }, { idempotencyKey: 'order-1' });
  const changed: number = affectedRows;
  // @ts-expect-error an id may be missing
  const asText: string = insertId;
  void [id, parent, note, changed, asText];
}

/** Never called. */
export async function batches(): Promise<void> {
  const db = connect<Named>(options);
  const items = [{ product: 1, n: 2 }];
  const placed = await db.named.place({ items }, { idempotencyKey: true });
  const id: string | undefined = placed.rows[0]?.id;
  const changed: number = placed.steps.lines.affectedRows;
  const total: string | null | undefined = placed.steps.sum.rows[0]?.total;
  const reruns: number = placed.reruns;
  // @ts-expect-error it needs a key
  await db.named.place({ items });
  // @ts-expect-error and a good one
  await db.named.place({ items }, { idempotencyKey: null });
  // @ts-expect-error a record has all its fields
  await db.named.place({ items: [{ product: 1 }] }, { idempotencyKey: true });
  // @ts-expect-error there is no such step
  placed.steps.line;
  // @ts-expect-error a batch is no step of another
  db.named.place.step({ items });
  // @ts-expect-error only rows can be streamed
  db.named.pay.stream({ id: 1 });

  const { results } = await db.batch([
    db.named.pay.step({ id: 1 }),
    db.named.orders_of.step({ status: 'open' }),
    sql<{ n: number }>`select 1 as n`,
    db.named.order.step({ id: 1 }),
  ]);
  const affected: number = results[0].affectedRows;
  const first: string | undefined = results[1].rows[0]?.id;
  const n: number | undefined = results[2].rows[0]?.n;
  const one: string | undefined = results[3].rows[0]?.id;
  // @ts-expect-error a step has the parameters of its statement
  await db.batch([db.named.pay.step({ id: 'x' })]);
  // @ts-expect-error there is no such column
  results[1].rows[0]?.total;
  const wide = await db.batch([db.named.order.step({ id: 1 }), sql<{ n: string }>`select 1 as n`], {
    bigint: 'bigint',
  });
  const big: bigint | undefined = wide.results[0].rows[0]?.id;
  const declared: string | undefined = wide.results[1].rows[0]?.n;
  void [id, changed, total, reruns, affected, first, n, one, big, declared];
}

/** Never called. */
export async function streams(): Promise<void> {
  const db = connect<Named>(options);
  for await (const { id, note } of db.named.orders_of.stream({ status: 'paid' })) {
    const text: string = id;
    // @ts-expect-error a note may be null
    const certain: string = note;
    void [text, certain];
  }
  for await (const { id } of db.named.orders_of.stream({}, { bigint: 'bigint', onProgress() {} })) {
    const big: bigint = id;
    void big;
  }
  for await (const part of db.named.orders_of.csv()) void part.length;
  // @ts-expect-error CSV is text
  db.named.orders_of.csv({}, { bigint: 'bigint' });

  await db.transaction(async (tx) => {
    await tx.named.touch({ id: 1 });
    const { rows } = await tx.named.orders_of({}, { bigint: 'bigint' });
    const big: bigint | undefined = rows[0]?.id;
    for await (const { id } of tx.named.orders_of.stream()) void id.length;
    // @ts-expect-error it is a transaction of its own
    await tx.named.place({ items: [] });
    // @ts-expect-error and so is a statement that expects something
    await tx.named.pay({ id: 1 });
    // @ts-expect-error a statement of a transaction has no separate key
    await tx.named.touch({ id: 1 }, { idempotencyKey: true });
    void big;
  });
}

/** Never called. */
export async function bigints(mode: BigintMode): Promise<void> {
  const db = connect<Named>({ ...options, bigint: 'bigint' });
  const { rows } = await db.named.orders_of();
  const id: bigint | undefined = rows[0]?.id;
  const parent: bigint | null | undefined = rows[0]?.parent;
  const created: string | undefined = rows[0]?.created;
  const text: string | undefined = (await db.named.order({ id: 1 }, { bigint: 'string' })).id;
  const again: string = (await db.with({ bigint: 'string' }).named.order({ id: 1 })).id;
  const none: string = (await db.with({ bigint: undefined }).named.order({ id: 1 })).id;
  const kept: bigint = (await db.with({ timeoutMs: 1 }).named.order({ id: 1 })).id;
  const either: string | bigint = (
    await connect<Named>({ ...options, bigint: mode }).named.order({ id: 1 })
  ).id;
  // @ts-expect-error it is a BigInt
  const wrong: string | undefined = rows[0]?.id;
  const { results } = await db.batch([db.named.order.step({ id: 1 })]);
  const step: bigint | undefined = results[0].rows[0]?.id;
  await db.transaction(async (tx) => {
    const inside: bigint = (await tx.named.order({ id: 1 })).id;
    void inside;
  });
  await db.transaction(
    async (tx) => {
      const inside: string = (await tx.named.order({ id: 1 })).id;
      void inside;
    },
    { bigint: 'string' },
  );
  // @ts-expect-error no such option
  db.with({ readonly: true });
  void [id, parent, created, text, again, none, kept, either, wrong, step];
}

/** Never called. */
export function clients(): readonly Client[] {
  // @ts-expect-error without a type nothing is known of statements
  connect(options).named.orders_of;
  // @ts-expect-error this is no description of a statement
  connect<{ a: number }>(options);
  return [connect(options), connect<Named>(options), connect({ ...options, bigint: 'bigint' })];
}

test('the types are those of the package that others import', () => {
  const { named } = connect<Named>(options);
  assert.deepEqual(
    [typeof named.orders_of, typeof named.orders_of.stream, typeof named.pay.step],
    ['function', 'function', 'function'],
  );
});
