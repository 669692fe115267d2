// If DNS is silent when a probe's connection must be renewed, the probe continues with the open one: the server is not gone.
import { test } from 'node:test';
import { minArenaBytes, openConnection } from '../../../src/shared/mysql/open-connection.ts';
import { Prober } from '../../../src/worker/servers/prober.ts';
import { startDatabase } from '../../support/database/mariadb.ts';
import { eventually } from '../../support/eventually.ts';

test('a probe goes on with its open connection while the renewal gets no answer', async () => {
  const database = await startDatabase();
  const { host, port, user, password, name, serverKey } = database;
  const settings = {
    ...{ host, port, user, password, database: name, socket: null, tls: null },
    serverKeys: serverKey === null ? [] : [serverKey],
    connectTimeoutMs: 10_000,
    arena: Buffer.alloc(minArenaBytes),
  };
  let attempts = 0;
  let seen = 0;
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
      // A pause of the machine may take the whole time of a probe: then the count starts again.
      unseen: () => {
        [attempts, seen] = [0, 0];
      },
      intervalMs: () => 50,
      maxAgeMs: () => 0,
    },
  );
  try {
    prober.start();
    await eventually('three renewals without an answer in turn', () => attempts > 3 && seen > 3);
  } finally {
    prober.close();
    await database.stop();
  }
});
