// Which tables a ROLLBACK undoes, by each answer of the catalogue.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { areUndoable } from '../../../../src/worker/execution/undoable-tables.ts';
import { createScriptedConnection } from '../../support/scripted-connection.ts';

const table = { schema: 'd', name: 't' };

/** The objects of a server: whether its table `t` and its table `other` have transactions, the body of a trigger, and the text of a view `v` over `t`. */
type Has = { readonly good?: string; readonly other?: string; readonly trigger?: string };

/** Answers as a server with these objects does. @param counts of the table that is asked for */
function connectTo(counts: readonly string[], { good = 'InnoDB', other = 'InnoDB', trigger }: Has) {
  return createScriptedConnection((sql) => {
    if (sql.includes('COUNT(*)')) return { rows: [counts] };
    if (sql.includes('@@lower_case_table_names')) return { rows: [['d', '0']] };
    if (sql.includes('TRANSACTIONS')) return { rows: [['InnoDB']] };
    if (sql.includes('information_schema.TRIGGERS')) {
      return { rows: trigger === undefined ? [] : [['d', 't', trigger]] };
    }
    if (sql.includes('information_schema.VIEWS')) {
      return { rows: [['d', 'v', 'select `d`.`t`.`a` AS `a` from `d`.`t`']] };
    }
    if (!sql.includes('information_schema.TABLES')) return { rows: [] };
    const base = (name: string, engine: string) => ['d', name, 'BASE TABLE', engine];
    return { rows: [base('t', good), base('other', other), ['d', 'v', 'VIEW', null]] };
  });
}

/** Answers: tables of that name, those of them with transactions, triggers, views. */
const isUndoable = (counts: readonly string[], has: Has = {}) =>
  areUndoable(connectTo(counts, has), { tables: [table] });

test('a table is believed to be undone where all of its name have transactions', async () => {
  assert.equal(await isUndoable(['1', '1', '0', '0']), true);
  assert.equal(await isUndoable(['2', '2', '0', '0']), true);
  assert.equal(await isUndoable(['0', '0', '0', '0']), false);
  assert.equal(await isUndoable(['1', '0', '0', '0']), false);
  assert.equal(await isUndoable(['2', '1', '0', '0']), false);
});

test('a table with triggers is believed to be undone where all that they write to has transactions', async () => {
  const counts = ['1', '1', '1', '0'];
  const trigger = 'update other set n = n + 1';
  assert.equal(await isUndoable(counts, { trigger }), true);
  assert.equal(await isUndoable(counts, { trigger, other: 'MyISAM' }), false);
  assert.equal(await isUndoable(counts, { trigger: 'update other set n = f()' }), false);
  assert.equal(await isUndoable(counts, { trigger: 'update elsewhere set n = 1' }), false);
  assert.equal(await isUndoable(['1', '0', '1', '0'], { trigger }), false);
});

test('a view is believed to be undone where its table is', async () => {
  const counts = ['1', '0', '0', '1'];
  const view = { schema: 'd', name: 'v' };
  const isUndone = (has: Has) => areUndoable(connectTo(counts, has), { tables: [view] });
  assert.equal(await isUndone({}), true);
  assert.equal(await isUndone({ good: 'MyISAM' }), false);
  assert.equal(await isUndone({ trigger: 'update other set n = f()' }), false);
  assert.equal(await areUndoable(connectTo(counts, {}), { tables: [], reads: [view] }), true);
});

test('a procedure is undone where the tables of its plain reads and writes are', async () => {
  const isUndone = (body: string | null, engine: string) =>
    areUndoable(
      createScriptedConnection((sql) =>
        sql.includes('ROUTINES') ? { rows: [['d', body]] } : { rows: [['1', engine, '0', '0']] },
      ),
      { tables: [], procedures: [{ schema: null, name: 'p' }] },
    );
  const body = 'begin insert into t values (1); select 1; end';
  assert.equal(await isUndone(body, '1'), true);
  assert.equal(await isUndone(body, '0'), false);
  assert.equal(await isUndone(null, '1'), false);
  assert.equal(await isUndone('begin insert into t values (f()); end', '1'), false);
  assert.equal(await isUndone('begin rollback; insert into t values (1); end', '1'), false);
});
