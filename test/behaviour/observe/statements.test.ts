// GET /v1/statements: what statements cost, by their digests: over all workers, without a literal, in time though one hangs.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { startGateway } from '../../support/gateway.ts';
import { gone } from '../../support/processes.ts';
import { getReport } from '../../support/reports.ts';
import { useGateway } from '../../support/use-gateway.ts';

type Line = {
  readonly digest: string;
  readonly section?: string;
  readonly count: number;
  readonly errors: number;
  readonly errors_by: Readonly<Record<string, number>>;
  readonly rows: number;
  readonly total_ms: number;
  readonly share: number;
  readonly p50_ms: number | null;
  readonly p95_ms: number | null;
  readonly p99_ms: number | null;
  readonly last_seen: string | null;
  readonly example_id: string | null;
};

const token = 'a-token-of-the-test';
const headers = { Authorization: `Bearer ${token}` };

const { gateway, database } = useGateway(
  { token, workers: 2 },
  {
    prepare: async (prepared) => {
      await prepared.query('create table kept (id int primary key, name varchar(64))');
    },
  },
);

const ask = (sql: string, more: object = {}, id = 'some-request') =>
  gateway.post('/v1/query', { sql, ...more }, { headers: { ...headers, 'X-Request-ID': id } });

async function lines(): Promise<readonly Line[]> {
  const reply = await getReport(gateway, '/v1/statements', { headers });
  assert.equal(reply.status, 200, reply.text);
  return reply.json<{ statements: Line[] }>().statements;
}

const lineOf = async (digest: string) =>
  (await lines()).find((line) => line.digest === digest) as Line;

/** The gateway counts a request after its reply has left, so the count may come a moment later. */
const counted = (digest: string, count: number) =>
  eventually(`${count} of ${digest}`, async () => {
    const line = await lineOf(digest);
    return line?.count === count ? line : undefined;
  });

test('counts statements that differ only in literals together, over both workers', async () => {
  const from = Date.now();
  const bodies = Array.from(
    { length: 40 },
    (_, number) => `select ${number}, 'text ${number}' as a`,
  );
  const replies = await Promise.all(bodies.map((sql, number) => ask(sql, {}, `one-of-${number}`)));
  assert.ok(replies.every(({ status }) => status === 200));
  const line = await counted('select ? as a', 40);
  assert.equal(line.section, 'world');
  assert.equal(line.rows, 40);
  assert.equal(line.errors, 0);
  assert.match(line.example_id ?? '', /^one-of-\d+$/);
  assert.ok(Date.parse(line.last_seen ?? '') >= from - 1000);
  const [p50, p95, p99] = [line.p50_ms ?? 0, line.p95_ms ?? 0, line.p99_ms ?? 0];
  assert.ok(p50 > 0 && p50 <= p95 && p95 <= p99 && p99 <= line.total_ms, JSON.stringify(line));
});

test('sorts by share of the time; `other` comes last, and all shares are one', async () => {
  await ask('select sleep(0.4) as slow');
  await counted('select sleep(?) as slow', 1);
  const all = await lines();
  const slow = all.find(({ digest }) => digest === 'select sleep(?) as slow') as Line;
  assert.ok(slow.total_ms >= 400 && (slow.p50_ms ?? 0) >= 320, JSON.stringify(slow));
  assert.equal(all.at(-1)?.digest, 'other');
  const shares = all.slice(0, -1).map(({ share }) => share);
  assert.deepEqual(
    shares,
    shares.toSorted((one, other) => other - one),
  );
  const whole = all.reduce((sum, { share }) => sum + share, 0);
  const wholeMs = all.reduce((sum, { total_ms }) => sum + total_ms, 0);
  assert.ok(Math.abs(whole - 1) < 0.001, `${whole}`);
  assert.ok(Math.abs(slow.share - slow.total_ms / wholeMs) < 0.001, JSON.stringify(all));
});

test('shows no literal from any place in a statement', async () => {
  const texts = [
    "select 'qzx7531', 7531, 0x7531, -7531.7531e1 from kept",
    "select 'it''s qzx7531', 'it\\'s', 'qzx7531' from kept",
    `select "qzx7531", n'qzx7531', x'7531', b'1', _utf8mb4'qzx7531' from kept`,
    'select /* qzx7531 */ name from kept -- qzx7531',
    "select name from kept where name in ('qzx7531', 'a') and id in (7531, 2) # qzx7531",
    "insert into kept values (7531, 'qzx7531'), (7532, 'qzx7531')",
    "select 'open qzx7531",
  ];
  for (const sql of texts) await ask(sql);
  await ask('select name from kept where id = ? or name = ?', { params: [7531, 'qzx7531'] });
  await gateway.post(
    '/v1/batch',
    { statements: [{ sql: 'select 7531' }, { sql: "update kept set name = 'qzx7531'" }] },
    { headers },
  );
  await counted('select name from kept where id = ? or name = ?', 1);
  await counted('select ?; update kept set name = ?', 1);
  const { text } = await getReport(gateway, '/v1/statements', { headers });
  assert.match(text, /insert into kept values \(\?\)/);
  assert.doesNotMatch(text, /7531|qzx|7532/);
});

test('counts errors by their class', async () => {
  await ask("insert into kept values (1, 'a')");
  await ask("insert into kept values (1, 'b')");
  await ask('select sleep(20) as killed', { timeout_ms: 2_000 });
  const killed = await counted('select sleep(?) as killed', 1);
  assert.equal(killed.errors, 1);
  assert.deepEqual(killed.errors_by, { DEADLINE_RUNNING: 1 });
  const inserts = await eventually('the other worker has reported too', async () => {
    const line = await lineOf('insert into kept values (?)');
    return line?.errors === 1 && line;
  });
  assert.deepEqual(inserts.errors_by, { ER_DUP_ENTRY: 1 });
});

test('a worker that dies takes nothing with it that it had reported', async () => {
  const texts = Array.from({ length: 30 }, (_, number) => `select ${number} as kept_by_all`);
  await Promise.all(texts.map((sql) => ask(sql)));
  await counted('select ? as kept_by_all', 30);
  const [worker = 0] = gateway.workers();
  process.kill(worker, 'SIGKILL');
  await gone(worker);
  assert.equal((await lineOf('select ? as kept_by_all')).count, 30);
  await Promise.all(texts.map((sql) => ask(sql)));
  await counted('select ? as kept_by_all', 60);
});

test('answers within a second though a worker hangs', async () => {
  await eventually('both workers serve', async () => {
    const reply = await gateway.get('/v1/stats', { headers });
    const { workers } = reply.json<{ workers: { state: string }[] }>();
    return workers.every(({ state }) => state === 'serving');
  });
  const [worker = 0] = gateway.workers();
  process.kill(worker, 'SIGSTOP');
  try {
    // At once, before the supervisor notices that it hangs. Connections that the kernel gives to it wait; the other takes the rest,
    // waits for the supervisor for 950 ms, and would then say 503.
    const asked = Array.from({ length: 8 }, () =>
      gateway.get('/v1/statements', { headers, timeoutMs: 5000 }),
    );
    const settled = await Promise.allSettled(asked);
    const replies = settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    assert.ok(replies.length > 0);
    for (const { status, text } of replies) assert.equal(status, 200, text);
  } finally {
    process.kill(worker, 'SIGCONT');
  }
});

test('needs the token, takes only GET and HEAD, and pins no client to a worker', async () => {
  assert.equal((await gateway.get('/v1/statements')).status, 401);
  const refused = await gateway.post('/v1/statements', {}, { headers });
  assert.equal(refused.status, 405);
  assert.equal(refused.headers.allow, 'GET, HEAD');
  const reply = await getReport(gateway, '/v1/statements', { headers });
  assert.equal(reply.headers.connection, 'close');
  assert.equal(reply.headers['content-type'], 'application/json; charset=utf-8');
  assert.equal(reply.headers['cache-control'], 'no-store');
  const head = await getReport(gateway, '/v1/statements', { method: 'HEAD', headers });
  assert.equal(head.status, 200);
  assert.equal(head.text, '');
});

test('sections are distinguished', async () => {
  const several = await startGateway({
    database,
    settings: { workers: 1 },
    beside: { second: { database } },
  });
  try {
    for (const section of ['world', 'second', 'second'])
      await several.post('/v1/query', { sql: 'select 1', section });
    const reply = await getReport(several, '/v1/statements');
    const found = reply.json<{ statements: Line[] }>().statements.slice(0, -1);
    const counts = Object.fromEntries(found.map(({ section, count }) => [section, count]));
    assert.deepEqual(counts, { world: 1, second: 2 });
  } finally {
    await several.stop();
  }
});
