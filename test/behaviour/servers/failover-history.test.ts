// A primary that crashes and comes back, under writes: no client is told what is not so, and service goes on within 2 s.
// Must not know how a lost connection is noticed. scripts/cluster failover makes such histories with replicas that take over.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { replicationHere } from '../../support/clusters/replication.ts';
import { makeFailoverHistory } from '../../support/histories/failover-history.ts';
import { seed } from '../../support/property.ts';

test('writes around a crash of the only server are told what became of them, and succeed within 2 s of its return', async (t) => {
  if (!replicationHere(t)) return;
  const { breaches, counts, servedMs } = await makeFailoverHistory({
    seed,
    how: 'restarted',
    replicas: 0,
    clients: 12,
    afterMs: 300,
    semiSync: false,
    losing: false,
    floating: false,
  });
  const summary = [...counts].map(([what, n]) => `${n} ${what}`).join(', ');
  t.diagnostic(`seed ${seed}: ${summary}; served after ${Math.round(servedMs ?? 0)} ms`);
  assert.deepEqual(breaches, [], `seed ${seed}`);
  assert.ok((counts.get('200') ?? 0) > 200 && counts.size > 2, summary);
});
