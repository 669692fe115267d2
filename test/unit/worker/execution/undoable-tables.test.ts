// Which tables a ROLLBACK undoes, by each answer of the catalogue.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { areUndoable } from '../../../../src/worker/execution/undoable-tables.ts';
import { createScriptedConnection } from '../../support/scripted-connection.ts';

const table = { schema: 'd', name: 't' };
/** Answers: tables of that name, those of them with transactions, triggers, views. */
const isUndoable = (...counts: readonly string[]) =>
  areUndoable(
    createScriptedConnection(() => ({ rows: [counts] })),
    { tables: [table] },
  );

test('a table is believed to be undone where all of its name have transactions, and none has a trigger', async () => {
  assert.equal(await isUndoable('1', '1', '0'), true);
  assert.equal(await isUndoable('2', '2', '0'), true);
  assert.equal(await isUndoable('0', '0', '0'), false);
  assert.equal(await isUndoable('1', '0', '0'), false);
  assert.equal(await isUndoable('2', '1', '0'), false);
  assert.equal(await isUndoable('1', '1', '1'), false);
});

test('triggers and views are believed where the catalogue has vouched for them', async () => {
  const connection = (...counts: readonly string[]) =>
    createScriptedConnection(() => ({ rows: [counts] }));
  const vouched = { tables: [table], isVouched: true };
  assert.equal(await areUndoable(connection('1', '1', '1', '0'), vouched), true);
  assert.equal(await areUndoable(connection('1', '0', '0', '1'), vouched), true);
  assert.equal(await areUndoable(connection('1', '0', '0', '0'), vouched), false);
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
