// Many batches with keys under faults around COMMIT, killed workers and a crash of the server: executed once, whatever is lost.
// scripts/soak keys makes the same history with ten thousand.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeKeyedHistory } from '../../support/histories/keyed-history.ts';
import { seed } from '../../support/property.ts';

test('a batch with a key that is answered with 200 is executed once, any other at most once, and nothing is unknown', async (t) => {
  const { breaches, counts } = await makeKeyedHistory({
    seed,
    batches: 100,
    clients: 8,
    strikes: { kill: 2, cut: 2, crash: 1 },
    drops: 1,
  });
  const summary = [...counts].map(([what, n]) => `${n} ${what}`).join(', ');
  t.diagnostic(summary);
  assert.deepEqual(breaches, []);
  const unknown = [...counts].filter(([what]) => what.endsWith(' unknown'));
  assert.deepEqual(unknown, []);
  // The history is made so that each of them occurs, whatever the seed.
  for (const what of [
    'batches reported 200',
    '200 replayed',
    'faults at COMMIT',
    'strikes: kill',
  ]) {
    assert.ok((counts.get(what) ?? 0) > 0, `the history has no ${what}: ${summary}`);
  }
});
