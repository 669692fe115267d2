// A stop finishes what is in flight, refuses what is new, and leaves nothing behind.
// Must not know how workers drain.
// Runs alone: new connections are refused within 100 ms.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';
import { closeGate, createGate } from '../../support/database/gate.ts';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import { eventually } from '../../support/eventually.ts';
import { startGateway } from '../../support/gateway.ts';
import { gone, isAlive } from '../../support/processes.ts';

let database: Database;
before(async () => {
  database = await startDatabase();
  await createGate(database);
});
after(() => database.stop());

function isRefused(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(false));
    socket.once('error', () => resolve(true));
    socket.once('connect', () => socket.destroy());
  });
}

test('SIGTERM answers 20 statements in flight, refuses new connections, and goes in order', async () => {
  const gateway = await startGateway({ database, settings: { workers: 2, pool: 20 } });
  const workers = gateway.workers();
  const gate = await closeGate(database);
  const SQL = `select ${gate.zero}`;
  const url = `${gateway.url}/db?${encodeURIComponent(JSON.stringify({ SQL }))}`;
  const answers = Array.from({ length: 20 }, () => fetch(url).then((reply) => reply.status));
  const running = `select count(*) as n from information_schema.processlist
    where info = '${SQL}' and db = database()`;
  await eventually(
    'all are in flight',
    async () => Number((await database.query(running))[0]?.n) === 20,
  );
  process.kill(gateway.pid, 'SIGTERM');
  const told = performance.now();
  // One that comes in the very moment of the close may be answered a second later: it must not hold up those after it.
  let refused = false;
  const probe = () => {
    void isRefused(gateway.port).then((is) => {
      refused ||= is;
    });
    return refused;
  };
  await eventually('new connections are refused', probe, { everyMs: 1 });
  const refusedAfterMs = performance.now() - told;
  await eventually('the pidfile goes', () => !existsSync(gateway.pidfile), { timeoutMs: 1000 });
  assert.equal(Number((await database.query(running))[0]?.n), 20, 'before anything has ended');
  await gate.open();
  assert.deepEqual(await Promise.all(answers), Array<number>(20).fill(200));
  await gone(gateway.pid, 2000);
  assert.ok(!workers.some(isAlive), 'workers are gone before their supervisor');
  await gateway.stop().catch(() => {});
  assert.equal(Number((await database.query(running))[0]?.n), 0);
  assert.ok(refusedAfterMs < 100, `refused after ${refusedAfterMs} ms`);
});
