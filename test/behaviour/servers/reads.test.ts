// With `reads = replicas`, declared reads are spread over the replicas that are fresh enough, and no reader notices a server's failure.
// Waits 40 s: servers are probed once a second, and a server that was gone is used again after three probes.
// The tests share one set of servers; each leaves it whole.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { waiting } from '../../support/busy-pool.ts';
import {
  type ReplicatedSet,
  replicationHere,
  startReplication,
} from '../../support/clusters/replication.ts';
import type { ReplicationServer } from '../../support/clusters/replication-server.ts';
import {
  readerOf,
  readersOf,
  roleMetric,
  rolesBecome,
  rolesOf,
  startBefore,
  whoAmI,
} from '../../support/clusters/several-servers.ts';
import { chooseProgram } from '../../support/database/server-process.ts';
import { eventually } from '../../support/eventually.ts';
import type { Gateway } from '../../support/gateway.ts';
import { readMetric } from '../../support/scrape.ts';

const canRun =
  process.env.DBHTTPD_TEST_MYSQL === undefined && chooseProgram().flavour === 'mariadb';
let set: ReplicatedSet;
let gateway: Gateway;
before(async () => {
  if (!canRun) return;
  set = await startReplication();
  await set.primary().query('create table written (id int, index (id)) engine = innodb');
  await set.waitForCatchUp();
  gateway = await startBefore(set, { reads: 'replicas', max_lag: '2s' });
});
after(async () => {
  await gateway?.stop();
  await set?.stop();
});

const serverAt = (at: number) => set.servers[at] as ReplicationServer;

const readerCount = 4;
/** A reader pauses between two reads, because their number does not matter. */
const restMs = 200;
/** The gateway probes its servers once a second, so asking more often does not help. */
const rarely = { everyMs: 500 };

/** Declared reads one after the other, while `act` runs, which may wait for some more of them; how long the longest took, and every failure. */
async function readThroughout(act: (more: () => Promise<void>) => Promise<void>) {
  let isOver = false;
  const found = { longestMs: 0, failures: [] as string[], count: 0 };
  const reader = async () => {
    while (!isOver) {
      const fromMs = performance.now();
      const { status, text } = await gateway.post('/v1/query', { sql: whoAmI, read_only: true });
      found.longestMs = Math.max(found.longestMs, performance.now() - fromMs);
      found.count += 1;
      if (status !== 200) found.failures.push(text);
      await pause(restMs);
    }
  };
  const readers = Array.from({ length: readerCount }, reader);
  const more = async () => {
    const wanted = found.count + readerCount * 2;
    await eventually('reads are answered', () => found.count >= wanted);
  };
  try {
    await act(more);
  } finally {
    isOver = true;
    await Promise.all(readers);
  }
  return found;
}

/** Four times the 2 s within which a server is noticed: this machine is busy with other tests. */
const stallMs = 8_000;

test('declared reads of every kind are spread over the replicas, everything else goes to the primary', async (t) => {
  if (!replicationHere(t)) return;
  await rolesBecome(gateway, ['primary', 'replica', 'replica']);
  assert.deepEqual(await readersOf(gateway), [2, 3]);
  assert.equal(await readerOf(gateway, false), 1);
  const db = (await gateway.dbPost({ SQL: whoAmI })).json<{ RESULT: { ROWS: [[number]] } }>();
  assert.equal(db.RESULT.ROWS[0][0], 1);
  const declared = (await gateway.dbPost({ SQL: whoAmI, READ_ONLY: true })).json<typeof db>();
  assert.ok([2, 3].includes(Number(declared.RESULT.ROWS[0][0])));
  const asked = await gateway.post('/v1/query', { sql: whoAmI }, { method: 'QUERY' });
  assert.ok([2, 3].includes(Number(asked.json<{ rows: [[number]] }>().rows[0][0])), asked.text);
  const batch = async (read_only: boolean) => {
    const reply = await gateway.post('/v1/batch', { statements: [{ sql: whoAmI }], read_only });
    assert.equal(reply.status, 200, reply.text);
    return Number(reply.json<{ results: [{ rows: [[number]] }] }>().results[0].rows[0][0]);
  };
  assert.equal(await batch(false), 1);
  assert.ok([2, 3].includes(await batch(true)));
});

test('under load connections to each server are at most those of the pool, one for control and one for the probe', async (t) => {
  if (!replicationHere(t)) return;
  const slow = { sql: 'select sleep(0.2)' };
  await Promise.all(
    Array.from({ length: 40 }, (_, at) =>
      gateway.post('/v1/query', at % 2 === 0 ? slow : { ...slow, read_only: true }),
    ),
  );
  assert.deepEqual(
    set.servers.map(({ link }) => link.connections().open),
    [4 + 2, 4 + 2, 4 + 2],
  );
});

for (const how of ['stopped', 'locked', { seconds: 30 }] as const) {
  test(`a replica that lags (${JSON.stringify(how)}) is left out over max_lag, and comes back`, async (t) => {
    if (!replicationHere(t)) return;
    let isOver = false;
    const writer = (async () => {
      for (let id = 1; !isOver; id += 1) {
        await gateway.post('/v1/query', { sql: `insert into written values (${id})` });
        await pause(100);
      }
    })();
    try {
      await set.lag(serverAt(1), how);
      const isRead = async () => (await readersOf(gateway, 8)).includes(2);
      await eventually('it is left out', async () => !(await isRead()), rarely);
      assert.deepEqual(await readersOf(gateway, 8), [3]);
      await set.lag(serverAt(1), null);
      await eventually('it is back', isRead, rarely);
    } finally {
      await set.lag(serverAt(1), null);
      isOver = true;
      await writer;
    }
    const leftOut = /a replica is left out of reads .*lag_ms=\d+/;
    await eventually('the log tells of it', () => leftOut.test(gateway.log()));
    await eventually('the log says so', () => gateway.log().includes('a replica has caught up'));
  });
}

const faults: ReadonlyMap<
  string,
  readonly [() => void | Promise<void>, () => void | Promise<void>]
> = new Map([
  ['is frozen', [() => serverAt(1).freeze(), () => serverAt(1).thaw()]],
  [
    'gets nothing any more',
    [() => serverAt(1).link.partition('to server'), () => heal(serverAt(1))],
  ],
  [
    'is not heard any more',
    [() => serverAt(1).link.partition('from server'), () => heal(serverAt(1))],
  ],
  [
    'accepts connections and never answers',
    [
      () => {
        serverAt(1).link.partition();
        serverAt(1).link.cutAll();
      },
      () => heal(serverAt(1)),
    ],
  ],
  ['is killed', [() => serverAt(1).kill(), () => serverAt(1).restart()]],
]);

function heal({ link }: ReplicationServer): void {
  link.heal();
  link.cutAll();
}

for (const [what, [strike, mend]] of faults) {
  test(`no read fails, nor stalls for long, while a replica ${what}`, async (t) => {
    if (!replicationHere(t)) return;
    await rolesBecome(gateway, ['primary', 'replica', 'replica']);
    const found = await readThroughout(async (more) => {
      await more();
      await strike();
      await rolesBecome(gateway, ['primary', 'unusable', 'replica']);
      await more();
    });
    t.diagnostic(`${found.count} reads, the longest ${Math.round(found.longestMs)} ms`);
    await mend();
    assert.deepEqual(found.failures, []);
    assert.ok(found.longestMs < stallMs, `${found.longestMs}`);
    await rolesBecome(gateway, ['primary', 'replica', 'replica']);
    await eventually(
      'it is read from',
      async () => (await readersOf(gateway, 8)).includes(2),
      rarely,
    );
  });
}

test('a read-only batch whose replica freezes in the middle is answered by another server', async (t) => {
  if (!replicationHere(t)) return;
  const statements = [{ sql: whoAmI }, { sql: 'select sleep(0.3)' }, { sql: whoAmI }];
  const asked = Array.from({ length: 4 }, () =>
    gateway.post('/v1/batch', { statements, read_only: true }),
  );
  await eventually('both replicas are at it', async () => {
    const busy = [1, 2].map((at) => serverAt(at).link.statements.slice(-8).join());
    return busy.every((texts) => texts.includes('sleep(0.3)'));
  });
  serverAt(1).freeze();
  const fromMs = performance.now();
  const replies = await Promise.all(asked);
  t.diagnostic(`${Math.round(performance.now() - fromMs)} ms`);
  serverAt(1).thaw();
  assert.deepEqual(
    replies.map(({ status }) => status),
    [200, 200, 200, 200],
    replies.map(({ text }) => text).join('\n'),
  );
  for (const reply of replies) {
    const { results } = reply.json<{ results: { rows: [[number]] }[] }>();
    assert.equal(results.length, 3);
    assert.equal(results[0]?.rows[0][0], results[2]?.rows[0][0]);
  }
  await rolesBecome(gateway, ['primary', 'replica', 'replica']);
});

/** Identical reads share one execution here, and one session for each of two servers; null: not started. */
let sharing: Gateway | null = null;
after(() => sharing?.stop());

function startSharing(): Promise<Gateway> {
  const host = [0, 1].map((at) => `127.0.0.1:${serverAt(at).port}`).join(', ');
  const settings = {
    reads: 'replicas',
    coalesce: 'on',
    pool: 1,
    statement_timeout: '1m',
    max_wait: '15s',
  };
  return startBefore({ target: { ...set.target, host } }, settings);
}

for (const [what, isSent] of [
  ['wait at a replica together', false],
  ['share one that was sent to a replica', true],
] as const) {
  test(`identical reads that ${what} are answered by another server when it freezes`, async (t) => {
    if (!replicationHere(t)) return;
    await rolesBecome(gateway, ['primary', 'replica', 'replica']);
    const { link } = serverAt(1);
    sharing ??= await startSharing();
    const { post } = sharing;
    const shared = () => readMetric(sharing as Gateway, 'dbhttpd_coalesced_requests_total');
    const sharedBefore = await shared();
    const ask = (sql: string) => post('/v1/query', { sql, read_only: true });
    const locking = await serverAt(1).connect();
    try {
      await rolesBecome(sharing, ['primary', 'replica']);
      const sql = `select count(*) from written where id = ${Number(isSent)}`;
      assert.equal((await ask('select id from written limit 1')).status, 200, 'its table is known');
      await locking.query('lock tables written write');
      const wasSent = (text: string) => () => link.statements.includes(text);
      const held = link.on(/^select 'busy'$/, { kind: 'hold' }, { times: 1 });
      const busy = ask("select 'busy'");
      await eventually('its only session is busy', () => held.hits() === 1);
      const asked = Array.from({ length: 5 }, () => ask(sql));
      await waiting(sharing, asked.length);
      if (isSent) link.release();
      if (isSent) await eventually('one is sent for all', wasSent(sql));
      const fromMs = performance.now();
      serverAt(1).freeze();
      const replies = await Promise.all([busy, ...asked]);
      const ms = performance.now() - fromMs;
      assert.deepEqual(
        replies.map(({ status, text }) => (status === 200 ? 200 : text)),
        Array<number>(6).fill(200),
      );
      assert.ok((await shared()) > sharedBefore);
      assert.ok(ms < stallMs, `${ms} ms`);
    } finally {
      serverAt(1).thaw();
      link.release();
      await locking.end();
    }
    await rolesBecome(gateway, ['primary', 'replica', 'replica']);
  });
}

test('when no replica is left the primary serves reads; without a primary the replicas go on', async (t) => {
  if (!replicationHere(t)) return;
  await Promise.all([1, 2].map((at) => serverAt(at).link.listen(false)));
  for (const at of [1, 2]) serverAt(at).link.cutAll();
  const found = await readThroughout(() =>
    rolesBecome(gateway, ['primary', 'unusable', 'unusable']),
  );
  assert.deepEqual(found.failures, []);
  assert.deepEqual(await readersOf(gateway, 4), [1]);
  for (const at of [1, 2]) await serverAt(at).link.listen(true);
  await rolesBecome(gateway, ['primary', 'replica', 'replica']);
  await serverAt(0).kill();
  const without = await readThroughout(() =>
    rolesBecome(gateway, ['unusable', 'replica', 'replica']),
  );
  assert.deepEqual(without.failures, []);
  assert.deepEqual(await readersOf(gateway), [2, 3]);
  const sql = 'insert into written values (1)';
  const write = await gateway.post('/v1/query', { sql, timeout_ms: 300 });
  assert.deepEqual([write.status, write.json<{ code: string }>().code], [503, 'NO_PRIMARY']);
  await serverAt(0).restart();
  await rolesBecome(gateway, ['primary', 'replica', 'replica']);
  assert.equal((await rolesOf(gateway)).length, 3);
  assert.equal(await roleMetric(gateway, `127.0.0.1:${serverAt(0).port}`, 'primary'), 1);
});

test('a write that comes when a partition is over does not wait for connections from before', async (t) => {
  if (!replicationHere(t)) return;
  await rolesBecome(gateway, ['primary', 'replica', 'replica']);
  const { link } = serverAt(0);
  const insert = () => gateway.post('/v1/query', { sql: 'insert into written values (1)' });
  // More than the pool has connections: all of these are being opened, and meet silence.
  const insertMany = () => Promise.all(Array.from({ length: 8 }, insert));
  link.partition();
  link.cutAll();
  const during = insertMany();
  await eventually(
    'the primary is missed',
    async () => (await rolesOf(gateway))[0] === 'unusable',
    rarely,
  );
  link.admit();
  await rolesBecome(gateway, ['primary', 'replica', 'replica']);
  const after = await insertMany();
  assert.deepEqual(
    after.map(({ status }) => status),
    after.map(() => 200),
  );
  await during;
  link.cutAll();
});
