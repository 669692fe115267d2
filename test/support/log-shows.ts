// Waits for lines in a log: processes write their lines in batches.
import assert from 'node:assert/strict';
import { eventually } from './eventually.ts';

type Logged = { readonly log: () => string } | { readonly readLog: () => string };

/** Resolves when the log has a match; rejects with the log if it gets none. */
export async function logShows(source: Logged, pattern: RegExp): Promise<void> {
  const read = () => ('readLog' in source ? source.readLog() : source.log());
  await eventually(String(pattern), () => pattern.test(read())).catch(() => {
    assert.match(read(), pattern);
  });
}
