// The private MariaDB of the tests: it can be frozen, halted, brought back, and it leaves nothing behind.
// Must not know the gateway.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { ownServerOnly, startDatabase } from '../../support/mariadb.ts';
import { gone, isAlive } from '../../support/processes.ts';

test('gives each file an empty utf8mb4 database, over TCP', async () => {
  const database = await startDatabase();
  try {
    const rows = await database.query(
      'select database() as name, @@character_set_database as charset, 18446744073709551615 as big',
    );
    assert.deepEqual(JSON.parse(JSON.stringify(rows)), [
      { name: database.name, charset: 'utf8mb4', big: '18446744073709551615' },
    ]);
  } finally {
    await database.stop();
  }
});

test('survives a crash with its data, on the same port; a freeze ends by a thaw', async (t) => {
  if (!ownServerOnly(t)) return;
  const database = await startDatabase({ args: ['--max-connections=17'] });
  const { socket } = database;
  try {
    await database.query('create table t (id int); insert into t values (1)');
    const first = database.pid();
    await database.halt('SIGKILL');
    assert.equal(isAlive(first), false);
    await assert.rejects(database.query('select 1'));
    await database.resume();
    assert.equal((await database.query('select * from t')).length, 1);
    assert.equal(Number((await database.query('select @@max_connections as n'))[0]?.n), 17);

    database.freeze();
    const answer = database.query('select 1');
    database.thaw();
    await answer;
    await database.restart();
    assert.notEqual(database.pid(), first);
  } finally {
    const last = database.pid();
    await database.stop();
    await gone(last);
  }
  assert.equal(socket !== null && existsSync(socket), false);
});
