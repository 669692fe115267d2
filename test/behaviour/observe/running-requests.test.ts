// The running requests of all workers, and their end: a statement of another worker is killed, and no other.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { Reply } from '../../support/ask.ts';
import { closeGate, createGate } from '../../support/database/gate.ts';
import { openProcesslist, type Processlist } from '../../support/database/processlist.ts';
import { eventually } from '../../support/eventually.ts';
import { getReport, inTime } from '../../support/reports.ts';
import { useGateway } from '../../support/use-gateway.ts';

type Running = {
  readonly id: string;
  readonly request_id: string;
  readonly trace_id: string | null;
  readonly age_ms: number;
  readonly phase: string;
  readonly client: string;
  readonly user: string | null;
  readonly address: string | null;
  readonly worker: number;
  readonly backend: string | null;
  readonly section: string;
  readonly shape: string | null;
};
type List = { requests: Running[]; omitted: number; silent_workers: number[] };

let processes: Processlist;
const { gateway, database } = useGateway(
  { workers: 2, pool: 3, max_wait: '1m', statement_timeout: '5m', token: 'a-token-of-sixteen' },
  {
    prepare: async (prepared) => {
      await createGate(prepared);
      await prepared.query('create table written (n int)');
      processes = await openProcesslist(prepared);
    },
  },
);
after(() => processes?.close());

const headers = { Authorization: 'Bearer a-token-of-sixteen' };
const run = (sql: string, id: string): Promise<Reply> =>
  gateway.post('/v1/query', { sql }, { headers: { ...headers, 'X-Request-ID': id } });
const kill = (id: string, more = {}) =>
  inTime(`the end of ${id}`, () =>
    gateway.request(`/v1/requests/${id}`, { method: 'DELETE', headers: { ...headers, ...more } }),
  );

type Stats = { readonly backends: readonly { connections: { connecting: number } }[] };

async function list(): Promise<List> {
  const reply = await getReport(gateway, '/v1/requests', { headers });
  assert.equal(reply.status, 200, reply.text);
  assert.equal(reply.headers.connection, 'close');
  return reply.json<List>();
}

/** Requests of both workers that wait at a gate, each with its own id. While one worker is stopped, the other takes all requests. */
async function occupyBoth(zero: string) {
  const replies = new Map<string, Promise<Reply>>();
  const ask = (id: string) => replies.set(id, run(`select 'a secret', 4711, ${zero} as z`, id));
  ask('first');
  const [first] = await eventually('it is listed', async () => {
    const { requests } = await list();
    return requests.length === 1 && requests;
  });
  // A stopped worker sends nothing, so its statement must be in the database before.
  await processes.started('gate', 1);
  const pid = Number(first?.id.split('-')[1]);
  process.kill(pid, 'SIGSTOP');
  ask('second');
  ask('third');
  await processes.started('gate', 3).finally(() => process.kill(pid, 'SIGCONT'));
  const listed = await eventually('both workers tell', async () => {
    const { requests } = await list();
    return requests.length === 3 && requests;
  });
  assert.equal(new Set(listed.map(({ worker }) => worker)).size, 2);
  return { replies, listed };
}

test('all running requests are listed, by any worker, and each can be ended without the others', async (t) => {
  const gate = await closeGate(database);
  t.after(gate.open);
  const { replies, listed } = await occupyBoth(gate.zero);
  for (const one of listed) {
    assert.match(one.id, /^[01]-\d+-\d+$/);
    assert.deepEqual(Object.keys(one), [
      'id',
      'request_id',
      'trace_id',
      'age_ms',
      'phase',
      'client',
      'user',
      'address',
      'backend',
      'section',
      'named',
      'tool',
      'shape',
      'worker',
    ]);
    assert.equal(one.address?.replace('::ffff:', ''), '127.0.0.1');
    assert.deepEqual([one.client, one.user], ['default', null]);
    assert.equal(one.section, 'world');
    assert.equal(one.phase, 'running');
    assert.equal(one.backend, `${database.host}:${database.port}`);
    assert.match(
      one.shape ?? '',
      /^select \?, \(select count\(\*\) \+ sleep\(\?\) from gate\) as z$/,
    );
  }
  assert.equal(new Set(listed.map(({ id }) => id)).size, listed.length);
  assert.ok(listed.every((one, at) => at === 0 || one.age_ms <= (listed[at - 1]?.age_ms ?? 0)));
  await eventually('they run', async () =>
    (await list()).requests.some(({ phase }) => phase === 'running'),
  );

  const victims = [0, 1].map((worker) => listed.find((one) => one.worker === worker));
  for (const victim of victims) {
    assert.ok(victim !== undefined);
    const ended = await kill(victim.id);
    assert.equal(ended.status, 200, ended.text);
    assert.deepEqual(ended.json(), { id: victim.id, killed: true });
    const reply = await replies.get(victim.request_id);
    assert.equal(reply?.status, 504);
    assert.equal(reply?.json<{ code: string }>().code, 'KILLED');
    assert.equal((await kill(victim.id)).status, 404);
    const line = new RegExp(`an operator ended a request.*${victim.request_id}`);
    await eventually('the log tells of it', () => line.test(gateway.log()));
  }
  const left = listed.length - victims.length;
  await eventually(
    'the others still run',
    async () => (await processes.running('gate')).length === left,
  );
  assert.equal((await list()).requests.length, left);
  await gate.open();
  for (const [id, reply] of replies) {
    if (!victims.some((victim) => victim?.request_id === id))
      assert.equal((await reply).status, 200, id);
  }
  assert.deepEqual((await list()).requests, []);
});

test('a waiting request is ended without a trace, and a write is reported as unknown', async (t) => {
  const gate = await closeGate(database);
  t.after(gate.open);
  const writes = Array.from({ length: 16 }, (_, at) =>
    run(`insert into written select ${at} + ${gate.zero}`, `write-${at}`),
  );
  const requests = await eventually(
    'some run, some wait, and no connection is still to come',
    async () => {
      const { backends } = (await gateway.get('/v1/stats', { headers })).json<Stats>();
      const isComing = backends.some(({ connections }) => connections.connecting > 0);
      const { requests: all } = await list();
      if (isComing) return null;
      const waiting = all.filter(({ phase }) => phase === 'waiting').length;
      const running = (await processes.running('insert')).length;
      return all.length === 16 && waiting > 0 && running > 0 && running === 16 - waiting && all;
    },
  );
  const isWaiting = ({ phase }: Running) => phase === 'waiting';
  // A connection that comes free would go to one that waits.
  for (const some of [requests.filter(isWaiting), requests.filter((one) => !isWaiting(one))]) {
    const ended = await Promise.all(some.map(({ id }) => kill(id)));
    assert.ok(ended.every(({ status }) => status === 200));
  }
  const reported = (await Promise.all(writes)).map((reply) => {
    assert.equal(reply.status, 504, reply.text);
    const { code, outcome } = reply.json<{ code: string; outcome: string }>();
    assert.equal(code, 'KILLED');
    return outcome;
  });
  const waited = requests.filter(isWaiting).length;
  assert.equal(
    reported.filter((outcome) => outcome === 'not_executed').length,
    waited,
    reported.join(),
  );
  assert.equal(reported.filter((outcome) => outcome === 'unknown').length, 16 - waited);
  await processes.ended('insert');
  await gate.open();
  const [counted] = await database.query('select count(*) as n from written');
  assert.ok(Number(counted?.n) <= 16 - waited);
});

test('no other request triggers it: no token, a foreign page, another method, no such number', async (t) => {
  const gate = await closeGate(database);
  t.after(gate.open);
  const reply = run(`select ${gate.zero}`, 'stays');
  const [{ id } = { id: '' }] = await eventually('it is listed', async () => {
    const { requests } = await list();
    return requests.length === 1 && requests;
  });
  const anonymous = await gateway.request(`/v1/requests/${id}`, { method: 'DELETE' });
  assert.equal(anonymous.status, 401);
  assert.equal((await gateway.get('/v1/requests')).status, 401);
  assert.equal((await kill(id, { Origin: 'https://elsewhere.example' })).status, 403);
  assert.equal((await kill(id, { 'Sec-Fetch-Site': 'cross-site' })).status, 403);
  const read = await gateway.get(`/v1/requests/${id}`, { headers });
  assert.equal(read.status, 405);
  assert.equal(read.headers.allow, 'DELETE');
  const [slot, pid, number] = id.split('-');
  for (const other of [
    `${slot}-${Number(pid) + 1}-${number}`,
    `${slot}-${pid}-99`,
    '7-7-7',
    'x',
    '%2e',
    '*',
  ]) {
    assert.equal((await kill(other)).status, 404, other);
  }
  assert.equal((await list()).requests.length, 1);
  await gate.open();
  assert.equal((await reply).status, 200);
});

test('a worker that hangs is named, and the others are still listed', async (t) => {
  const gate = await closeGate(database);
  t.after(gate.open);
  const { replies } = await occupyBoth(gate.zero);
  const [hung = 0] = gateway.workers();
  process.kill(hung, 'SIGSTOP');
  try {
    // On a busy machine the sound worker may be late too: then the list is refused, or names both.
    const reported = await eventually('an answer of the sound worker alone', async () => {
      const reply = await gateway.get('/v1/requests', { headers, timeoutMs: 1000 });
      if (reply.status !== 200) return null;
      const answer = reply.json<List>();
      return answer.silent_workers.length === 1 && answer;
    });
    assert.ok(reported.requests.length > 0);
    assert.ok(reported.requests.every(({ worker }) => !reported.silent_workers.includes(worker)));
  } finally {
    process.kill(hung, 'SIGCONT');
  }
  await gate.open();
  for (const reply of replies.values()) assert.equal((await reply).status, 200);
});
