// Which statements of a batch are sent together, and which wait for a check.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type KeyTexts, writeTexts } from '../../../../src/worker/execution/batch-texts.ts';
import { noEffects } from '../../../../src/worker/execution/statement-effects.ts';
import type { Batch, Expectation, Statement } from '../../../../src/worker/execution/work.ts';

const expectsOne: Expectation = {
  of: 'affected_rows',
  min: 1,
  max: 1,
  code: 'EXPECTATION_FAILED',
};

function stepOf(sql: string, expect: Expectation | null = null, showsWarnings = false) {
  const statement: Statement = {
    kind: 'statement',
    sql,
    isRead: false,
    effects: noEffects,
    seesOneMoment: false,
    needsFreshSession: false,
    leavesSessionClean: false,
    isReadOnly: false,
    shape: null,
    rollbackOnError: false,
    asksServer: false,
    showsWarnings,
    coalescingKey: null,
    analysis: null,
  };
  return { sql, statement, isCall: sql.startsWith('call'), expect };
}

function textsOf(
  steps: Batch['steps'],
  wish: Partial<Batch> = {},
  maxBytes = 1024 ** 2,
  key: KeyTexts | null = null,
): readonly string[] {
  const batch: Batch = {
    kind: 'batch',
    steps,
    isAtomic: true,
    isolation: null,
    isReadOnly: false,
    maxRetries: 0,
    isDryRun: false,
    mustUndo: null,
    key: null,
    ...wish,
  };
  return writeTexts(batch, 's', maxBytes, key).map(({ sql }) => sql);
}

const lines = (...sql: string[]) => sql.join('\n;');

test('a batch without conditions is one text, with its proof at the end and without COMMIT', () => {
  assert.deepEqual(textsOf([stepOf('a'), stepOf('b')]), [
    lines('ROLLBACK', 'START TRANSACTION', 'SAVEPOINT s', 'a', 'b', 'RELEASE SAVEPOINT s'),
  ]);
});

test('the engine of the idempotency table is checked before the transaction, and the key is taken before anything else in it', () => {
  const key = { engineProof: 'e', insertion: 'k' };
  assert.deepEqual(textsOf([stepOf('a'), stepOf('b')], {}, 1024 ** 2, key), [
    lines('e', 'ROLLBACK', 'START TRANSACTION', 'SAVEPOINT s', 'k', 'a', 'b'),
  ]);
});

test('isolation comes before the transaction, and READ ONLY begins it', () => {
  assert.deepEqual(textsOf([stepOf('a')], { isolation: 'read committed', isReadOnly: true }), [
    lines(
      'ROLLBACK',
      'SET TRANSACTION ISOLATION LEVEL READ COMMITTED',
      'START TRANSACTION READ ONLY',
      'SAVEPOINT s',
      'a',
      'RELEASE SAVEPOINT s',
    ),
  ]);
});

test('no statement is sent together with an earlier one that has an expectation', () => {
  assert.deepEqual(textsOf([stepOf('a', expectsOne), stepOf('b'), stepOf('c', expectsOne)]), [
    lines('ROLLBACK', 'START TRANSACTION', 'SAVEPOINT s', 'a'),
    lines('b', 'c', 'RELEASE SAVEPOINT s'),
  ]);
});

test('a CALL is followed by a proof before anything else runs, on a savepoint that is set right before it', () => {
  assert.deepEqual(textsOf([stepOf('call p()'), stepOf('a'), stepOf('call p()')]), [
    lines(
      'ROLLBACK',
      'START TRANSACTION',
      'SAVEPOINT s',
      'SAVEPOINT s_call',
      'call p()',
      'RELEASE SAVEPOINT s_call',
      'a',
      'call p()',
      'RELEASE SAVEPOINT s',
    ),
  ]);
});

test('without a transaction there are the statements alone', () => {
  assert.deepEqual(textsOf([stepOf('a', expectsOne), stepOf('call p()')], { isAtomic: false }), [
    'a',
    'call p()',
  ]);
});

test('a text does not grow without end', () => {
  const long = 'x'.repeat(200_000);
  const texts = textsOf([stepOf(long), stepOf(long), stepOf('b')]);
  assert.deepEqual(
    texts.map(({ length }) => length < 300_000),
    [true, true],
  );
});

test('a text is no longer than the server takes', () => {
  const texts = textsOf(
    Array.from({ length: 100 }, () => stepOf('select "äöü"')),
    {},
    1024,
  );
  assert.equal(texts.join('\n;').split('\n;').length, 104);
  for (const text of texts) assert.ok(Buffer.byteLength(text) < 1024 - 1);
});

test('warnings are asked for behind their statement, before a proof clears them', () => {
  const show = 'SHOW WARNINGS LIMIT 10';
  assert.deepEqual(textsOf([stepOf('call p()', null, true), stepOf('b', null, true)]), [
    lines(
      ...['ROLLBACK', 'START TRANSACTION', 'SAVEPOINT s'],
      ...['SAVEPOINT s_call', 'call p()', show, 'RELEASE SAVEPOINT s_call'],
      ...['b', show, 'RELEASE SAVEPOINT s'],
    ),
  ]);
});
