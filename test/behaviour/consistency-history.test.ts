// Readers that carry a token never see less than they, or who handed it over, have seen: over replicas that lag, at two gateways, by every way.
// Must not know how a token is made. scripts/cluster stale makes longer histories.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeConsistencyHistory } from '../support/consistency-history.ts';
import { replicationHere } from '../support/replication.ts';

const seed = Number(process.env.DBHTTPD_TEST_SEED ?? Date.now() % 1_000_000);
const plan = { seed, reads: 4_000, mostMs: 10_000, semiSync: false };

for (const semiSync of [false, true]) {
  const primary = semiSync
    ? 'a primary that waits for a replica'
    : 'a primary that waits for nobody';
  test(`with a token nothing older is seen, before ${primary}`, async (t) => {
    if (!replicationHere(t)) return;
    const history = await makeConsistencyHistory({ ...plan, semiSync, withTokens: true });
    const summary = [...history.counts].map(([what, n]) => `${n} ${what}`).join(', ');
    t.diagnostic(`seed ${seed}: ${history.judged} reads judged: ${summary}`);
    assert.deepEqual(history.older, [], `seed ${seed}`);
    assert.deepEqual(history.strange, [], `seed ${seed}`);
    assert.ok(history.judged > 500, summary);
  });
}

test('without a token older values are seen, by which the servers are known to lag', async (t) => {
  if (!replicationHere(t)) return;
  const history = await makeConsistencyHistory({ ...plan, reads: 1_000, withTokens: false });
  t.diagnostic(`seed ${seed}: ${history.older.length} of ${history.judged} older`);
  assert.ok(history.older.length > 0, `seed ${seed}`);
});
