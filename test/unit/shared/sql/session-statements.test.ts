// The statements that only affect their session.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { analyse } from '../../../../src/shared/sql/analyse.ts';
import { sessionEffectOf } from '../../../../src/shared/sql/session-statements.ts';

const effectOf = (sql: string) => sessionEffectOf(analyse(sql));

const sessions = {
  transaction: [
    'begin',
    'BEGIN WORK;',
    '/* x */ start transaction',
    'start transaction read only, with consistent snapshot',
    'commit',
    'commit and chain',
    'rollback',
    'rollback to savepoint a',
    'savepoint a',
    'release savepoint a',
    'set transaction isolation level serializable',
    'set session transaction read only',
    'set autocommit = 0',
    'set @a = 1, autocommit = 0',
    'set @@session.autocommit = 0',
  ],
  'distributed transaction': [
    "xa start 'a'",
    "XA BEGIN 'a','b',1 join",
    "xa end 'a'",
    "xa prepare 'a'",
  ],
  'table handler': ['handler t open', 'handler t read first limit 3', 'HANDLER t CLOSE'],
  'table locks': [
    'lock tables t write',
    'lock table t read',
    'unlock tables',
    'flush tables with read lock',
    'FLUSH LOCAL TABLES t, u WITH READ LOCK;',
    'flush tables t for export',
    'backup stage start',
    'backup lock t',
    'backup unlock',
  ],
  'default database': ['use world', 'use `world`'],
  'prepared statement': [
    "prepare p from 'select 1'",
    'deallocate prepare p',
    'drop prepare p',
    "prepare p from '\\''",
  ],
  'temporary table': [
    'create temporary table t (id int)',
    'create or replace temporary table t select 1',
    'create /* x */ temporary table if not exists t like u',
    'drop temporary table t',
  ],
  'character set': [
    'set names latin1',
    "SET NAMES 'utf8mb4' collate utf8mb4_bin",
    'set character set utf8',
    'set charset default',
  ],
  setting: [
    "set time_zone = '+00:00', names utf8",
    'set @a = 1',
    "set @a = '\\''",
    'set @autocommit = 0',
    "set time_zone = '+00:00'",
    'set session sql_mode = ansi',
    'set @@session.sql_mode = ansi, @@sql_safe_updates = 1',
    'set role none',
    'set @global = 1',
  ],
} as const;

const others = [
  'select 1',
  "xa commit 'a'",
  "xa rollback 'a'",
  'xa recover',
  'select 1 into @a',
  'do 0',
  'insert into t values (1)',
  'begin not atomic insert into t values (1); end',
  'start slave',
  'start replica',
  'set global max_connections = 10',
  'set @a = 1, global max_connections = 10',
  'set @@global.max_connections = 10',
  'set @@persist.max_connections = 10',
  'set persist_only max_connections = 10',
  "set password = 'x'",
  'set default role r to u',
  'set statement max_statement_time = 1 for insert into t values (1)',
  'set @a = writes()',
  'set @a = nextval(s)',
  'create table temporary_table (id int)',
  'create or replace table t (id int)',
  'drop table t',
  '/*! set names latin1 */',
  'begin; insert into t values (1)',
  'call p()',
  'execute p',
  'flush tables',
  'flush tables t',
  'flush logs',
  'flush status',
];

test('a statement that only affects its session is recognised', () => {
  for (const [effect, statements] of Object.entries(sessions)) {
    for (const sql of statements) assert.equal(effectOf(sql), effect, sql);
  }
});

test('a statement that may do more than affect its session is none of them', () => {
  for (const sql of others) assert.equal(effectOf(sql), null, sql);
});
