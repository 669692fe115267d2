// The metrics as a table for people.
// Must not know how they are counted or rendered.
import { supervisorMetrics, workerMetrics } from './metrics.ts';

/** A Markdown table of every metric: name, type, labels, meaning. */
export function describeMetrics(): string {
  const rows = Object.entries({ ...workerMetrics, ...supervisorMetrics }).map(
    ([name, { type, labels, help }]) =>
      `| \`${name}\` | ${type} | ${labels.join(', ') || '–'} | ${help} |`,
  );
  return ['| metric | type | labels | meaning |', '|---|---|---|---|', ...rows].join('\n');
}
