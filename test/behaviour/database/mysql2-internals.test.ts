// The parts of mysql2 beyond its documented interface that opening a connection relies on, in the version from which they were read.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { Socket } from 'node:net';
import { after, before, test } from 'node:test';
import mysql from 'mysql2';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';

const pinnedVersion = '3.24.5';

let database: Database;
before(async () => {
  database = await startDatabase();
});
after(() => database.stop());

test('mysql2 is the version whose internals are known', () => {
  const { version } = createRequire(import.meta.url)('mysql2/package.json') as { version: string };
  assert.equal(version, pinnedVersion);
});

test('after the handshake the socket, the thread id and the negotiated values are in their known places', async () => {
  const { host, port, user, password, name } = database;
  const connection = mysql.createConnection({
    host,
    port,
    user,
    password,
    database: name,
  });
  const internals = connection as unknown as Record<string, unknown> & { stream: Socket };
  const handshake = internals._command as { clientFlags: number; handshake: unknown };
  try {
    assert.deepEqual([handshake.clientFlags & (1 << 27), handshake.handshake], [1 << 27, null]);
    await once(connection, 'connect');
    assert.equal(handshake.handshake, internals._handshakePacket);
    assert.equal(typeof internals.serverCapabilityFlags, 'number');
    assert.ok(internals.stream instanceof Socket);
    assert.equal(internals.stream.listenerCount('data'), 1);
    assert.equal(typeof internals.threadId, 'number');
    assert.equal(typeof internals._mariadbExtendedMetadata, 'boolean');
    const { serverVersion } = internals._handshakePacket as { serverVersion: string };
    assert.match(serverVersion, /^\d+\.\d+/);
  } finally {
    connection.destroy();
    internals.stream.destroy();
  }
});
