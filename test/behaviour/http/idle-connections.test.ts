// Idle keep-alive connections cost little memory, and nobody else's time.
// Must not know how connections are kept. Prints what it measured.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { after, before, test } from 'node:test';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';

const openFiles = Number(
  /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))?.[1],
);
const idleConnections = Math.min(10_000, openFiles - 500);
const atATime = 200;

let database: Database;
let gateway: Gateway;
const held: Socket[] = [];

before(async () => {
  database = await startDatabase();
  gateway = await startGateway({ database, settings: { workers: 1 } });
});
after(async () => {
  for (const socket of held) socket.destroy();
  await gateway.stop();
  await database.stop();
});

function residentKib(): number {
  const status = readFileSync(`/proc/${gateway.workers()[0]}/status`, 'latin1');
  return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]);
}

/** Connects, is answered once, and stays. */
function holdIdle(): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(gateway.port, '127.0.0.1', () => {
      socket.write('GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n');
    });
    held.push(socket);
    socket.once('error', reject).once('data', () => resolve());
  });
}

async function median(): Promise<number> {
  const times: number[] = [];
  for (let index = 0; index < 200; index += 1) {
    const startedAt = performance.now();
    assert.equal((await gateway.db({ SQL: 'select 1' })).status, 200);
    times.push(performance.now() - startedAt);
  }
  return times.sort((left, right) => left - right)[100] ?? 0;
}

test(`${idleConnections} idle connections: less than 20 KiB each, requests answered as before`, async (t) => {
  await median();
  const [memoryBefore, timeBefore] = [residentKib(), await median()];
  while (held.length < idleConnections) {
    const count = Math.min(atATime, idleConnections - held.length);
    await Promise.all(Array.from({ length: count }, holdIdle));
  }
  const each = (residentKib() - memoryBefore) / idleConnections;
  const time = await median();
  t.diagnostic(
    `${each.toFixed(1)} KiB each; median of a request ${timeBefore.toFixed(2)} ms before, ${time.toFixed(2)} ms with them`,
  );
  assert.ok(each < 20, `${each} KiB`);
  assert.ok(time < timeBefore * 2 + 5, `${time} ms`);
});
