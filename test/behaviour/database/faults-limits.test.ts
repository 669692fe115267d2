// The database is full, read-only, or refuses a long statement: the pool stays whole.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Reply } from '../../support/ask.ts';
import { fillPool } from '../../support/busy-pool.ts';
import { type Database, isServerGiven, startDatabase } from '../../support/database/mariadb.ts';
import { openProcesslist } from '../../support/database/processlist.ts';
import { cellOf, documentOf, outcomeOf } from '../../support/db-results.ts';
import { eventually } from '../../support/eventually.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { readMetric } from '../../support/scrape.ts';

const options = isServerGiven()
  ? { skip: 'DBHTTPD_TEST_MYSQL names a server that these tests may not stop or configure' }
  : {};
const pool = 4;
/** Without a right that would let it write on a read-only server, or connect to a full one. */
const account = { user: 'app', password: 'pw' };

let database: Database;
let gateway: Gateway;

before(async () => {
  if (isServerGiven()) return;
  database = await startDatabase({ own: true, args: ['--max-allowed-packet=1M'] });
  await database.query(`
    create table kept (id int) engine = innodb;
    create user app identified by 'pw'; grant select, insert on *.* to app`);
  const settings = { workers: 1, pool, max_request_bytes: '40MiB' };
  gateway = await startGateway({ database: { ...database, ...account }, settings });
});
after(async () => {
  await gateway?.stop();
  await database?.stop();
});

const slowly = (count: number) =>
  Promise.all(Array.from({ length: count }, () => gateway.dbPost({ SQL: 'select sleep(0.05)' })));

async function serverConnections(): Promise<number> {
  const [row] = await database.query(
    "select count(*) as n from information_schema.processlist where user = 'app'",
  );
  return Number(row?.n);
}

/** Takes connections until the server gives no more, and gives them back when `act` has ended, if not before. */
async function whileFull(act: (release: () => void) => Promise<void>): Promise<void> {
  const others: Awaited<ReturnType<Database['connect']>>[] = [];
  const release = () => {
    for (const other of others) other.destroy();
  };
  try {
    await gateway.dbPost({ SQL: 'select 1' });
    await database.query('set global max_connections = 10');
    for (;;) {
      const other = await database.connect(account).catch((error: { errno?: number }) => {
        assert.equal(error.errno, 1040);
      });
      if (other === undefined) break;
      others.push(other);
    }
    await act(release);
  } finally {
    release();
    await database.query('set global max_connections = 151');
  }
}

test('too many connections: the existing ones serve, and the pool grows when it may', options, () =>
  whileFull(async (release) => {
    assert.deepEqual(
      (await slowly(6)).map(({ status }: Reply) => status),
      [200, 200, 200, 200, 200, 200],
    );
    release();
    await eventually('the pool grows', async () => {
      await slowly(8);
      return (await serverConnections()) >= pool + 1;
    });
  }),
);

test('a server without a free connection still gets the KILL', options, async () => {
  await eventually('the control connection is there', async () => {
    return (await readMetric(gateway, 'dbhttpd_control_connected')) === 1;
  });
  const processlist = await openProcesslist(database);
  await whileFull(async () => {
    const asked = gateway.dbPost({ SQL: 'select sleep(1000)', TIMEOUT: 1000 });
    assert.equal(outcomeOf(await asked), '504 DEADLINE_RUNNING failed');
    await processlist.ended('sleep(1000)');
    assert.equal(cellOf(await gateway.dbPost({ SQL: 'select 5' })), 5);
  });
  processlist.close();
});

/** Lets only those write that have a right to, while `act` goes on. */
async function whileReadOnly(act: () => Promise<void>): Promise<void> {
  await database.query('set global read_only = 1');
  try {
    await act();
  } finally {
    await database.query('set global read_only = 0');
  }
}

test(
  'a refused write has the error of the read-only server, and reads are served',
  options,
  async () => {
    await whileReadOnly(async () => {
      const document = documentOf(await gateway.dbPost({ SQL: 'insert into kept values (-2)' }));
      assert.equal(document.MYSQL_ERRNO, 1290);
      assert.equal(cellOf(await gateway.dbPost({ SQL: 'select 5' })), 5);
    });
  },
);

test('a server that becomes read-only before the COMMIT of a batch', options, async () => {
  const processlist = await openProcesslist(database);
  // Not a table's lock: the server would wait for its end before it becomes read-only.
  const keeper = await database.connect();
  await keeper.query("select get_lock('commit', 0)");
  try {
    const waiting = "select get_lock('commit', 60)";
    const statements = [{ sql: 'insert into kept values (1)' }, { sql: waiting }];
    const reply = gateway.post('/v1/batch', { statements });
    await processlist.started(waiting);
    await whileReadOnly(async () => {
      keeper.destroy();
      const { status, errno, outcome, retryable } = (await reply).json<Record<string, unknown>>();
      assert.deepEqual([status, errno, outcome, retryable], [503, 1290, 'rolled_back', true]);
    });
    assert.deepEqual(await database.query('select * from kept'), []);
  } finally {
    keeper.destroy();
    processlist.close();
  }
});

test(
  "a statement over max_allowed_packet gets MySQL's error, and the pool remains whole",
  options,
  async () => {
    // All are open before anything is refused: the gateway itself may want another one meanwhile.
    await fillPool(gateway, pool);
    const connects = await readMetric(gateway, 'dbhttpd_connects_total');
    const mebibyte = 1024 * 1024;
    // The command is one byte longer than its text, and must be shorter than the limit.
    for (const length of [mebibyte - 1, mebibyte, 2 * mebibyte, 20 * mebibyte]) {
      const SQL = `select length('${'x'.repeat(length - 17)}')`;
      const document = documentOf(await gateway.dbPost({ SQL }));
      assert.equal(document.MYSQL_ERRNO, 1153, `${length} bytes`);
      assert.equal(cellOf(await gateway.dbPost({ SQL: 'select 5' })), 5);
    }
    // MySQL counts two bytes for query attributes.
    const fitting = mebibyte - 2 - 17 - (database.flavour === 'mysql' ? 2 : 0);
    const longest = `select length('${'x'.repeat(fitting)}')`;
    assert.equal(cellOf(await gateway.dbPost({ SQL: longest })), fitting);
    assert.equal(await readMetric(gateway, 'dbhttpd_connects_total'), connects);
    // The pool's, control and probe.
    await eventually('nothing is leaked', async () => (await serverConnections()) <= pool + 2);
  },
);
