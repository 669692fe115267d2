// scripts/bench memory: the memory of all processes of a gateway, by workers, by connections to the database, and by idle clients; table, JSON.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createAsk } from '../../test/support/ask.ts';
import { readSharedOutBytes } from '../support/proc.ts';
import { median } from '../support/statistics.ts';
import { openCrowd } from './crowd.ts';
import { type Database, startDatabase } from './database.ts';
import { describeConditions } from './machine.ts';
import type { MemoryOptions } from './options.ts';
import { type Server, startLoggingGateway } from './servers.ts';

/** The dimensions with their sizes. In all other dimensions the gateway is one worker that has just started. */
const growths = {
  workers: [1, 2, 4],
  'connections to the database': [10, 50, 100, 200],
  'idle clients': [0, 1_000, 5_000],
} as const;

type Growth = keyof typeof growths;

type Point = { readonly what: Growth; readonly size: number; readonly mb: number[] };

/** Memory goes on changing after a start and after the last reply. */
const settleMs = 3_000;

/** Measures, prints, writes. Rejects when it cannot measure; nothing is left running. */
export async function runMemory(
  { rounds, directory }: MemoryOptions,
  signal: AbortSignal,
): Promise<void> {
  const database = await startDatabase();
  try {
    const points = (Object.keys(growths) as Growth[]).flatMap((what) =>
      growths[what].map((size): Point => ({ what, size, mb: [] })),
    );
    for (let round = 1; round <= rounds; round += 1) {
      process.stderr.write(`round ${round} of ${rounds}\n`);
      for (const { what, size, mb } of points) mb.push(await measure(what, size, database, signal));
    }
    const at = new Date().toISOString();
    const found = points.map((point) => ({ ...point, median: median(point.mb) }));
    mkdirSync(directory, { recursive: true });
    const path = join(directory, `memory-${at.slice(0, 10)}.json`);
    const json = { at, ...describeConditions(database.version), rounds, points: found };
    writeFileSync(path, `${JSON.stringify(json, null, 1)}\n`);
    const lines = found.map(
      (point) => `${point.what}: ${point.size}: ${point.median.toFixed(0)} MB`,
    );
    process.stdout.write(`${lines.join('\n')}\nevery sample: ${path}\n`);
  } finally {
    await database.stop();
  }
}

/** MB of all processes of a fresh gateway; pages that they share count once. */
async function measure(
  what: Growth,
  size: number,
  database: Database,
  signal: AbortSignal,
): Promise<number> {
  const workers = what === 'workers' ? size : 1;
  const pool = what === 'connections to the database' ? size : 10;
  const gateway = await startLoggingGateway(database, { workers, pool });
  try {
    if (what === 'connections to the database') await openAll(gateway, size);
    const crowd = what === 'idle clients' ? await openCrowd(gateway.port, size) : null;
    try {
      await crowd?.askAll('GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n');
      await sleep(settleMs, undefined, { signal });
      return readSharedOutBytes(gateway.pid) / 1e6;
    } finally {
      crowd?.close();
    }
  } finally {
    await gateway.stop();
  }
}

/** Keeps all connections of the pool busy at once, so that the gateway opens all. */
async function openAll({ port }: Server, pool: number): Promise<void> {
  const ask = createAsk(`http://127.0.0.1:${port}`);
  const requests = Array.from({ length: pool }, () =>
    ask.post('/v1/query', { sql: 'select sleep(1)' }),
  );
  const failed = (await Promise.all(requests)).filter(({ status }) => status !== 200);
  if (failed.length > 0) throw new Error(`${failed.length} requests failed: ${failed[0]?.text}`);
}
