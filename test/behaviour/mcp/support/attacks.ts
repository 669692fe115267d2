// Texts that try to do more than read: what they attempt, each in many spellings. Those of public bypasses of read-only modes are among them.

/** The parts of the server that attacks aim at. */
export type Targets = {
  /** A directory that the server may write to, and a file in it that it may read. */
  readonly directory: string;
  readonly secret: string;
  /** The name of a lock that nothing else takes. */
  readonly lock: string;
  /** An account that does not exist. */
  readonly account: string;
};

/** Statements that the texts are made of. The database has the table t, routines, views and a sequence, which the test creates. */
export function attempts({ directory, secret, lock, account }: Targets): readonly string[] {
  return [
    // Writes.
    "insert into t values (7, 'seven')",
    "insert into t set id = 7, note = 'seven'",
    "replace into t values (1, 'other')",
    "update t set note = 'other'",
    'update t, u set t.note = u.note',
    'delete from t',
    'delete t from t join u using (id)',
    'truncate table t',
    'drop table t',
    'drop database if exists nowhere',
    'create table made (id int)',
    'create or replace view made as select 1',
    'create temporary table made (id int)',
    'create table made select * from t',
    'alter table t add column more int',
    'rename table t to other',
    'create index more on t (note)',
    'optimize table t',
    'analyze table t',
    'repair table t',
    `load data infile '${secret}' into table t`,
    `load xml infile '${secret}' into table t`,
    // Stored routines, and a sequence.
    'call p_writes()',
    'select f_writes()',
    'select * from v_writes',
    'select note from t where f_writes() = 1',
    'select nextval(s)',
    'select next value for s',
    'select setval(s, 900)',
    'do f_writes()',
    'set @a = f_writes()',
    'values (f_writes())',
    'select f_global()',
    // Locks.
    'lock tables t write',
    'lock tables t read',
    'flush tables with read lock',
    'flush tables t for export',
    'select * from t for update',
    'select * from t lock in share mode',
    `select get_lock('${lock}', 0)`,
    `select \`get_lock\`('${lock}', 0)`,
    `select release_all_locks()`,
    'backup stage start',
    'xa start 1',
    'handler t open',
    // Settings.
    'set global default_week_format = 3',
    'set @@global.default_week_format = 3',
    'set session sql_mode = 1',
    "set password for current_user = password('x')",
    `set default role none for ${account}`,
    'set transaction read write',
    'start transaction read write',
    'begin',
    'commit',
    'set autocommit = 0',
    // Files.
    `select * from t into outfile '${directory}/out'`,
    `select note into outfile '${directory}/out' from t`,
    `select 'x' into dumpfile '${directory}/out'`,
    `table t into outfile '${directory}/out'`,
    'select id into @a from t limit 1',
    `select load_file('${secret}')`,
    `select \`load_file\`('${secret}')`,
    `select upper(load_file('${secret}'))`,
    // Accounts and the server.
    `create user ${account} identified by 'x'`,
    `grant all on *.* to ${account}`,
    `drop user if exists ${account}`,
    'kill 999999999',
    "install plugin made soname 'nothing'",
    'reset query cache',
    'flush privileges',
    'purge binary logs to "x"',
    'create event made on schedule every 1 day do delete from t',
    'create trigger made before insert on t for each row set new.id = 1',
    'create function made() returns int return 1',
    // Time.
    'select sleep(60)',
    'select `sleep`(60)',
    'select * from t where sleep(60) = 0',
    'select benchmark(1000000000, sha2(1, 512))',
    'explain for connection 1',
    // Other ways to have a text run.
    "prepare p from 'delete from t'",
    "execute immediate 'delete from t'",
    'begin not atomic delete from t; end',
    'if true then delete from t; end if',
    'with gone as (select 1) delete from t',
    'analyze delete from t',
    'analyze format=json delete from t',
    'explain analyze delete from t',
    'help delete; delete from t',
  ];
}

type Spelling = (sql: string) => string;

const first = /^\w+/;

/** Spellings that mean the same to a server, or that hide the statement from a reader that is not one. */
const spellings: readonly Spelling[] = [
  (sql) => sql,
  (sql) => sql.replace(first, (word) => word.toUpperCase()),
  (sql) => sql.replace(first, (word) => word.replace(/(?<=.)./g, (letter) => letter.toUpperCase())),
  (sql) => `  \t\n${sql}`,
  (sql) => `/* select 1 */ ${sql}`,
  (sql) => `-- select 1\n${sql}`,
  (sql) => `# select 1\n${sql}`,
  (sql) => sql.replace(' ', '/**/'),
  (sql) => sql.replace(' ', '/* select */ '),
  (sql) => sql.replace(' ', ' -- select\n '),
  (sql) => sql.replace(' ', '\u000b'),
  (sql) => sql.replace(first, (word) => `/*!${word}*/`),
  (sql) => sql.replace(first, (word) => `/*!50000 ${word} */`),
  (sql) => sql.replace(first, (word) => `/*M!100000 ${word} */`),
  (sql) => `/*!50000 ${sql} */`,
  (sql) => `/*! ${sql} */`,
  (sql) => `select 1; ${sql}`,
  (sql) => `select 1;${sql};`,
  (sql) => `${sql}; select 1`,
  (sql) => `select ';'; ${sql}; select ';'`,
  (sql) => `select 1 /*!; ${sql} */`,
  (sql) => `select "\\"; ${sql}; -- "`,
  (sql) => `begin; ${sql}; commit`,
  (sql) => `rollback; ${sql}`,
];

/** Every attempt as it stands and in every second spelling, in turn the one half and the other. Each text occurs once. */
export function attackTexts(targets: Targets): readonly string[] {
  const texts = attempts(targets).flatMap((sql, at) =>
    spellings
      .filter((_, other) => other === 0 || (at + other) % 2 === 0)
      .map((spell) => spell(sql)),
  );
  return [...new Set(texts)];
}
