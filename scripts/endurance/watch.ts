// Watches a running gateway every second: counters, which must not fall, descriptors, memory, connections.
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import type { Database } from '../../test/support/database/mariadb.ts';
import { fallenCounters, parseExposition, type Samples } from '../../test/support/exposition.ts';
import type { Gateway } from '../../test/support/gateway.ts';
import { parseStatus } from '../support/proc.ts';
import { mean, median } from '../support/statistics.ts';
import { judgeFlat, judgeQuick, type Verdict } from '../support/verdicts.ts';
import { countConnections } from './world.ts';

/** The processes and connections of a gateway at one moment; null if it could not be read because of a fault. */
export type Holding = {
  readonly supervisorFds: number | null;
  readonly workerFds: number | null;
  readonly supervisorMb: number | null;
  readonly veteranMb: number | null;
  readonly connections: number | null;
};

function countFds(pid: number): number | null {
  try {
    return readdirSync(`/proc/${pid}/fd`).length;
  } catch {
    return null;
  }
}

function residentMb(pid: number): number | null {
  try {
    return parseStatus(readFileSync(`/proc/${pid}/status`, 'utf8')).residentBytes / 2 ** 20;
  } catch {
    return null;
  }
}

/** Reads what supervisor and workers hold. */
export async function readHolding(
  gateway: Gateway,
  database: Database,
  veteran: number,
): Promise<Holding> {
  const fds = gateway.workers().map(countFds);
  return {
    supervisorFds: countFds(gateway.pid),
    workerFds: fds.reduce<number | null>(
      (sum, n) => (sum === null || n === null ? null : sum + n),
      0,
    ),
    supervisorMb: residentMb(gateway.pid),
    veteranMb: residentMb(veteran),
    connections: await countConnections(database).catch(() => null),
  };
}

/** Scrapes, each of which is compared with the one before. */
export class Scrapes {
  readonly timesMs: number[] = [];
  #last: Samples = new Map();

  /** Resolves to the counters that fell since the scrape before. Rejects if there is no answer. */
  async scrape(gateway: Gateway): Promise<readonly string[]> {
    const from = performance.now();
    const { status, text } = await gateway.get('/metrics', { timeoutMs: 10_000 });
    if (status !== 200) throw new Error(`/metrics: ${status}`);
    this.timesMs.push(performance.now() - from);
    const samples = parseExposition(text);
    const fallen = fallenCounters(this.#last, samples);
    this.#last = samples;
    return fallen;
  }
}

/** The watched gateway and the end of the watch. `veteran`: the worker that is never struck. */
export type Watched = {
  readonly gateway: Gateway;
  readonly database: Database;
  readonly veteran: number;
  readonly startedAt: number;
  readonly endsAt: number;
};

/** The receiver of reports. */
export type Watcher = {
  readonly counterFell: (counter: string) => void;
  readonly noAnswer: (reason: string, fromMs: number) => void;
  /** Whether no fault was in progress since then. */
  readonly isQuiet: (fromMs: number) => boolean;
  readonly progress: (holding: string) => void;
};

/** All readings of a run. */
export type Seen = {
  readonly looks: readonly { atMs: number; quiet: boolean; holding: Holding }[];
  readonly scrapeTimesMs: readonly number[];
};

const everyMs = 1_000;
const progressMs = 30_000;
const scrapeBoundMs = 1_000;
const lateShare = 0.01;
const flatShare = 0.05;

/** Reads every second until the end. */
export async function watch(watched: Watched, watcher: Watcher): Promise<Seen> {
  const { gateway, database, veteran, startedAt, endsAt } = watched;
  const scrapes = new Scrapes();
  const looks = [];
  let progressAt = startedAt + progressMs;
  while (performance.now() < endsAt) {
    const fromMs = performance.now();
    try {
      for (const counter of await scrapes.scrape(gateway)) watcher.counterFell(counter);
    } catch (error) {
      watcher.noAnswer(String(error), fromMs);
    }
    const holding = await readHolding(gateway, database, veteran);
    looks.push({ atMs: fromMs - startedAt, quiet: watcher.isQuiet(fromMs), holding });
    if (performance.now() >= progressAt) {
      watcher.progress(`${Math.round((fromMs - startedAt) / 1000)} s: ${describe(holding)}`);
      progressAt += progressMs;
    }
    await pause(Math.max(0, fromMs + everyMs - performance.now()));
  }
  return { looks, scrapeTimesMs: scrapes.timesMs };
}

function describe(holding: Holding): string {
  const { supervisorFds, workerFds, supervisorMb, veteranMb, connections } = holding;
  const memory = `${supervisorMb?.toFixed(1)} and ${veteranMb?.toFixed(1)} MB`;
  return `${supervisorFds} and ${workerFds} descriptors, ${memory}, ${connections} connections`;
}

/** Judges whether scrapes were in time, and whether everything was as large at the end as in the beginning. */
export function judgeWatch({ looks, scrapeTimesMs }: Seen, runMs: number): Verdict[] {
  const measures: readonly (readonly [
    string,
    (holding: Holding) => number | null,
    typeof median,
  ])[] = [
    ['descriptors of the supervisor', ({ supervisorFds }) => supervisorFds, mean],
    ['descriptors of the workers', ({ workerFds }) => workerFds, mean],
    ['MB of the supervisor', ({ supervisorMb }) => supervisorMb, median],
    ['MB of the worker that was never struck', ({ veteranMb }) => veteranMb, median],
    ['connections at the database', ({ connections }) => connections, mean],
  ];
  const flat = measures.map(([what, read, average]) => {
    const samples = looks.flatMap(({ atMs, quiet, holding }) => {
      const value = read(holding);
      return value === null ? [] : [{ atMs, quiet, value }];
    });
    return judgeFlat(what, samples, runMs, flatShare, average);
  });
  return [judgeQuick('/metrics answers', scrapeTimesMs, scrapeBoundMs, lateShare), ...flat];
}
