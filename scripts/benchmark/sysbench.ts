// The C client: sysbench straight to MariaDB, over TCP or its unix socket, one connection a thread.
import { join } from 'node:path';
import { percentile } from '../support/statistics.ts';
import type { Cell } from './cells.ts';
import { runCommand } from './command.ts';
import type { Database } from './database.ts';
import type { Outcome } from './outcome.ts';
import type { Client } from './peers.ts';
import { splitStatement } from './workloads.ts';

const scripts = join(import.meta.dirname, '../../../scripts/benchmark/lua');

/** The limit of a run: whichever comes first. */
export type Limit = {
  readonly seconds: number;
  readonly events: number;
  readonly signal: AbortSignal;
};

type Bucket = { readonly ms: number; readonly count: number };

function readHistogram(output: string): Bucket[] {
  const lines = output.matchAll(/^\s+([\d.]+) \|\**\s+(\d+)$/gm);
  return [...lines].map(([, ms, count]) => ({ ms: Number(ms), count: Number(count) }));
}

function rank(buckets: readonly Bucket[], share: number): number {
  const total = buckets.reduce((sum, { count }) => sum + count, 0);
  let seen = 0;
  for (const { ms, count } of buckets) {
    seen += count;
    if (seen >= share * total) return ms;
  }
  return Number.NaN;
}

function readTotalSeconds(output: string): number {
  return Number(/total time:\s+([\d.]+)s/.exec(output)?.[1] ?? Number.NaN);
}

/** Parses sysbench's report with --histogram; latencies are the histogram's steps. */
export function parseSysbench(output: string): Outcome {
  const read = (pattern: RegExp): number => Number(pattern.exec(output)?.[1] ?? Number.NaN);
  const buckets = readHistogram(output);
  return {
    requests: read(/total number of events:\s+(\d+)/),
    seconds: readTotalSeconds(output),
    p50Ms: rank(buckets, 0.5),
    p99Ms: rank(buckets, 0.99),
    errors: read(/ignored errors:\s+(\d+)/),
    firstByteMs: null,
    bytes: null,
  };
}

type Fetch = { readonly rows: number; readonly firstMs: number; readonly totalMs: number };

/** Parses the lines of fetch.lua, one large result each, before sysbench's report. */
export function parseFetches(output: string, rows: number): Outcome {
  const lines = [...output.matchAll(/^FETCH (.*)$/gm)];
  const fetches = lines.map(([, line]) => JSON.parse(line ?? '') as Fetch);
  const totals = fetches.map(({ totalMs }) => totalMs);
  return {
    requests: fetches.length,
    seconds: readTotalSeconds(output),
    p50Ms: percentile(totals, 0.5),
    p99Ms: percentile(totals, 0.99),
    errors: fetches.filter((fetch) => fetch.rows !== rows).length,
    firstByteMs: percentile(
      fetches.map(({ firstMs }) => firstMs),
      0.5,
    ),
    bytes: null,
  };
}

// libmariadb takes the socket only if the host is `localhost`.
function placeOf(client: Client, { host, port, socket }: Database): string[] {
  return client === 'client'
    ? [`--mysql-host=${host}`, `--mysql-port=${port}`]
    : ['--mysql-host=localhost', `--mysql-socket=${socket}`];
}

/** Runs a cell's statement from as many threads as the cell has connections. */
export async function runSysbench(
  cell: Cell,
  client: Client,
  database: Database,
  limit: Limit,
): Promise<Outcome> {
  const { before, after } = splitStatement(cell.workload);
  const large = cell.workload.name === 'bulk';
  const output = await runCommand({
    command: 'sysbench',
    args: [
      '--db-driver=mysql',
      '--db-ps-mode=disable',
      ...placeOf(client, database),
      `--mysql-user=${database.user}`,
      `--mysql-password=${database.password}`,
      `--mysql-db=${database.name}`,
      `--threads=${cell.load.connections}`,
      `--time=${limit.seconds}`,
      `--events=${limit.events}`,
      '--histogram=on',
      join(scripts, large ? 'fetch.lua' : 'mysql.lua'),
      'run',
    ],
    environment: {
      BENCH_BEFORE: before,
      BENCH_AFTER: after,
      BENCH_SPAN: String(cell.workload.span),
      BENCH_HOST: database.host,
      BENCH_PORT: String(database.port),
      BENCH_USER: database.user,
      BENCH_PASSWORD: database.password,
      BENCH_DATABASE: database.name,
    },
    timeoutMs: limit.seconds * 1000 + 15_000,
    signal: limit.signal,
  });
  return large ? parseFetches(output, cell.workload.rows ?? 0) : parseSysbench(output);
}
