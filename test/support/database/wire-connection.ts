// A connection of the gateway's own wire layer to a test's database, for tests of what runs on such a connection.
import type { Connection } from '../../../src/shared/mysql/connection.ts';
import { minArenaBytes, openConnection } from '../../../src/shared/mysql/open-connection.ts';
import type { Database } from './mariadb.ts';

/** Connects. The caller must destroy the connection. */
export function openWireConnection(database: Database): Promise<Connection> {
  const { host, port, socket, user, password, name, serverKey } = database;
  return openConnection(
    {
      ...{ host, port, socket, user, password },
      database: name,
      tls: null,
      serverKeys: serverKey === null ? [] : [serverKey],
      connectTimeoutMs: 10_000,
      arena: Buffer.allocUnsafeSlow(minArenaBytes),
    },
    AbortSignal.timeout(10_000),
  );
}
