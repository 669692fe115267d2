// Named statements of dbhttpd/client: the requests as they leave, and replies of every kind. Fetch is made up. behaviour/client has the real one.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ConnectOptions, connect, DbhttpdError } from '../../../src/client/client.ts';

/** Statements of every kind, whose parameters may be anything. */
type Named = {
  one: { kind: 'one'; params: object; row: object; bigint: never; key: 'optional' };
  many: { kind: 'many'; params: object; row: object };
  exec: { kind: 'exec'; params: object; row: never; key: 'optional' };
  batch: { kind: 'batch'; params: object; row: object; steps: { s: { row: object } }; alone: true };
};

const about = { request_id: 'r', section: 'shop' };
const columns = [
  { name: 'id', type: 'BIGINT', unsigned: false, nullable: false },
  { name: '__proto__', type: 'VARCHAR', nullable: true },
];
const rows = {
  columns,
  rows: [['9007199254740993', null]],
  row_count: 1,
  truncated: false,
  warnings: 0,
};
const changes = { affected_rows: 2, insert_id: '7', warnings: 0 };
const replies: Readonly<Record<string, object>> = {
  one: { columns, row: ['9007199254740993', null], ...about },
  many: { ...rows, ...about },
  exec: { ...changes, ...about },
  batch: { committed: true, ...rows, steps: { s: rows, t: changes }, retries: 1, ...about },
};

type Sent = { readonly path: string; readonly body: string; readonly headers: Headers };

/** A client of a gateway that answers by the name of the statement. @param given replaces the reply */
function fake(options: Partial<ConnectOptions> = {}, given: object | null = null) {
  const sent: Sent[] = [];
  const answer: typeof fetch = async (url, init) => {
    const path = new URL(String(url)).pathname;
    sent.push({ path, body: String(init?.body), headers: new Headers(init?.headers) });
    const reply = given ?? replies[path.slice('/v1/named/'.length)] ?? {};
    return Response.json(reply, { headers: { 'X-Request-ID': 'r' } });
  };
  const all = { url: 'http://gateway', fetch: answer, ...options } as ConnectOptions;
  return { sent, db: connect<Named>(all) };
}

const row = (id: string | bigint) =>
  Object.fromEntries([
    ['id', id],
    ['__proto__', null],
  ]);

test('each kind has its own result, and BIGINT is text or BigInt', async () => {
  for (const [bigint, id] of [
    ['string', '9007199254740993'],
    ['bigint', 9007199254740993n],
  ] as const) {
    const { db } = fake({ bigint });
    assert.deepEqual(await db.named.one(), row(id));
    const many = await db.named.many();
    assert.deepEqual(
      [many.rows, many.rowCount, many.requestId, many.section],
      [[row(id)], 1, 'r', 'shop'],
    );
    const exec = await db.named.exec();
    assert.deepEqual([exec.affectedRows, exec.insertId], [2, bigint === 'bigint' ? 7n : '7']);
    const batch = await db.named.batch();
    assert.deepEqual([batch.rows, batch.steps.s.rows, batch.reruns], [[row(id)], [row(id)], 1]);
    assert.equal('warningList' in batch, false);
  }
});

test('parameters keep every digit, bytes are base64, and undefined is absent', async () => {
  const { sent, db } = fake();
  await db.named.many(
    {
      id: 2n ** 63n,
      raw: new Uint8Array([0, 255]),
      gone: undefined,
      none: null,
      list: [1n, 'two'],
      doc: { a: [{ b: 1.5 }] },
    },
    { timeoutMs: 100, readOnly: true, section: 'shop', requestId: 'mine', idempotencyKey: null },
  );
  assert.equal(
    sent[0]?.body,
    '{"section":"shop","timeout_ms":100,"read_only":true,"rows":"array","params":{"id":9223372036854775808,"raw":"AP8=","none":null,"list":[1,"two"],"doc":{"a":[{"b":1.5}]}}}',
  );
  assert.equal(sent[0]?.path, '/v1/named/many');
  assert.equal(sent[0]?.headers.get('x-request-id'), 'mine');
  await db.with({ idempotencyKey: true }).named.exec();
  assert.match(sent[1]?.headers.get('idempotency-key') ?? '', /^[\da-f]{32}$/);
});

test('a value that JSON would change is refused, with its place and without the value', async () => {
  const { sent, db } = fake();
  const refused: readonly (readonly [object, RegExp])[] = [
    [{ at: new Date(0) }, /^parameter at is a Date/],
    [{ n: Number.NaN }, /^parameter n is a number that is not finite/],
    [{ items: [{ n: 1 }, { n: new Map() }] }, /^parameter items\[1\]\.n is of type object/],
    [{ list: [undefined] }, /^parameter list\[0\] is undefined/],
    [{ call: () => 1 }, /^parameter call is of type function/],
    [[1], /^the parameters must be an object/],
  ];
  for (const [params, message] of refused) {
    await assert.rejects(db.named.many(params), (error: Error) => {
      assert.ok(error instanceof TypeError);
      assert.match(error.message, message);
      return true;
    });
  }
  const deep: Record<string, unknown> = {};
  deep.self = deep;
  await assert.rejects(db.named.many(deep), /nested too deep/);
  assert.equal(sent.length, 0);
});

test('an option that a named statement cannot honour is refused, by default options too', async () => {
  for (const option of [
    { rows: 'array' },
    { json: 'string' },
    { dryRun: true },
    { maxRows: 1 },
  ] as const) {
    const { sent, db } = fake(option);
    await assert.rejects(db.named.many(), /is no option of a named statement/);
    assert.equal(sent.length, 0);
  }
  const { db } = fake({ rows: 'array' });
  await assert.rejects(db.batch([db.named.many.step()]), /rows must not be array/);
});

test('a step of a batch is a call by its name', async () => {
  const reply = { committed: true, retries: 0, results: [rows, changes], ...about };
  const { sent, db } = fake({ bigint: 'bigint' }, reply);
  const { results } = await db.batch([db.named.many.step({ id: 1n }), db.named.exec.step()]);
  assert.deepEqual(results[0].rows, [row(9007199254740993n)]);
  assert.equal(results[1].affectedRows, 2);
  assert.match(
    sent[0]?.body ?? '',
    /"statements":\[\{"named":"many","params":\{"id":1\}\},\{"named":"exec","params":\{\}\}\]\}$/,
  );
  const wrong = db.batch([db.named.exec.step({}), db.named.many.step({ at: new Date(0) })]);
  await assert.rejects(wrong, /^TypeError: statement 1, parameter at is a Date/);
});

test('a row that was too large to keep with its key is an error', async () => {
  const { db } = fake({}, { rows_omitted: true, ...about });
  await assert.rejects(db.named.one({}, { idempotencyKey: 'k' }), (error: unknown) => {
    assert.ok(error instanceof DbhttpdError);
    assert.deepEqual(
      [error.code, error.outcome, error.requestId],
      ['ROWS_OMITTED', 'unknown', 'r'],
    );
    return true;
  });
});

test('a reply that is not a gateway’s is BAD_REPLY', async () => {
  for (const reply of [{}, { row: [1] }, { committed: true, ...changes, steps: { s: {} } }]) {
    await assert.rejects(fake({}, reply).db.named.batch(), { code: 'BAD_REPLY' });
  }
});

test('there is a function under each name that a statement can have, and under no other', async () => {
  const named = fake().db.named as unknown as Record<string, unknown>;
  assert.equal(typeof named.any_statement_1, 'function');
  for (const name of ['then', 'toJSON', '__proto__', 'Upper', '1st', 'a'.repeat(41)]) {
    assert.equal(named[name], undefined, name);
  }
  assert.equal(await named, named);
});
