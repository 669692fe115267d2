// The promise that values which a driver puts into the text stay values, whatever sql_mode and character set the server has.
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { type Database, ownServerOnly, startDatabase } from '../../support/database/mariadb.ts';
import { createDriver, driverSettings } from '../../support/driver.ts';
import { eventually } from '../../support/eventually.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';

let database: Database;
/** Its account is an ordinary one, to which the server's init_connect applies. */
let gateway: Gateway;
const user = 'plain';
const settings = { ...driverSettings, workers: 1, pool: 4 };
const isOwn = process.env.DBHTTPD_TEST_MYSQL === undefined;
before(async () => {
  if (!isOwn) return;
  database = await startDatabase({ own: true });
  for (const sql of [
    'create table victims (id int auto_increment primary key, word varchar(200))',
    "insert into victims (word) values ('one'), ('two')",
    `create user ${user} identified by '${database.password}'`,
    `grant all on ${database.name}.* to ${user}`,
  ]) {
    await database.query(sql);
  }
  gateway = await startGateway({ database, settings: { ...settings, user, log_level: 'debug' } });
});
afterEach(async () => {
  await database?.query("set global sql_mode = default; set global init_connect = ''");
});
after(async () => {
  await gateway?.stop();
  await database?.stop();
});

/** The server's settings are those of new sessions: ends all that there are. */
async function endSessions(): Promise<void> {
  const ids = (what: string) =>
    [...gateway.log().matchAll(new RegExp(`a session was ${what} connection=(\\d+)`, 'g'))].map(
      ([, id]) => id,
    );
  // The log is written a little later than the server knows. The connection that is not in it carries no statements.
  const open = await eventually('the log has all sessions', async () => {
    const all = await database.query(
      `select id from information_schema.processlist where user = '${user}'`,
    );
    const lost = new Set(ids('lost'));
    const known = ids('opened').filter((id) => !lost.has(id));
    return all.filter(({ id }) => !known.includes(String(id))).length <= 1 && known;
  });
  for (const id of open) await database.query(`kill ${id}`);
  await eventually('the gateway has lost its sessions', () => {
    const gone = new Set(ids('lost'));
    return open.every((id) => gone.has(id));
  });
}

/** Values that end a literal early if a backslash is not an escape, or if a byte before it swallows it. */
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

async function withstands(by: Gateway): Promise<void> {
  const driver = createDriver(by);
  for (const attack of attacks) {
    const found = await driver.execute('select id from victims where word = ?', [attack]);
    assert.deepEqual(found.rows, [], attack);
    const named = await driver.execute('select :a as a, :b as b', { a: attack, b: 'next' });
    assert.deepEqual(named.rows, [{ a: attack, b: 'next' }]);
    const twice = await driver.execute('select ? as a, ? as b', [attack, ' or 1=1 -- ']);
    assert.deepEqual(twice.rows, [{ a: attack, b: ' or 1=1 -- ' }]);
  }
  // Each on a session that a request has used, and changed, before.
  for (const change of [
    "set sql_mode = 'NO_BACKSLASH_ESCAPES'",
    "set session sql_mode = concat(@@sql_mode, ',NO_BACKSLASH_ESCAPES')",
    'set names gbk',
    'set character_set_client = sjis',
  ]) {
    await Promise.all(Array.from({ length: 12 }, () => driver.execute(change)));
    const asked = attacks.map((attack) => driver.execute('select ? as a from dual', [attack]));
    for (const [index, { rows }] of (await Promise.all(asked)).entries()) {
      const attack = attacks[index];
      assert.deepEqual(rows, [{ a: attack }], `${attack} after ${change}`);
    }
  }
  assert.equal((await database.query('select * from victims')).length, 2);
}

const modes = [
  '',
  // The mode ANSI_QUOTES.
  'ANSI',
  'NO_BACKSLASH_ESCAPES,STRICT_ALL_TABLES',
  'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,TRADITIONAL',
];

for (const mode of modes) {
  test(`a value remains a value if the server's sql_mode is '${mode}'`, async (t) => {
    if (!ownServerOnly(t)) return;
    await database.query(`set global sql_mode = '${mode}'`);
    await endSessions();
    await withstands(gateway);
  });
}

test('and where init_connect sets another mode and character set', async (t) => {
  if (!ownServerOnly(t)) return;
  await database.query(
    `set global init_connect = "set sql_mode = 'NO_BACKSLASH_ESCAPES', character_set_client = gbk"`,
  );
  await endSessions();
  await withstands(gateway);
});

test("and if the operator's statements set them in a way that no text shows", async (t) => {
  if (!ownServerOnly(t)) return;
  const init_sql = "set names gbk; set sql_mode = concat('ANSI_QUOTES,NO_BACK', 'SLASH_ESCAPES')";
  const other = await startGateway({ database, settings: { ...settings, init_sql } });
  try {
    await withstands(other);
  } finally {
    await other.stop();
  }
});

test('the other modes, and a collation that the operator has chosen, remain unchanged', async (t) => {
  if (!ownServerOnly(t)) return;
  await database.query(
    "set global sql_mode = 'STRICT_ALL_TABLES,NO_BACKSLASH_ESCAPES,NO_ZERO_DATE'",
  );
  const other = await startGateway({
    database,
    settings: { ...driverSettings, workers: 1, init_sql: 'set names utf8mb4 collate utf8mb4_bin' },
  });
  try {
    const { rows } = await createDriver(other).execute(
      'select @@sql_mode as mode, @@collation_connection as collation',
    );
    assert.deepEqual(rows, [{ mode: 'STRICT_ALL_TABLES,NO_ZERO_DATE', collation: 'utf8mb4_bin' }]);
  } finally {
    await other.stop();
  }
});
