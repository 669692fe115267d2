// Keys are removed when they are older than idempotency_keep, and not before.
// Real hours cannot be waited for: clock, pool and server are made up.
import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { parseIdempotencyTable } from '../../../../../src/shared/database/idempotency-table.ts';
import { utcTime } from '../../../../../src/worker/execution/idempotency/key-store.ts';
import { Purge } from '../../../../../src/worker/execution/idempotency/purge.ts';
import type { Pool } from '../../../../../src/worker/servers/pool/pool.ts';
import type { Waiter } from '../../../../../src/worker/servers/pool/queue.ts';
import {
  createScriptedConnection,
  createScriptedSession,
  silentLog,
} from '../../../support/scripted-connection.ts';

const table = parseIdempotencyTable('request_keys', 'd');
const now = Date.UTC(2026, 0, 31, 12);
const hourMs = 3_600_000;

test('removes keys that are older than idempotency_keep, and no younger one', async () => {
  mock.timers.enable({ apis: ['Date', 'setTimeout'], now });
  const connection = createScriptedConnection((sql) =>
    sql.startsWith('SELECT') ? { rows: [['0a']] } : 'ok',
  );
  const session = createScriptedSession(connection);
  let release: (verdict: string) => void = () => {};
  const released = new Promise<string>((resolve) => {
    release = resolve;
  });
  const pool = {
    request: (waiter: Waiter) => waiter.granted(session, null),
    release: (_session: unknown, verdict: string) => release(verdict),
  };
  const purge = new Purge(() => pool as unknown as Pool, table, 24 * hourMs, silentLog);
  try {
    purge.start();
    // A tenth of the time at most, and a minute.
    mock.timers.tick(60_000);
    assert.equal(await released, 'unclean');
    const asked = connection.sent.find((sql) => sql.startsWith('SELECT')) ?? '';
    const [, before = ''] = /created < '([^']+)'/.exec(asked) ?? [];
    assert.equal(before, utcTime(now + 60_000 - 24 * hourMs));
    const removal = connection.sent.find((sql) => sql.startsWith('DELETE')) ?? '';
    assert.ok(removal.includes("x'0a'"));
    // It may have been used again since.
    assert.ok(removal.endsWith(`AND created < '${before}'`), removal);
  } finally {
    purge.close();
    mock.timers.reset();
  }
});
