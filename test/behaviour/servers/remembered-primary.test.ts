// A former primary that comes back is not written to before an operator says so, whatever else cannot be seen.
// Waits 15 s: servers are probed once a second, and a server that was gone counts after three probes.
// Each test begins where the one before has left the servers: db1 was the primary, and db2 is.
import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { parsePrimaryMemory } from '../../../src/shared/servers/primary-memory.ts';
import {
  type ReplicatedSet,
  replicationHere,
  startReplication,
} from '../../support/clusters/replication.ts';
import type { ReplicationServer } from '../../support/clusters/replication-server.ts';
import {
  readerOf,
  readyReasonsOf,
  rolesBecome,
  rolesOf,
  startBefore,
} from '../../support/clusters/several-servers.ts';
import { runCommand } from '../../support/daemon.ts';
import { chooseProgram } from '../../support/database/server-process.ts';
import { eventually } from '../../support/eventually.ts';
import type { Gateway } from '../../support/gateway.ts';
import { readMetric } from '../../support/scrape.ts';
import { createWorkspace } from '../../support/workspace.ts';

const canRun =
  process.env.DBHTTPD_TEST_MYSQL === undefined && chooseProgram().flavour === 'mariadb';
const workspace = createWorkspace('remembered', () => {});
const inWorkspace = (name: string) => join(workspace.path, name);
const stateDir = inWorkspace('state');
let set: ReplicatedSet;
let gateway: Gateway;
before(async () => {
  if (!canRun) return;
  set = await startReplication({ replicas: 2 });
  await set.primary().query(`
    grant slave monitor on *.* to '${set.target.user}'@'127.0.0.1';
    create table written (id int auto_increment primary key, note int) engine = innodb`);
  await set.waitForCatchUp();
  await start(stateDir);
});
after(async () => {
  await gateway?.stop();
  await set?.stop();
  workspace.remove();
});

async function start(directory: string): Promise<void> {
  gateway = await startBefore(set, { state_dir: directory, failover_wait: '1s' });
}

/** Stops the gateway and starts another one with this directory. */
async function restart(directory: string): Promise<void> {
  await gateway.stop();
  await start(directory);
}

const serverAt = (at: number) => set.servers[at] as ReplicationServer;
const addressOf = (at: number) => `${serverAt(at).host}:${serverAt(at).port}`;
let lastNote = 0;

/** Writes a row through the gateway. Returns the reply, and whether a server has the row. */
async function write() {
  lastNote += 1;
  const note = lastNote;
  const sql = 'insert into written (note) values (?)';
  const reply = await gateway.post('/v1/query', { sql, params: [note] });
  return { reply, isOn: (at: number) => isOn(at, note) };
}

async function isOn(at: number, note: number): Promise<boolean> {
  const rows = await serverAt(at).query('select 1 from written where note = ?', [note]);
  return rows.length > 0;
}

async function assertWrittenTo(at: number): Promise<void> {
  const { reply, isOn: isThere } = await write();
  assert.equal(reply.status, 200, `${reply.text}\n${gateway.log()}`);
  assert.equal(await isThere(at), true);
  if (at !== 0) assert.equal(await isThere(0), false, 'it is not on the former primary');
}

/** The gateway reaches the server again. Its pool connects again a moment after the server has its role. */
async function reconnect(at: number): Promise<void> {
  await serverAt(at).link.listen(true);
  await rolesBecome(gateway, ['unusable', 'primary', 'replica']);
  await eventually('a write is served', async () => (await write()).reply.status === 200);
  await assertWrittenTo(at);
}

/** Why no server takes writes, as /readyz reports it. */
async function whyNone(): Promise<{ readonly reason: string; readonly evidence: string } | null> {
  type Reported = { no_primary?: { reason: string; evidence: string } };
  const ready = (await gateway.get('/readyz')).json<{ sections: Record<string, Reported> }>();
  return ready.sections[gateway.section]?.no_primary ?? null;
}

/** @param rule the reason, if only one rule can be it */
async function assertRefused(rule?: string): Promise<void> {
  await eventually('no primary', async () => !(await rolesOf(gateway)).includes('primary'));
  if (rule !== undefined) {
    await eventually('the reason is reported', async () => (await whyNone())?.reason === rule);
    const { evidence } = (await whyNone()) ?? {};
    const line = `no server takes writes section=world reason=${rule} evidence="${evidence}"`;
    await eventually('the log reports it', () => gateway.log().includes(line));
    assert.equal(await readMetric(gateway, 'dbhttpd_no_primary', { reason: rule }), 1);
  }
  const { reply, isOn: isThere } = await write();
  assert.equal(reply.status, 503, `${reply.text}\n${await readyReasonsOf(gateway)}`);
  assert.match(reply.text, /NO_PRIMARY/);
  assert.equal(await isThere(0), false, 'it is not on the former primary');
}

/** From here on the gateway cannot reach the server, and other programs can. */
async function cutOff(at: number): Promise<void> {
  await serverAt(at).link.listen(false);
  serverAt(at).link.cutAll('reset');
}

function readMemory(directory = stateDir) {
  return parsePrimaryMemory(readFileSync(join(directory, 'world.primary'), 'utf8'));
}

test('a former primary that returns beside a new one without writes is not written to, although a replica still follows it', async (t) => {
  if (!replicationHere(t)) return;
  await assertWrittenTo(0);
  await eventually('the primary and its replicas are on disk', () => {
    const memory = readMemory();
    return memory?.primary.address === addressOf(0) && memory.replicas.length === 2;
  });
  mkdirSync(inWorkspace('old'), { mode: 0o700 });
  copyFileSync(join(stateDir, 'world.primary'), inWorkspace('old/world.primary'));
  await set.waitForCatchUp();
  await serverAt(0).kill();
  await serverAt(1).query('stop slave; reset slave all; set global read_only = 0');
  await rolesBecome(gateway, ['unusable', 'primary', 'unusable']);
  assert.equal(
    readMemory()?.primary.address,
    addressOf(1),
    'it is on disk before it is written to',
  );
  await serverAt(0).restart();
  await eventually('db3 follows db1 again', async () => {
    const [status] = await serverAt(2).query('show slave status');
    return status?.Slave_IO_Running === 'Yes';
  });
  await eventually(
    'db1 is seen',
    async () => (await readyReasonsOf(gateway))[0]?.includes('cannot be reached') === false,
  );
  // These read from the primary and write nothing: the histories of db1 and db2 remain the same.
  for (let count = 0; count < 4; count += 1) assert.equal(await readerOf(gateway, false), 2);
  await restart(stateDir);
  await eventually('it knows its primary', async () => (await rolesOf(gateway))[1] === 'primary');
  for (let count = 0; count < 4; count += 1) assert.equal(await readerOf(gateway, false), 2);
  await assertWrittenTo(1);
});

test('a worker that is started while the new primary cannot be reached does not write to the former one', async (t) => {
  if (!replicationHere(t)) return;
  await set.follow(serverAt(2), serverAt(1));
  await rolesBecome(gateway, ['unusable', 'primary', 'replica']);
  await cutOff(1);
  await assertRefused();
  const [worker = 0] = gateway.workers();
  process.kill(worker, 'SIGKILL');
  await eventually('another worker has looked at the servers', async () => {
    const [next] = gateway.workers();
    return next !== undefined && next !== worker && (await rolesOf(gateway)).length === 3;
  });
  await assertRefused('not_successor');
  await reconnect(1);
});

test('an instance that is started with a memory from before the promotion does not write to the former primary', async (t) => {
  if (!replicationHere(t)) return;
  assert.equal(readMemory(inWorkspace('old'))?.primary.address, addressOf(0));
  await cutOff(1);
  await restart(inWorkspace('old'));
  await assertRefused('replica_left');
  await reconnect(1);
  assert.equal(readMemory(inWorkspace('old'))?.primary.address, addressOf(1));
});

test('a gateway on a new host does not write to a former primary while a replica is connected to one that it cannot reach', async (t) => {
  if (!replicationHere(t)) return;
  await serverAt(2).query('stop slave sql_thread');
  await assertWrittenTo(1);
  await cutOff(1);
  await restart(inWorkspace('new'));
  await assertRefused('replica_elsewhere');
  await serverAt(2).query('start slave sql_thread');
  await reconnect(1);
});

test('an operator returns to the former primary: it is written to at once, and after a restart', async (t) => {
  if (!replicationHere(t)) return;
  await restart(stateDir);
  await serverAt(1).kill();
  await serverAt(2).kill();
  await assertRefused();
  const target = ['-c', gateway.configPath, '-s', 'world'];
  const finished = await runCommand(['--primary', addressOf(0), ...target]);
  assert.deepEqual([finished.status, finished.stderr], [0, '']);
  assert.match(finished.stdout, new RegExp(`^\\[world\\] before: ${addressOf(1)}$`, 'm'));
  await rolesBecome(gateway, ['primary', 'unusable', 'unusable']);
  await assertWrittenTo(0);
  await restart(stateDir);
  await rolesBecome(gateway, ['primary', 'unusable', 'unusable']);
  await assertWrittenTo(0);
});
