// --check reports for each of several servers what a gateway would use it for, what its account cannot see, what read_only does not keep from
// it, and a log that does not show what it replicates.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  type ReplicatedSet,
  replicationHere,
  startReplication,
} from '../../support/clusters/replication.ts';
import type { ReplicationServer } from '../../support/clusters/replication-server.ts';
import { createDaemon } from '../../support/daemon.ts';
import { chooseProgram } from '../../support/database/server-process.ts';

const canRun =
  process.env.DBHTTPD_TEST_MYSQL === undefined && chooseProgram().flavour === 'mariadb';
let set: ReplicatedSet;
before(async () => {
  if (!canRun) return;
  set = await startReplication();
  await set.primary().query('create table written (id int)');
  await set.waitForCatchUp();
});
after(() => set?.stop());

const serverAt = (at: number) => set.servers[at] as ReplicationServer;

/** The report on each server, by its address. */
async function check(host = set.target.host, of = set) {
  const { name, user, password } = of.target;
  const daemon = createDaemon({ database: name, user, password, host });
  try {
    const { status, stdout, stderr } = await daemon.run(['--check']);
    assert.deepEqual([status, stderr], [0, ''], stdout);
    const parts = stdout.split(/^\[world\] (127\.0\.0\.1:\d+)\n/m);
    const reported = of.servers.map(
      (server) => parts[parts.indexOf(`127.0.0.1:${server.port}`) + 1],
    );
    return reported.map((text) => text ?? '');
  } finally {
    await daemon.dispose();
  }
}

const account = () => `'${set.target.user}'@'127.0.0.1'`;

test('each server has its role and its reason; if the account may not see what a server follows, the grant is named', async (t) => {
  if (!replicationHere(t)) return;
  const reported = await check();
  assert.match(reported[0] ?? '', /^role: primary \(writable, and follows no server\)$/m);
  for (const replica of reported.slice(1)) {
    assert.match(replica, /^role: replica \(follows the primary\)\nreplicates: yes$/m);
  }
  for (const text of reported) {
    const grant = `GRANT SLAVE MONITOR ON *.* TO \`${set.target.user}\`@\`127.0.0.1\``;
    assert.ok(text.replaceAll("'", '`').includes(grant), text);
    assert.doesNotMatch(text, /read_only|log_slave_updates/);
  }
});

test('servers of MariaDB that do not log what they replicate are warned of', async (t) => {
  if (!replicationHere(t)) return;
  const unlogged = await startReplication({ replicas: 1, args: ['--log-slave-updates=0'] });
  try {
    for (const text of await check(unlogged.target.host, unlogged)) {
      assert.match(text, /^warning: log_slave_updates is off: replies of a replica and after/m);
    }
  } finally {
    await unlogged.stop();
  }
});

test('an account with the grant sees what each server follows, and a replica that is writable', async (t) => {
  if (!replicationHere(t)) return;
  await set.primary().query(`grant slave monitor on *.* to ${account()}`);
  await set.waitForCatchUp();
  await serverAt(1).setReadOnly(false);
  const reported = await check();
  assert.match(reported[0] ?? '', /^replicates: no$/m);
  for (const replica of reported.slice(1)) {
    assert.match(replica, /^role: replica .*\nreplicates: yes, from server_id 1$/m);
    assert.doesNotMatch(replica, /SLAVE MONITOR/);
  }
  assert.match(reported[1] ?? '', /^warning: read_only is off on a replica/m);
  assert.doesNotMatch(reported[2] ?? '', /read_only is off/);
  await serverAt(1).setReadOnly(true);
});

test('an account that read_only does not stop is warned of', async (t) => {
  if (!replicationHere(t)) return;
  for (const right of ['read_only admin', 'all privileges']) {
    await set.primary().query(`grant ${right} on *.* to ${account()}`);
    await set.waitForCatchUp();
    for (const text of await check()) {
      assert.match(
        text,
        new RegExp(
          `^warning: read_only does not stop the account, which has ${right} on \\*\\.\\*`,
          'im',
        ),
      );
    }
  }
  await set.primary().query(`revoke all privileges on *.* from ${account()}`);
  await set.waitForCatchUp();
});

test('several that could be written to, and none, are warned of', async (t) => {
  if (!replicationHere(t)) return;
  await serverAt(1).query('stop slave; reset slave all; set global read_only = 0');
  await serverAt(1).query('insert into written values (1)');
  const two = await check(`127.0.0.1:${serverAt(0).port}, 127.0.0.1:${serverAt(1).port}`);
  assert.match(two[1] ?? '', /^role: primary \(its history has all/m);
  assert.match(two[0] ?? '', /^warning: several candidates can be written to/m);
  await serverAt(1).setReadOnly(true);
  const none = await check(`127.0.0.1:${serverAt(2).port}, 127.0.0.1:${serverAt(1).port}`);
  assert.match(none[2] ?? '', /^warning: none of the servers of the section takes writes$/m);
});
