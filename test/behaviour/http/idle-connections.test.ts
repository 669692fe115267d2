// Idle keep-alive connections cost little memory, and nothing of the time of others.
// Prints what it measured. DBHTTPD_TEST_IDLE_CONNECTIONS: how many, for a longer look.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { after, test } from 'node:test';
import { readCpuMs } from '../../../scripts/support/proc.ts';
import { useGateway } from '../../support/use-gateway.ts';

const openFiles = Number(
  /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))?.[1],
);
const wanted = Number(process.env.DBHTTPD_TEST_IDLE_CONNECTIONS ?? 2_000);
const idleConnections = Math.min(wanted, openFiles - 500);
const atATime = 200;
const requests = 100;

const { gateway } = useGateway({ workers: 1 });
const held: Socket[] = [];
// By RST: thousands of connections that wait for their last packets would block other tests for a minute.
after(() => {
  for (const socket of held) socket.resetAndDestroy();
});

const worker = () => gateway.workers()[0] ?? 0;

function residentKib(): number {
  const status = readFileSync(`/proc/${worker()}/status`, 'latin1');
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

/** The worker's processor time for a number of requests, which does not depend on other load. */
async function askMany(): Promise<number> {
  const before = readCpuMs(worker()) ?? 0;
  for (let index = 0; index < requests; index += 1) {
    assert.equal((await gateway.db({ SQL: 'select 1' })).status, 200);
  }
  return (readCpuMs(worker()) ?? 0) - before;
}

test(`${idleConnections} idle connections: less than 20 KiB each, requests answered as before`, async (t) => {
  await askMany();
  const [memoryBefore, spentBeforeMs] = [residentKib(), await askMany()];
  while (held.length < idleConnections) {
    const count = Math.min(atATime, idleConnections - held.length);
    await Promise.all(Array.from({ length: count }, holdIdle));
  }
  const each = (residentKib() - memoryBefore) / idleConnections;
  const spentMs = await askMany();
  t.diagnostic(
    `${each.toFixed(1)} KiB each; ${requests} requests took ${spentBeforeMs} ms of the worker before, ${spentMs} ms with them`,
  );
  assert.ok(each < 20, `${each} KiB`);
  assert.ok(spentMs < 3 * spentBeforeMs + 100, `${spentMs} ms after ${spentBeforeMs} ms`);
});
