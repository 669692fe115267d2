// Failovers among three servers that the gateway follows by itself, under writes: nothing doubled, nothing told that is not so, service within 2 s.
// Must not know how a failover is noticed. scripts/cluster failover has a hundred of them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { replicationHere } from '../../support/clusters/replication.ts';
import { makeFailoverHistory } from '../../support/histories/failover-history.ts';
import { seed } from '../../support/property.ts';

for (const [how, losing] of [
  ['killed', true],
  ['frozen', false],
  ['read-only', false],
] as const) {
  const what = losing ? `${how} with writes that no replica has` : how;
  test(`a primary that is ${what}: writes go on within 2 s of the promotion, and none is told what is not so`, async (t) => {
    if (!replicationHere(t)) return;
    const { breaches, counts, servedMs, lost } = await makeFailoverHistory({
      seed,
      how,
      replicas: 2,
      clients: 8,
      afterMs: 700,
      semiSync: false,
      losing,
      floating: false,
    });
    const summary = [...counts].map(([outcome, n]) => `${n} ${outcome}`).join(', ');
    t.diagnostic(
      `seed ${seed}: ${summary}; served after ${Math.round(servedMs ?? 0)} ms; ${lost.length} lost`,
    );
    assert.deepEqual(breaches, [], `seed ${seed}`);
    // Replication that waits for nobody may lose the last writes of a frozen primary as well; where it may lose none, the judge has said so.
    if (losing)
      assert.ok(lost.length > 0, `nothing was lost, so that nothing was tried: ${summary}`);
  });
}
