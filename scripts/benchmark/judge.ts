// The verdict on each target: what was measured, against its two limits.
import { type GaugeResult, middle } from './gauges.ts';
import { disturbedCores } from './others.ts';
import type { Peer } from './peers.ts';
import type { Summary } from './rounds.ts';
import type { Source, Target } from './targets.ts';

/** A target with its measured value; null if its cell, peer or gauge was not run, or if there were errors. */
export type Verdict = {
  readonly target: Target;
  readonly measured: number | null;
  readonly beside: number | null;
  /** The highest possible value; null if it is unknown. */
  readonly ceiling: number | null;
  readonly word: 'reaches aim' | 'good' | 'falls short' | null;
  /** Whether other programs used the machine in most rounds of the comparison. */
  readonly disturbed: boolean;
};

/** All that was measured. */
export type Measured = {
  readonly summary: (cell: string, peer: Peer) => Summary | null;
  readonly gauges: readonly GaugeResult[];
  /** Cores of the machine, which all participants share. */
  readonly cores: number;
};

/** The number that a source names; NaN if it is missing. If the gateway gave errors, its other samples do not make up for them. */
function read(source: Source, { summary, gauges }: Measured): number {
  if (source.kind === 'gauge') {
    const result = gauges.find(({ gauge }) => gauge.id === source.gauge);
    return result === undefined ? Number.NaN : middle(result);
  }
  const { cell, figure, of, to } = source;
  const own = summary(cell, of);
  if (own === null || own.errors > 0) return Number.NaN;
  const value = own[figure] ?? Number.NaN;
  if (to === null) return value;
  const other = summary(cell, to)?.[figure] ?? Number.NaN;
  return source.kind === 'difference' ? value - other : value / other;
}

/**
 * The ratio that a gateway would reach which takes of the machine what a constant of node:http takes, load generator
 * included, and what the database took for this gateway; and nothing for speaking to the database. The constant is
 * taken to keep all cores busy.
 */
function readCeiling({ source, ceiling }: Target, { summary, cores }: Measured): number {
  if (source.kind !== 'ratio' || source.to === null || ceiling === null) return Number.NaN;
  const [own, other] = [summary(source.cell, source.of), summary(source.cell, source.to)];
  const constant = summary(source.cell, ceiling);
  if (own === null || other === null || constant === null || own.errors > 0) return Number.NaN;
  const secondsEach = 1 / constant.perSecond + own.databaseCpuUs / 1e6 / cores;
  return 1 / secondsEach / other.perSecond;
}

function isDisturbed(source: Source, { summary }: Measured): boolean {
  if (source.kind === 'gauge') return false;
  return [source.of, source.to].some((peer) => {
    const found = peer === null ? null : summary(source.cell, peer);
    return found !== null && found.othersCores > disturbedCores;
  });
}

/** A target has at least one limit: without `good`, what misses the aim falls short. */
function decide({ compare, good, aim }: Target, measured: number): NonNullable<Verdict['word']> {
  const meets = (limit: number | null): boolean =>
    limit !== null && (compare === 'at least' ? measured >= limit : measured <= limit);
  if (meets(aim)) return 'reaches aim';
  return meets(good) ? 'good' : 'falls short';
}

/** Judges one target. */
export function judge(target: Target, measured: Measured): Verdict {
  const finite = (value: number): number | null => (Number.isFinite(value) ? value : null);
  const value = finite(read(target.source, measured));
  return {
    target,
    measured: value,
    ceiling: finite(readCeiling(target, measured)),
    beside: target.beside === null ? null : finite(read(target.beside.source, measured)),
    word: value === null ? null : decide(target, value),
    disturbed: isDisturbed(target.source, measured),
  };
}
