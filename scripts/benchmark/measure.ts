// One measurement: a peer under a cell's load, with what it cost the machine and whether its answers were true.

import { readChildrenCpuUs, readUsage, resetPeak } from '../support/proc.ts';
import type { Cell } from './cells.ts';
import { type Database, keysTable } from './database.ts';
import { runDownloads } from './download.ts';
import { watchOthers } from './others.ts';
import type { Outcome } from './outcome.ts';
import { isClient, isConstant, type Peer } from './peers.ts';
import { composeRequest, fillIn } from './request.ts';
import type { Server } from './servers.ts';
import { runSysbench } from './sysbench.ts';
import { runWrk } from './wrk.ts';

/** The running parts that a measurement needs. */
export type Arena = {
  readonly database: Database;
  readonly servers: ReadonlyMap<Peer, Server>;
  /** Bytes of a good reply, head included, by server and workload. */
  readonly replyBytes: (peer: Peer, workload: string) => number;
  readonly signal: AbortSignal;
};

/** A run with its costs. CPU per request, of all the server's processes; for a C client, of the client. */
export type Sample = Outcome & {
  readonly perSecond: number;
  readonly cpuUs: number;
  readonly databaseCpuUs: number;
  /** Bytes of replies by CPU time of the server's processes: MB by second of one core; null for a C client. */
  readonly mbPerCpuSecond: number | null;
  /** Cores that others used meanwhile. */
  readonly othersCores: number;
  /** Growth from before the run to its highest point; null for a C client. */
  readonly growthBytes: number | null;
};

/** Runs one peer in one cell for `seconds` (large results: once per reader). */
export async function measure(
  arena: Arena,
  cell: Cell,
  peer: Peer,
  seconds: number,
): Promise<Sample> {
  const { database } = arena;
  const server = arena.servers.get(peer);
  const ledger = await openLedger(database, cell, peer);
  if (server !== undefined) resetPeak(server.pid);
  server?.trimLogs();
  const others = watchOthers([process.pid, ...[...arena.servers.values()].map(({ pid }) => pid)]);
  const before = readCosts(database, server);
  const outcome = await run(arena, cell, peer, seconds);
  const after = readCosts(database, server);
  const othersCores = others();
  const cpuUs = after.cpuUs - before.cpuUs;
  const requests = Math.max(1, outcome.requests);
  return {
    ...outcome,
    errors: outcome.errors + Math.max(0, outcome.requests - (await ledger())),
    perSecond: outcome.requests / outcome.seconds,
    cpuUs: cpuUs / requests,
    databaseCpuUs: (after.databaseCpuUs - before.databaseCpuUs) / requests,
    mbPerCpuSecond: outcome.bytes === null ? null : outcome.bytes / Math.max(1, cpuUs),
    othersCores,
    growthBytes: server === undefined ? null : Math.max(0, after.peakBytes - before.residentBytes),
  };
}

function readCosts(database: Database, server: Server | undefined) {
  const usage =
    server === undefined
      ? { cpuUs: readChildrenCpuUs(), residentBytes: 0, peakBytes: 0 }
      : readUsage(server.pid);
  return { ...usage, databaseCpuUs: database.cpuUs() };
}

function run(arena: Arena, cell: Cell, peer: Peer, seconds: number): Promise<Outcome> {
  const { database, servers, signal } = arena;
  const large = cell.workload.name === 'bulk';
  if (isClient(peer)) {
    const events = large ? Math.max(3, cell.load.connections) : 0;
    return runSysbench(cell, peer, database, { seconds: large ? 60 : seconds, events, signal });
  }
  const server = servers.get(peer);
  if (server === undefined) throw new Error(`${peer} does not run`);
  const replyBytes = arena.replyBytes(peer, cell.workload.name);
  const request = composeRequest(cell, server);
  const { connections } = cell.load;
  if (!large) {
    const { port } = server;
    return runWrk({ port, request, connections, seconds, replyBytes, signal });
  }
  // One after another three times: a single one is short beside the kernel's tick of 10 ms.
  const times = connections === 1 ? 3 : 1;
  return runDownloads(server.port, fillIn(request, 1), {
    readers: connections,
    times,
    minBytes: replyBytes * 0.9,
  });
}

/**
 * Opens the database's own count of executed statements. A reply without an executed statement is an error. The returned function resolves
 * to the number of statements executed since.
 */
async function openLedger(
  database: Database,
  cell: Cell,
  peer: Peer,
): Promise<() => Promise<number>> {
  if (isConstant(peer)) return async () => Number.POSITIVE_INFINITY;
  if (cell.workload.rows === null) {
    // Each work of a write leaves one row there.
    const tables = ['inserted', 'ordered', ...(peer === 'gateway-keys' ? [keysTable] : [])];
    for (const table of tables) await database.query(`truncate table ${table}`);
    return () => readNumber(database, 'select count(*) as Value from inserted');
  }
  const selects = () =>
    readNumber(database, "show global status where Variable_name = 'Com_select'");
  const before = await selects();
  return async () => (await selects()) - before;
}

async function readNumber(database: Database, sql: string): Promise<number> {
  const [row] = await database.query(sql);
  return Number(row?.Value);
}
