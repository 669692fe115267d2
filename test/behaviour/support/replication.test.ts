// The replicated set: it replicates, fails over, lags and haunts as its operations say, and clients see it through links alone.
// Must not know the gateway.
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type mysql from 'mysql2/promise';
import { eventually } from '../../support/eventually.ts';
import { makeGhost } from '../../support/ghost.ts';
import { openConnection } from '../../support/mariadb.ts';
import {
  type ReplicatedSet,
  type ReplicationWish,
  replicationHere,
  startReplication,
} from '../../support/replication.ts';
import type { ReplicationServer } from '../../support/replication-server.ts';

const table = 'create table t (id int primary key) engine = innodb';
const insert = (id: number) => `insert into t values (${id})`;

/** Starts a set with a table, and stops it with the test. */
async function start(t: TestContext, wish: ReplicationWish = {}): Promise<ReplicatedSet> {
  const set = await startReplication(wish);
  t.after(() => set.stop());
  await set.primary().query(table);
  await set.waitForCatchUp();
  return set;
}

/** As the gateway connects: by the link, with the account. */
function connect(set: ReplicatedSet, server: ReplicationServer): Promise<mysql.Connection> {
  const { user, password, name } = set.target;
  const login = { host: server.host, port: server.port, user, password };
  return openConnection(login, name, { connectTimeout: 5_000 });
}

/** Runs a statement as the account, on a connection of its own. */
async function ask(set: ReplicatedSet, server: ReplicationServer, sql: string): Promise<unknown> {
  const connection = await connect(set, server);
  try {
    return (await connection.query(sql))[0];
  } finally {
    connection.destroy();
  }
}

async function idsOf(server: ReplicationServer): Promise<number[]> {
  return (await server.query('select id from t order by id')).map(({ id }) => Number(id));
}

function members(set: ReplicatedSet) {
  const [first, second, third] = set.servers;
  assert.ok(first !== undefined && second !== undefined && third !== undefined);
  return { first, second, third };
}

test('what the primary commits is on the replicas, where the account may not write', async (t) => {
  if (!replicationHere(t)) return;
  const set = await start(t);
  const { first, second, third } = members(set);
  await ask(set, first, insert(1));
  await set.waitForCatchUp();
  for (const replica of [second, third]) {
    assert.deepEqual(await idsOf(replica), [1]);
    await assert.rejects(ask(set, replica, insert(2)), { errno: 1290 });
    assert.equal(await replica.position(), await first.position());
  }
});

test('a killed primary is followed by a promoted replica, and comes back writable and alone', async (t) => {
  if (!replicationHere(t)) return;
  const set = await start(t);
  const { first, second, third } = members(set);
  await ask(set, first, insert(1));
  await set.waitForCatchUp();
  await first.kill();
  await assert.rejects(connect(set, first), { code: 'ECONNREFUSED' });
  await set.promote(second);
  assert.equal(set.primary(), second);
  assert.deepEqual(set.replicas(), [third]);
  await ask(set, second, insert(2));
  await set.waitForCatchUp();
  assert.deepEqual(await idsOf(third), [1, 2]);

  await first.restart();
  await ask(set, first, insert(3));
  assert.deepEqual(await idsOf(first), [1, 3]);
  assert.deepEqual(await first.query('show slave status'), []);
});

test('what a replica has received is applied before it is promoted', async (t) => {
  if (!replicationHere(t)) return;
  const set = await start(t, { replicas: 1 });
  const [first, second] = set.servers;
  assert.ok(first !== undefined && second !== undefined);
  await set.lag(second, 'stopped');
  await first.query(insert(1));
  const position = await first.position();
  await eventually('it has received the write', async () => {
    const [status] = await second.query('show slave status');
    return status?.Gtid_IO_Pos === position;
  });
  assert.deepEqual(await idsOf(second), []);
  await first.kill();
  await set.promote(second);
  assert.deepEqual(await idsOf(second), [1]);
});

test('a primary that gave up its place follows the next one', async (t) => {
  if (!replicationHere(t)) return;
  const set = await start(t, { ownDomains: true });
  const { first, second } = members(set);
  await first.query(insert(1));
  await set.waitForCatchUp();
  await first.setReadOnly(true);
  await assert.rejects(ask(set, first, insert(2)), { errno: 1290 });
  await set.promote(second);
  await set.follow(first);
  await ask(set, second, insert(3));
  await set.waitForCatchUp();
  assert.equal(set.replicas().length, 2);
  assert.deepEqual(await idsOf(first), [1, 3]);
});

test('a replica lags in each way, and shows it as that way does', async (t) => {
  if (!replicationHere(t)) return;
  const set = await start(t);
  const { first, second, third } = members(set);
  const runs = async () => {
    const [status] = await second.query('show slave status');
    return status?.Slave_SQL_Running;
  };
  const cases = [
    { how: 'stopped', says: 'No' },
    { how: 'locked', says: 'Yes' },
    { how: { seconds: 3_600 }, says: 'Yes' },
  ] as const;
  for (const [index, { how, says }] of cases.entries()) {
    await set.lag(second, how);
    await first.query(insert(index));
    await set.waitForCatchUp([third]);
    assert.equal((await idsOf(second)).length, index, JSON.stringify(how));
    assert.equal(await runs(), says);
    await set.lag(second, null);
    await set.waitForCatchUp([second]);
    assert.equal((await idsOf(second)).length, index + 1);
  }
});

test('a lagging replica that is promoted or killed lags no longer', async (t) => {
  if (!replicationHere(t)) return;
  const set = await start(t);
  const { first, second, third } = members(set);
  await set.lag(second, 'locked');
  await set.lag(third, 'locked');
  await first.query(insert(1));
  await third.kill();
  await third.restart();
  await set.waitForCatchUp([third]);
  await first.kill();
  await set.promote(second);
  await second.query(insert(2));
  await set.waitForCatchUp();
  assert.deepEqual(await idsOf(third), await idsOf(second));
});

test('a frozen primary answers nobody, and is thawed with what it had', async (t) => {
  if (!replicationHere(t)) return;
  const set = await start(t);
  const { first, second } = members(set);
  const connection = await connect(set, first);
  first.freeze();
  let isAnswered = false;
  const answer = connection.query(insert(1)).then(() => {
    isAnswered = true;
  });
  await set.promote(second);
  assert.equal(isAnswered, false);
  first.thaw();
  await answer;
  connection.destroy();
  assert.deepEqual([await idsOf(first), await idsOf(second)], [[1], []]);
});

test('with semi-sync a write waits until a replica has it', async (t) => {
  if (!replicationHere(t)) return;
  const set = await start(t, { semiSync: true });
  const { first, second, third } = members(set);
  const waiting = async () => {
    const [row] = await first.query("show status like 'Rpl_semi_sync_master_wait_sessions'");
    return Number(row?.Value) === 1;
  };
  for (const replica of [second, third]) await replica.query('stop slave io_thread');
  const write = first.query(insert(1));
  await eventually('the write waits', waiting);
  assert.deepEqual(await idsOf(first), []);
  await second.query('start slave io_thread');
  await write;
  assert.deepEqual(await idsOf(first), [1]);
});

test('a ghost is on the replica that holds it, and not on the new primary', async (t) => {
  if (!replicationHere(t)) return;
  const set = await start(t);
  const ghost = await makeGhost(set, { lost: insert(1), after: insert(2) });
  assert.deepEqual(await idsOf(ghost.holder), [1]);
  assert.deepEqual(await idsOf(ghost.promoted), [2]);
  await assert.rejects(set.waitForCatchUp([ghost.holder]), /db3 has not reached 0-2-/);
  await ghost.former.restart();
  assert.deepEqual(await idsOf(ghost.former), [1]);
});

test('a line that loses one direction holds it up, and delivers when it is whole again', async (t) => {
  if (!replicationHere(t)) return;
  const set = await start(t, { replicas: 0 });
  const server = set.primary();
  const connection = await connect(set, server);
  connection.on('error', () => undefined);
  const send = async (id: number) => {
    let isAnswered = false;
    const answer = connection.query(insert(id)).then(() => {
      isAnswered = true;
    });
    return { answer, isAnswered: () => isAnswered };
  };

  server.link.partition('from server');
  const unheard = await send(1);
  await eventually('the server has it', async () => (await idsOf(server)).includes(1));
  assert.equal(unheard.isAnswered(), false);
  server.link.heal();
  await unheard.answer;

  server.link.partition('to server');
  const unsent = await send(2);
  await assert.rejects(openSoon(set, server), { code: 'ETIMEDOUT' });
  assert.deepEqual([await idsOf(server), unsent.isAnswered()], [[1], false]);
  server.link.heal();
  await unsent.answer;
  assert.deepEqual(await idsOf(server), [1, 2]);
  connection.destroy();
});

/** A new connection, for which nobody waits long. */
function openSoon(set: ReplicatedSet, { host, port }: ReplicationServer): Promise<unknown> {
  const { user, password } = set.target;
  return openConnection({ host, port, user, password }, undefined, { connectTimeout: 300 });
}
