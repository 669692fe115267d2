// The memory that an idle keep-alive connection costs the gateway, measured with many connections that have each sent one request.
import { setTimeout as sleep } from 'node:timers/promises';
import { readSharedOutBytes } from '../support/proc.ts';
import type { Cell } from './cells.ts';
import { largestCrowd, openCrowd } from './crowd.ts';
import type { Database } from './database.ts';
import type { Reading } from './reading.ts';
import { composeRequest, fillIn } from './request.ts';
import { startLoggingGateway } from './servers.ts';
import { workloads } from './workloads.ts';
import { runWrk } from './wrk.ts';

const wantedConnections = 10_000;
/** Two readings closer than this are the same. */
const steadyBytes = 256 * 1024;
const pauseMs = 250;
const maxPauses = 12;

/**
 * Memory of one connection in KiB. Measures how much all processes of a fresh gateway grow, from after some load without connections to
 * when all connections have asked and are idle, and divides by their number. Shared pages count once. The kernel's memory for sockets does
 * not count.
 */
export async function measureIdleConnections(
  database: Database,
  signal: AbortSignal,
): Promise<Reading> {
  const size = Math.min(wantedConnections, largestCrowd());
  const gateway = await startLoggingGateway(database);
  try {
    const request = composePointQuery(gateway);
    // Compiled code and a young generation of full size are no connection's memory.
    await runWrk({
      request,
      port: gateway.port,
      connections: 64,
      seconds: 2,
      replyBytes: 1,
      signal,
    });
    const before = await settle(gateway.pid, signal);
    const crowd = await openCrowd(gateway.port, size);
    try {
      const { errors } = await crowd.askAll(fillIn(request, 1));
      const after = await settle(gateway.pid, signal);
      return { value: (after - before) / size / 1024, errors, note: `${size} connections` };
    } finally {
      crowd.close();
    }
  } finally {
    await gateway.stop();
  }
}

function composePointQuery(server: Parameters<typeof composeRequest>[1]) {
  const workload = workloads.find(({ name }) => name === 'point');
  if (workload === undefined) throw new Error('there is no point query');
  const load = { connections: 1, close: false };
  const cell: Cell = { id: 'idle', workload, load, peers: [], decides: false };
  return composeRequest(cell, server);
}

// Memory goes on changing for a moment after the last reply: closed connections, buffers, a late collection.
async function settle(pid: number, signal: AbortSignal): Promise<number> {
  let last = readSharedOutBytes(pid);
  for (let pause = 0; pause < maxPauses; pause += 1) {
    await sleep(pauseMs, undefined, { signal });
    const now = readSharedOutBytes(pid);
    if (Math.abs(now - last) < steadyBytes) return now;
    last = now;
  }
  return last;
}
