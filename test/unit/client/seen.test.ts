// `Seen` of dbhttpd/client: the token of each reply goes with the next request, and simultaneous requests take turns. A fake fetch records
// the requests. behaviour/servers/consistency-tokens.test.ts has a real gateway.
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { connect, type DbhttpdError, Seen } from '../../../src/client/client.ts';

type Reported = {
  readonly status?: number;
  readonly token?: string;
  readonly isUnverified?: boolean;
};

/** A gateway that answers in this order; `sent` has the token of each request. */
function answering(...replies: readonly Reported[]) {
  const sent: (string | null)[] = [];
  const fetchOne: typeof fetch = async (_url, init) => {
    const { status = 200, token, isUnverified } = replies[sent.length] ?? {};
    sent.push(new Headers(init?.headers).get('x-consistency-token'));
    await new Promise((resolve) => setImmediate(resolve));
    const headers: Record<string, string> = { 'Content-Type': 'application/json' };
    if (token !== undefined) headers['X-Consistency-Token'] = token;
    if (isUnverified) headers['X-Consistency'] = 'unverified';
    const body =
      status === 200
        ? { section: 's', request_id: 'r', columns: [], rows: [], row_count: 0, truncated: false }
        : { code: 'TOKEN_LOST', outcome: 'not_executed', detail: 'lost', retryable: false };
    return new Response(JSON.stringify(body), { status, headers });
  };
  return { sent, db: connect({ url: 'http://gateway', fetch: fetchOne }) };
}

test('each request carries the latest token, and one that has no token in its reply keeps it', async () => {
  const { sent, db } = answering({ token: 'a' }, {}, { token: 'b', isUnverified: true }, {});
  const seen = new Seen();
  const verified: boolean[] = [];
  for (let count = 0; count < 4; count += 1) {
    await db.with({ seen }).query('select 1', []);
    verified.push(seen.isVerified);
  }
  assert.deepEqual(sent, [null, 'a', 'a', 'b']);
  assert.deepEqual(verified, [true, true, false, true]);
  assert.equal(seen.token, 'b');
});

test('requests at once go in turn, so that the last token covers them all', async () => {
  const { sent, db } = answering({ token: 'a' }, { token: 'b' }, { token: 'c' });
  const mine = db.with({ seen: new Seen('begin') });
  await Promise.all([
    mine.query('select 1', []),
    mine.batch([]).catch(() => undefined),
    mine.query('select 3', []),
  ]);
  assert.deepEqual(sent, ['begin', 'a', 'b']);
});

/** A gateway that answers each request when the test says so, with a token of its number. */
function answeringLater() {
  const sent: (string | null)[] = [];
  const answers: (() => void)[] = [];
  const fetchOne: typeof fetch = (_url, init) =>
    new Promise((resolve) => {
      sent.push(new Headers(init?.headers).get('x-consistency-token'));
      const token = String(sent.length);
      const headers = { 'Content-Type': 'application/json', 'X-Consistency-Token': token };
      const body = JSON.stringify({
        affected_rows: 1,
        transaction: 't',
        section: 's',
        request_id: 'r',
      });
      answers.push(() => resolve(new Response(body, { headers })));
    });
  return { sent, answers, db: connect({ url: 'http://gateway', fetch: fetchOne }) };
}

test('a request that is aborted while it waits for its turn fails at once and is not sent, and those behind it still wait', async () => {
  const { sent, answers, db } = answeringLater();
  const mine = db.with({ seen: new Seen() });
  const slow = mine.query('update t set n = 1', []);
  const leaving = new AbortController();
  const { signal } = leaving;
  const aborted = mine.query('update t set n = 2', [], { signal });
  const staying = new AbortController();
  const behind = mine.query('update t set n = 3', [], { signal: staying.signal });
  await new Promise((resolve) => setImmediate(resolve));
  leaving.abort('enough');
  await assert.rejects(aborted, ({ code, outcome, retryable, cause }: DbhttpdError) => {
    assert.deepEqual(
      [code, outcome, retryable, cause],
      ['ABORTED', 'not_executed', false, 'enough'],
    );
    return true;
  });
  assert.deepEqual(sent, [null], 'the slow reply is still awaited');
  assert.deepEqual(getEventListeners(signal, 'abort'), []);
  answers[0]?.();
  await slow;
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(sent, [null, '1']);
  assert.deepEqual(getEventListeners(staying.signal, 'abort'), []);
  answers[1]?.();
  await behind;
});

test('a transaction does not wait for the turn of its rollback longer than for its reply', async (t) => {
  const bound = new AbortController();
  t.mock.method(AbortSignal, 'timeout', () => bound.signal);
  const { sent, answers, db } = answeringLater();
  const mine = db.with({ seen: new Seen() });
  const broken = new Error('of the caller');
  const rolledBack = mine.transaction(async () => {
    void mine.query('update t set n = 1', []);
    await Promise.reject(broken);
  });
  await new Promise((resolve) => setImmediate(resolve));
  answers[0]?.();
  await new Promise((resolve) => setImmediate(resolve));
  bound.abort();
  await assert.rejects(rolledBack, broken);
  assert.deepEqual(sent, [null, '1'], 'BEGIN, and the write that is still without a reply');
});

test('a reader without a token sends none, and does not wait', async () => {
  const { sent, db } = answering({ token: 'a' }, { token: 'b' });
  await Promise.all([
    db.query('select 1', []),
    db.with({ seen: new Seen() }).query('select 2', []),
  ]);
  assert.deepEqual(sent, [null, null]);
});

test('a lost token is an error, remains, and can be forgotten', async () => {
  const { sent, db } = answering({ token: 'a' }, { status: 409 }, {});
  const seen = new Seen();
  await db.query('select 1', [], { seen });
  await assert.rejects(
    db.query('select 1', [], { seen }),
    ({ code, retryable }: DbhttpdError) => code === 'TOKEN_LOST' && !retryable,
  );
  assert.equal(seen.token, 'a');
  seen.forget();
  await db.query('select 1', [], { seen });
  assert.deepEqual(sent, [null, 'a', null]);
});

test('a text that can be no header is a TypeError', () => {
  assert.throws(() => new Seen('a\r\nb'), TypeError);
});
