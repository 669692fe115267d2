// The promise of drivers = planetscale for errors: MySQL's own text with the numbers that adapters parse, and their own kinds.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { connect } from '@planetscale/database';
import { PrismaPlanetScale } from '@prisma/adapter-planetscale';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import {
  type ProxiedDatabase,
  startProxiedDatabase,
} from '../../support/database/proxied-database.ts';
import {
  createDriver,
  driverError,
  driverSettings,
  driverUrl,
  postAsDriver,
} from '../../support/driver.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';

let database: Database;
let proxied: ProxiedDatabase;
let gateway: Gateway;
before(async () => {
  database = await startDatabase();
  proxied = await startProxiedDatabase(database);
  gateway = await startGateway({
    database: proxied.target,
    settings: { ...driverSettings, workers: 1, statement_timeout: '3s', max_rows: 1000 },
  });
  await database.query(
    `create table author (id int primary key, name varchar(5) not null, unique key by_name (name));
     create table book (id int primary key, author_id int not null, pages tinyint unsigned,
       constraint of_author foreign key (author_id) references author (id));
     insert into author values (1, 'one'); insert into book values (1, 1, 1)`,
  );
});
after(async () => {
  await gateway?.stop();
  await proxied?.stop();
  await database?.stop();
});

/** The view of Prisma's adapter on an error: its kind, and what the adapter found in the text. */
async function kindOf(sql: string, url = driverUrl(gateway)): Promise<Record<string, unknown>> {
  const adapter = await new PrismaPlanetScale({ url }).connect();
  const error = await adapter.queryRaw({ sql, args: [], argTypes: [] }).then(
    () => new Error('it succeeded'),
    (reason: unknown) => reason,
  );
  const { name, cause } = error as { name: string; cause: Record<string, unknown> };
  assert.equal(name, 'DriverAdapterError', String(error));
  return cause;
}

/** A statement, the code, number and state of its error, and the kind that Prisma's adapter sees in it. */
const cases = [
  [
    "insert into author values (1, 'two')",
    'ALREADY_EXISTS',
    1062,
    '23000',
    'UniqueConstraintViolation',
  ],
  [
    'insert into book values (2, 7, 1)',
    'FAILED_PRECONDITION',
    1452,
    '23000',
    'ForeignKeyConstraintViolation',
  ],
  ['delete from author', 'FAILED_PRECONDITION', 1451, '23000', 'ForeignKeyConstraintViolation'],
  [
    'insert into author values (2, null)',
    'INVALID_ARGUMENT',
    1048,
    '23000',
    'NullConstraintViolation',
  ],
  [
    "insert into author values (2, 'too long')",
    'INVALID_ARGUMENT',
    1406,
    '22001',
    'LengthMismatch',
  ],
  ['insert into book values (3, 1, 999)', 'FAILED_PRECONDITION', 1264, '22003', 'ValueOutOfRange'],
  ['select * from nowhere', 'NOT_FOUND', 1146, '42S02', 'TableDoesNotExist'],
  ['select nothing from author', 'NOT_FOUND', 1054, '42S22', 'ColumnNotFound'],
  ['selec 1', 'INVALID_ARGUMENT', 1064, '42000', 'mysql'],
  ["signal sqlstate '45000' set message_text = 'of its own'", 'UNKNOWN', 1644, '45000', 'mysql'],
] as const;

test("errors of MySQL's have its text, its numbers, Vitess's code and status 200", async () => {
  const connection = await database.connect();
  for (const [sql, code, errno, state] of cases) {
    const { status, body } = await postAsDriver(gateway, { query: sql, session: null });
    const said = await connection.query(sql).then(
      () => '',
      (error: Error) => error.message,
    );
    assert.equal(status, 200);
    assert.deepEqual(body.error, {
      code,
      message: `${said} (errno ${errno}) (sqlstate ${state})`,
      outcome: 'failed',
    });
    assert.equal(typeof (body.session as { token: unknown }).token, 'string');
    assert.equal(body.result, undefined);
  }
});

test("Prisma's adapter distinguishes them as it does with PlanetScale", async () => {
  for (const [sql, , errno, , kind] of cases) {
    const reported = await kindOf(sql);
    assert.deepEqual([reported.kind, reported.originalCode], [kind, String(errno)], sql);
  }
  const unique = await kindOf("insert into author values (9, 'one')");
  assert.deepEqual(unique.constraint, { index: 'by_name' });
  assert.equal((await kindOf('select * from nowhere')).table, 'nowhere');
  assert.deepEqual((await kindOf('insert into book values (2, 7, 1)')).constraint, {
    fields: ['author_id'],
  });
});

test('a wrong token is a 401 that demands Basic, and a failed authentication', async () => {
  const url = driverUrl(gateway, 'wrong');
  assert.equal((await kindOf('select 1', url)).kind, 'AuthenticationFailed');
  const error = await driverError(connect({ url }).execute('select 1'));
  assert.deepEqual([error.status, error.body.code], [401, 'UNAUTHORIZED']);
  const reply = await postAsDriver(gateway, { query: 'select 1' }, { password: 'wrong' });
  assert.match(reply.headers.get('www-authenticate') ?? '', /^Basic /);
});

test('a lost connection is reported with its outcome, and the next statement finds another one', async () => {
  await database.query('create table lost (n int)');
  const driver = createDriver(gateway);
  proxied.on(/insert into lost/i, { kind: 'cut-after-request' }, { times: 2 });
  const error = await driverError(driver.execute('insert into lost values (1)'));
  assert.deepEqual([error.status, error.body.code], [502, 'CONNECTION_LOST']);
  assert.match(error.message, / \(errno 2013\) \(sqlstate HY000\)$/);
  assert.equal((error.body as { outcome?: string }).outcome, 'unknown');
  const { kind, code } = await kindOf('insert into lost values (2)');
  assert.deepEqual([kind, code], ['mysql', 2013]);
  assert.equal((await driver.execute('insert into lost values (3)')).rowsAffected, 1);
});

test('a statement that takes too long is ended, and reports it', async () => {
  const error = await driverError(createDriver(gateway).execute('select sleep(60)'));
  assert.deepEqual([error.status, error.body.code], [504, 'DEADLINE_RUNNING']);
  assert.match(error.message, / \(errno 3024\) \(sqlstate HY000\)$/);
});

test('an error behind rows that have left still is an error', async () => {
  const { status, body } = await postAsDriver(gateway, {
    query:
      "select repeat('x', 60000), if(seq < 9, 1, (select 1 union select 2)) from seq_1_to_9".replace(
        'seq_1_to_9',
        '(select 1 as seq union all select 2 union all select 3 union all select 4 union all select 9) s',
      ),
  });
  assert.equal(status, 200);
  assert.match((body.error as { message: string }).message, /\(errno 1242\) \(sqlstate 21000\)$/);
});

test('a result beyond max_rows is an error, because a part must not pass for the whole', async () => {
  const sql = 'select a.n from (select 1 as n union all select 2 union all select 3) a';
  const product = `${sql}${Array.from({ length: 6 }, (_, at) => `, (select 1 union all select 2 union all select 3) a${at}`).join('')}`;
  const error = await driverError(createDriver(gateway).execute(product));
  assert.match(error.message, /more than max_rows = 1000 rows/);
  assert.equal((await createDriver(gateway).execute(`${product} limit 1000`)).size, 1000);
});
