// The supervisor replaces workers that die, and logs the reason. Workers end if their supervisor dies. time-limits.test.ts is about workers
// that hang.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { freeLastingPort } from '../../../scripts/support/private-server.ts';
import { createAsk } from '../../support/ask.ts';
import { createDaemon, type Daemon, daemonFor } from '../../support/daemon.ts';
import { closeGate, createGate } from '../../support/database/gate.ts';
import { eventually } from '../../support/eventually.ts';
import { startGateway } from '../../support/gateway.ts';
import { listeningPorts } from '../../support/kernel-sockets.ts';
import { logShows } from '../../support/log-shows.ts';
import { freeze, gone, isAlive } from '../../support/processes.ts';
import { readMetric } from '../../support/scrape.ts';
import { useDatabase } from '../../support/use-gateway.ts';
import { createOwnNode } from './support/own-node.ts';
import { useRunningDaemon } from './support/running-daemon.ts';

const database = useDatabase({ prepare: createGate });

/** Workers fail at SIGUSR2, as the daemon's file `fault` says then. */
function withFaults(daemon: Daemon, options = ''): NodeJS.ProcessEnv {
  const faults = new URL('./support/worker-faults.js', import.meta.url).href;
  return {
    NODE_OPTIONS: `--import ${faults} ${options}`,
    WORKER_FAULT_FILE: join(daemon.directory, 'fault'),
  };
}

function failAtSignal(daemon: Daemon, worker: number, fault: string): void {
  writeFileSync(join(daemon.directory, 'fault'), fault);
  process.kill(worker, 'SIGUSR2');
}

const testWithDaemon = useRunningDaemon(async () => {
  const daemon = createDaemon();
  const finished = await daemon.start(withFaults(daemon, '--max-old-space-size=48'));
  assert.equal(finished.status, 0, daemon.readLog());
  return daemon;
});

/** True when the kernel accepts a connection, before any process serves it. */
function isAccepted(address: string): Promise<boolean> {
  const [host = '', port = ''] = address.split(':');
  return new Promise((resolve) => {
    const socket = connect({ host, port: Number(port) });
    socket.once('connect', () => resolve(true));
    socket.once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}

async function isServed(daemon: Daemon): Promise<boolean> {
  return (await createAsk(`http://${daemon.address()}`).get('/livez')).status === 200;
}

testWithDaemon(
  'a killed worker is replaced, and no connection is refused meanwhile',
  async (daemon) => {
    const [worker = 0] = daemon.workers();
    process.kill(worker, 'SIGKILL');
    const attempts: Promise<boolean>[] = [];
    await eventually('another worker is there', () => {
      attempts.push(isAccepted(daemon.address()));
      return daemon.workers().some((pid) => pid !== worker);
    });
    assert.ok((await Promise.all(attempts)).every((accepted) => accepted));
    assert.ok(await isServed(daemon));
  },
);

for (const [fault, reason] of [
  ['heap', /worker says .*heap out of memory/],
  ['throw', /uncaught exception .*a fault while serving, on purpose/],
] as const) {
  testWithDaemon(
    `a worker that fails while it serves (${fault}) is replaced, and the log says why`,
    async (daemon) => {
      const [worker = 0] = daemon.workers();
      assert.ok(await isServed(daemon));
      failAtSignal(daemon, worker, fault);
      await gone(worker);
      await eventually('another takes its slot', () => daemon.workers().length === 1);
      await eventually('the log says why', () => reason.test(daemon.readLog()));
      assert.ok(await isServed(daemon));
    },
  );
}

test('a worker that the system refuses to fork is tried again later, and the instance goes on', async (t) => {
  const daemon = daemonFor(t, { workers: '2' });
  const node = createOwnNode(daemon);
  assert.equal((await node.start()).status, 0, daemon.readLog());
  node.refuseForks();
  const [supervisor, [worker = 0]] = [daemon.pid(), daemon.workers()];
  process.kill(worker, 'SIGKILL');
  await logShows(daemon, /a worker ended slot=\d .*reason="cannot be forked: [^"]*ELOOP"/);
  assert.ok(isAlive(supervisor), 'the supervisor');
  assert.ok(await isServed(daemon), 'the other worker');
  node.allowForks();
  await eventually('another takes its slot', () => daemon.workers().length === 2);
});

test('SIGUSR2 is ignored by every process, and SIGQUIT drains', async (t) => {
  const daemon = daemonFor(t);
  assert.equal((await daemon.start()).status, 0, daemon.readLog());
  const supervisor = daemon.pid();
  const processes = [supervisor, ...daemon.workers()];
  for (const pid of processes) process.kill(pid, 'SIGUSR2');
  assert.ok(await isServed(daemon));
  assert.ok(processes.every((pid) => isAlive(pid)));
  process.kill(supervisor, 'SIGQUIT');
  await Promise.all(processes.map((pid) => gone(pid)));
  await logShows(daemon, /draining.*stopped/s);
  assert.ok(!existsSync(daemon.pidfile));
});

testWithDaemon('no process of the daemon opens an inspector on SIGUSR1', async (daemon) => {
  assert.ok(await isServed(daemon));
  const processes = [daemon.pid(), ...daemon.workers()];
  for (const pid of processes) process.kill(pid, 'SIGUSR1');
  assert.ok(await isServed(daemon));
  const own = Number(daemon.address().split(':').at(-1));
  for (const pid of processes) {
    assert.ok(isAlive(pid));
    assert.deepEqual(
      listeningPorts(pid).filter((port) => port !== own),
      [],
    );
  }
});

test('SIGHUP reopens the log without losing a line', async (t) => {
  const daemon = daemonFor(t);
  assert.equal((await daemon.start()).status, 0, daemon.readLog());
  const former = `${daemon.log}.1`;
  renameSync(daemon.log, former);
  process.kill(daemon.pid(), 'SIGHUP');
  await eventually('the log is there again', () => existsSync(daemon.log));
  process.kill(daemon.pid(), 'SIGTERM');
  await eventually('it has stopped', () => /stopped/.test(daemon.readLog()));
  assert.match(readFileSync(former, 'utf8'), /listening/);
});

test('SIGHUP makes the directory of a removed log again, and reports that an edited configuration is not read', async (t) => {
  const daemon = daemonFor(t);
  const directory = join(daemon.directory, 'logs');
  const log = join(directory, 'world.log');
  daemon.configure({ log });
  assert.equal((await daemon.start()).status, 0);
  rmSync(directory, { recursive: true });
  process.kill(daemon.pid(), 'SIGHUP');
  const read = () => (existsSync(log) ? readFileSync(log, 'utf8') : '');
  await eventually('the log is there again', () => /log files reopened/.test(read()));
  assert.doesNotMatch(read(), /configuration file has changed/);
  appendFileSync(daemon.configPath, 'workers = 9\n');
  process.kill(daemon.pid(), 'SIGHUP');
  const line = /the configuration file has changed: it is read at a start only path=.*dbhttpd\.ini/;
  await eventually('the log says so', () => line.test(read()));
});

test('a log that SIGHUP cannot open again counts its lines as lost, and says how many once it can', async (t) => {
  const daemon = daemonFor(t);
  const directory = join(daemon.directory, 'logs');
  const log = join(directory, 'world.log');
  daemon.configure({ log });
  assert.equal((await daemon.start()).status, 0);
  const ask = createAsk(`http://${/listening (\S+)/.exec(readFileSync(log, 'utf8'))?.[1]}`);
  rmSync(directory, { recursive: true });
  // No directory can be made there.
  writeFileSync(directory, '');
  process.kill(daemon.pid(), 'SIGHUP');
  const lost = () => readMetric(ask, 'dbhttpd_supervisor_log_lines_lost_total');
  await eventually('the lost lines are counted', async () => (await lost()) > 0);
  rmSync(directory);
  process.kill(daemon.pid(), 'SIGHUP');
  const read = () => (existsSync(log) ? readFileSync(log, 'utf8') : '');
  const supervisor = daemon.pid();
  const line = new RegExp(` warn \\[${supervisor}\\] lines of this log were lost lines=(\\d+)`);
  const found = await eventually('the log says how many', () => line.exec(read()));
  assert.equal(Number(found[1]), await lost());
});

test('workers are gone 2 s after their supervisor was killed, a spinning one too; the next start ends a stopped orphan that holds the address, and takes over', async (t) => {
  const listen = `127.0.0.1:${await freeLastingPort()}`;
  const daemon = daemonFor(t, { workers: '3', listen });
  assert.equal((await daemon.start(withFaults(daemon))).status, 0, daemon.readLog());
  const [supervisor, [spinning = 0, stopped = 0, other = 0]] = [daemon.pid(), daemon.workers()];
  failAtSignal(daemon, spinning, 'spin');
  freeze(stopped);
  process.kill(supervisor, 'SIGKILL');
  // Four times as long as is promised, for a machine that is busy with something else.
  await eventually('they are gone', () => !isAlive(spinning) && !isAlive(other), {
    timeoutMs: 8000,
  });
  assert.ok(isAlive(stopped) && !isAlive(supervisor));
  const lastLine = new RegExp(
    `\\[${other} w\\d+\\] the supervisor is gone: .*supervisor=${supervisor} requests=0`,
  );
  await logShows(daemon, lastLine);
  daemon.configure({ listen });
  assert.equal((await daemon.start()).status, 0, daemon.readLog());
  assert.ok(!isAlive(stopped));
  await logShows(daemon, new RegExp(`ended orphaned workers pids=${stopped}`));
  assert.ok(await isServed(daemon));
});

test('a foreground instance logs to stderr, stops on SIGTERM with 0, and leaves nothing', async (t) => {
  const daemon = daemonFor(t);
  const child = daemon.spawn(['--foreground']);
  t.after(() => child.kill('SIGKILL'));
  let text = '';
  child.stderr?.setEncoding('utf8').on('data', (piece: string) => {
    text += piece;
  });
  await eventually('it listens', () => /listening 127/.test(text));
  assert.equal(daemon.pid(), child.pid);
  const address = / listening (\S+)$/m.exec(text)?.[1];
  assert.equal((await createAsk(`http://${address}`).get('/livez')).status, 200);
  const workers = daemon.workers();
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  assert.equal(await ended, 0);
  assert.ok(!workers.some(isAlive));
  assert.equal(daemon.findPid(), null);
});

test('a worker of an updated package reports it, in the log and in a gauge, and serves', async (t) => {
  const daemon = daemonFor(t);
  const copy = join(daemon.directory, 'package');
  mkdirSync(copy);
  cpSync('dist/program', join(copy, 'dist/program'), { recursive: true });
  cpSync('package.json', join(copy, 'package.json'));
  symlinkSync(realpathSync('node_modules'), join(copy, 'node_modules'));
  const command = join(copy, 'dist/program/supervisor/main.js');
  const args = [command, '-c', daemon.configPath, '-s', 'world'];
  assert.equal(spawnSync(process.execPath, args).status, 0, daemon.readLog());
  const ask = createAsk(`http://${daemon.address()}`);
  const mismatches = () => readMetric(ask, 'dbhttpd_worker_version_mismatch');
  const replace = async () => {
    const [worker = 0] = daemon.workers();
    process.kill(worker, 'SIGKILL');
    await gone(worker);
    await eventually(
      'another listens',
      async () => (await readMetric(ask, 'dbhttpd_worker_up')) === 1,
    );
  };
  await replace();
  assert.equal(await mismatches(), 0);
  assert.ok(!daemon.readLog().includes('other code'));
  appendFileSync(join(copy, 'dist/program/worker/main.js'), '\n// Updated.\n');
  await replace();
  await eventually('it runs other code', async () => (await mismatches()) === 1);
  await logShows(daemon, /warn .*runs other code than its supervisor.* slot=\d/);
});

test('a worker out of memory is replaced, and service goes on', async (t) => {
  const gateway = await startGateway({
    database,
    settings: { workers: 2, pool: 1, max_request_bytes: '16MiB' },
    env: { NODE_OPTIONS: '--max-old-space-size=48' },
  });
  t.after(gateway.stop);
  const before = gateway.workers();
  const gate = await closeGate(database);
  t.after(gate.open);
  const body = JSON.stringify({ SQL: `select ${gate.zero}, '${'x'.repeat(8_000_000)}'` });
  const crowd = Array.from({ length: 16 }, () => gateway.post('/db', body).catch(() => null));
  await eventually('a worker is gone', () =>
    gateway.workers().some((pid) => !before.includes(pid)),
  );
  await gate.open();
  // The refused and cut requests belong to the dead worker.
  await eventually(
    'another serves',
    async () => (await gateway.db({ SQL: 'select 1' })).status === 200,
  );
  await Promise.all(crowd);
  await eventually('the restart is counted, and both slots are up', async () => {
    const restarts = await readMetric(gateway, 'dbhttpd_worker_restarts_total');
    return restarts > 0 && (await readMetric(gateway, 'dbhttpd_worker_up')) === 2;
  });
  await logShows(gateway, /heap out of memory/);
});
