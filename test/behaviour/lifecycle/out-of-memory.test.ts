// A worker that is driven out of memory takes only its own requests with it; it is replaced, logged and counted.
// Must not know what fills the memory.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startDatabase } from '../../support/database/mariadb.ts';
import { eventually } from '../../support/eventually.ts';
import { startGateway } from '../../support/gateway.ts';

test('a worker out of memory is replaced, and service goes on', async () => {
  const database = await startDatabase();
  const gateway = await startGateway({
    database,
    settings: { workers: 2, pool: 1, max_request_bytes: '16MiB' },
    env: { NODE_OPTIONS: '--max-old-space-size=48' },
  });
  try {
    const before = gateway.workers();
    const body = { SQL: `select sleep(1), '${'x'.repeat(8_000_000)}'` };
    const crowd = Array.from({ length: 40 }, () => gateway.dbPost(body).catch(() => null));
    await eventually('a worker is gone', () =>
      gateway.workers().some((pid) => !before.includes(pid)),
    );
    // What is refused or cut here belongs to the worker that is gone.
    await eventually(
      'another serves',
      async () => (await gateway.db({ SQL: 'select 1' })).status === 200,
    );
    await Promise.all(crowd);
    await eventually('the restart is counted, and both slots are up', async () => {
      const { text } = await gateway.get('/metrics');
      const restarts = /^dbhttpd_worker_restarts_total\{.*\} [1-9]/m.test(text);
      return restarts && (text.match(/^dbhttpd_worker_up\{.*\} 1$/gm)?.length ?? 0) === 2;
    });
    assert.match(gateway.log(), /heap out of memory/);
  } finally {
    await gateway.stop();
    await database.stop();
  }
});
