// A drain does not hold up its successor: one instance leaves, the next one serves, and nothing in flight is harmed.
import assert from 'node:assert/strict';
import { chmodSync, existsSync, readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import type { Connection } from 'mysql2/promise';
import { freeLastingPort } from '../../../scripts/support/private-server.ts';
import { createDaemon, type Daemon, daemonFor, type Settings } from '../../support/daemon.ts';
import { eventually } from '../../support/eventually.ts';
import { gone, isAlive } from '../../support/processes.ts';
import { useDatabase } from '../../support/use-gateway.ts';
import { useRunningDaemon } from './support/running-daemon.ts';

const database = useDatabase({
  prepare: async ({ query }) => void (await query('create table written (id int)')),
});
const keepers: Connection[] = [];
afterEach(() => {
  for (const keeper of keepers.splice(0)) keeper.destroy();
});

function reached(): Settings {
  const { name, host, port, user, password } = database;
  const login = { database: name, user, password: password || null };
  // Longer than any write is held here, on a slow machine too.
  return { ...login, host, port: String(port), statement_timeout: '5m' };
}

/** Each test finds one that a successor can follow at its address, with idle connections to the database at most. The last leaves none. */
const testWithDaemon = useRunningDaemon(async () => {
  const listen = `127.0.0.1:${await freeLastingPort()}`;
  const daemon = createDaemon({ ...reached(), listen, pool: '6' });
  assert.equal((await daemon.start()).status, 0, daemon.readLog());
  return daemon;
});

/** The status of a statement's reply; over the unix socket where that is what it listens on. */
function ask(daemon: Daemon, sql: string): Promise<number> {
  const address = daemon.address();
  const [host, port] = address.split(':');
  const place = address.startsWith('/') ? { socketPath: address } : { host, port: Number(port) };
  return new Promise((resolve, reject) => {
    const headers = { 'Content-Type': 'application/json', Connection: 'close', Host: 'localhost' };
    const asked = request({ ...place, path: '/db', method: 'POST', headers }, (reply) => {
      reply.resume().once('end', () => resolve(reply.statusCode ?? 0));
    });
    asked.once('error', reject).end(JSON.stringify({ SQL: sql }));
  });
}

/** A write that runs when this resolves, and ends when it is let. */
async function beginWrite(daemon: Daemon, id: number) {
  const gate = `${database.name}-${id}`;
  const keeper = await database.connect();
  keepers.push(keeper);
  await keeper.query('select get_lock(?, 60)', [gate]);
  const sql = `insert into written select ${id} + 0 * get_lock('${gate}', 290)`;
  const ending = ask(daemon, sql);
  // The later await must find the error, not the test runner.
  ending.catch(() => {});
  const running = 'select count(*) as n from information_schema.processlist where info = ?';
  await eventually(
    'it runs',
    async () => Number((await database.query(running, [sql]))[0]?.n) === 1,
  );
  const isHeld = async () => {
    const [row] = await database.query('select is_used_lock(?) as keeper', [gate]);
    return Number(row?.keeper) === keeper.threadId;
  };
  return { ending, isHeld, finish: () => keeper.query('select release_lock(?)', [gate]) };
}

async function countWritten(id: number): Promise<number> {
  const [row] = await database.query(`select count(*) as n from written where id = ${id}`);
  return Number(row?.n);
}

const lastWords = (daemon: Daemon, pid: number) =>
  daemon
    .readLog()
    .split('\n')
    .filter((line) => line.includes(` [${pid}] `))
    .at(-1) ?? '';

/** A kill and a start while a write of the old instance runs. */
async function handOver(daemon: Daemon, id: number): Promise<void> {
  const old = daemon.pid();
  const write = await beginWrite(daemon, id);
  process.kill(old, 'SIGTERM');
  assert.equal((await daemon.start()).status, 0, daemon.readLog());
  assert.notEqual(daemon.pid(), old);
  assert.equal(await ask(daemon, 'select 1'), 200);
  assert.ok(isAlive(old), 'it still drains');
  // A signal to the instance reaches the process in the pidfile. The old one must not handle it.
  process.kill(old, 'SIGHUP');
  await write.finish();
  assert.equal(await write.ending, 200);
  await gone(old);
  assert.equal(await countWritten(id), 1);
  assert.equal(await ask(daemon, 'select 1'), 200);
  assert.ok(isAlive(daemon.pid()));
  assert.ok(!daemon.readLog().includes('credentials read again'));
  assert.match(
    lastWords(daemon, old),
    new RegExp(`stopped pid=${old} requests=(\\d+) failures=0 ok=\\1`),
  );
}

testWithDaemon(
  'a kill and a start serve at once while a slow write of the old one finishes (address)',
  (daemon) => handOver(daemon, 0),
);

test('a kill and a start serve at once while a slow write of the old one finishes (path)', async (t) => {
  const daemon = daemonFor(t);
  daemon.configure({ ...reached(), listen: join(daemon.directory, 'http.sock') });
  assert.equal((await daemon.start()).status, 0, daemon.readLog());
  await handOver(daemon, 1);
});

testWithDaemon(
  'one instance at most drains beside a successor: the one between keeps the claim until the oldest is gone',
  async (daemon) => {
    const first = daemon.pid();
    const early = await beginWrite(daemon, 3);
    process.kill(first, 'SIGTERM');
    assert.equal((await daemon.start()).status, 0);
    const second = daemon.pid();
    const late = await beginWrite(daemon, 4);
    process.kill(second, 'SIGTERM');
    let isStarted = false;
    const third = daemon.start().then(({ status }) => {
      isStarted = true;
      return status;
    });
    await eventually('the second one says what it waits for', () =>
      new RegExp(
        `\\[${second}\\] the claim is kept while an older .* drains pid=${first}$`,
        'm',
      ).test(daemon.readLog()),
    );
    assert.deepEqual([daemon.pid(), isStarted, isAlive(first)], [second, false, true]);
    await early.finish();
    assert.equal(await early.ending, 200);
    assert.equal(await third, 0);
    assert.ok(!isAlive(first) && isAlive(second), 'the oldest is gone, and only it');
    assert.equal(await ask(daemon, 'select 1'), 200);
    await late.finish();
    assert.equal(await late.ending, 200);
    await gone(second);
    assert.deepEqual([await countWritten(3), await countWritten(4)], [1, 1]);
    assert.ok(isAlive(daemon.pid()));
  },
);

testWithDaemon(
  'a second SIGTERM ends a draining instance at once, and its successor notices nothing',
  async (daemon) => {
    const old = daemon.pid();
    const write = await beginWrite(daemon, 5);
    process.kill(old, 'SIGTERM');
    assert.equal((await daemon.start()).status, 0);
    process.kill(old, 'SIGTERM');
    await gone(old);
    assert.ok(await write.isHeld(), 'nothing has let the write end: its instance has not waited');
    assert.equal(await write.ending, 502, 'the client is reported that the outcome is unknown');
    assert.equal(await ask(daemon, 'select 1'), 200);
  },
);

testWithDaemon(
  'a supervisor that is killed while it drains takes nothing from its successor',
  async (daemon) => {
    const old = daemon.pid();
    const [worker = 0] = daemon.workers();
    const write = await beginWrite(daemon, 6);
    process.kill(old, 'SIGTERM');
    assert.equal((await daemon.start()).status, 0);
    process.kill(old, 'SIGKILL');
    await assert.rejects(write.ending);
    await gone(worker);
    assert.equal(await ask(daemon, 'select 1'), 200);
    const next = daemon.pid();
    process.kill(next, 'SIGTERM');
    assert.equal((await daemon.start()).status, 0);
    await gone(next);
  },
);

testWithDaemon(
  'the claim is a locked file that no worker inherits, mode 0600, and that stays',
  async (daemon) => {
    const lock = `${daemon.pidfile}.lock`;
    assert.equal(statSync(lock).mode & 0o777, 0o600);
    const leadsThere = (descriptor: string) => {
      try {
        return readlinkSync(descriptor) === lock;
      } catch {
        return false;
      }
    };
    const holds = (pid: number) =>
      readdirSync(`/proc/${pid}/fd`).some((fd) => leadsThere(`/proc/${pid}/fd/${fd}`));
    assert.deepEqual([daemon.pid(), ...daemon.workers()].map(holds), [true, false]);
    const pid = daemon.pid();
    process.kill(pid, 'SIGKILL');
    await gone(pid);
    assert.ok(existsSync(lock));
    chmodSync(lock, 0o666);
    assert.equal((await daemon.start()).status, 0);
    assert.equal(statSync(lock).mode & 0o777, 0o600);
    assert.notEqual(readFileSync(daemon.pidfile, 'utf8'), `${pid}\n`);
  },
);

testWithDaemon(
  'idle connections to the database are closed as soon as a drain begins',
  async (daemon) => {
    const old = daemon.pid();
    const write = await beginWrite(daemon, 7);
    const ofDaemon = `select count(*) as n from information_schema.processlist where db = database() and command = 'Sleep' and id not in (?)`;
    const ids = keepers.map(({ threadId }) => threadId);
    const idle = async () => Number((await database.query(ofDaemon, [ids]))[0]?.n);
    await eventually('five are idle', async () => {
      await Promise.all(Array.from({ length: 5 }, () => ask(daemon, 'select sleep(0.3)')));
      return (await idle()) >= 5;
    });
    process.kill(old, 'SIGTERM');
    // The connection that kills statements stays until the last of them has ended.
    await eventually('they are closed', async () => (await idle()) <= 1);
    assert.ok(isAlive(old));
    await write.finish();
    assert.equal(await write.ending, 200);
    await gone(old);
  },
);
