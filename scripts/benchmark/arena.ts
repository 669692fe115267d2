// Everything that runs during a benchmark: database, gateway, peers; started, probed, warmed up, stopped.
import type { Cell } from './cells.ts';
import { startDatabase } from './database.ts';
import type { Arena } from './measure.ts';
import { isClient, isConstant, type Peer, peers } from './peers.ts';
import { probe } from './probe.ts';
import { type Server, startServer } from './servers.ts';
import type { Workload } from './workloads.ts';

/** An open arena. The caller must close it. */
export type OpenArena = Arena & { readonly close: () => Promise<void> };

/**
 * Starts what the cells need. Rejects if a part does not start or answers wrongly, after it has stopped the others.
 * @param before the folder of the earlier gateway's build, if one takes part
 */
export async function openArena(
  cells: readonly Cell[],
  before: string | null,
  signal: AbortSignal,
): Promise<OpenArena> {
  const closers: (() => Promise<void>)[] = [];
  const close = async () => {
    const stops = closers.splice(0).reverse();
    // If one part does not stop, the others are stopped all the same.
    const failures: unknown[] = [];
    for (const stop of stops) await stop().catch((error: unknown) => failures.push(error));
    if (failures.length > 0) throw new AggregateError(failures, 'not everything stopped in time');
  };
  try {
    const database = await startDatabase();
    closers.push(database.stop);
    const servers = new Map<Peer, Server>();
    const replies = new Map<string, number>();
    const sizes = new Map<string, number>();
    const workloads = [...new Set(cells.map(({ workload }) => workload))];
    for (const peer of peers) {
      if (isClient(peer) || !cells.some((cell) => cell.peers.includes(peer))) continue;
      signal.throwIfAborted();
      const constant = isConstant(peer);
      if (constant) fillSizes(sizes, workloads);
      const server = await startServer(peer, database, sizes, before);
      closers.push(server.stop);
      servers.set(peer, server);
      const asked = cells.filter((cell) => cell.peers.includes(peer));
      for (const workload of new Set(asked.map((cell) => cell.workload))) {
        const reply = await probe(server, workload, { constant, signal });
        replies.set(`${peer} ${workload.name}`, reply.bytes);
        // The gateway comes first, because the constants are as large as its replies.
        if (!sizes.has(workload.name)) sizes.set(workload.name, reply.bodyBytes);
      }
    }
    const replyBytes = (peer: Peer, name: string) => replies.get(`${peer} ${name}`) ?? 0;
    return { database, servers, replyBytes, signal, close };
  } catch (error) {
    await close();
    throw error;
  }
}

// If neither the gateway nor fastify takes part, constants are about as large as a reply.
function fillSizes(sizes: Map<string, number>, workloads: readonly Workload[]): void {
  for (const { name, rows } of workloads) {
    if (!sizes.has(name)) sizes.set(name, 100 + (rows ?? 0) * (name === 'bulk' ? 240 : 90));
  }
}
