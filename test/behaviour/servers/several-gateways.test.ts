// Three gateways behind a real haproxy, with the settings of deploy/: a rolling restart fails no request.
// Must not know how a gateway stops.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { hasHaproxy } from '../../support/clusters/haproxy.ts';
import { rollGateways } from '../../support/clusters/rolling-restart.ts';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';

let database: Database;
before(async () => {
  database = await startDatabase();
});
after(() => database.stop());

test('six restarts under load: every request succeeds, every write is there exactly once', async (t) => {
  if (!hasHaproxy()) return t.skip('haproxy is not installed');
  const { restarts, requests, failed, wrong } = await rollGateways(database, 2);
  t.diagnostic(`${restarts} restarts, ${requests} requests`);
  assert.equal(restarts, 6);
  assert.deepEqual(failed, []);
  assert.deepEqual(wrong, []);
});
