// Named statements by dbhttpd/client against a real gateway: results of every kind, streams, batches, transactions, keys and errors.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { connect, sql } from '../../../src/client/client.ts';
import {
  describeCreation,
  parseIdempotencyTable,
} from '../../../src/shared/database/idempotency-table.ts';
import { useGateway } from '../../support/use-gateway.ts';
import { createNamedDirectory } from '../named/support/named-directory.ts';
import { failureOf } from './support/client-failure.ts';

const directory = createNamedDirectory(`
-- name: item :one
-- for: *
-- param id: int
select id, name, raw, doc from items where id = :id;

-- name: items :many
-- for: *
-- param ids: list(int; 10)
select id, name from items where id in (:ids) order by id;

-- name: rename :exec
-- for: *
-- param id: int
-- param name: text(20)
-- param raw: bytes = null
-- param doc: json = null
update items set name = :name, raw = :raw, doc = :doc where id = :id;

-- name: add :exec
-- for: *
-- key: required
-- param id: int
-- error 1062: 409 ITEM_EXISTS There is such an item.
insert into items (id, name) values (:id, 'new');

-- name: swap :batch
-- for: *
-- param a: int
-- param b: int
-- error NO_ITEM: 409 There is no such item.
-- step: first
-- expect: affected_rows = 1 else NO_ITEM
update items set name = concat(name, '!') where id = :a;
-- step: names
select name from items where id = :a;
-- answer
select id from items where id in (:a, :b) order by id;
`);
after(() => directory.remove());

/** As `--types` prints it, in short. */
type Item = { id: string; name: string };
type Id = number | string | bigint;
type Named = {
  item: {
    kind: 'one';
    params: { id: Id };
    row: Item & { raw: string | null; doc: unknown };
    bigint: 'id';
  };
  items: { kind: 'many'; params: { ids: readonly Id[] }; row: Item; bigint: 'id' };
  rename: {
    kind: 'exec';
    key: 'optional';
    params: { id: Id; name: string; raw?: string | Uint8Array | null; doc?: object | null };
    row: never;
  };
  add: { kind: 'exec'; key: 'required'; params: { id: Id }; row: never };
  swap: {
    kind: 'batch';
    key: 'optional';
    alone: true;
    params: { a: Id; b: Id };
    row: { id: string };
    bigint: 'id';
    steps: { first: { row: never }; names: { row: { name: string } } };
  };
};

const { gateway, database } = useGateway(
  { workers: 1, named: directory.path, idempotency_table: 'request_keys' },
  {
    prepare: async (fresh) => {
      await fresh.query(`
        create table items (id bigint primary key, name varchar(20) not null, raw blob, doc json);
        insert into items (id, name) values (1, 'a'), (2, 'b'), (9007199254740993, 'c');
        ${describeCreation(parseIdempotencyTable('request_keys', fresh.name))}`);
    },
    ready: async () => {
      db = connect<Named>({ url: gateway.url });
    },
  },
);
let db: ReturnType<typeof connect<Named>>;

test('one row is an object, many are rows, with every digit in either way', async () => {
  const big = '9007199254740993';
  assert.equal((await db.named.item({ id: big })).id, big);
  assert.equal((await db.named.item({ id: BigInt(big) }, { bigint: 'bigint' })).id, BigInt(big));
  const { rows, rowCount, columns, section } = await db.named.items({ ids: [2, big] });
  assert.deepEqual(rows, [
    { id: '2', name: 'b' },
    { id: big, name: 'c' },
  ]);
  assert.deepEqual([rowCount, columns[0]?.type, section], [2, 'BIGINT', 'world']);
});

test('bytes and JSON go in and come out', async () => {
  const raw = new Uint8Array([0, 255, 10]);
  const doc = { a: [1, { b: 'c' }] };
  const { affectedRows } = await db.named.rename({ id: 2, name: 'b', raw, doc });
  assert.equal(affectedRows, 1);
  const item = await db.named.item({ id: 2 });
  assert.deepEqual([item.raw, item.doc], ['AP8K', doc]);
});

test('rows come one by one, with their end, and as CSV', async () => {
  const ids: bigint[] = [];
  const rows = db.named.items.stream({ ids: [1, 2] }, { bigint: 'bigint' });
  for (let next = await rows.next(); ; next = await rows.next()) {
    if (next.done === true) {
      assert.equal(next.value.rowCount, 2);
      break;
    }
    ids.push(next.value.id);
  }
  assert.deepEqual(ids, [1n, 2n]);
  let text = '';
  for await (const part of db.named.items.csv({ ids: [1] })) text += part;
  assert.equal(text, 'id,name\r\n1,a\r\n');
});

test('a named batch has its answer and its steps', async () => {
  const { rows, steps, reruns } = await db.named.swap({ a: 1, b: 2 });
  assert.deepEqual(rows, [{ id: '1' }, { id: '2' }]);
  assert.deepEqual([steps.first.affectedRows, steps.names.rows, reruns], [1, [{ name: 'a!' }], 0]);
  await db.named.rename({ id: 1, name: 'a' });
});

test('steps of a batch stand beside SQL, and are undone with it', async () => {
  const { results } = await db.batch([
    db.named.rename.step({ id: 1, name: 'x' }),
    db.named.item.step({ id: 1 }),
    sql<{ n: string }>`select count(*) as n from items`,
  ]);
  assert.deepEqual(
    [results[0].affectedRows, results[1].rows[0]?.name, results[2].rows[0]?.n],
    [1, 'x', '3'],
  );
  const failed = await failureOf(
    db.batch([db.named.rename.step({ id: 1, name: 'y' }), db.named.item.step({ id: 404 })]),
  );
  assert.deepEqual([failed.code, failed.statement, failed.outcome], ['NO_ROW', 1, 'rolled_back']);
  assert.equal((await db.named.item({ id: 1 })).name, 'x');
});

test('a transaction has its statements, and gives them back', async () => {
  await assert.rejects(
    db.transaction(async (tx) => {
      await tx.named.rename({ id: 1, name: 'inside' });
      assert.equal((await tx.named.item({ id: 1 })).name, 'inside');
      const names: string[] = [];
      for await (const { name } of tx.named.items.stream({ ids: [1] })) names.push(name);
      assert.deepEqual(names, ['inside']);
      throw new Error('no');
    }),
    /^Error: no$/,
  );
  assert.notEqual((await db.named.item({ id: 1 })).name, 'inside');
  await db.transaction(async (tx) => void (await tx.named.items({ ids: [1] })), { readOnly: true });
});

test('a key executes a call once', async () => {
  const first = await db.named.add({ id: 7 }, { idempotencyKey: 'seven' });
  const again = await db.named.add({ id: 7 }, { idempotencyKey: 'seven' });
  assert.deepEqual([first.affectedRows, again.affectedRows], [1, 1]);
  assert.deepEqual([first.replayed, again.replayed], [false, true]);
  const swapped = await db.named.swap({ a: 7, b: 7 }, { idempotencyKey: true });
  assert.equal(swapped.steps.first.affectedRows, 1);
});

test('failures are those of every other request, with the codes of the file', async () => {
  const failures = await Promise.all([
    failureOf(db.named.item({ id: 404 })),
    failureOf(db.named.add({ id: 1 }, { idempotencyKey: true })),
    failureOf(db.named.swap({ a: 404, b: 1 })),
    failureOf(db.named.item({ id: 'x' })),
    failureOf(db.named.rename({ id: 1, name: 'z' }, { readOnly: true })),
    failureOf(db.named.items({ ids: [1] }, { signal: AbortSignal.abort() })),
  ]);
  assert.deepEqual(
    failures.map(({ status, code, outcome }) => `${status} ${code} ${outcome}`),
    [
      '404 NO_ROW failed',
      '409 ITEM_EXISTS rolled_back',
      '409 NO_ITEM rolled_back',
      '400 PARAMETER not_executed',
      '403 READ_ONLY not_executed',
      'null ABORTED not_executed',
    ],
  );
  const found = await database.query('select count(*) as n from items where id = 1 and name = ?', [
    'z',
  ]);
  assert.equal(Number(found[0]?.n), 0);
});
