// The promise of the tool `query`: no text makes it do more than read, whatever the text is and however it is spelt. The account of the
// section may do everything, so only the gateway stands in between.
import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { Database, Row } from '../../support/database/mariadb.ts';
import { useGateway } from '../../support/use-gateway.ts';
import { createAgent, type ToolError } from './support/agent.ts';
import { attackTexts, attempts } from './support/attacks.ts';

const directory = mkdtempSync(join(tmpdir(), 'dbhttpd-attack-'));
chmodSync(directory, 0o777);
after(() => rmSync(directory, { recursive: true }));
const secret = join(directory, 'secret');
const secretText = 'nothing-for-agents';
writeFileSync(secret, secretText, { mode: 0o644 });
const targets = {
  directory,
  secret,
  lock: `lock-${process.pid}`,
  account: `agent${process.pid}@localhost`,
};

const { gateway, database } = useGateway(
  { workers: 2, pool: 4, mcp: 'on', slow_query: 0 },
  {
    // Other files lock tables, and create accounts, on the server that all share.
    serverArguments: [],
    prepare: (own) =>
      own
        .query(
          `create table t (id int primary key, note varchar(50)) engine = InnoDB;
           create table u (id int primary key, note varchar(50)) engine = MyISAM;
           insert into t values (1, 'one'), (2, 'two');
           insert into u values (1, 'uno');
           create procedure p_writes() insert into t values (8, 'eight');
           create function f_writes() returns int begin insert into u values (9, 'nine'); return 1; end;
           create function f_global() returns int begin set global default_week_format = 3; return 1; end;
           create view v_writes as select f_writes() as n;
           ${own.flavour === 'mariadb' ? 'create sequence s' : ''}`,
        )
        .then(() => {}),
  },
);
const agent = createAgent(() => gateway);

/** Variables whose values change by themselves. */
const volatile =
  /gtid|timestamp|last_|rand_seed|identity|pseudo|insert_id|in_transaction|error_count/;

/** All that an attack could have changed. */
async function lookAt({ query, name, flavour }: Database) {
  const tables = (await query('show full tables')).map((row) => Object.values(row));
  const names = tables.filter(([, type]) => type === 'BASE TABLE').map(([table]) => String(table));
  const isMariadb = flavour === 'mariadb';
  const accounts = isMariadb ? 'mysql.global_priv' : 'mysql.user';
  const texts = (rows: readonly Row[]) => rows.map((row) => JSON.stringify(row));
  const variables = await query('show global variables');
  const [lock] = await query(`select is_used_lock('${targets.lock}') as owner`);
  return {
    tables,
    sums: texts(await query(`checksum table ${names.join(', ')}, ${accounts}`)),
    sequence: isMariadb ? texts(await query('select next_not_cached_value from s')) : [],
    variables: texts(variables.filter((row) => !volatile.test(String(row.Variable_name)))),
    routines: texts(
      await query(
        `select routine_name from information_schema.routines where routine_schema = '${name}' union
         select event_name from information_schema.events where event_schema = '${name}' union
         select trigger_name from information_schema.triggers where trigger_schema = '${name}' order by 1`,
      ),
    ),
    lock: lock?.owner ?? null,
    inUse: texts(await query('show open tables where In_use > 0')),
    files: readdirSync(directory),
  };
}

test('five hundred and more texts change nothing, read no file and take no time', async () => {
  const untouched = await lookAt(database);
  const texts = attackTexts(targets);
  assert.ok(texts.length >= 500, String(texts.length));
  const passed: string[] = [];
  const attack = async (share: readonly string[]) => {
    for (const sql of share) {
      const { isError, text } = await agent.call('query', { sql });
      assert.ok(!text.includes(secretText), sql);
      if (!isError) passed.push(`${sql} -> ${text}`);
    }
  };
  const shares = [0, 1, 2, 3].map((own) => texts.filter((_, at) => at % 4 === own));
  await Promise.all(shares.map(attack));
  assert.deepEqual(passed, []);
  assert.deepEqual(await lookAt(database), untouched);
});

test('afterwards nothing is locked: each table can be written to at once', async () => {
  await database.query(
    `set lock_wait_timeout = 1, innodb_lock_wait_timeout = 1;
     update t set note = note; update u set note = note; alter table t comment = ''`,
  );
});

test('values of parameters are values, whatever they contain', async () => {
  for (const value of [...attempts(targets), "'; drop table t; -- ", "\\'; delete from t; #"]) {
    const { rows } = await agent.query('select :v as v', { params: { v: value } });
    assert.deepEqual(rows, [[value]]);
  }
});

test('a refusal names its kind: misspelt, forbidden, or not for agents', async () => {
  const failures: readonly (readonly [string, Partial<ToolError>, RegExp])[] = [
    ['selct 1', { code: 'READ_ONLY' }, /no statement begins with "selct"/],
    ['delete from t', { code: 'READ_ONLY' }, /the statement may write/],
    ['set @a = 1', { code: 'READ_ONLY' }, /the statement may write/],
    ['select 1; select 2', { code: 'SEVERAL_STATEMENTS' }, /One statement at a time/],
    ['select sleep(1)', { code: 'CALL_REFUSED' }, /SLEEP\(\)/],
    ['select ſleep(1)', { code: 'CALL_REFUSED' }, /SLEEP\(\)/],
    ["select load_file('/etc/passwd')", { code: 'CALL_REFUSED' }, /LOAD_FILE\(\)/],
    ['explain for connection 1', { code: 'CALL_REFUSED' }, /EXPLAIN FOR CONNECTION/],
  ];
  for (const [sql, expected, message] of failures) {
    const { code, outcome, message: text } = await agent.fail(sql);
    assert.deepEqual({ code, outcome }, { ...expected, outcome: 'not_executed' }, sql);
    assert.match(text ?? '', message);
  }
});
