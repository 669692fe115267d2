// Which tables are believed to be undone by a ROLLBACK, by each answer of the catalogue.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { areUndoable } from '../../../../src/worker/execute/undoable-tables.ts';
import { createScriptedConnection } from '../../support/scripted-connection.ts';

const table = { schema: 'd', name: 't' };
/** Answers: tables of that name, those of them with transactions, triggers. */
const isUndoable = (...counts: readonly string[]) =>
  areUndoable(
    createScriptedConnection(() => ({ rows: [counts] })),
    [table],
  );

test('a table is believed to be undone where all of its name have transactions, and none has a trigger', async () => {
  assert.equal(await isUndoable('1', '1', '0'), true);
  assert.equal(await isUndoable('2', '2', '0'), true);
  assert.equal(await isUndoable('0', '0', '0'), false);
  assert.equal(await isUndoable('1', '0', '0'), false);
  assert.equal(await isUndoable('2', '1', '0'), false);
  assert.equal(await isUndoable('1', '1', '1'), false);
});
