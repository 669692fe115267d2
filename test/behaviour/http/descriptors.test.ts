// A worker without descriptors, or near it: service goes on, and the metrics say so.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { createAsk } from '../../support/ask.ts';
import { command } from '../../support/command.ts';
import { daemonFor } from '../../support/daemon.ts';
import { eventually } from '../../support/eventually.ts';
import { startGateway } from '../../support/gateway.ts';
import { isSleeping } from '../../support/processes.ts';
import { readMetric } from '../../support/scrape.ts';
import { useDatabase } from '../../support/use-gateway.ts';

const database = useDatabase();

function hold(port: number, count: number): Promise<Socket[]> {
  return Promise.all(
    Array.from({ length: count }, async () => {
      const socket = connect({ port, host: '127.0.0.1' });
      socket.on('error', () => {}).resume();
      await new Promise((resolve) => socket.once('connect', resolve).once('close', resolve));
      return socket;
    }),
  );
}

test('under a low limit, clients without room get an answer, and health answers beyond it', async (t) => {
  const { host, port, user, password, name } = database;
  const account = { database: name, user, password: password || null };
  const daemon = daemonFor(t, { ...account, host, port: String(port) });
  const limited = ['-c', 'ulimit -n 160; exec "$@"', 'sh', process.execPath, command];
  const child = spawn('sh', [...limited, '-c', daemon.configPath, '-s', 'world'], {
    stdio: 'ignore',
  });
  assert.equal(await new Promise((resolve) => child.once('exit', resolve)), 0, daemon.readLog());
  // Reading the pid makes the test stop the daemon.
  assert.ok(daemon.pid() > 0);
  const ask = createAsk(`http://${daemon.address()}`);
  const answers = async (status: number) => (await ask.db({ SQL: 'select 1' })).status === status;
  await eventually('it serves', () => answers(200));

  const held = await hold(Number(daemon.address().split(':')[1]), 75);
  await eventually('there is no room', () => answers(503));
  const refused = await ask.db({ SQL: 'select 1' });
  assert.equal(refused.json<{ CODE: string }>().CODE, 'TOO_MANY_CONNECTIONS');
  assert.equal(refused.headers['retry-after'], '1');
  assert.equal(refused.headers.connection, 'close');
  for (const path of ['/livez', '/readyz']) {
    assert.equal((await ask.get(path)).status, 200, path);
  }
  assert.ok((await readMetric(ask, 'dbhttpd_client_connections')) >= 72);
  assert.ok((await readMetric(ask, 'dbhttpd_client_connections_refused_total')) >= 2);
  assert.equal(await readMetric(ask, 'dbhttpd_descriptor_shortages_total'), 0);

  for (const socket of held) socket.destroy();
  await eventually('there is room again', () => answers(200));
});

/** Sets the limit of a running process; skips the test, saying why, where that is not allowed. */
function limitDescriptors(t: TestContext, pid: number, soft: number): boolean {
  try {
    execFileSync('prlimit', ['--pid', String(pid), `--nofile=${soft}:`], { stdio: 'pipe' });
    return true;
  } catch (error) {
    t.skip(`prlimit: ${(error as Error).message.split('\n')[0]}`);
    return false;
  }
}

test('a worker that has no descriptor left does not spin, and serves when there are some again', async (t) => {
  const gateway = await startGateway({ database, settings: { workers: 1 } });
  t.after(gateway.stop);
  assert.equal((await gateway.db({ SQL: 'select 1' })).status, 200);
  const [worker = 0] = gateway.workers();
  const open = readdirSync(`/proc/${worker}/fd`).length;
  if (!limitDescriptors(t, worker, open + 5)) return;
  const held = await hold(gateway.port, 40);
  const looks: boolean[] = [];
  const sleeps = () => {
    // One that spins waits for the processor at the most, and is never seen asleep.
    looks.push(isSleeping(worker));
    const latest = looks.slice(-150);
    return latest.length === 150 && latest.filter(Boolean).length > 75;
  };
  await eventually('it sleeps most of the time', sleeps, { everyMs: 10 });
  assert.deepEqual(gateway.workers(), [worker]);

  for (const socket of held) socket.destroy();
  assert.ok(limitDescriptors(t, worker, 4096));
  await eventually('it serves', async () => (await gateway.db({ SQL: 'select 1' })).status === 200);
  assert.ok((await readMetric(gateway, 'dbhttpd_descriptor_shortages_total')) > 0);
});
