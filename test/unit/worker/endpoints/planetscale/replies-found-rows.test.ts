// Rows found, counted from what a server reports of a write, in any language.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { analyse } from '../../../../../src/shared/sql/analyse.ts';
import { chooseFoundRows } from '../../../../../src/worker/endpoints/planetscale/replies.ts';

const found = (sql: string, affectedRows: number | bigint, info = '') =>
  Number(chooseFoundRows(analyse(sql))({ affectedRows, info }));

test('an UPDATE has found the rows that it has matched, in any language', () => {
  assert.equal(found('update t set a = 1', 0, 'Rows matched: 3  Changed: 0  Warnings: 0'), 3);
  assert.equal(
    found('UPDATE t set a = 1', 1, 'Datensätze gefunden: 2  Geändert: 1  Warnungen: 0'),
    2,
  );
  assert.equal(
    found('with c as (select 1) update t set a = 1', 0, 'Rows matched: 3  Changed: 0  Warnings: 0'),
    3,
  );
  const versioned = 'Rows matched: 3  Changed: 1  Inserted: 1  Warnings: 0';
  assert.equal(found('update t set a = 1', 1, versioned), 3);
  assert.equal(found('update t set a = 1', 4), 4);
});

test('an INSERT has found a row, too, that it has met and left as it was', () => {
  assert.equal(found('insert into t values (1)', 1), 1);
  assert.equal(found('insert into t values (1) on duplicate key update a = 1', 0), 1);
  assert.equal(found('insert into t values (1) on duplicate key update a = 1', 2), 2);
  // One inserted, one changed, one left as it was.
  assert.equal(found('insert into t …', 3, 'Records: 3  Duplicates: 1  Warnings: 0'), 4);
  // Two inserted, and one changed whose former version MariaDB keeps.
  assert.equal(found('insert into t …', 5, 'Records: 3  Duplicates: 1  Warnings: 0'), 5);
  assert.equal(found('insert into t select …', 0, 'Records: 0  Duplicates: 0  Warnings: 0'), 0);
});

test('an ignored row was not found, and every other statement has found the rows that it has changed', () => {
  const half = 'Records: 4  Duplicates: 2  Warnings: 2';
  assert.equal(found('insert ignore into t …', 2, half), 2);
  assert.equal(found('insert /* on */ high_priority ignore t …', 0), 0);
  for (const sql of [
    'delete from t',
    'replace into t values (1)',
    'call p()',
    '',
    '/*!update*/ t',
  ]) {
    assert.equal(found(sql, 0), 0, sql);
    assert.equal(found(sql, 2, half), 2, sql);
  }
});
