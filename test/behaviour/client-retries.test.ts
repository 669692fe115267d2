// What dbhttpd/client sends again by itself, and what it says of a request whose reply it has not seen.
// Must not know how the client decides.
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { type Client, connect, DbhttpdError } from '../../src/client/client.ts';
import { occupy, waiting } from '../support/busy-pool.ts';
import { eventually } from '../support/eventually.ts';
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { type Deed, type HttpFront, startHttpFront } from '../support/http-front.ts';
import { type Database, startDatabase } from '../support/mariadb.ts';

let database: Database;
let proxy: FaultProxy;
let gateway: Gateway;
let front: HttpFront;
let db: Client;

before(async () => {
  database = await startDatabase();
  await database.query(
    'create table made (id int auto_increment primary key, n int) engine = innodb',
  );
  proxy = await startFaultProxy(database);
  gateway = await startGateway({
    database: { ...database, ...proxy },
    settings: { workers: 1, pool: 1, queue: 1 },
  });
  front = await startHttpFront(gateway.url);
  db = connect({ url: front.url, retry: { attempts: 3 } });
});
after(async () => {
  await front?.stop();
  await gateway?.stop();
  await proxy?.stop();
  await database.stop();
});
let seenBefore = 0;
afterEach(() => {
  seenBefore = front.seen.length;
});
const sentTimes = () => front.seen.length - seenBefore;
const madeTimes = async (n: number) =>
  Number((await database.query('select count(*) as times from made where n = ?', [n]))[0]?.times);

async function failureOf(asked: Promise<unknown>): Promise<DbhttpdError> {
  const error: unknown = await asked.then(
    () => assert.fail('the request did not fail'),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof DbhttpdError, String(error));
  return error;
}

/** A fetch whose reply is there in full when it is counted. */
function countReplies(count: () => void): typeof fetch {
  return async (input, init) => {
    const reply = await fetch(input, init);
    const body = await reply.arrayBuffer();
    count();
    return new Response(body, { status: reply.status, headers: reply.headers });
  };
}

/** A refusal as the gateway gives it. */
function refusing(status: number, told: object, retryAfter?: string): Deed {
  const body = JSON.stringify({ detail: 'told by the front', retryable: false, ...told });
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

test('a full queue: the request waits as long as it is told to, and is executed once', async () => {
  await occupy(gateway, proxy);
  const waits = gateway.dbPost({ SQL: 'select 1' });
  await waiting(gateway, 1);
  const startedAt = performance.now();
  const made = insert(1);
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

test('nothing else is sent again without a key, and its outcome is told', async () => {
  const html = { 'Content-Type': 'text/html' };
  const cases: readonly (readonly [Deed, string, number | null, string])[] = [
    // A proxy's own 503 does not know whether the gateway was asked.
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

test('a reply that is lost or cut: unknown for a write, failed for what was to read only', async () => {
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

test('nobody listens: that is known not to have been executed', async () => {
  const gone = await startHttpFront(gateway.url);
  await gone.stop();
  const error = await failureOf(connect({ url: gone.url }).query('delete from made'));
  assert.deepEqual(
    [error.code, error.status, error.outcome, error.retryable],
    ['FETCH_FAILED', null, 'not_executed', true],
  );
});

test('with a key of its own a request is sent again whatever became of it, always with the same key', async () => {
  const lost: Deed = { kind: 'drop', when: 'at once' };
  const done: Deed = {
    kind: 'answer',
    status: 200,
    headers: { 'Content-Type': 'application/json', 'Idempotency-Replayed': 'true' },
    body: '{"affected_rows":1,"insert_id":null,"warnings":0,"request_id":"r","section":"s"}',
  };
  front.next(lost, refusing(504, { code: 'DEADLINE_RUNNING', outcome: 'unknown' }), done);
  const made = await insert(6, { idempotencyKey: true, retry: { attempts: 5 } });
  assert.deepEqual([made.affectedRows, made.replayed], [1, true]);
  const keys = front.seen.slice(-3).map(({ headers }) => headers['idempotency-key']);
  assert.equal(new Set(keys).size, 1);
  assert.match(String(keys[0]), /^[0-9a-f]{32}$/);
  front.next(done, done);
  await insert(6, { idempotencyKey: true });
  await insert(6, { idempotencyKey: 'order-7' });
  const [one, other] = front.seen.slice(-2).map(({ headers }) => headers['idempotency-key']);
  assert.notEqual(one, keys[0]);
  assert.equal(other, 'order-7');
  await assert.rejects(insert(6, { idempotencyKey: 'two words' }), TypeError);
});

test('what an earlier attempt may have done is not forgotten when the next is refused', async () => {
  front.next({ kind: 'drop', when: 'asked' }, busy(), busy());
  const error = await failureOf(insert(7, { idempotencyKey: 'k7' }));
  // This gateway knows no keys: it has refused the first one. The client cannot know.
  assert.deepEqual(
    [error.code, error.outcome, error.retryable, error.idempotencyKey],
    ['QUEUE_FULL', 'unknown', true, 'k7'],
  );
  const refused = await failureOf(insert(7, { idempotencyKey: 'k7' }));
  assert.deepEqual(
    [refused.code, refused.status, refused.outcome],
    ['IDEMPOTENCY_OFF', 400, 'not_executed'],
  );
  assert.equal(sentTimes(), 4);
});

test('an abort ends the request at once, and says what is known', async () => {
  const reason = new Error('the user went away');
  const before = await failureOf(insert(8, { signal: AbortSignal.abort(reason) }));
  assert.deepEqual(
    [before.code, before.outcome, before.cause],
    ['ABORTED', 'not_executed', reason],
  );
  assert.equal(sentTimes(), 0);

  front.next({ kind: 'hold' }, { kind: 'hold' });
  for (const [readOnly, outcome] of [
    [false, 'unknown'],
    [true, 'failed'],
  ] as const) {
    const leaving = new AbortController();
    const held = failureOf(db.query('select 1', [], { readOnly, signal: leaving.signal }));
    await eventually('the request is under way', () => sentTimes() === (readOnly ? 2 : 1));
    leaving.abort(reason);
    const during = await held;
    assert.deepEqual([during.code, during.outcome, during.cause], ['ABORTED', outcome, reason]);
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
  assert.equal(sentTimes(), 3);
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
