// What the gateway asks the database for itself takes no place among the requests that wait.
// Must not know what it asks, nor when.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startDatabase } from '../../support/database/mariadb.ts';
import { startGateway } from '../../support/gateway.ts';

test('a client that asks one thing after the other is never refused, however small the queue', async () => {
  const database = await startDatabase();
  try {
    await database.query('create procedure two() begin select 1; select 2; end');
    const gateway = await startGateway({
      database,
      settings: { workers: 1, pool: 1, queue: 1 },
    });
    try {
      for (let round = 0; round < 100; round += 1) {
        // After a CALL the catalogue is read anew, on the pool's one connection.
        for (const SQL of ['call two()', 'select 1']) {
          const { status, text } = await gateway.dbPost({ SQL });
          assert.equal(status, 200, text);
        }
      }
    } finally {
      await gateway.stop();
    }
  } finally {
    await database.stop();
  }
});
