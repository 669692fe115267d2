// The statements of a reset: everything that a request may have changed is set again, and the operator's own settings come last.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  boundTransactions,
  forgetFoundRows,
  prepareSession,
} from '../../../../../src/worker/servers/pool/session.ts';
import { createScriptedConnection } from '../../../support/scripted-connection.ts';

test('a reset brings back the database, the role, the settings of the gateway and of the operator, and forgets found rows and profiles', async () => {
  const connection = createScriptedConnection((sql) => {
    if (sql.includes('@@hostname')) return { rows: [['db', '3306', '1', '100']] };
    if (sql.includes('Uptime')) return { rows: [['Uptime', '1']] };
    if (sql.includes('CURRENT_ROLE')) return { rows: [['reader']] };
    return sql.includes('@@max_allowed_packet') ? { rows: [['1024']] } : 'ok';
  });
  const settings = { database: 'world', initStatements: ["SET time_zone = '+00:00'"] };
  const session = await prepareSession(connection, settings, new AbortController().signal);
  const before = connection.sent.length;
  session.isFresh = false;
  await session.reset();
  assert.equal(session.isFresh, true);
  assert.deepEqual(connection.sent.slice(before), [
    'resetConnection',
    'initDb world',
    'SET ROLE `reader`',
    'SET profiling=1, profiling_history_size=0',
    `SET NAMES utf8mb4, autocommit=1, completion_type=0, session_track_state_change=1, net_write_timeout=3600, ${boundTransactions(connection)}`,
    'SET profiling=0, profiling_history_size=DEFAULT',
    "SET time_zone = '+00:00'",
    forgetFoundRows,
  ]);
});

test('a reset says nothing about profiling to a server that refuses any part of it', async () => {
  for (const refused of ['profiling=1', 'profiling=0', 'profiling']) {
    const connection = createScriptedConnection((sql) => {
      if (sql.includes(refused)) return { errno: 1193 };
      if (sql.includes('@@hostname')) return { rows: [['db', '3306', '1', '100']] };
      if (sql.includes('Uptime')) return { rows: [['Uptime', '1']] };
      return sql.includes('@@max_allowed_packet') ? { rows: [['1024']] } : 'ok';
    });
    const settings = { database: '', initStatements: [] };
    const session = await prepareSession(connection, settings, new AbortController().signal);
    const before = connection.sent.length;
    await session.reset();
    assert.ok(connection.sent.slice(before).every((sql) => !sql.includes('profiling')));
  }
});
