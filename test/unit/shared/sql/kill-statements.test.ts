// Which texts may contain a KILL.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { analyse } from '../../../../src/shared/sql/analyse.ts';
import { mayKill } from '../../../../src/shared/sql/kill-statements.ts';

const kills = (sql: string) => mayKill(analyse(sql));

test('a KILL is found wherever a statement may stand', () => {
  for (const sql of [
    'kill 5',
    'KILL QUERY 5',
    '  /* why */ Kill connection 5',
    'kill(5)',
    'kill/**/5',
    'select 1; kill 5',
    'begin not atomic kill 5; end',
    'if 1 then kill 5; end if',
    'create procedure p() kill 5',
    'create event e on schedule every 1 hour do kill 5',
    '/*! kill 5 */',
    '/*!50000 kill */ 5',
    '/*M!100100 kill 5 */',
    '(kill 5)',
    'label: begin not atomic kill 5; end',
    "prepare s from 'kill 5'",
    "execute immediate 'KILL 5'",
    "execute immediate _utf8mb4 X'6b696c6c2035'",
    'execute immediate 0x4B494C4C2035',
    "set @a = x'4b694C6c2035'; prepare s from @a; execute s",
    "set @a = 'kill 5'; prepare s from @a; execute s",
    "select 'a\\'; kill 5; -- '",
    'select "a\\"; kill 5; -- "',
  ]) {
    assert.equal(kills(sql), true, sql);
  }
});

test('a text that only has the word in a value, a name or a comment is none', () => {
  for (const sql of [
    'select 1',
    "select 'kill 5'",
    "insert into films values ('Kill Bill', 1)",
    "insert into films values (_utf8mb4 X'4b696c6c2042696c6c', 1)",
    "execute immediate 'select 1'",
    "insert into films values ('It\\'s a kill')",
    'select `kill` from t',
    'select t.kill from t',
    'select @kill',
    'select skill, killer from t -- kill',
    'select 1 /* kill 5 */',
    "insert into films values ('It\\'s a kill, isn\\'t it')",
    "execute immediate 'select 1'",
  ]) {
    assert.equal(kills(sql), false, sql);
  }
});
