// The session after an answer: clean only if all flags say so.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { discardResults, QueryCommand } from '../../../../src/shared/mysql/query.ts';
import {
  createScriptedConnection,
  type ScriptedAnswer,
} from '../../support/scripted-connection.ts';

const [inTransaction, autocommit, stateChanged] = [0x1, 0x2, 0x4000];

function flagsCleanAfter(answer: ScriptedAnswer): Promise<boolean> {
  const connection = createScriptedConnection(() => answer);
  return new Promise((resolve, reject) => {
    const events = { answered: (flagsClean: boolean) => resolve(flagsClean), lost: reject };
    connection.send(new QueryCommand('x', connection, discardResults, events));
  });
}

test('a session is clean if autocommit is on, no transaction is open, and nothing was changed', async () => {
  for (const [status, isClean] of [
    [autocommit, true],
    [0, false],
    [autocommit | inTransaction, false],
    [autocommit | stateChanged, false],
  ] as const) {
    assert.equal(await flagsCleanAfter({ status, warnings: 0 }), isClean, `${status}`);
  }
  assert.equal(await flagsCleanAfter({ rows: [['1']] }), true);
  assert.equal(await flagsCleanAfter({ errno: 1064 }), false);
});
