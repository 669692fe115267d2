// The promises of dbhttpd/client's batches, and of statements that are undone: all or nothing, exact values, every guard kept.
//test.ts has what is sent again.
import assert from 'node:assert/strict';
import { after, beforeEach, test } from 'node:test';
import { type BatchStatement, type Client, connect, sql } from '../../../src/client/client.ts';
import { closeGate, createGate } from '../../support/database/gate.ts';
import { openProcesslist } from '../../support/database/processlist.ts';
import { type HttpFront, startHttpFront } from '../../support/http-front.ts';
import { useGateway } from '../../support/use-gateway.ts';
import { failureOf } from './support/client-failure.ts';

const { gateway, database } = useGateway(
  { workers: 1 },
  {
    prepare: async (database) => {
      await createGate(database);
      await database.query(`
        create table orders (id bigint unsigned auto_increment primary key, user int) engine = innodb;
        create table stock (sku varchar(20) primary key, n int, big bigint) engine = innodb;
        create procedure two() begin select 'x' as a; select 'y' as b; end`);
    },
    ready: async () => {
      front = await startHttpFront(gateway.url);
      db = connect({ url: front.url });
    },
  },
);
let front: HttpFront;
let db: Client;
after(() => front?.stop());
beforeEach(async () => {
  await database.query(`
    delete from orders; delete from stock; alter table orders auto_increment = 1;
    insert into stock values ('A', 5, 9007199254740993), ('B', 0, null)`);
});

const count = async (table: string) =>
  Number((await database.query(`select count(*) as n from ${table}`))[0]?.n);
const left = async () => (await database.query("select n from stock where sku = 'A'"))[0]?.n;

test('a batch is one transaction, and answers each statement', async () => {
  const sku = 'A';
  const user = 7;
  const done = await db.batch([
    sql`insert into orders (user) values (${user})`,
    { sql: 'update stock set n = n - 1 where sku = :sku', params: { sku } },
    { sql: sql`update stock set n = n - 1 where sku = ${sku}`, expect: { affectedRows: 1 } },
    sql<{ sku: string; big: string | null }>`select sku, big from stock order by sku`,
  ]);
  const [made, first, second, stock] = done.results;
  assert.deepEqual([made.affectedRows, made.insertId, made.rows], [1, '1', []]);
  assert.deepEqual([first.affectedRows, second.affectedRows], [1, 1]);
  assert.deepEqual(stock.rows, [
    { sku: 'A', big: '9007199254740993' },
    { sku: 'B', big: null },
  ]);
  assert.deepEqual(
    [stock.rowCount, stock.truncated, stock.columns.map(({ type }) => type)],
    [2, false, ['VARCHAR', 'BIGINT']],
  );
  const { results: _results, requestId, ...about } = done;
  assert.deepEqual(about, {
    reruns: 0,
    section: gateway.section,
    replayed: false,
    rowsOmitted: false,
  });
  assert.match(requestId, /./);
  assert.deepEqual([await count('orders'), await left()], [1, 3]);
});

test('a statement that fails undoes all before it, and is reported with its number', async () => {
  const error = await failureOf(
    db.batch([
      sql`insert into orders (user) values (1)`,
      sql`insert into stock values ('A', 1, 1)`,
    ]),
  );
  assert.deepEqual(
    [error.code, error.errno, error.status, error.outcome, error.retryable, error.statement],
    ['ER_DUP_ENTRY', 1062, 409, 'rolled_back', false, 1],
  );
  assert.equal(await count('orders'), 0);
});

test('an expectation that does not hold undoes the batch, whatever it is of', async () => {
  const cases: readonly BatchStatement[] = [
    { sql: sql`update stock set n = n - 1 where sku = ${'C'}`, expect: { affectedRows: 1 } },
    { sql: 'update stock set n = n - 1', expect: { affectedRows: { max: 1 } } },
    { sql: sql`select * from stock where n > ${9}`, expect: { rowCount: { min: 1 } } },
    { sql: 'select * from stock', expect: { rowCount: { min: 3, max: 4 } } },
  ];
  for (const statement of cases) {
    const error = await failureOf(db.batch([sql`insert into orders (user) values (1)`, statement]));
    assert.deepEqual(
      [error.code, error.outcome, error.statement],
      ['EXPECTATION_FAILED', 'rolled_back', 1],
    );
  }
  assert.deepEqual([await count('orders'), await left()], [0, 5]);
  await db.batch([{ sql: 'update stock set n = 0', expect: { affectedRows: { min: 1, max: 2 } } }]);
  assert.equal(await left(), 0);
});

test('values look as they do in a query', async () => {
  const bytes = new Uint8Array([0, 255]);
  const text = 'select big, hex(:bytes) as bytes, :n + 0 as n from stock where sku in (:skus)';
  const params = { bytes, n: 18446744073709551615n, skus: ['A', 'C'] };
  for (const options of [
    {},
    { rows: 'array' },
    { bigint: 'bigint' },
    { rows: 'array', bigint: 'bigint' },
  ] as const) {
    const { rows } = await db.query(text, params, options);
    const batched = await db.batch([{ sql: text, params }, sql`do 1`], options);
    assert.deepEqual(batched.results[0].rows, rows);
    const throughWith = await db.with(options).batch([{ sql: text, params }]);
    assert.deepEqual(throughWith.results[0].rows, rows);
  }
  const made = await db.batch([sql`insert into orders (user) values (1)`], { bigint: 'bigint' });
  assert.equal(made.results[0].insertId, 1n);
  const strange = await db.batch(
    [sql`select 'x' as ${sql`\`__proto__\``}, ${9007199254740993n} + 0 as big`],
    {
      bigint: 'bigint',
    },
  );
  assert.deepEqual(Object.entries(strange.results[0].rows[0] ?? {}), [
    ['__proto__', 'x'],
    ['big', 9007199254740993n],
  ]);
});

test('a CALL has all its results', async () => {
  const { results } = await db.batch([sql`call two()`, sql`select 'z' as c`]);
  assert.deepEqual(results[0].rows, [{ a: 'x' }]);
  assert.deepEqual(
    results[0].results.map(({ rows }) => rows),
    [[{ a: 'x' }], [{ b: 'y' }], []],
  );
  assert.deepEqual(results[1].rows, [{ c: 'z' }]);
});

test('rows that cannot be objects undo the batch: nothing is committed that cannot be returned', async () => {
  const statements = [
    sql`insert into orders (user) values (1)`,
    sql`select 'x' as a, 'y' as a`,
  ] as const;
  const error = await failureOf(db.batch(statements));
  assert.deepEqual([error.code, error.outcome], ['DUPLICATE_COLUMNS', 'rolled_back']);
  assert.equal(await count('orders'), 0);
  const { results } = await db.batch(statements, { rows: 'array' });
  assert.deepEqual(results[1].rows, [['x', 'y']]);
});

test('the options of a batch are sent to the gateway', async () => {
  const write = sql`insert into orders (user) values (1)`;
  const refused = await failureOf(db.batch([write], { readOnly: true }));
  assert.deepEqual([refused.code, refused.status], ['READ_ONLY', 403]);
  const late = await failureOf(db.batch([write, sql`do sleep(20)`], { timeoutMs: 1000 }));
  assert.deepEqual([late.code, late.outcome], ['DEADLINE_RUNNING', 'rolled_back']);
  const kept = await failureOf(
    db.batch([write, sql`insert into stock values ('A', 1, 1)`], { atomic: false }),
  );
  assert.deepEqual([kept.outcome, await count('orders')], ['partial', 1]);
  await db.batch([write], {
    isolation: 'serializable',
    reruns: 5,
    json: 'string',
    readOnly: false,
  });
  assert.deepEqual(JSON.parse(front.seen.at(-1)?.body ?? ''), {
    isolation: 'serializable',
    read_only: false,
    retry: 5,
    rows: 'object',
    json: 'string',
    statements: [{ sql: 'insert into orders (user) values (1)', params: [] }],
  });
});

test('two batches that deadlock on purpose are both committed, and one reports its rerun', async () => {
  const processlist = await openProcesslist(database);
  const gate = await closeGate(database);
  const swap = (first: string, second: string) =>
    db.batch(
      [
        sql`update stock set n = n + 1 where sku = ${first}`,
        { sql: `select ${gate.zero}` },
        sql`update stock set n = n + 1 where sku = ${second}`,
      ],
      { reruns: 5 },
    );
  const both = [swap('A', 'B'), swap('B', 'A')];
  try {
    await processlist.started(gate.zero, 2);
  } finally {
    await gate.open();
    processlist.close();
  }
  const done = await Promise.all(both);
  assert.ok(done.some(({ reruns }) => reruns > 0));
  assert.equal(await left(), 7);
});

test('a value that JSON would lose is a TypeError that names it, and nothing is sent', async () => {
  const before = front.seen.length;
  const text = 'delete from stock';
  const wrong: readonly (readonly [unknown, object, RegExp])[] = [
    [[text], {}, /^statement 0 must be sql`…` or an object with sql$/],
    [[null], {}, /^statement 0 must be/],
    ['delete', {}, /^the statements must be an array$/],
    [[{ text }], {}, /^"text" is no field of statement 0; there are sql, params, expect$/],
    [[{ params: [] }], {}, /^statement 0: sql must be a string or sql`…`$/],
    [[{ sql: sql`do 1`, params: [1] }], {}, /^"params" is no field of statement 0/],
    [[{ sql: text, expects: {} }], {}, /^"expects" is no field/],
    [[{ sql: text, expect: 1 }], {}, /^statement 0: expect must be an object$/],
    [[{ sql: text, expect: {} }], {}, /^statement 0: expect takes either/],
    [[{ sql: text, expect: { affectedRows: undefined } }], {}, /expect takes either/],
    [[{ sql: text, expect: { affectedRows: 1, rowCount: 1 } }], {}, /expect takes either/],
    [[{ sql: text, expect: { affected_rows: 1 } }], {}, /^"affected_rows" is no expectation/],
    [[{ sql: text, expect: { affectedRows: {} } }], {}, /expects nothing$/],
    [[{ sql: text, expect: { affectedRows: { max: undefined } } }], {}, /expects nothing$/],
    [[{ sql: text, expect: { affectedRows: { most: 1 } } }], {}, /^"most" is no bound/],
    [
      [{ sql: text, expect: { affectedRows: { max: Number.NaN } } }],
      {},
      /^max must be a finite number/,
    ],
    [
      [{ sql: text, expect: { affectedRows: Number.NaN } }],
      {},
      /^affected_rows must be a finite number/,
    ],
    [[sql`do 1`, sql`do ${new Date() as never}`], {}, /^statement 1, parameter 1 is a Date/],
    [[{ sql: 'do :a', params: { a: undefined } }], {}, /^statement 0, parameter :a is undefined/],
    [[sql`do 1`], { dryRun: true }, /^"dryRun" is no option of a batch/],
    [[sql`do 1`], { retries: 1 }, /^"retries" is no option of a batch/],
    [[sql`do 1`], { timeoutMs: Number.POSITIVE_INFINITY }, /^timeout_ms must be a finite number/],
  ];
  for (const [statements, options, message] of wrong) {
    await assert.rejects(db.batch(statements as [], options), { name: 'TypeError', message });
  }
  for (const guard of [{ dryRun: true }, { maxAffected: 1 }, { maxRows: 1 }]) {
    const name = Object.keys(guard)[0];
    await assert.rejects(db.with(guard).batch([sql`do 1`]), {
      name: 'TypeError',
      message: new RegExp(`^"${name}" is no option of a batch`),
    });
  }
  assert.equal(front.seen.length, before);
  await db.with({ dryRun: true }).with({ dryRun: undefined }).batch([sql`do 1`]);
});

test('a body that only resembles the reply to a batch is not a reply', async () => {
  const headers = { 'Content-Type': 'application/json' };
  const bodies = [
    {},
    { committed: true, retries: 0, results: [] },
    { committed: true, retries: 0, results: [{}] },
    { retries: 0, results: [{ affected_rows: 1 }] },
  ];
  for (const body of bodies) {
    front.next({ kind: 'answer', status: 200, headers, body: JSON.stringify(body) });
    const error = await failureOf(db.batch([sql`do 1`]));
    assert.deepEqual([error.code, error.outcome], ['BAD_REPLY', 'unknown']);
  }
  front.next({ kind: 'answer', status: 200, headers, body: '{"welcome":"to the hotel"}' });
  const error = await failureOf(db.query`do 1`);
  assert.deepEqual([error.code, error.outcome], ['BAD_REPLY', 'unknown']);
});

test('a dry run is answered and undone', async () => {
  const dry = db.with({ dryRun: true });
  const tried = await dry.query`update stock set n = n + ${1}`;
  assert.deepEqual([tried.affectedRows, tried.rolledBack, await left()], [2, true, 5]);
  const read = await dry.query<{ n: number }>`select n from stock where sku = ${'A'}`;
  assert.deepEqual([read.rows, read.rolledBack], [[{ n: 5 }], true]);
  const done = await db.query('update stock set n = n + 1', [], { dryRun: false });
  assert.deepEqual([done.affectedRows, done.rolledBack, await left()], [2, false, 6]);
  const refused = await failureOf(dry.query`drop table stock`);
  assert.deepEqual([refused.code, refused.outcome], ['NOT_UNDOABLE', 'not_executed']);
});

test('a write that touches more rows than maxAffected is undone', async () => {
  const text = 'update stock set n = n + 1';
  const error = await failureOf(db.query(text, [], { maxAffected: 1 }));
  assert.deepEqual(
    [error.code, error.status, error.outcome],
    ['TOO_MANY_ROWS', 409, 'rolled_back'],
  );
  assert.equal(await left(), 5);
  const done = await db.query(text, [], { maxAffected: 2 });
  assert.deepEqual([done.affectedRows, done.rolledBack, await left()], [2, false, 6]);
  // As null it would limit nothing.
  await assert.rejects(db.query(text, [], { maxAffected: Number.NaN }), {
    name: 'TypeError',
    message: 'max_affected must be a finite number',
  });
  assert.equal(await left(), 6);
});

test('a stream takes no guard that needs the whole: it is refused before anything is sent', async () => {
  const before = front.seen.length;
  for (const guard of [{ dryRun: true }, { maxAffected: 1 }]) {
    const stream = db.with(guard).stream`delete from stock`;
    await assert.rejects(stream.next(), { name: 'TypeError', message: /no option of a stream/ });
  }
  assert.equal(front.seen.length, before);
});
