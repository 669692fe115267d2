// Three gateways behind a real haproxy, with the settings of deploy/: a rolling restart fails no request.
// scripts/cluster gateways restarts them for longer.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasHaproxy } from '../../support/clusters/haproxy.ts';
import { rollGateways } from '../../support/clusters/rolling-restart.ts';
import { useDatabase } from '../../support/use-gateway.ts';

const database = useDatabase();

test('a restart of each gateway under load: every request succeeds, every write is there exactly once', async (t) => {
  if (!hasHaproxy()) return t.skip('haproxy is not installed');
  const { restarts, requests, failed, wrong } = await rollGateways(database, 1);
  t.diagnostic(`${restarts} restarts, ${requests} requests`);
  assert.equal(restarts, 3);
  assert.deepEqual(failed, []);
  assert.deepEqual(wrong, []);
});
