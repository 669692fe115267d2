// The promise that values which a driver puts into the text stay values, whatever sql_mode and character set the server has.
// Must not know how sessions are prepared.
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { type Database, ownServerOnly, startDatabase } from '../../support/database/mariadb.ts';
import { createDriver, driverSettings } from '../../support/driver.ts';
import { startGateway } from '../../support/gateway.ts';

let database: Database;
const isOwn = process.env.DBHTTPD_TEST_MYSQL === undefined;
before(async () => {
  if (!isOwn) return;
  database = await startDatabase({ own: true });
  await database.query(
    'create table victims (id int auto_increment primary key, word varchar(200))',
  );
  await database.query("insert into victims (word) values ('one'), ('two')");
});
afterEach(async () => {
  await database?.query("set global sql_mode = default; set global init_connect = ''");
});
after(() => database?.stop());

/** Values that end a literal early where a backslash is no escape, or where a byte before it swallows it. */
const attacks = [
  "\\' or 1=1 -- ",
  "' or '1'='1",
  '\\',
  "\\\\' or 1=1 #",
  '" or 1=1 -- ',
  '\\" or 1=1 -- ',
  "\u{bf5c}' or 1=1 -- ",
  "¿\\' or 1=1 -- ",
  'ā\\',
  "'; delete from victims; -- ",
  "\0' or 1=1 -- ",
  '\n\r\x1a\t"\'\\%_',
  '`',
  '/*! or 1=1 */',
] as const;

async function withstands(settings: Readonly<Record<string, string>> = {}): Promise<void> {
  const gateway = await startGateway({
    database,
    settings: { ...driverSettings, workers: 1, pool: 4, ...settings },
  });
  try {
    const driver = createDriver(gateway);
    for (const attack of attacks) {
      const found = await driver.execute('select id from victims where word = ?', [attack]);
      assert.deepEqual(found.rows, [], attack);
      const named = await driver.execute('select :a as a, :b as b', { a: attack, b: 'next' });
      assert.deepEqual(named.rows, [{ a: attack, b: 'next' }]);
      const twice = await driver.execute('select ? as a, ? as b', [attack, ' or 1=1 -- ']);
      assert.deepEqual(twice.rows, [{ a: attack, b: ' or 1=1 -- ' }]);
    }
    // Each on a session that somebody has used, and changed, before.
    for (const change of [
      "set sql_mode = 'NO_BACKSLASH_ESCAPES'",
      "set session sql_mode = concat(@@sql_mode, ',NO_BACKSLASH_ESCAPES')",
      'set names gbk',
      'set character_set_client = sjis',
    ]) {
      await Promise.all(Array.from({ length: 12 }, () => driver.execute(change)));
      for (const attack of attacks) {
        const { rows } = await driver.execute('select ? as a from dual', [attack]);
        assert.deepEqual(rows, [{ a: attack }], `${attack} after ${change}`);
      }
    }
    assert.equal((await database.query('select * from victims')).length, 2);
  } finally {
    await gateway.stop();
  }
}

const modes = [
  '',
  // With ANSI_QUOTES.
  'ANSI',
  'NO_BACKSLASH_ESCAPES,STRICT_ALL_TABLES',
  'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,TRADITIONAL',
];

for (const mode of modes) {
  test(`a value stays a value where the server's sql_mode is '${mode}'`, async (t) => {
    if (!ownServerOnly(t)) return;
    await database.query(`set global sql_mode = '${mode}'`);
    await withstands();
  });
}

test('and where init_connect sets another mode and character set', async (t) => {
  if (!ownServerOnly(t)) return;
  const name = 'plain';
  await database.query(
    `create user ${name} identified by '${database.password}'; grant all on ${database.name}.* to ${name}`,
  );
  await database.query(
    `set global init_connect = "set sql_mode = 'NO_BACKSLASH_ESCAPES', character_set_client = gbk"`,
  );
  await withstands({ user: name });
});

test("and where the operator's statements set them in a way that no text tells", async (t) => {
  if (!ownServerOnly(t)) return;
  const init = "set names gbk; set sql_mode = concat('ANSI_QUOTES,NO_BACK', 'SLASH_ESCAPES')";
  await withstands({ init_sql: init });
});

test('the other modes, and a collation that the operator has chosen, stay what they are', async (t) => {
  if (!ownServerOnly(t)) return;
  await database.query(
    "set global sql_mode = 'STRICT_ALL_TABLES,NO_BACKSLASH_ESCAPES,NO_ZERO_DATE'",
  );
  const gateway = await startGateway({
    database,
    settings: { ...driverSettings, workers: 1, init_sql: 'set names utf8mb4 collate utf8mb4_bin' },
  });
  try {
    const { rows } = await createDriver(gateway).execute(
      'select @@sql_mode as mode, @@collation_connection as collation',
    );
    assert.deepEqual(rows, [{ mode: 'STRICT_ALL_TABLES,NO_ZERO_DATE', collation: 'utf8mb4_bin' }]);
  } finally {
    await gateway.stop();
  }
});
