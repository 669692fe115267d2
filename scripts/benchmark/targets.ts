// What the figures should be: one table, and the verdict on each line of it.
// Must not know how figures are taken or shown.
import type { Summary } from './rounds.ts';
import type { Peer } from './workloads.ts';

/** The gateway's figure in a cell, alone or as a ratio to a peer's, against a limit. */
export type Target = {
  readonly title: string;
  readonly cell: string;
  readonly figure: 'perSecond' | 'p50Ms' | 'p99Ms' | 'cpuUs' | 'firstByteMs' | 'growthMb';
  readonly against: Peer | null;
  readonly compare: 'at least' | 'at most';
  readonly limit: number;
  readonly unit: '×' | 'ms' | 'MB' | 'µs';
};

export const targets: readonly Target[] = [
  {
    title: 'point query, 64 keep-alive: requests/s against fastify + mysql2',
    cell: 'point/64',
    figure: 'perSecond',
    against: 'fastify',
    compare: 'at least',
    limit: 1.8,
    unit: '×',
  },
  {
    title: '1,000 rows, 16 keep-alive: requests/s against fastify + mysql2',
    cell: 'thousand/16',
    figure: 'perSecond',
    against: 'fastify',
    compare: 'at least',
    limit: 3.5,
    unit: '×',
  },
  {
    title: '25 MB: total time against fastify + mysql2',
    cell: 'bulk/1',
    figure: 'p50Ms',
    against: 'fastify',
    compare: 'at most',
    limit: 0.25,
    unit: '×',
  },
  {
    title: '25 MB: first byte',
    cell: 'bulk/1',
    figure: 'firstByteMs',
    against: null,
    compare: 'at most',
    limit: 20,
    unit: 'ms',
  },
  {
    title: '25 MB to 8 readers at once: memory growth',
    cell: 'bulk/8',
    figure: 'growthMb',
    against: null,
    compare: 'at most',
    limit: 25,
    unit: 'MB',
  },
];

/** A target with what was measured; null when its cell or peer was not run, or there were errors. */
export type Verdict = {
  readonly target: Target;
  readonly measured: number | null;
  readonly pass: boolean | null;
};

/** Finds a summary by cell and peer. */
export type Lookup = (cell: string, peer: Peer) => Summary | null;

function read(target: Target, peer: Peer, lookup: Lookup): number {
  return lookup(target.cell, peer)?.[target.figure] ?? Number.NaN;
}

/** Judges one target. Where the gateway gave errors, its other samples do not make up for them. */
export function judge(target: Target, lookup: Lookup): Verdict {
  const own = read(target, 'gateway', lookup);
  const measured = target.against === null ? own : own / read(target, target.against, lookup);
  const errors = lookup(target.cell, 'gateway')?.errors ?? 0;
  if (errors > 0 || !Number.isFinite(measured)) return { target, measured: null, pass: null };
  const pass = target.compare === 'at least' ? measured >= target.limit : measured <= target.limit;
  return { target, measured, pass };
}
