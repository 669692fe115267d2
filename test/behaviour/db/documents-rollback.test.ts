// The promise of ROLLBACK_ON_ERROR_SUCCESS: it says true exactly when nothing of the request stands.
// Must not know how it is decided: the table is looked at.
import assert from 'node:assert/strict';
import test, { after, before } from 'node:test';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';

let database: Database;
let gateway: Gateway;
before(async () => {
  database = await startDatabase();
  await database.query('create table written (v int primary key) engine=InnoDB');
  gateway = await startGateway({ database, settings: { workers: 1, pool: 2 } });
});
after(async () => {
  await gateway?.stop();
  await database?.stop();
});

const insert = (v: number) => `insert into written values (${v})`;
const fails = 'select * from nope';

const requests = [
  fails,
  `begin; ${insert(1)}; ${fails}`,
  `${insert(1)}; ${fails}`,
  `set autocommit=0; ${insert(1)}; ${fails}`,
  `set autocommit=0; ${insert(1)}; set autocommit=1; ${fails}`,
  `begin; ${insert(1)}; begin; ${insert(2)}; ${fails}`,
  `begin; ${insert(1)}; start transaction; ${fails}`,
  `begin; ${insert(1)}; commit; ${fails}`,
  `begin; ${insert(1)}; rollback; ${fails}`,
  `begin; ${insert(1)}; rollback; ${insert(2)}; ${fails}`,
  `begin; ${insert(1)}; savepoint s; ${insert(2)}; rollback to savepoint s; ${fails}`,
  `begin; ${insert(1)}; create table if not exists made (v int); ${fails}`,
  `begin; ${insert(1)}; create table written (v int)`,
  `begin; ${insert(1)}; ${insert(1)}`,
];

test('says that all is undone exactly when it is', async (t) => {
  for (const SQL of requests) {
    await t.test(SQL, async () => {
      await database.query('delete from written');
      const reply = await gateway.dbPost({ SQL, ROLLBACK_ON_ERROR: true });
      const document = reply.json<Record<string, unknown>>();
      const standing = await database.query('select v from written');
      assert.equal(document.ROLLBACK_ON_ERROR, true);
      assert.equal(document.ROLLBACK_ON_ERROR_SUCCESS, standing.length === 0);
      const outcome = standing.length === 0 ? 'rolled_back' : 'partial';
      if (SQL.includes('; ')) assert.equal(document.OUTCOME, outcome);
    });
  }
});
