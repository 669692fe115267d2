// A thousand writes under random cuts, resets and crashes of the server: what was told is what is in the table.
// Must not know how an outcome is decided.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Fault } from '../../support/database/fault-proxy.ts';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import { startProxiedDatabase } from '../../support/database/proxied-database.ts';
import { cellOf } from '../../support/db-results.ts';
import { eventually } from '../../support/eventually.ts';
import { startGateway } from '../../support/gateway.ts';
import { contradictions, summary, type Told, toldBy } from '../../support/histories/history.ts';
import { seed } from '../../support/property.ts';
import { createRandom } from '../../support/random.ts';

const writes = 1000;
const pipelines = 16;

function randomFault(random: () => number): Fault | null {
  const afterBytes = Math.floor(random() * 14);
  const how = random() < 0.5 ? 'fin' : 'reset';
  const faults: readonly Fault[] = [
    { kind: 'cut-request', how },
    { kind: 'cut-request', afterBytes: afterBytes * 4, how },
    { kind: 'cut-after-request', how },
    { kind: 'cut-reply', afterBytes, how },
    { kind: 'delay', ms: 5 },
    { kind: 'drop-reply' },
  ];
  return random() < 0.25 ? (faults[Math.floor(random() * faults.length)] ?? null) : null;
}

async function countRows(database: Database): Promise<Map<number, number>> {
  const rows = await database.query('select id, count(*) as n from t group by id');
  return new Map(rows.map(({ id, n }) => [Number(id), Number(n)]));
}

test('200 means one row, not_executed none, unknown none or one, and nothing twice', async (t) => {
  const own = process.env.DBHTTPD_TEST_MYSQL === undefined;
  const database = await startDatabase({ own });
  // No unique key: what is written twice shows as two rows.
  await database.query('create table t (id int, index (id)) engine = InnoDB');
  const proxy = await startProxiedDatabase(database);
  const gateway = await startGateway({
    database: proxy.target,
    settings: { workers: 2, pool: 4, statement_timeout: '2s' },
  });
  const random = createRandom(seed);
  const history = new Map<number, Told>();
  let next = 0;
  let crashes = 0;
  t.after(async () => {
    await gateway.stop();
    await proxy.stop();
    await database.stop();
  });

  const serves = async () => cellOf(await gateway.dbPost({ SQL: 'select 5' })) === 5;
  const write = async (id: number) => {
    const sql = `insert into t values (${id})`;
    const fault = randomFault(random);
    const rule = fault === null ? null : proxy.on((text) => text === sql, fault);
    const reply = id % 2 === 0 ? gateway.dbPost({ SQL: sql }) : gateway.db({ SQL: sql });
    history.set(id, toldBy(await reply));
    rule?.remove();
    // While the database is away every write would be refused at once, and none be left for when it is back.
    if (history.get(id) === 'not_executed') await eventually('service is back', serves);
  };
  const pipeline = async () => {
    while (next < writes) {
      const id = next++;
      await write(id);
      if (id % 90 === 45) proxy.cutAll(random() < 0.5 ? 'fin' : 'reset');
      if (own && id % 400 === 250) {
        crashes += 1;
        await database.halt('SIGKILL');
        await database.resume();
      }
    }
  };
  await Promise.all(Array.from({ length: pipelines }, pipeline));

  assert.equal(history.size, writes);
  await eventually('the server has ended what it still ran', async () => {
    const threads = await database.query(
      "select id from information_schema.processlist where info like 'insert into t%'",
    );
    return threads.length === 0;
  });
  assert.deepEqual(contradictions(history, await countRows(database)), []);
  const told = summary(history);
  t.diagnostic(`${JSON.stringify(told)}, ${crashes} crashes`);
  assert.ok(told.applied > 200 && told.unknown > 50, JSON.stringify(told));
  await eventually('service is back', serves);
});

test('the judge sees a lie', () => {
  const history = new Map<number, Told>([
    [1, 'applied'],
    [2, 'not_executed'],
    [3, 'unknown'],
    [4, 'refused'],
  ]);
  const honest = new Map([
    [1, 1],
    [3, 1],
  ]);
  assert.deepEqual(contradictions(history, honest), []);
  for (const lie of [
    new Map(),
    new Map([[1, 2]]),
    new Map([...honest, [2, 1]]),
    new Map([...honest, [3, 2]]),
    new Map([...honest, [4, 1]]),
    new Map([...honest, [5, 1]]),
  ]) {
    assert.equal(contradictions(history, lie).length, 1);
  }
});
