// The statements that a read-only section accepts, and how a read-only batch runs.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defaultCaller } from '../../../../src/shared/clients/caller.ts';
import type { Config } from '../../../../src/shared/config/config.ts';
import { allAtOnce } from '../../../../src/shared/pieces.ts';
import { builtInEverywhere } from '../../../../src/shared/sql/vocabulary.ts';
import {
  decideStatement,
  type StatementSettings,
} from '../../../../src/worker/endpoints/statement.ts';
import type { BatchRequest } from '../../../../src/worker/endpoints/v1/batch-request.ts';
import { decideBatch } from '../../../../src/worker/endpoints/v1/decide-batch.ts';
import type { Known } from '../../../../src/worker/execution/statement-effects.ts';

const nothingKnown: Known = {
  builtIns: builtInEverywhere,
  objects: null,
  changeBegins: () => {},
  changeEnds: () => {},
  missed: () => {},
};
const settings: StatementSettings = {
  multiStatements: true,
  readOnly: false,
  sessionReset: 'auto',
  coalesce: false,
};

function decide(sql: string, section: boolean, request: boolean) {
  const wish = {
    caller: defaultCaller,
    sql,
    params: null,
    paramsKey: 'params',
    readOnly: request,
    isSingle: true,
    needsEffect: false,
    rollbackOnError: false,
    asksServer: false,
    showsWarnings: false,
    format: null,
  } as const;
  const ofSection = { ...settings, readOnly: section };
  const decided = allAtOnce(decideStatement(ofSection, wish, 1000, nothingKnown));
  return decided.ok ? decided.statement.isReadOnly : decided.failure.code;
}

test('a section that only reads, or a request, refuses a write and runs a read READ ONLY', () => {
  for (const [section, request] of [
    [true, false],
    [false, true],
    [true, true],
  ] as const) {
    assert.equal(decide('insert into t values (1)', section, request), 'READ_ONLY');
    assert.equal(decide('select 1', section, request), true);
  }
  assert.equal(decide('insert into t values (1)', false, false), false);
});

test('a batch that only reads runs in a transaction, with the field or without', () => {
  const batchOf = (section: boolean, readOnly: boolean) => {
    const request: BatchRequest = {
      statements: [{ kind: 'sql', sql: 'select 1', params: [], expect: null }],
      isAtomic: false,
      isolation: null,
      readOnly,
      retry: 0,
    } as unknown as BatchRequest;
    const decided = allAtOnce(
      decideBatch(request, {
        caller: defaultCaller,
        section: {
          config: { ...settings, readOnly: section } as Config,
          context: { maxStatementBytes: () => 1000, catalogue: () => nothingKnown } as never,
        },
        statements: {} as never,
      }),
    );
    if (!decided.ok) return assert.fail(decided.failure.code);
    return [decided.batch.isAtomic, decided.batch.isReadOnly];
  };
  assert.deepEqual(batchOf(false, false), [false, false]);
  assert.deepEqual(batchOf(true, false), [true, true]);
  assert.deepEqual(batchOf(false, true), [true, true]);
});
