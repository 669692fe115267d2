// Calls that agents may not make are found however they are written, and names that only look like them are not.
import assert from 'node:assert/strict';
import test from 'node:test';
import { allAtOnce } from '../../../../src/shared/pieces.ts';
import { findRefusedCall } from '../../../../src/shared/sql/refused-calls.ts';

const find = (sql: string) => allAtOnce(findRefusedCall(sql));

test('finds the calls in every spelling that a server accepts', () => {
  const spelt = (name: string) => [
    `${name}(1)`,
    `${name.toLowerCase()} (1)`,
    `${name}/* ( */ (1)`,
    `${name} -- x\n (1)`,
    `\`${name}\`(1)`,
    `"${name}"(1)`,
    `1+${name}\t(1)`,
    `(${name}(1))`,
    `x.${name}(1)`,
  ];
  for (const name of ['LOAD_FILE', 'SLEEP', 'BENCHMARK']) {
    for (const call of spelt(name)) assert.equal(find(`select ${call}`), `${name}()`, call);
  }
});

test('a letter that a collation takes for one of ASCII hides no call', () => {
  for (const name of ['ſleep', 'ＳLEEP', 'slëep', '`ſleep`']) {
    assert.equal(find(`select ${name}(5)`), 'SLEEP()', name);
  }
  assert.equal(find('select f_größe(5)'), null);
});

test('a backslash that another sql_mode reads differently hides no call', () => {
  assert.equal(find("select '\\', sleep(1), '"), 'SLEEP()');
  assert.equal(find('select "\\", sleep(1), "'), 'SLEEP()');
});

test('finds statements that ask for the plan of another connection', () => {
  for (const sql of [
    'explain for connection 7',
    'EXPLAIN FORMAT=JSON FOR /* x */ CONNECTION 7',
    'desc for connection 7',
    'describe extended for connection 7',
  ]) {
    assert.match(find(sql) ?? '', /FOR CONNECTION$/, sql);
  }
  for (const sql of [
    'show explain for 7',
    'SHOW EXPLAIN FORMAT=JSON FOR 7',
    'show analyze for 7',
  ]) {
    assert.match(find(sql) ?? '', /^SHOW (EXPLAIN|ANALYZE) FOR$/, sql);
  }
});

test('words in literals, comments and names of columns are no calls', () => {
  for (const sql of [
    "select 'sleep(1)'",
    'select 1 /* sleep(1) */',
    'select sleep from t',
    'select t.sleep, (1) from t',
    'select `load_file` from t',
    'select sleeps(1)',
    'explain select * from t where a in (select for_connection from u)',
    'show create table sleep',
  ]) {
    assert.equal(find(sql), null, sql);
  }
});
