// A former primary that returns: never written to by a gateway that has seen its successor, or sees a server that has.
// The tests go on where the one before them has left the servers: A was the primary, B is, and C follows one of them.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  type ReplicatedSet,
  replicationHere,
  startReplication,
} from '../../support/clusters/replication.ts';
import type { ReplicationServer } from '../../support/clusters/replication-server.ts';
import { rolesBecome, startBefore } from '../../support/clusters/several-servers.ts';
import { chooseProgram } from '../../support/database/server-process.ts';
import { eventually } from '../../support/eventually.ts';
import type { Gateway } from '../../support/gateway.ts';
import { createWorkspace, type Workspace } from '../../support/workspace.ts';

const canRun =
  process.env.DBHTTPD_TEST_MYSQL === undefined && chooseProgram().flavour === 'mariadb';
let set: ReplicatedSet;
/** What the gateway remembers, also when it is started again. */
let state: Workspace;
let gateway: Gateway;
let [a, b, c] = [] as unknown as [ReplicationServer, ReplicationServer, ReplicationServer];

const start = (settings = {}) => startBefore(set, { workers: 2, failover_wait: '2s', ...settings });
const remembering = () => start({ state_dir: state.path });

before(async () => {
  if (!canRun) return;
  state = createWorkspace('state', () => {});
  set = await startReplication();
  [a, b, c] = set.servers as [ReplicationServer, ReplicationServer, ReplicationServer];
  // Without it an account sees that a server is a replica, and not of which one.
  await a.query(`create table written (id int auto_increment primary key) engine = innodb;
    grant slave monitor on *.* to app@127.0.0.1`);
  await set.waitForCatchUp();
  gateway = await remembering();
  await rolesBecome(gateway, ['primary', 'replica', 'replica']);
});
after(async () => {
  await gateway?.stop();
  await set?.stop();
  state?.remove();
});

/** What becomes of so many writes at a time, by every worker: each status once. */
async function write(through: Gateway, count = 20): Promise<readonly string[]> {
  const replies = await Promise.all(
    Array.from({ length: count }, () =>
      through.post('/v1/query', { sql: 'insert into written values ()', timeout_ms: 4_000 }),
    ),
  );
  const told = replies.map(({ status, json }) => {
    return status === 200 ? '200' : `${status} ${json<{ code: string }>().code}`;
  });
  return [...new Set(told)].sort();
}

async function countOn(server: ReplicationServer): Promise<number> {
  const [row] = await server.query('select count(*) as n from written');
  return Number(row?.n);
}

/** Why a gateway writes nowhere, as everybody is told; null: it writes. */
async function whyNone(through: Gateway): Promise<{ reason: string; evidence: string } | null> {
  const { sections } = (await through.get('/readyz')).json<{
    sections: Record<string, { no_primary?: { reason: string; evidence: string } }>;
  }>();
  return sections[through.section]?.no_primary ?? null;
}

/** A comes back as it was configured: writable, and following nobody. */
async function returnOfA(): Promise<void> {
  await a.kill();
  await eventually('it is gone', async () => (await whyNone(gateway)) !== null);
  await b.query('stop slave; reset slave all; set global read_only = 0');
  await rolesBecome(gateway, ['unusable', 'primary', 'unusable']);
  await a.restart();
  const [position] = await c.query('show slave status');
  assert.ok(position, 'C still follows A');
}

test('a former primary beside an idle successor gets no write, though the third still follows it', async (t) => {
  if (!replicationHere(t)) return;
  await returnOfA();
  await eventually('both are seen', () =>
    /several candidates can be written to/.test(gateway.log()),
  );
  await rolesBecome(gateway, ['unusable', 'primary', 'unusable']);
  const fresh = await start();
  try {
    // Nothing that it sees or remembers tells which of the two was promoted.
    assert.deepEqual(await write(fresh), ['503 TWO_PRIMARIES']);
  } finally {
    await fresh.stop();
  }
  // Nothing but the memory tells.
  await gateway.stop();
  gateway = await remembering();
  await rolesBecome(gateway, ['unusable', 'primary', 'unusable']);
  const before = await countOn(a);
  for (let round = 0; round < 4; round += 1) assert.deepEqual(await write(gateway), ['200']);
  assert.equal(await countOn(a), before);
  assert.equal(await countOn(b), before + 80);
});

test('a worker that was just started, and cannot reach the primary alone, does not write to the former one', async (t) => {
  if (!replicationHere(t)) return;
  await set.follow(c, b);
  await rolesBecome(gateway, ['unusable', 'primary', 'replica']);
  await cutOff(b);
  const [worker] = gateway.workers();
  assert.ok(worker !== undefined);
  process.kill(worker, 'SIGKILL');
  await eventually('another one serves', async () => {
    const workers = gateway.workers();
    return workers.length === 2 && !workers.includes(worker);
  });
  const before = await countOn(a);
  assert.deepEqual(await write(gateway), ['503 NO_PRIMARY']);
  assert.equal(await countOn(a), before);
  const none = await whyNone(gateway);
  assert.equal(none?.reason, 'not_successor');
  assert.match(none.evidence, /^candidate 1 is writable, but another server is remembered/);
  const line = /no server takes writes section=world reason=not_successor evidence="candidate 1 is/;
  await eventually('the log says why', () => line.test(gateway.log()));
});

test('a gateway on a new host does not either, while a replica is connected to the server that it cannot reach', async (t) => {
  if (!replicationHere(t)) return;
  // What B writes now does not come to C: no position tells of it.
  await c.query('stop slave sql_thread');
  await b.query('insert into written values ()');
  const before = await countOn(a);
  const fresh = await start();
  try {
    assert.deepEqual(await write(fresh), ['503 NO_PRIMARY']);
    assert.equal((await whyNone(fresh))?.reason, 'replica_elsewhere');
    assert.equal(await countOn(a), before);
    await b.link.listen(true);
    await c.query('start slave sql_thread');
    for (const one of [gateway, fresh]) {
      await eventually('writes go on', async () => (await write(one, 2)).join() === '200');
    }
    assert.equal(await countOn(a), before);
  } finally {
    await fresh.stop();
  }
});

/** No gateway reaches it any more, and the other servers do. */
async function cutOff(server: ReplicationServer): Promise<void> {
  await server.link.listen(false);
  server.link.cutAll();
  await eventually('it is not seen', async () => (await whyNone(gateway)) !== null);
}
