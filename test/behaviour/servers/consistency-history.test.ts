// Readers that carry a token never see less than they, or who handed it over, have seen: over replicas that lag, at two gateways, by every way,
// before a primary that shows a write later than its replicas do. Must not know how a token is made. scripts/cluster stale makes longer histories.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { replicationHere } from '../../support/clusters/replication.ts';
import { makeConsistencyHistories } from '../../support/histories/consistency-history.ts';
import { seed } from '../../support/property.ts';

test('with a token nothing older is seen, where without one much is', async (t) => {
  if (!replicationHere(t)) return;
  const least = { older: 1, toReplica: 50, toPrimary: 20 };
  const plan = { seed, reads: 5_000, mostMs: 12_000, semiSync: true, least };
  const { without, withTokens } = await makeConsistencyHistories(plan);
  const summary = [...withTokens.counts].map(([what, n]) => `${n} ${what}`).join(', ');
  t.diagnostic(`seed ${seed}: without ${without.older.length} of ${without.judged} older`);
  t.diagnostic(`with tokens ${withTokens.older.length} of ${withTokens.judged}: ${summary}`);
  assert.deepEqual(withTokens.older, [], `seed ${seed}`);
  assert.deepEqual([...withTokens.strange, ...without.strange], [], `seed ${seed}`);
  assert.ok(without.older.length > 0, `seed ${seed}: the servers have not lagged`);
  const { toReplica, toPrimary } = withTokens.moved;
  assert.ok(
    toReplica >= least.toReplica && toPrimary >= least.toPrimary,
    `${toReplica} and ${toPrimary} moved: ${summary}`,
  );
});
