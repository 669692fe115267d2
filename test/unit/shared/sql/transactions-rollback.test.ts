// The promise of ROLLBACK_ON_ERROR_SUCCESS: true only if nothing of the request remains.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { rollbackUndoesAll } from '../../../../src/shared/sql/transactions.ts';

type Step = readonly [verb: string, inTransaction: boolean];

const table: readonly (readonly [steps: readonly Step[], failed: string, undone: boolean])[] = [
  [[], 'INSERT', true],
  [[], 'CREATE', true],
  [[['SELECT', false]], 'INSERT', true],
  [
    [
      ['BEGIN', true],
      ['INSERT', true],
    ],
    'INSERT',
    true,
  ],
  [
    [
      ['START', true],
      ['UPDATE', true],
      ['SELECT', true],
    ],
    'SELECT',
    true,
  ],
  [
    [
      ['SET', false],
      ['USE', false],
      ['DO', false],
    ],
    'DELETE',
    true,
  ],
  // Committed at once: autocommit.
  [[['INSERT', false]], 'INSERT', false],
  [
    [
      ['INSERT', false],
      ['BEGIN', true],
      ['INSERT', true],
    ],
    'INSERT',
    false,
  ],
  // Committed on the way.
  [
    [
      ['BEGIN', true],
      ['INSERT', true],
      ['COMMIT', false],
    ],
    'INSERT',
    false,
  ],
  [
    [
      ['BEGIN', true],
      ['INSERT', true],
      ['CREATE', false],
    ],
    'INSERT',
    false,
  ],
  // A new transaction, and autocommit, commit the one before.
  [
    [
      ['BEGIN', true],
      ['INSERT', true],
      ['BEGIN', true],
      ['INSERT', true],
    ],
    'INSERT',
    false,
  ],
  [
    [
      ['BEGIN', true],
      ['INSERT', true],
      ['START', true],
    ],
    'INSERT',
    false,
  ],
  [
    [
      ['BEGIN', true],
      ['INSERT', true],
      ['SET', false],
    ],
    'INSERT',
    false,
  ],
  [
    [
      ['BEGIN', true],
      ['INSERT', true],
      ['SET', true],
    ],
    'INSERT',
    true,
  ],
  // The request's own ROLLBACK leaves nothing. After one to a savepoint some changes may remain.
  [
    [
      ['BEGIN', true],
      ['INSERT', true],
      ['ROLLBACK', false],
    ],
    'CREATE',
    true,
  ],
  [
    [
      ['BEGIN', true],
      ['INSERT', true],
      ['ROLLBACK', false],
      ['INSERT', false],
    ],
    'INSERT',
    false,
  ],
  [
    [
      ['BEGIN', true],
      ['INSERT', true],
      ['ROLLBACK', true],
    ],
    'INSERT',
    true,
  ],
  [
    [
      ['BEGIN', true],
      ['INSERT', true],
      ['ROLLBACK', true],
    ],
    'CREATE',
    false,
  ],
  // DDL commits before it fails; for other statements this is unknown.
  [
    [
      ['BEGIN', true],
      ['INSERT', true],
    ],
    'CREATE',
    false,
  ],
  [
    [
      ['BEGIN', true],
      ['INSERT', true],
    ],
    'CALL',
    false,
  ],
  [
    [
      ['BEGIN', true],
      ['INSERT', true],
    ],
    'LOAD',
    false,
  ],
  [
    [
      ['BEGIN', true],
      ['INSERT', true],
    ],
    '',
    true,
  ],
];

test('is true only if nothing remains', () => {
  for (const [steps, failed, undone] of table) {
    const before = steps.map(([verb, inTransaction]) => ({ verb, inTransaction }));
    assert.equal(rollbackUndoesAll(before, failed), undone, JSON.stringify([steps, failed]));
  }
});
