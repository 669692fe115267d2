// Readers with a token never see less than they, or the reader that gave it to them, have seen: with replicas that lag, at two gateways, by every
// endpoint, and with a primary that shows a write later than its replicas do. scripts/cluster stale makes longer histories.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { replicationHere } from '../../support/clusters/replication.ts';
import { makeConsistencyHistories } from '../../support/histories/consistency-history.ts';
import { seed } from '../../support/property.ts';

test('with a token no read is older than what was seen; without one many are', async (t) => {
  if (!replicationHere(t)) return;
  const plan = { seed, reads: 300, maxMs: 90_000, semiSync: true };
  const { without, withTokens } = await makeConsistencyHistories(plan);
  const summary = [...withTokens.counts].map(([what, n]) => `${n} ${what}`).join(', ');
  t.diagnostic(`without ${without.older.length} of ${without.judged} older`);
  t.diagnostic(`with tokens ${withTokens.older.length} of ${withTokens.judged}: ${summary}`);
  assert.deepEqual(withTokens.older, []);
  assert.deepEqual([...withTokens.strange, ...without.strange], []);
  // A scripted reader makes each of them happen, whatever the seed.
  assert.ok(without.older.length > 0, 'a replica lagged');
  const { toReplica, toPrimary } = withTokens.moved;
  assert.ok(toReplica > 0 && toPrimary > 0, `${toReplica} and ${toPrimary} moved: ${summary}`);
});
