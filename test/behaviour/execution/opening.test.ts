// Opening many connections at once is usual, and no news for an operator.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { logShows } from '../../support/log-shows.ts';
import { useGateway } from '../../support/use-gateway.ts';

const pool = 30;
const { gateway } = useGateway({ workers: 1, pool, slow_query: '100ms' });

test('a worker that opens all connections of its pool at once logs no warning of the runtime', async () => {
  const asked = Array.from({ length: pool }, () => gateway.db({ SQL: 'select sleep(0.2)' }));
  for (const { status } of await Promise.all(asked)) assert.equal(status, 200);
  // The supervisor logs what a worker writes to stderr: all of it is there before the lines about these statements.
  await logShows(gateway, /slow statement/);
  assert.doesNotMatch(gateway.log(), /Warning/);
});
