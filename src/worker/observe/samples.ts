// How a worker's figures become samples.
// Must not know what is counted.
import type { Sample, WorkerMetric } from '../../shared/observe/metrics.ts';

/** One figure. */
export function sample(
  metric: WorkerMetric,
  value: number,
  labels: Readonly<Record<string, string>> = {},
): Sample {
  return { metric, labels, value };
}

/** Counters by name that stand there before their first event: a rate over a series that appears shows nothing. */
export function startAtZero<Name extends string>(names: readonly Name[]): Map<Name, number> {
  return new Map(names.map((name) => [name, 0]));
}
