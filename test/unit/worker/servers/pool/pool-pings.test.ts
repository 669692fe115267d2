// Idle sessions are pinged if the server would end idle sessions, and not otherwise.
// The clock and the server are made up, so that the test need not wait.
import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { Pool } from '../../../../../src/worker/servers/pool/pool.ts';
import { Reachability } from '../../../../../src/worker/servers/pool/reachability.ts';
import type { Session } from '../../../../../src/worker/servers/pool/session.ts';
import { transactionBoundS } from '../../../../../src/worker/servers/pool/session.ts';
import {
  createScriptedConnection,
  createScriptedSession,
  silentLog,
} from '../../../support/scripted-connection.ts';

/** The bytes sent on a session that was idle for as long as the server's bound, and on which the server has not answered for a minute. */
async function heardIdle(server: { flavour: string; serverVersion: string }, isLent = false) {
  mock.timers.enable({ apis: ['setInterval'] });
  const connection = Object.assign(createScriptedConnection(), server);
  const session = createScriptedSession(connection);
  const sizes = { size: 1, queue: 1, maxWaitMs: 5_000 };
  const settings = { ...sizes, onOpened: () => {}, mayLend: null, onRelease: () => {} };
  const pool = new Pool(
    { ...settings, open: async () => session, log: silentLog },
    new Reachability(silentLog, { address: 'db', account: 'app' }),
  );
  try {
    const granted = new Promise<Session>((resolve, reject) => {
      pool.request({ granted: resolve, refused: reject });
    });
    await granted;
    if (!isLent) pool.release(session, 'clean');
    session.aliveAt = performance.now() - 60_000;
    mock.timers.tick(transactionBoundS * 1000);
    await turn();
    return [...connection.sent];
  } finally {
    mock.timers.reset();
    void pool.close();
  }
}

test('an idle session is pinged if the server bounds idle sessions', async () => {
  const mysql = { flavour: 'mysql', serverVersion: '9.7.0' };
  assert.ok((await heardIdle(mysql)).includes('ping'));
  assert.deepEqual(await heardIdle(mysql, true), []);
  assert.deepEqual(await heardIdle({ flavour: 'mariadb', serverVersion: '10.11.6-MariaDB' }), []);
});

test('when one idle session is found dead, one that was pinged shortly before is given up too', async (t) => {
  const connections = [1, 2].map(() =>
    createScriptedConnection((sent) => (sent === 'ping' ? 'lost' : 'ok')),
  );
  const left = connections.map((connection) => createScriptedSession(connection));
  const pool = new Pool(
    {
      size: 2,
      queue: 1,
      maxWaitMs: 5_000,
      open: async () => left.shift() as Session,
      onOpened: () => {},
      mayLend: null,
      log: silentLog,
    },
    new Reachability(silentLog, { address: 'db', account: 'app' }),
  );
  t.after(() => void pool.close());
  const ask = () =>
    new Promise<Session>((resolve, reject) => {
      pool.request({ granted: resolve, refused: reject });
    });
  const both = await Promise.all([ask(), ask()]);
  for (const session of both) pool.release(session, 'clean');
  const oldest = pool.borrowIdle() as Session;
  oldest.aliveAt = performance.now() - 60_000;
  await assert.rejects(pool.proveAlive(oldest));
  assert.deepEqual(
    connections.map(({ isLost }) => isLost),
    [true, true],
  );
  pool.release(oldest, 'broken');
});
