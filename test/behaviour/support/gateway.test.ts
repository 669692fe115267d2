// The fixture that starts the daemon: what is started is the real thing, and nothing of it stays.
// Must not know what the daemon answers.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { startGateway } from '../../support/gateway.ts';
import { startDatabase } from '../../support/mariadb.ts';
import { isAlive } from '../../support/processes.ts';

test('starts the daemon on a port of its own, and leaves nothing behind', async () => {
  const database = await startDatabase();
  try {
    const gateway = await startGateway({ database, settings: { workers: 2 } });
    const workers = gateway.workers();
    assert.equal((await gateway.get('/livez')).status, 200);
    assert.equal(workers.length, 2);
    await gateway.stop();
    assert.deepEqual([gateway.pid, ...workers].filter(isAlive), []);
    assert.equal(existsSync(gateway.directory), false);
  } finally {
    await database.stop();
  }
});

test('tells the exit status and the log of a start that failed', async () => {
  const database = await startDatabase();
  try {
    const wrong = startGateway({ database, settings: { workers: 'many' } });
    await assert.rejects(wrong, /exit 78/);
  } finally {
    await database.stop();
  }
});
