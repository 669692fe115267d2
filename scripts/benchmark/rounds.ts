// The alternating run: every round takes every cell, every cell its peers one after the other, so that what
// disturbs the machine disturbs all of them.

import { median } from '../support/statistics.ts';
import type { Cell } from './cells.ts';
import type { Gauge, GaugeResult } from './gauges.ts';
import { type Arena, measure, type Sample } from './measure.ts';
import { isClient, type Peer } from './peers.ts';
import type { Reading } from './reading.ts';

/** A cell's samples by peer, in the order of the rounds. */
export type CellResult = {
  readonly cell: Cell;
  readonly samples: ReadonlyMap<Peer, readonly Sample[]>;
};

/** The middle of a peer's samples in a cell. Samples with errors are counted, not used. */
export type Summary = {
  readonly rounds: number;
  readonly errors: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly cpuUs: number;
  readonly databaseCpuUs: number;
  readonly firstByteMs: number | null;
  readonly mbPerCpuSecond: number | null;
  /** The highest of all rounds, not the median: later rounds start from a heap that has already grown. */
  readonly growthMb: number | null;
  /** Cores that others used meanwhile, in the middle of all rounds. */
  readonly othersCores: number;
};

/** The rounds of a run. */
export type Schedule = {
  readonly cells: readonly Cell[];
  readonly gauges: readonly Gauge[];
  readonly rounds: number;
  readonly seconds: number;
  /** Called before each measurement. */
  readonly progress: (round: number, what: string) => void;
};

/** All samples of a run. */
export type RunResult = {
  readonly cells: readonly CellResult[];
  readonly gauges: readonly GaugeResult[];
};

/** Runs all rounds. A failed measurement ends the run. */
export async function runRounds(arena: Arena, schedule: Schedule): Promise<RunResult> {
  const results = schedule.cells.map((cell) => ({
    cell,
    samples: new Map(cell.peers.map((peer): [Peer, Sample[]] => [peer, []])),
  }));
  const readings = schedule.gauges.map((gauge) => ({ gauge, readings: [] as Reading[] }));
  const warm = new Set<string>();
  for (let round = 1; round <= schedule.rounds; round += 1) {
    for (const { cell, samples } of results) {
      schedule.progress(round, cell.id);
      for (const [peer, list] of rotate([...samples], round - 1)) {
        arena.signal.throwIfAborted();
        if (!warm.has(`${peer} ${cell.workload.name}`)) await warmUp(arena, cell, peer);
        warm.add(`${peer} ${cell.workload.name}`);
        list.push(await measure(arena, cell, peer, cell.decides ? schedule.seconds : 1));
      }
    }
    for (const { gauge, readings: list } of readings) {
      arena.signal.throwIfAborted();
      schedule.progress(round, gauge.title);
      list.push(await gauge.read(arena.database, arena.signal));
    }
  }
  return { cells: results, gauges: readings };
}

/** The same list, begun `turns` places later: no peer is always the first after another cell. */
export function rotate<Item>(list: readonly Item[], turns: number): Item[] {
  const start = turns % Math.max(1, list.length);
  return [...list.slice(start), ...list.slice(0, start)];
}

/** After this many requests, the code is compiled for good: figures no longer rise by then. */
const warmRequests = 20_000;
const maxWarmSeconds = 4;

// Compiled code and open connections, before the first sample that counts: by requests, since on a busy machine, or
// with a slow peer, a second holds few. Two readers of a large result reach both workers.
async function warmUp(arena: Arena, cell: Cell, peer: Peer): Promise<void> {
  if (isClient(peer)) return;
  const isLarge = cell.workload.name === 'bulk';
  const load = { connections: isLarge ? 2 : 32, close: cell.load.close };
  let requests = 0;
  for (let second = 0; second < maxWarmSeconds && requests < warmRequests; second += 1) {
    requests += (await measure(arena, { ...cell, load }, peer, 1)).requests;
    if (isLarge) return;
  }
}

/** Summarises a peer's samples in a cell. NaN if every sample had errors. */
export function summarise(samples: readonly Sample[]): Summary {
  const good = samples.filter(({ errors }) => errors === 0);
  const middle = (read: (sample: Sample) => number): number => median(good.map(read));
  const firsts = good.flatMap(({ firstByteMs }) => (firstByteMs === null ? [] : [firstByteMs]));
  const rates = good.flatMap(({ mbPerCpuSecond: rate }) => (rate === null ? [] : [rate]));
  const growths = good.flatMap(({ growthBytes }) => (growthBytes === null ? [] : [growthBytes]));
  return {
    rounds: good.length,
    errors: samples.reduce((sum, { errors }) => sum + errors, 0),
    perSecond: middle(({ perSecond }) => perSecond),
    p50Ms: middle(({ p50Ms }) => p50Ms),
    p99Ms: middle(({ p99Ms }) => p99Ms),
    cpuUs: middle(({ cpuUs }) => cpuUs),
    databaseCpuUs: middle(({ databaseCpuUs }) => databaseCpuUs),
    firstByteMs: firsts.length === 0 ? null : median(firsts),
    mbPerCpuSecond: rates.length === 0 ? null : median(rates),
    othersCores: median(samples.map(({ othersCores }) => othersCores)),
    growthMb: growths.length === 0 ? null : Math.max(...growths) / 1e6,
  };
}
