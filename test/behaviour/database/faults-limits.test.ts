// The database is cut off, slow to greet, full, read-only, or refuses a long statement: the pool stays whole.
// Must not know how the gateway reconnects.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { Reply } from '../../support/ask.ts';
import { fillPool } from '../../support/busy-pool.ts';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import { openProcesslist } from '../../support/database/processlist.ts';
import { startProxiedDatabase } from '../../support/database/proxied-database.ts';
import { cellOf, documentOf, outcomeOf } from '../../support/db-results.ts';
import { eventually } from '../../support/eventually.ts';
import { startGateway } from '../../support/gateway.ts';
import { readMetric } from '../../support/scrape.ts';

const external = process.env.DBHTTPD_TEST_MYSQL !== undefined;
const options = external
  ? { skip: 'DBHTTPD_TEST_MYSQL names a server that these tests may not stop or configure' }
  : {};

let database: Database;

before(async () => {
  if (external) return;
  database = await startDatabase({ own: true, args: ['--max-allowed-packet=1M'] });
  await database.query('create table t (id int)');
});
after(() => database?.stop());

async function serverConnections(): Promise<number> {
  const [row] = await database.query(
    'select count(*) - 1 as n from information_schema.processlist where db = database()',
  );
  return Number(row?.n);
}

test('partitioned: deadlines hold, and the heal is enough', options, async () => {
  const proxy = await startProxiedDatabase(database);
  const gateway = await startGateway({
    database: proxy.target,
    settings: { workers: 1, pool: 2, statement_timeout: '500ms' },
  });
  assert.equal(cellOf(await gateway.dbPost({ SQL: 'select 5' })), 5);
  proxy.partition();
  for (const expected of [/^504/, /^50[34]/, /^503/, /^503/]) {
    const from = performance.now();
    const reply = await gateway.dbPost({ SQL: 'select 1' });
    assert.match(outcomeOf(reply), expected);
    assert.ok(performance.now() - from < 1500);
  }
  proxy.heal();
  await eventually(
    'well again',
    async () => (await gateway.dbPost({ SQL: 'select 1' })).status === 200,
  );
  await gateway.stop();
  await proxy.stop();
});

test('a handshake that takes its time is waited for within the deadline', options, async () => {
  const proxy = await startProxiedDatabase(database);
  proxy.partition();
  const gateway = await startGateway({
    database: proxy.target,
    settings: { workers: 1, pool: 1 },
  });
  const asked = gateway.dbPost({ SQL: 'select 5' });
  const impatient = await gateway.dbPost({ SQL: 'select 6', TIMEOUT: 200 });
  assert.equal(outcomeOf(impatient), '503 DEADLINE_WAITING not_executed');
  await pause(1000);
  proxy.heal();
  assert.equal(cellOf(await asked), 5);
  await gateway.stop();
  await proxy.stop();
});

test(
  'too many connections: what there is serves, and the pool grows when it may',
  options,
  async () => {
    await database.query(
      `create user app identified by 'pw'; grant all on ${database.name}.* to app`,
    );
    const app = { ...database, user: 'app', password: 'pw' };
    await database.query('set global max_connections = 10');
    const others: Awaited<ReturnType<Database['connect']>>[] = [];
    const gateway = await startGateway({ database: app, settings: { workers: 1, pool: 4 } });
    await gateway.dbPost({ SQL: 'select 1' });
    for (;;) {
      const other = await database.connect({ user: 'app', password: 'pw' }).catch(() => null);
      if (other === null) break;
      others.push(other);
    }
    const replies = await Promise.all(
      Array.from({ length: 6 }, () => gateway.dbPost({ SQL: 'select sleep(0.05)' })),
    );
    assert.deepEqual(
      replies.map(({ status }: Reply) => status),
      [200, 200, 200, 200, 200, 200],
    );
    for (const other of others) other.destroy();
    await eventually('the pool grows', async () => {
      await Promise.all(
        Array.from({ length: 8 }, () => gateway.dbPost({ SQL: 'select sleep(0.05)' })),
      );
      return (await serverConnections()) >= 5;
    });
    await gateway.stop();
    await database.query('set global max_connections = 151; drop user app');
  },
);

test(
  'a read-only server refuses a write with its own error and serves reads',
  options,
  async () => {
    await database.query(
      "create user reader identified by 'pw'; grant select, insert on *.* to reader",
    );
    await database.query('set global read_only = 1');
    const gateway = await startGateway({
      database: { ...database, user: 'reader', password: 'pw' },
      settings: { workers: 1, pool: 1 },
    });
    const document = documentOf(await gateway.dbPost({ SQL: 'insert into t values (-2)' }));
    assert.equal(document.MYSQL_ERRNO, 1290);
    assert.equal(cellOf(await gateway.dbPost({ SQL: 'select 5' })), 5);
    await database.query('set global read_only = 0; drop user reader');
    await gateway.stop();
  },
);

test('a server that becomes read-only before the COMMIT of a batch', options, async () => {
  await database.query(
    "create table kept (id int) engine = innodb; create user writer identified by 'pw'; grant select, insert on *.* to writer",
  );
  const gateway = await startGateway({
    database: { ...database, user: 'writer', password: 'pw' },
    settings: { workers: 1, pool: 1 },
  });
  const processlist = await openProcesslist(database);
  const statements = [{ sql: 'insert into kept values (1)' }, { sql: 'select sleep(0.5)' }];
  const reply = gateway.post('/v1/batch', { statements });
  await processlist.started('sleep(0.5)');
  await database.query('set global read_only = 1');
  const { status, errno, outcome, retryable } = (await reply).json<Record<string, unknown>>();
  assert.deepEqual([status, errno, outcome, retryable], [503, 1290, 'rolled_back', true]);
  assert.deepEqual(await database.query('select * from kept'), []);
  await database.query('set global read_only = 0; drop user writer');
  processlist.close();
  await gateway.stop();
});

test(
  "a statement over max_allowed_packet gets MySQL's error, and the pool stays whole",
  options,
  async () => {
    const gateway = await startGateway({
      database,
      settings: { workers: 1, pool: 2, max_request_bytes: '40MiB' },
    });
    // Both are open before anything is refused: the gateway itself may want the other one meanwhile.
    await fillPool(gateway, 2);
    const connects = await readMetric(gateway, 'dbhttpd_connects_total');
    const mebibyte = 1024 * 1024;
    // The command is one byte longer than its text, and must be shorter than the limit.
    for (const length of [mebibyte - 1, mebibyte, 2 * mebibyte, 5 * mebibyte, 20 * mebibyte]) {
      const SQL = `select length('${'x'.repeat(length - 17)}')`;
      const document = documentOf(await gateway.dbPost({ SQL }));
      assert.equal(document.MYSQL_ERRNO, 1153, `${length} bytes`);
      assert.equal(cellOf(await gateway.dbPost({ SQL: 'select 5' })), 5);
    }
    const longest = `select length('${'x'.repeat(mebibyte - 2 - 17)}')`;
    assert.equal(cellOf(await gateway.dbPost({ SQL: longest })), mebibyte - 19);
    assert.equal(await readMetric(gateway, 'dbhttpd_connects_total'), connects);
    // The pool's two, control and probe.
    await eventually('nothing is leaked', async () => (await serverConnections()) <= 4);
    await gateway.stop();
  },
);
