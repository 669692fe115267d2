// Writes the README's generated parts anew: configuration and metrics, from the tables that the program uses.
// Must not know anything that those tables do not say.
import { readFileSync, writeFileSync } from 'node:fs';
import { describeMetrics } from '../src/shared/process/describe-metrics.ts';
import { describeOptions } from '../src/shared/settings/describe.ts';

const readme = new URL('../../README.md', import.meta.url);

/** The README with its generated parts as they must be. Throws when a part's marks are missing. */
export function withReference(text: string): string {
  return replacePart(
    replacePart(text, 'configuration', describeOptions()),
    'metrics',
    describeMetrics(),
  );
}

function replacePart(text: string, name: string, content: string): string {
  const [start, end] = [`<!-- ${name}: generated -->\n`, `<!-- end of ${name} -->`];
  const from = text.indexOf(start);
  const to = text.indexOf(end);
  if (from < 0 || to < from) throw new Error(`the README has no part "${name}"`);
  return `${text.slice(0, from + start.length)}\n${content.trim()}\n\n${text.slice(to)}`;
}

if (process.argv[1] === import.meta.filename) {
  writeFileSync(readme, withReference(readFileSync(readme, 'utf8')));
}
