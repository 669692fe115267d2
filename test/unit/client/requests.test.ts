// The requests of dbhttpd/client as they leave, and its verdict on failures of connections, of any runtime.
// Fetch is made up. behaviour/client has the real one.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect, DbhttpdError, sql } from '../../../src/client/client.ts';

type Reported = { readonly path: string; readonly headers: Headers; readonly body: unknown };

const json = { 'Content-Type': 'application/json' };
const rows = '"columns":[{"name":"n","type":"INT","nullable":true}],"rows":[[1]],"row_count":1';
const about = '"truncated":false,"request_id":"r","section":"shop"';

/** A gateway that answers everything; the first replies fail as given. */
function fake(...failing: readonly (Error | Response)[]) {
  const reported: Reported[] = [];
  const answer = (path: string) => {
    if (path === '/v1/batch') {
      return `{"committed":true,"retries":0,"results":[{${rows}}],${about}}`;
    }
    if (path === '/v1/transaction') return `{"transaction":"t1",${about}}`;
    if (path === '/v1/transaction/commit') return `{"committed":true,${about}}`;
    return `{${rows},${about}}`;
  };
  const fetchOne: typeof fetch = async (url, init) => {
    const path = new URL(String(url)).pathname;
    const fails = failing[reported.length];
    reported.push({
      path,
      headers: new Headers(init?.headers),
      body: JSON.parse(String(init?.body)),
    });
    if (fails instanceof Error) throw fails;
    return fails ?? new Response(answer(path), { headers: json });
  };
  return { reported, fetch: fetchOne, db: connect({ url: 'http://gateway', fetch: fetchOne }) };
}

const failureOf = async (asked: Promise<unknown>): Promise<DbhttpdError> => {
  const error = await asked.then(
    () => null,
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof DbhttpdError, String(error));
  return error;
};

/** A refused connection, as each runtime reports it. */
const refusals: Readonly<Record<string, () => Error>> = {
  node: () => new TypeError('fetch failed', { cause: withCode('ECONNREFUSED') }),
  'node, several addresses': () =>
    new TypeError('fetch failed', {
      cause: Object.assign(new AggregateError([], ''), { code: 'ECONNREFUSED' }),
    }),
  bun: () =>
    withCode('ConnectionRefused', 'Unable to connect. Is the computer able to access the url?'),
  'bun, no socket': () => withCode('FailedToOpenSocket', 'Was there a typo in the url or port?'),
  deno: () =>
    new TypeError(
      'error sending request for url (http://127.0.0.1:1/): client error (Connect): tcp connect error: Connection refused (os error 111)',
    ),
  'deno 1': () =>
    new TypeError(
      'error sending request for url (http://127.0.0.1:1/): error trying to connect: tcp connect error: Connection refused (os error 111)',
    ),
};

function withCode(code: string, message = code): Error {
  return Object.assign(new Error(message), { code });
}

for (const [runtime, refused] of Object.entries(refusals)) {
  test(`a refused connection is tried again, as ${runtime} reports it`, async () => {
    const { reported, db } = fake(refused());
    assert.equal((await db.query('update t set n = 1', [])).rowCount, 1);
    assert.equal(reported.length, 2);
    const gone = fake(refused(), refused());
    const error =
      await failureOf(gone.db.with({ retry: { attempts: 2 } }).query`update t set n = 1`);
    assert.deepEqual(
      [error.code, error.outcome, error.retryable, gone.reported.length],
      ['FETCH_FAILED', 'not_executed', true, 2],
    );
  });
}

test('a connection that broke after it was made is not tried again', async () => {
  for (const broken of [
    new TypeError('fetch failed', { cause: withCode('ECONNRESET') }),
    withCode('ECONNRESET', 'The socket connection was closed unexpectedly.'),
    new TypeError(
      'error sending request for url (http://h/): client error (SendRequest): connection closed before message completed',
    ),
    new TypeError('Load failed'),
  ]) {
    const { reported, db } = fake(broken);
    const error = await failureOf(db.query('update t set n = 1', []));
    assert.deepEqual([error.outcome, error.retryable, reported.length], ['unknown', false, 1]);
  }
});

test('a request without a reply names the gateway and the cause', async () => {
  for (const [cause, message] of [
    [
      new TypeError('fetch failed', {
        cause: withCode('ECONNREFUSED', 'connect ECONNREFUSED ::1:1'),
      }),
      'Could not connect to http://gateway (connect ECONNREFUSED ::1:1). Nothing was executed.',
    ],
    [
      new TypeError('fetch failed', { cause: withCode('UND_ERR_SOCKET', 'other side closed') }),
      'http://gateway sent no reply (UND_ERR_SOCKET: other side closed). Its statements may or may not have been applied.',
    ],
    [
      new TypeError('Load failed'),
      'http://gateway sent no reply (Load failed). Its statements may or may not have been applied.',
    ],
    [
      withCode('ConnectionRefused', 'Unable to connect.'),
      'Could not connect to http://gateway (ConnectionRefused: Unable to connect.). Nothing was executed.',
    ],
  ] as const) {
    const { db } = fake(cause);
    const { message: reported } = await failureOf(
      db.with({ retry: false }).query('delete from t', []),
    );
    assert.equal(reported, message);
  }
});

const problem = (status: number, type = 'application/problem+json') =>
  new Response('{"code":"RATE","outcome":"not_executed","detail":"too many","retryable":true}', {
    status,
    headers: { 'Content-Type': type, 'Retry-After': '0' },
  });

test('429 is treated as 503 is', async () => {
  for (const status of [429, 503]) {
    const { reported, db } = fake(problem(status));
    await db.query`update t set n = 1`;
    assert.equal(reported.length, 2, String(status));
    const page = () =>
      new Response('<h1>slow down</h1>', { status, headers: { 'Retry-After': '0' } });
    const foreign = fake(page());
    assert.equal((await failureOf(foreign.db.query`update t set n = 1`)).outcome, 'unknown');
    assert.equal(foreign.reported.length, 1);
    const keyed = fake(page());
    await keyed.db.query('update t set n = 1', [], { idempotencyKey: true });
    assert.equal(keyed.reported.length, 2);
    const read = await failureOf(fake(page()).db.query('select 1', [], { readOnly: true }));
    assert.equal(read.retryable, true);
  }
});

test('section and request id go with every request of the call, and the other options with none', async () => {
  const { reported, fetch, db } = fake();
  const mine = connect({ url: 'http://gateway', section: 'shop', fetch });
  await mine.query`select 1`;
  await mine.batch([sql`select 1`]);
  await mine.stream`select 1`.next();
  await mine.transaction(async (tx) => tx.one`select 1`);
  await db.query('select 1', [], { section: 'world', requestId: 'order-7' });
  await db.batch([sql`select 1`], { section: 'world', requestId: 'order-7' });
  assert.deepEqual(
    reported.map(({ path, headers, body }) => [
      path,
      (body as { section?: string }).section,
      headers.get('x-request-id'),
    ]),
    [
      ['/v1/query', 'shop', null],
      ['/v1/batch', 'shop', null],
      ['/v1/query', 'shop', null],
      ['/v1/transaction', 'shop', null],
      ['/v1/query', undefined, null],
      ['/v1/transaction/commit', undefined, null],
      ['/v1/query', 'world', 'order-7'],
      ['/v1/batch', 'world', 'order-7'],
    ],
  );
  for (const wrong of ['', 'two words', 'x'.repeat(129), 'é']) {
    await assert.rejects(db.query('select 1', [], { requestId: wrong }), /requestId must be/);
  }
  const shared = { requestId: 'r' } as object;
  assert.throws(() => connect({ url: 'http://gateway', ...shared }), /"requestId" is no option/);
  const lost = fake(new TypeError('Load failed'));
  const error = await failureOf(lost.db.query('select 1', [], { requestId: 'order-8' }));
  assert.equal(error.requestId, 'order-8');
});

test('an aborted call is not to be repeated, whenever the signal came', async () => {
  const { reported, db } = fake();
  const before = await failureOf(db.with({ signal: AbortSignal.abort() }).query`select 1`);
  assert.deepEqual([before.code, before.retryable, reported.length], ['ABORTED', false, 0]);
  for (const options of [{ readOnly: true }, { idempotencyKey: true }] as const) {
    const leaving = new AbortController();
    const hanging = connect({
      url: 'http://gateway',
      fetch: (_url, init) =>
        new Promise((_resolve, reject) => {
          init?.signal?.addEventListener('abort', () => reject(init.signal?.reason));
          setImmediate(() => leaving.abort());
        }),
    });
    const during = await failureOf(
      hanging.query('select 1', [], { ...options, signal: leaving.signal }),
    );
    assert.deepEqual([during.code, during.retryable], ['ABORTED', false]);
  }
  const leaving = new AbortController();
  const busy = connect({
    url: 'http://gateway',
    fetch: async () => {
      setImmediate(() => setImmediate(() => leaving.abort()));
      const { body, status, headers } = problem(503);
      headers.set('Retry-After', '20');
      return new Response(body, { status, headers });
    },
  });
  const between = await failureOf(busy.query('select 1', [], { signal: leaving.signal }));
  assert.deepEqual(
    [between.code, between.outcome, between.retryable],
    ['ABORTED', 'not_executed', false],
  );
});

test('one row, or a failure with the number of rows', async () => {
  const answering = (found: string) =>
    connect({
      url: 'http://gateway',
      fetch: async () =>
        new Response(
          `{"columns":[{"name":"n","type":"INT","nullable":true}],"rows":${found},"row_count":0,${about}}`,
          { headers: json },
        ),
    });
  assert.deepEqual(await answering('[[7]]').one`select n from t`, { n: 7 });
  assert.deepEqual(await answering('[[7]]').maybeOne('select n from t', []), { n: 7 });
  assert.equal(await answering('[]').maybeOne`select n from t`, null);
  const none = await failureOf(answering('[]').one`select n from t`);
  assert.deepEqual([none.code, none.outcome, none.retryable], ['NO_ROW', 'unknown', false]);
  const two = answering('[[7],[8]]');
  for (const asked of [two.one`select n from t`, two.maybeOne`select n from t`]) {
    const several = await failureOf(asked);
    assert.equal(several.code, 'NOT_ONE_ROW');
    assert.match(several.message, /returned 2 rows/);
    assert.equal(several.requestId, 'r');
  }
});

test('a row that was too large to keep with its key is an error, and neither null nor NO_ROW', async () => {
  const replaying = (count: number) => {
    const found = rows.replace('[[1]]', '[]').replace('"row_count":1', `"row_count":${count}`);
    const body = `{${found},${about},"rows_omitted":true}`;
    const fetchOne: typeof fetch = async () => new Response(body, { headers: json });
    return connect({ url: 'http://gateway', fetch: fetchOne, idempotencyKey: true });
  };
  const asks = (count: number) => [
    replaying(count).one`insert into t values (1) returning n`,
    replaying(count).maybeOne`insert into t values (1) returning n`,
  ];
  for (const asked of asks(1)) {
    const { code, outcome, retryable, requestId } = await failureOf(asked);
    assert.deepEqual(
      [code, outcome, retryable, requestId],
      ['ROWS_OMITTED', 'unknown', false, 'r'],
    );
  }
  for (const asked of asks(2)) assert.equal((await failureOf(asked)).code, 'NOT_ONE_ROW');
  // Another result of a CALL lacks its rows.
  assert.equal(await replaying(0).maybeOne('call p()', []), null);
});
