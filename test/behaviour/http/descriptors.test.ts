// A worker without descriptors, or near it: service goes on, and the metrics say so.
// Must not know how connections are counted.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { after, before, type TestContext, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { createAsk } from '../../support/ask.ts';
import { createDaemon } from '../../support/daemon.ts';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import { eventually } from '../../support/eventually.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';

const command = fileURLToPath(new URL('../../../src/supervisor/main.js', import.meta.url));
let database: Database;
before(async () => {
  database = await startDatabase();
});
after(() => database.stop());

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

const counter = (metrics: string, name: string) =>
  Number(new RegExp(`^dbhttpd_${name}\\{[^}]*\\} (\\d+)`, 'm').exec(metrics)?.[1] ?? Number.NaN);

test('under a low limit, those who find no room are told, and health answers beyond it', async () => {
  const { host, port, user, password, name } = database;
  const daemon = createDaemon({
    ...{
      database: name,
      host,
      port: String(port),
      user,
      password: password === '' ? null : password,
    },
  });
  try {
    const limited = ['-c', 'ulimit -n 160; exec "$@"', 'sh', process.execPath, command];
    const child = spawn('sh', [...limited, '-c', daemon.configPath, '-s', 'world'], {
      stdio: 'ignore',
    });
    assert.equal(await new Promise((resolve) => child.once('exit', resolve)), 0, daemon.readLog());
    const address = daemon.address();
    const ask = createAsk(`http://${address}`);
    await eventually('it serves', async () => (await ask.db({ SQL: 'select 1' })).status === 200);

    const held = await hold(Number(address.split(':')[1]), 75);
    await eventually(
      'there is no room',
      async () => (await ask.db({ SQL: 'select 1' })).status === 503,
    );
    const refused = await ask.db({ SQL: 'select 1' });
    assert.equal(refused.json<{ CODE: string }>().CODE, 'TOO_MANY_CONNECTIONS');
    assert.equal(refused.headers['retry-after'], '1');
    assert.equal(refused.headers.connection, 'close');
    for (const path of ['/livez', '/readyz']) {
      assert.equal((await ask.get(path, { timeoutMs: 1_000 })).status, 200, path);
    }
    const { text } = await ask.get('/metrics', { timeoutMs: 1_000 });
    assert.ok(counter(text, 'client_connections') >= 72);
    assert.ok(counter(text, 'client_connections_refused_total') >= 2);
    assert.equal(counter(text, 'descriptor_shortages_total'), 0);

    for (const socket of held) socket.destroy();
    await eventually(
      'there is room again',
      async () => (await ask.db({ SQL: 'select 1' })).status === 200,
    );
  } finally {
    await daemon.dispose();
  }
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

const ticksOf = (pid: number) => {
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ') ?? [];
  return Number(fields[11]) + Number(fields[12]);
};

test('a worker that has no descriptor left does not spin, and serves when there are some again', async (t) => {
  const gateway: Gateway = await startGateway({ database, settings: { workers: 1 } });
  try {
    assert.equal((await gateway.db({ SQL: 'select 1' })).status, 200);
    const [worker = 0] = gateway.workers();
    const open = readdirSync(`/proc/${worker}/fd`).length;
    if (!limitDescriptors(t, worker, open + 5)) return;
    const held = await hold(gateway.port, 40);
    await pause(200);
    const before = ticksOf(worker);
    await pause(1000);
    assert.ok(ticksOf(worker) - before < 50, `${ticksOf(worker) - before} of 100 ticks`);
    assert.deepEqual(gateway.workers(), [worker]);

    for (const socket of held) socket.destroy();
    assert.ok(limitDescriptors(t, worker, 4096));
    await eventually(
      'it serves',
      async () => (await gateway.db({ SQL: 'select 1' })).status === 200,
    );
    const { text } = await gateway.get('/metrics');
    assert.ok(counter(text, 'descriptor_shortages_total') > 0);
  } finally {
    await gateway.stop();
  }
});
