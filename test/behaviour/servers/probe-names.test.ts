// If DNS is silent when a probe's connection must be renewed, the probe continues with the open one: the server is not gone.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ConnectFailure } from '../../../src/shared/mysql/connect-failure.ts';
import { minArenaBytes, openConnection } from '../../../src/shared/mysql/open-connection.ts';
import { Prober } from '../../../src/worker/servers/prober.ts';
import { startDatabase } from '../../support/database/mariadb.ts';
import { eventually } from '../../support/eventually.ts';

test('a probe goes on with its open connection while the renewal gets no answer', async () => {
  const database = await startDatabase();
  const { host, port, user, password, name, serverKey } = database;
  const settings = {
    ...{ host, port, user, password, database: name, socket: null, tls: null },
    multiStatements: false,
    serverKeys: serverKey === null ? [] : [serverKey],
    connectTimeoutMs: 10_000,
    arena: Buffer.alloc(minArenaBytes),
  };
  let attempts = 0;
  let seen = 0;
  const unseen: ConnectFailure[] = [];
  const silent = (signal: AbortSignal) =>
    new Promise<never>((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
    });
  const prober = new Prober(
    (signal) => (attempts++ === 0 ? openConnection(settings, signal) : silent(signal)),
    {
      seen: () => {
        seen += 1;
      },
      unseen: (failure) => unseen.push(failure),
      intervalMs: () => 50,
      maxAgeMs: () => 0,
    },
  );
  try {
    prober.start();
    await eventually('three renewals without an answer', () => attempts > 3 && seen > 3);
    assert.deepEqual(unseen, []);
  } finally {
    prober.close();
    await database.stop();
  }
});
