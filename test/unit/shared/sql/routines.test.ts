// A routine's body acts if it does something that READ ONLY does not stop, and in doubt.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  reachOfRoutine,
  reachOfStatement,
  readProcedureBody,
} from '../../../../src/shared/sql/routines.ts';
import { builtInEverywhere } from '../../../../src/shared/sql/vocabulary.ts';
import { assertProportional, repeating } from '../../../support/processor-time.ts';
import { anyCharacter, fc } from '../../../support/property.ts';

const reach = (body: string, mode = '') => reachOfRoutine(body, mode, builtInEverywhere);
const callsOf = (sql: string) =>
  reachOfStatement(sql, builtInEverywhere)?.calls.map((parts) => parts.join('.'));

test('a body that acts outside of its transaction is distinguished from one that reads', () => {
  for (const body of [
    'begin set global a = 1; return 1; end',
    'begin set @x = 1, global a = 1; return 1; end',
    'begin set persist a = 1; return 1; end',
    'begin set @@persist_only.a = 1; return 1; end',
    'begin set n = 1, @@global.a = 1; return 1; end',
    'begin set session transaction read write; return 1; end',
    'begin set tx_read_only = 0; return 1; end',
    'begin set @@session.transaction_read_only = 0; return 1; end',
    "begin select 1 into outfile 'x'; return 1; end",
    "begin select 1 into/**/dumpfile 'x'; return 1; end",
    'return get_lock("x", 0)',
    'return `release_lock`("x")',
    "return oracle_schema.get_lock('x', 0)",
    'begin select a into n from t for update; return n; end',
    'begin select a into n from t lock in share mode; return n; end',
    'begin if a then kill 5; end if; return 1; end',
    'begin kill(5); return 1; end',
    'begin if a then shutdown; else return 1; end if; return 1; end',
    'begin purge binary logs to "x"; return 1; end',
    'begin return 1; /*! kill 5 */ end',
    "begin return 'open; end",
    "return sys_exec('reboot')",
    "return set_firewall_mode('a@b', 'off')",
    "return masking_dictionary_term_add('names', 'x')",
    "return spider_direct_sql('delete from t', '', 'srv \"remote\"')",
    "begin set statement max_statement_time = 1 for purge binary logs to 'x'; return 1; end",
    "begin set password = 'x'; return 1; end",
    'begin set role admin; return 1; end',
    "begin declare exit handler for sqlexception purge binary logs to 'x'; return 1; end",
    "begin declare exit handler for not found, sqlstate value '23000', 1062 shutdown; return 1; end",
  ]) {
    assert.equal(reach(body), null, body);
  }
  assert.equal(reach('return "get_lock"("x", 0)', 'ANSI_QUOTES'), null);
});

test('the statements of ordinary bodies are known', () => {
  for (const body of [
    'return 1',
    'RETURN (select max(id) from t)',
    'begin declare a, b int default 0; set a = b + 1, @x = 5; return if(a > b, a, b); end',
    'begin select case when a then a else b end as outcome into n from t; return n; end',
    "return case a when 1 then 'x' when 2 then date '2024-01-01' when 3 then b else c end",
    'begin if a is null then return @@global.max_connections; elseif b then return 2; end if; return 3; end',
    "begin declare continue handler for not found, sqlstate value '23000', 1062, named set a = 1; set role = a; return a; end",
    'begin declare exit handler for sqlexception begin resignal; end; insert into t values (1); return 1; end',
    'one: begin two: loop leave two; end loop two; repeat set a = 1; until a end repeat; return 1; end one',
    'begin for one in (select a from t) do set a = one.a; end for; return a; end',
    'as n int := 1; m t.a%type; begin n := n + 1; return n; exception when others then return null; end',
    'return concat(\'set global a = 1\', `into outfile`, "kill")',
  ]) {
    assert.notEqual(reach(body), null, body);
  }
});

test('called names are found with their schemas', () => {
  assert.deepEqual(callsOf('select f(1), db.g (2), `a``b`(3), `c` . `d`.`e` /* */ (4)'), [
    ...['f', 'db.g', 'a`b', 'c.d.e'],
  ]);
  assert.deepEqual(callsOf('select upper(a), count(*), `upper`(a), "x"(1) from t where a in (1)'), [
    ...['upper', 'x'],
  ]);
  assert.deepEqual(callsOf("select f('it\\'s'), g('x')"), ['f', 'g', 'f', 'g']);
  assert.equal(callsOf('select `get_lock`(1)'), undefined);
  assert.deepEqual(callsOf('select sys.format_bytes(a), `sys`.version_major(), sys.other(1)'), [
    ...['sys.other'],
  ]);
  const found = reach('begin call p; return db.v.a; end');
  assert.deepEqual(found?.calls, [['p']]);
  assert.ok(found?.names.some(({ schema, name }) => schema === 'db' && name === 'v'));
});

test('every text has a result, in time that is proportional to its length', () => {
  fc.assert(
    fc.property(fc.string({ unit: anyCharacter, maxLength: 60 }), (text) => {
      reach(text);
      callsOf(text);
    }),
  );
  for (const piece of ["begin if f(a.b) then set c = 'd'; end if; end;", 'f(1),', "'a','b',1,"]) {
    assertProportional(repeating(piece), 100_000, reach);
    assertProportional(repeating(piece), 1_000_000, callsOf);
  }
});

test('the time to read a body is proportional to the number of its statements', () => {
  const read = (body: string) => readProcedureBody(body, builtInEverywhere)?.length;
  // A body has at most 50,000 tokens.
  for (const [piece, tokens, tables] of [
    [';', 1, 0],
    ['update t set a=1;', 7, 1],
  ] as const) {
    const count = Math.floor(48_000 / tokens);
    const make = repeating(piece);
    // Quadratic work on a short text takes longer in proportion as long as it is not compiled.
    read(`begin ${piece.repeat(count / 4)} end`);
    assertProportional((length) => `begin ${make(length)} end`, count * piece.length, read);
    assert.equal(read(`begin ${piece.repeat(count)} end`), count * tables);
  }
});

test('a long list of values beside a call leaves no doubt, but a text of too many names does', () => {
  assert.deepEqual(callsOf(`select f(a) from t where a in (${'1,'.repeat(100_000)}1)`), ['f']);
  assert.equal(callsOf(`select ${'f(a),'.repeat(100_000)}1`), undefined);
});
