// Time limits of the contract that no setting shortens: 15 s for a start, ten pings for a worker, 5 s for a holder.
// Waits 15 s: a start that never gets ready is given up then. All wait side by side, and need little of the processor.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { chmodSync, statSync } from 'node:fs';
import { describe, type TestContext, test } from 'node:test';
import { freeLastingPort } from '../../../scripts/support/private-server.ts';
import { readCpuMs } from '../../../scripts/support/proc.ts';
import { daemonFor } from '../../support/daemon.ts';
import { eventually } from '../../support/eventually.ts';
import { clientPortsOf } from '../../support/kernel-sockets.ts';
import { logShows } from '../../support/log-shows.ts';
import { childrenOf, freeze, gone, isAlive } from '../../support/processes.ts';
import { openAtEach, type WorkerConnection } from '../../support/worker-connections.ts';
import { createOwnNode } from './support/own-node.ts';

const faults = new URL('./support/worker-faults.js', import.meta.url).href;
const withFault = (fault: string) => ({ NODE_OPTIONS: `--import ${faults}`, WORKER_FAULT: fault });
const patience = { timeoutMs: 60_000 };

async function start(t: TestContext, workers = '1') {
  const listen = `127.0.0.1:${await freeLastingPort()}`;
  const daemon = daemonFor(t, { workers, listen });
  assert.equal((await daemon.start()).status, 0, daemon.readLog());
  return daemon;
}

/** The milliseconds of the log's own clock between the first lines that match. */
function msBetween(log: string, from: RegExp, to: RegExp): number {
  const timeOf = (what: RegExp) => {
    const line = log.split('\n').find((one) => what.test(one)) ?? '';
    return Date.parse(line.split(' ')[0] ?? '');
  };
  return timeOf(to) - timeOf(from);
}

describe('limits of time', { concurrency: true }, () => {
  test('a worker that never gets ready fails the start within 15 s and is ended', async (t) => {
    const daemon = daemonFor(t);
    const started = daemon.start(withFault('never-ready'));
    const supervisor = await eventually('a supervisor is there', () => daemon.findPid());
    const [worker = 0] = await eventually('and a worker', () => {
      const workers = childrenOf(supervisor);
      return workers.length > 0 ? workers : null;
    });
    assert.equal((await started).status, 69);
    assert.ok(!isAlive(worker), 'the worker is gone');
    // The supervisor has reported how it ends, and is about to end.
    await gone(supervisor);
    // The supervisor reports the failure a second before its command would report the timeout. On a machine that pauses it may be late.
    const givenUp =
      /^(\S+) .* the start was given up reason="(?:not every worker listened in time|no report in time)"/m;
    const [, at = ''] = givenUp.exec(daemon.readLog()) ?? [];
    // The claim is the lock, which is created in the moment before it is taken.
    const tookMs = Date.parse(at) - statSync(`${daemon.pidfile}.lock`).birthtimeMs;
    assert.ok(tookMs > 10_000 && tookMs < 20_000, `${tookMs} ms`);
  });

  test('workers that die at boot are retried ever later and cheaply, then the start exits 69', async (t) => {
    const daemon = daemonFor(t, { workers: '2' });
    const start = daemon.start(withFault('boot'));
    const supervisor = await eventually('a supervisor is there', () => daemon.findPid());
    const retries = () => [...daemon.readLog().matchAll(/slot=0 delay_ms=(\d+)/g)];
    await eventually('a worker has died', () => retries().length > 0);
    // The test measures retrying alone: the supervisor's own start takes longer on a slower machine.
    const first = { cpuMs: readCpuMs(supervisor) ?? 0, at: performance.now() };
    let { cpuMs } = first;
    const hasEnded = () => {
      const readMs = readCpuMs(supervisor);
      if (readMs !== null) cpuMs = Math.max(cpuMs, readMs);
      return readMs === null;
    };
    await eventually('it has ended', hasEnded, { ...patience, everyMs: 100 });
    assert.deepEqual(await start, { status: 69, stdout: '', stderr: '' });
    const [spentMs, waitedMs] = [cpuMs - first.cpuMs, performance.now() - first.at];
    assert.ok(spentMs < waitedMs / 20, `${spentMs} ms of CPU time in ${waitedMs} ms`);
    const delays = retries().map((match) => Number(match[1]));
    assert.ok(delays.length >= 5, `${delays}`);
    for (const [index, delay] of delays.slice(1).entries()) {
      assert.ok(delay > (delays[index] ?? 0), `${delays}`);
    }
    await logShows(daemon, /a fault at boot, on purpose/);
    // On a slow machine the time for a start is over before the last attempt.
    await logShows(daemon, /workers keep dying at boot|not every worker listened in time/);
    assert.throws(() => statSync(daemon.pidfile), { code: 'ENOENT' });
  });

  test("a stopped worker is replaced after ten pings; the other's clients and new ones notice nothing", async (t) => {
    const daemon = await start(t, '2');
    const port = Number(daemon.address().split(':')[1]);
    const clients = await openAtEach(port, 2);
    t.after(() => clients.forEach(({ socket }) => void socket.destroy()));
    const [worker = 0] = daemon.workers();
    freeze(worker);
    const itsOwn = clientPortsOf(worker, port);
    const others = clients.filter(({ socket }) => !itsOwn.has(socket.localPort ?? 0));
    assert.equal(others.length, 1);
    let roundsBeside = 0;
    const isEnded = async () => {
      await Promise.all(others.map(ask));
      assert.equal((await fetch(`http://${daemon.address()}/livez`)).status, 200);
      if (isAlive(worker)) roundsBeside += 1;
      return !isAlive(worker);
    };
    await eventually('it is ended', isEnded, { ...patience, everyMs: 200 });
    assert.ok(roundsBeside > 0, 'the others were answered while it hung');
    await eventually('another takes its slot', () => daemon.workers().length === 2);
    await logShows(daemon, new RegExp(`a worker hangs slot=\\d pid=${worker}`));
  });

  test('a worker that hangs at SIGTERM is ended after ten unanswered pings; until then a start waits', async (t) => {
    const daemon = await start(t, '2');
    const [old, [worker = 0]] = [daemon.pid(), daemon.workers()];
    freeze(worker);
    process.kill(old, 'SIGTERM');
    assert.equal((await daemon.start()).status, 0, daemon.readLog());
    assert.ok(!isAlive(worker));
    assert.notEqual(daemon.pid(), old);
    await logShows(daemon, new RegExp(`a worker hangs slot=\\d pid=${worker}`));
    const waitedMs = msBetween(daemon.readLog(), / draining$/, /a worker hangs/);
    assert.ok(waitedMs > 8_000, `${waitedMs} ms`);
    assert.equal((await fetch(`http://${daemon.address()}/livez`)).status, 200);
  });

  test('after SIGTERM no worker is forked, not even into an empty slot while the others hang', async (t) => {
    const daemon = daemonFor(t, { workers: '2' });
    const node = createOwnNode(daemon);
    assert.equal((await node.start()).status, 0, daemon.readLog());
    const supervisor = daemon.pid();
    const [killed = 0, hanging = 0] = daemon.workers();
    freeze(hanging);
    node.refuseForks();
    process.kill(killed, 'SIGKILL');
    // By then it has been silent for two pings. The next attempt would be before it is ended.
    await logShows(daemon, /the slot is filled again slot=0 delay_ms=(?:2[5-9]|3\d)\d\d/);
    process.kill(supervisor, 'SIGTERM');
    await gone(supervisor, patience.timeoutMs);
    const [, afterwards = ''] = daemon.readLog().split(/ draining$/m);
    assert.match(afterwards, new RegExp(`a worker hangs slot=1 pid=${hanging}`));
    assert.doesNotMatch(afterwards, /cannot be forked/);
  });

  test('a process that holds the lock and does not answer: exit 75 after 5 s, with a log line', async (t) => {
    const daemon = daemonFor(t);
    const lock = `${daemon.pidfile}.lock`;
    const holder = spawn('flock', [lock, 'sh', '-c', 'echo held; read _'], {
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    const isOver = new Promise((resolve) => holder.once('exit', resolve));
    await new Promise((resolve) => holder.stdout.once('data', resolve));
    chmodSync(lock, 0o600);
    try {
      assert.deepEqual(await daemon.start(), { status: 75, stdout: '', stderr: '' });
      await logShows(daemon, /cannot be started reason="its holder does not answer"/);
    } finally {
      holder.stdin.end();
    }
    await isOver;
    assert.equal((await daemon.start()).status, 0);
  });

  test('a start whose instance is held by a process that does not answer exits 75 with a log line', async (t) => {
    const daemon = await start(t);
    freeze(daemon.pid());
    try {
      assert.deepEqual(await daemon.start(), { status: 75, stdout: '', stderr: '' });
    } finally {
      process.kill(daemon.pid(), 'SIGCONT');
    }
    await logShows(daemon, /cannot be started reason="its holder does not answer"/);
  });
});

async function ask({ send, reply }: WorkerConnection): Promise<void> {
  send('GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n');
  assert.equal((await reply()).status, 404);
}
