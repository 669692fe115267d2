// The requests that dbhttpd/client sends again by itself, and its report of a request without a reply.
import assert from 'node:assert/strict';
import { after, afterEach, test } from 'node:test';
import { type Client, connect, sql } from '../../../src/client/client.ts';
import {
  describeCreation,
  parseIdempotencyTable,
} from '../../../src/shared/database/idempotency-table.ts';
import { occupy, waiting } from '../../support/busy-pool.ts';
import { closeGate, createGate } from '../../support/database/gate.ts';
import { eventually } from '../../support/eventually.ts';
import { startGateway } from '../../support/gateway.ts';
import { type Deed, type HttpFront, type Seen, startHttpFront } from '../../support/http-front.ts';
import { logShows } from '../../support/log-shows.ts';
import { endRequest, getReport } from '../../support/reports.ts';
import { useProxiedGateway } from '../../support/use-gateway.ts';
import { failureOf } from './support/client-failure.ts';

const { gateway, database, proxy } = useProxiedGateway(
  { workers: 1, pool: 1, queue: 1 },
  {
    prepare: async (database) => {
      await database.query(
        'create table made (id int auto_increment primary key, n int) engine = innodb',
      );
    },
    ready: async () => {
      front = await startHttpFront(gateway.url);
      db = connect({ url: front.url, retry: { attempts: 3 } });
    },
  },
);
let front: HttpFront;
let db: Client;
after(() => front?.stop());
let seenBefore = 0;
afterEach(() => {
  seenBefore = front.seen.length;
});
const sentTimes = () => front.seen.length - seenBefore;
const madeTimes = async (n: number) =>
  Number((await database.query('select count(*) as times from made where n = ?', [n]))[0]?.times);

/** A fetch that counts a reply when it has arrived completely. */
function countReplies(count: () => void): typeof fetch {
  return async (input, init) => {
    const reply = await fetch(input, init);
    const body = await reply.arrayBuffer();
    count();
    return new Response(body, { status: reply.status, headers: reply.headers });
  };
}

const json = { 'Content-Type': 'application/json' };
const html = { 'Content-Type': 'text/html' };

/** A refusal as the gateway gives it. */
function refusing(status: number, reported: object, retryAfter?: string): Deed {
  const body = JSON.stringify({ detail: 'from the front', retryable: false, ...reported });
  const headers = {
    'Content-Type': 'application/problem+json',
    ...(retryAfter === undefined ? {} : { 'Retry-After': retryAfter }),
  };
  return { kind: 'answer', status, headers, body };
}
const busy = (retryAfter = '0') =>
  refusing(503, { code: 'QUEUE_FULL', outcome: 'not_executed', retryable: true }, retryAfter);

const insert = (n: number, options = {}) =>
  db.query('insert into made (n) values (?)', [n], options);

test('after a full queue the request waits as long as the gateway demands, and is executed once', async () => {
  // The gateway then knows how fast its queue drains, and does not demand its longest wait.
  for (let n = 0; n < 20; n += 1) await gateway.dbPost({ SQL: 'select 1' });
  await occupy(gateway, proxy);
  const waits = gateway.dbPost({ SQL: 'select 1' });
  await waiting(gateway, 1);
  const startedAt = performance.now();
  const made = insert(1, { retry: { withinMs: 60_000 } });
  await eventually('the first attempt was refused', () => front.passed.includes(503));
  proxy.release();
  assert.equal((await made).affectedRows, 1);
  assert.ok(performance.now() - startedAt >= 990, 'Retry-After was not kept');
  assert.ok(sentTimes() >= 2);
  assert.equal(await madeTimes(1), 1);
  await waits;
});

test('503 with not_executed is sent again up to the bound of attempts', async () => {
  front.next(busy(), busy());
  assert.equal((await insert(2)).affectedRows, 1);
  assert.equal(sentTimes(), 3);
  front.next(busy(), busy(), busy(), busy());
  const error = await failureOf(insert(2));
  assert.equal(sentTimes(), 6);
  assert.deepEqual(
    [error.code, error.status, error.outcome, error.retryable, error.retryAfterMs],
    ['QUEUE_FULL', 503, 'not_executed', true, 0],
  );
  assert.equal((await insert(2)).affectedRows, 1);
  assert.equal(await madeTimes(2), 2);
});

test('a Retry-After beyond the bound of time is not waited for; retry: false waits for none', async () => {
  front.next(busy('3600'));
  assert.equal((await failureOf(insert(3))).retryAfterMs, 3_600_000);
  front.next(busy());
  await failureOf(insert(3, { retry: false }));
  assert.equal(sentTimes(), 2);
  assert.equal(await madeTimes(3), 0);
});

test('no other request is sent again without a key, and its outcome is reported', async () => {
  const cases: readonly (readonly [Deed, string, number | null, string])[] = [
    // A proxy's own 503 does not show whether the gateway got the request.
    [
      { kind: 'answer', status: 503, headers: html, body: '<h1>busy</h1>' },
      'BAD_REPLY',
      503,
      'unknown',
    ],
    [{ kind: 'answer', status: 502, headers: html, body: '' }, 'BAD_REPLY', 502, 'unknown'],
    [
      { kind: 'answer', status: 200, headers: html, body: '<h1>hello</h1>' },
      'BAD_REPLY',
      200,
      'unknown',
    ],
    [
      { kind: 'answer', status: 307, headers: { Location: '/' }, body: '' },
      'BAD_REPLY',
      307,
      'unknown',
    ],
    [refusing(503, { code: 'STOPPING', outcome: 'unknown' }), 'STOPPING', 503, 'unknown'],
    [
      refusing(502, { code: 'CONNECTION_LOST', outcome: 'unknown' }),
      'CONNECTION_LOST',
      502,
      'unknown',
    ],
    [
      refusing(409, { code: 'ER_LOCK_DEADLOCK', outcome: 'failed', retryable: true }),
      'ER_LOCK_DEADLOCK',
      409,
      'failed',
    ],
    [{ kind: 'drop', when: 'at once' }, 'FETCH_FAILED', null, 'unknown'],
  ];
  for (const [deed, code, status, outcome] of cases) {
    front.next(deed);
    const error = await failureOf(insert(4));
    assert.deepEqual([error.code, error.status, error.outcome], [code, status, outcome]);
    if (outcome === 'unknown') assert.equal(error.retryable, false, code);
  }
  assert.equal(sentTimes(), cases.length);
  assert.equal(await madeTimes(4), 0);
});

const isCut = /^The reply of http:\/\/127\.0\.0\.1:\d+ was cut before its end \(.+\)\. /;
const isGone = /^http:\/\/127\.0\.0\.1:\d+ sent no reply \(.+\)\. /;

test('a reply that is lost or cut: unknown for a write, failed for a read', async () => {
  for (const [deed, code, status] of [
    [{ kind: 'drop', when: 'asked' }, 'FETCH_FAILED', null],
    [{ kind: 'cut', afterBytes: 20 }, 'REPLY_CUT', 200],
  ] as const) {
    front.next(deed);
    const write = await failureOf(insert(5));
    assert.deepEqual(
      [write.code, write.status, write.outcome, write.retryable],
      [code, status, 'unknown', false],
    );
    assert.match(write.message, /may or may not have been applied/);
    assert.match(write.message, code === 'REPLY_CUT' ? isCut : isGone);
    front.next(deed);
    const read = await failureOf(db.query('select 1', [], { readOnly: true }));
    assert.deepEqual(
      [read.code, read.status, read.outcome, read.retryable],
      [code, status, 'failed', true],
    );
  }
  assert.equal(sentTimes(), 4);
  assert.equal(await madeTimes(5), 2);
});

test('no server listens: the request is known not to be executed, and is sent again', async () => {
  // The system gives a port that has become free to others, but none below 1024.
  const url = 'http://127.0.0.1:2';
  const error = await failureOf(connect({ url }).query('delete from made', []));
  assert.deepEqual(
    [error.code, error.status, error.outcome, error.retryable],
    ['FETCH_FAILED', null, 'not_executed', true],
  );
  assert.equal(
    error.message,
    `Could not connect to ${url} (connect ECONNREFUSED ${url.slice(7)}). Nothing was executed.`,
  );
  let attempts = 0;
  const returning = connect({
    url: gateway.url,
    fetch: (input, init) => {
      attempts += 1;
      return fetch(attempts === 1 ? `${url}/v1/query` : input, init);
    },
  });
  assert.equal((await returning.query('insert into made (n) values (70)', [])).affectedRows, 1);
  assert.deepEqual([attempts, await madeTimes(70)], [2, 1]);
});

/** The answer of a gateway that has found the key. */
const found: Deed = {
  kind: 'answer',
  status: 200,
  headers: { ...json, 'Idempotency-Replayed': 'true' },
  body: '{"affected_rows":1,"insert_id":null,"warnings":0,"request_id":"r","section":"s"}',
};
const foundBatch: Deed = {
  ...found,
  body: '{"committed":true,"retries":0,"results":[{"affected_rows":1,"insert_id":null,"warnings":0}],"request_id":"r","section":"s"}',
};
const insertAll = (n: number, options = {}) =>
  db.batch([sql`insert into made (n) values (${n})`], options);
const keyOf = ({ headers }: Seen) => headers['idempotency-key'];

/** After these the outcome of the request is unknown. */
const inDoubt: readonly Deed[] = [
  { kind: 'reset' },
  { kind: 'drop', when: 'at once' },
  { kind: 'answer', status: 200, headers: json, body: '{"affected_rows":1}', cutAfter: 9 },
  { kind: 'answer', status: 502, headers: html, body: '<h1>bad gateway</h1>' },
  { kind: 'answer', status: 503, headers: html, body: '<h1>busy</h1>' },
  refusing(500, { code: 'INTERNAL', outcome: 'unknown' }),
  refusing(502, { code: 'CONNECTION_LOST', outcome: 'unknown' }),
  refusing(503, { code: 'STOPPING', outcome: 'unknown' }, '0'),
  refusing(504, { code: 'DEADLINE_RUNNING', outcome: 'unknown' }),
];

/** An entry of `/v1/requests`. */
type Listed = { readonly id: string; readonly request_id: string; readonly phase: string };

/** After these the client knows that nothing was committed, and that the next attempt may succeed. */
const undone: readonly Deed[] = [
  refusing(409, { code: 'ER_LOCK_DEADLOCK', outcome: 'rolled_back', retryable: true }),
  refusing(503, { code: 'ER_OPTION_PREVENTS_STATEMENT', outcome: 'rolled_back', retryable: true }),
];

test('with a key a query or a batch is sent again after any ending: the same bytes, the same key', async () => {
  for (const [path, ask, done] of [
    ['/v1/query', insert, found],
    ['/v1/batch', insertAll, foundBatch],
  ] as const) {
    for (const deed of [...inDoubt, ...undone, busy()]) {
      const before = front.seen.length;
      front.next(deed, done);
      const made = await ask(6, { idempotencyKey: true });
      assert.equal(made.replayed, true);
      const [first, second, ...more] = front.seen.slice(before);
      assert.ok(first !== undefined && second !== undefined);
      assert.deepEqual([first.path, second.path, more], [path, path, []]);
      assert.match(String(keyOf(first)), /^[0-9a-f]{32}$/);
      assert.deepEqual([keyOf(second), second.body], [keyOf(first), first.body]);
    }
  }
});

test('without a key none of that is sent again, a batch as little as a query', async () => {
  for (const ask of [insert, insertAll]) {
    for (const deed of [...inDoubt, ...undone]) {
      const before = front.seen.length;
      front.next(deed);
      const error = await failureOf(ask(6));
      assert.equal(front.seen.length, before + 1, error.code);
      assert.equal(error.outcome, undone.includes(deed) ? 'rolled_back' : 'unknown');
      assert.equal(error.retryable, undone.includes(deed), error.code);
    }
  }
  front.next(busy());
  assert.equal((await insertAll(60)).results[0].affectedRows, 1);
  assert.equal(await madeTimes(6), 0);
  assert.equal(await madeTimes(60), 1);
});

test('with a key, final errors are final', async () => {
  const final: readonly Deed[] = [
    refusing(400, { code: 'IDEMPOTENCY_OFF', outcome: 'not_executed' }),
    refusing(401, { code: 'UNAUTHORIZED', outcome: 'not_executed' }),
    refusing(409, { code: 'ER_DUP_ENTRY', outcome: 'rolled_back' }),
    refusing(409, { code: 'TRANSACTION_ENDED', outcome: 'partial' }),
    refusing(422, { code: 'IDEMPOTENCY_KEY_REUSED', outcome: 'not_executed' }),
    refusing(502, { code: 'CONNECTION_LOST', outcome: 'partial' }),
    { kind: 'answer', status: 404, headers: html, body: '<h1>not found</h1>' },
    { kind: 'answer', status: 200, headers: html, body: '<h1>hello</h1>' },
  ];
  for (const deed of final) {
    front.next(deed);
    const error = await failureOf(insertAll(6, { idempotencyKey: 'order-7' }));
    assert.deepEqual([error.retryable, error.idempotencyKey], [false, 'order-7']);
  }
  assert.equal(sentTimes(), final.length);
});

test('a killed request does not come back, even with a key, whether it ran or waited', async (t) => {
  const ledger = describeCreation(parseIdempotencyTable('request_keys', database.name));
  await database.query(ledger);
  await createGate(database);
  const settings = {
    workers: 1,
    pool: 1,
    max_wait: '1m',
    statement_timeout: '5m',
    idempotency_table: 'request_keys',
  };
  const keyed = await startGateway({ database, settings });
  t.after(keyed.stop);
  const between = await startHttpFront(keyed.url);
  t.after(between.stop);
  const gate = await closeGate(database);
  t.after(gate.open);
  const client = connect({ url: between.url, idempotencyKey: true });
  const write = `insert into made (n) values (13 + ${gate.zero})`;
  const failing = [1, 2].map(() => failureOf(client.query(write, [])));
  const requests = await eventually('one runs, one waits', async () => {
    const listed = (await keyed.get('/v1/requests')).json<{ requests: Listed[] }>().requests;
    const [waiting] = listed.filter(({ phase }) => phase === 'waiting');
    const [running] = listed.filter(({ phase }) => phase === 'running');
    return waiting !== undefined && running !== undefined && [waiting, running];
  });
  for (const { id } of requests) {
    assert.equal((await endRequest(keyed, id)).status, 200);
  }
  for (const error of await Promise.all(failing)) assert.equal(error.code, 'KILLED');
  assert.equal(between.seen.length, 2);
  await gate.open();
  assert.equal(await madeTimes(13), 0);
});

test('a request is ended by its own id, by any client, and one that is over is none', async (t) => {
  await createGate(database, 'cancelled');
  const shared = await startGateway({ database, settings: { workers: 2, pool: 2 } });
  t.after(shared.stop);
  const gate = await closeGate(database, 'cancelled');
  t.after(gate.open);
  const [mine, other] = [connect({ url: shared.url }), connect({ url: shared.url })];
  const listed = async () =>
    (await getReport(shared, '/v1/requests')).json<{ requests: Listed[] }>().requests;
  // Twice with one id, whichever workers they reach, and once with another one.
  const failing = [1, 2].map(() =>
    failureOf(mine.query(`select ${gate.zero}`, [], { requestId: 'order-7/a=1' })),
  );
  const staying = mine.query<{ n: number }>(`select ${gate.zero} as n`, [], {
    requestId: 'order-8',
  });
  await eventually('all are there', async () => (await listed()).length === 3);
  assert.equal(await other.cancel('order-7'), false);
  assert.equal(await other.cancel('order-7/a=1'), true);
  for (const error of await Promise.all(failing)) {
    assert.deepEqual([error.code, error.requestId], ['KILLED', 'order-7/a=1']);
  }
  await logShows(shared, /a request was ended by its X-Request-ID request="order-7\/a=1"/);
  assert.equal(await other.cancel('order-7/a=1'), false);
  assert.deepEqual(
    (await listed()).map(({ request_id }) => request_id),
    ['order-8'],
  );
  await gate.open();
  assert.equal((await staying).rowCount, 1);
  await assert.rejects(mine.cancel('two words'), /requestId must be/);
});

test('with a key the limits hold too, and the error has the key for a later attempt', async () => {
  const lost: Deed = { kind: 'reset' };
  front.next(lost, lost, lost);
  const error = await failureOf(insertAll(6, { idempotencyKey: true }));
  assert.equal(sentTimes(), 3);
  assert.deepEqual([error.code, error.outcome, error.retryable], ['FETCH_FAILED', 'unknown', true]);
  assert.equal(error.idempotencyKey, keyOf(front.seen.at(-1) as Seen));
  front.next(foundBatch);
  await insertAll(6, { idempotencyKey: error.idempotencyKey });
  assert.equal(keyOf(front.seen.at(-1) as Seen), error.idempotencyKey);
  const headers = { ...html, 'Retry-After': '3600' };
  for (const late of [busy('3600'), { kind: 'answer', status: 503, headers, body: '' } as const]) {
    front.next(late);
    const { retryAfterMs } = await failureOf(insertAll(6, { idempotencyKey: true }));
    assert.equal(retryAfterMs, 3_600_000);
  }
  front.next(lost);
  await failureOf(insertAll(6, { idempotencyKey: true, retry: false }));
  assert.equal(sentTimes(), 7);
  assert.equal(await madeTimes(6), 0);
});

test('a client with keys gives a new one to each request that may write, and to no other', async () => {
  const keyed = connect({ url: front.url, idempotencyKey: true });
  const keysOf = async (ask: () => Promise<unknown>, ...deeds: readonly Deed[]) => {
    const before = front.seen.length;
    front.next(...deeds);
    await ask();
    return front.seen.slice(before).map(keyOf);
  };
  const write = sql`insert into made (n) values (6)`;
  const made = [
    ...(await keysOf(() => keyed.query`do 1`, found)),
    ...(await keysOf(() => keyed.query`do 1`, found)),
    ...(await keysOf(() => keyed.batch([write]), foundBatch)),
    ...(await keysOf(() => keyed.with({ maxAffected: 1 }).query`do 1`, found)),
  ];
  assert.equal(new Set(made).size, 4);
  assert.ok(made.every((key) => /^[0-9a-f]{32}$/.test(String(key))));

  const reads = keyed.with({ readOnly: true });
  const none = [
    ...(await keysOf(() => reads.query`select 1`)),
    ...(await keysOf(() => reads.batch([sql`select 1`]))),
    ...(await keysOf(() => keyed.with({ dryRun: true }).query`select 1`)),
    ...(await keysOf(() => keyed.stream`select 1`.next())),
    ...(await keysOf(() => keyed.with({ idempotencyKey: undefined }).query`select 1`)),
    ...(await keysOf(() => keyed.with({ idempotencyKey: null }).query`select 1`)),
  ];
  assert.deepEqual(none, new Array(6).fill(undefined));

  const named = { idempotencyKey: 'order-7' } as object;
  assert.deepEqual(await keysOf(() => keyed.query('do 1', [], named), found), ['order-7']);
  assert.throws(() => connect({ url: front.url, ...named }), {
    name: 'TypeError',
    message: /idempotencyKey must be true here/,
  });
  for (const key of ['two words', '', 'x'.repeat(256), 'é', 7, false]) {
    const message = 'idempotencyKey must be 1 to 255 visible ASCII characters';
    await assert.rejects(insert(6, { idempotencyKey: key }), { name: 'TypeError', message });
  }
  assert.equal(await madeTimes(6), 0);
});

test('rows that were not kept for a repetition are reported as missing', async () => {
  const body = '"row_count":70000,"truncated":false';
  const columns = '"columns":[{"name":"n","type":"INT","nullable":true}]';
  front.next({
    ...found,
    body: `{${columns},${body},"rows_omitted":true,"request_id":"r","section":"s"}`,
  });
  const { rows, rowCount, rowsOmitted } = await insert(6, { idempotencyKey: 'k' });
  assert.deepEqual([rows, rowCount, rowsOmitted], [[], 70000, true]);
  front.next({
    ...found,
    body: `{"committed":true,"retries":0,"results":[{${columns},${body}}],"rows_omitted":true,"request_id":"r","section":"s"}`,
  });
  const batch = await insertAll(6, { idempotencyKey: 'k' });
  assert.deepEqual([batch.rowsOmitted, batch.results[0].rows], [true, []]);
});

test('if a later attempt is refused, the outcome of an earlier one remains unknown', async () => {
  front.next({ kind: 'drop', when: 'asked' }, busy(), busy());
  const error = await failureOf(insert(7, { idempotencyKey: 'k7' }));
  // This gateway knows no keys: it has refused the first one. The client cannot know.
  assert.deepEqual(
    [error.code, error.outcome, error.retryable, error.idempotencyKey],
    ['QUEUE_FULL', 'unknown', true, 'k7'],
  );
  assert.match(error.message, /an earlier one may have been executed/);
  const refused = await failureOf(insert(7, { idempotencyKey: 'k7' }));
  assert.deepEqual(
    [refused.code, refused.status, refused.outcome],
    ['IDEMPOTENCY_OFF', 400, 'not_executed'],
  );
  front.next({ kind: 'reset' });
  const both = await failureOf(insert(7, { idempotencyKey: 'k7' }));
  assert.deepEqual(
    [both.code, both.outcome, both.retryable],
    ['IDEMPOTENCY_OFF', 'unknown', false],
  );
  assert.equal(sentTimes(), 6);
});

test('an abort ends the request at once, and reports the known outcome', async () => {
  const reason = new Error('the user went away');
  const before = await failureOf(insert(8, { signal: AbortSignal.abort(reason) }));
  assert.deepEqual(
    [before.code, before.outcome, before.cause],
    ['ABORTED', 'not_executed', reason],
  );
  assert.equal(sentTimes(), 0);

  front.next({ kind: 'hold' }, { kind: 'hold' }, { kind: 'hold' });
  for (const [sent, options, outcome] of [
    [1, {}, 'unknown'],
    [2, { readOnly: true }, 'failed'],
    [3, { idempotencyKey: true }, 'unknown'],
  ] as const) {
    const leaving = new AbortController();
    const held = failureOf(db.query('select 1', [], { ...options, signal: leaving.signal }));
    await eventually('the request is under way', () => sentTimes() === sent);
    leaving.abort(reason);
    const during = await held;
    assert.deepEqual(
      [during.code, during.outcome, during.retryable, during.cause],
      ['ABORTED', outcome, false, reason],
    );
    assert.match(during.message, /^The request was aborted\. /);
  }
  front.release();

  front.next(busy('20'));
  const leaving = new AbortController();
  let replies = 0;
  const counting = connect({ url: front.url, fetch: countReplies(() => (replies += 1)) });
  const text = 'insert into made (n) values (8)';
  const waits = failureOf(counting.query(text, [], { signal: leaving.signal }));
  await eventually('it was refused', () => replies === 1);
  leaving.abort(reason);
  const between = await waits;
  assert.deepEqual(
    [between.code, between.outcome, between.cause],
    ['ABORTED', 'not_executed', reason],
  );
  assert.equal(sentTimes(), 4);
});

test('a limit of time is an AbortSignal like any other', async () => {
  front.next({ kind: 'hold' });
  const error = await failureOf(
    db.query('select 1', [], { readOnly: true, signal: AbortSignal.timeout(50) }),
  );
  assert.equal(error.code, 'ABORTED');
  assert.equal((error.cause as Error).name, 'TimeoutError');
  front.release();
});
