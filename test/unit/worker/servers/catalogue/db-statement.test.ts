// A request to /db: one statement with its analysis, or a refusal before any SQL.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defaultCaller } from '../../../../../src/shared/clients/caller.ts';
import { allAtOnce } from '../../../../../src/shared/pieces.ts';
import { builtInEverywhere } from '../../../../../src/shared/sql/vocabulary.ts';
import { wishOf } from '../../../../../src/worker/endpoints/db/endpoint.ts';
import { decodeDb } from '../../../../../src/worker/endpoints/db/request.ts';
import { parseObject } from '../../../../../src/worker/endpoints/json-text.ts';
import { decideStatement } from '../../../../../src/worker/endpoints/statement.ts';
import type { Known } from '../../../../../src/worker/execution/statement-effects.ts';
import { rulesOf } from '../../../../../src/worker/request/compat.ts';

const nothingKnown: Known = {
  builtIns: builtInEverywhere,
  objects: null,
  changeBegins: () => {},
  changeEnds: () => {},
  missed: () => {},
};

const settings = {
  multiStatements: true,
  readOnly: false,
  sessionReset: 'auto',
  coalesce: false,
} as const;

function decide(request: object, changed: Partial<Parameters<typeof decideStatement>[0]> = {}) {
  const decoded = decodeDb(
    parseObject(JSON.stringify(request)),
    { usable: ['s'], served: ['s'] },
    rulesOf.off,
  );
  assert.ok(decoded.ok);
  const { request: wanted } = decoded;
  assert.ok(wanted.sql !== null);
  const wish = wishOf(wanted, wanted.sql, defaultCaller);
  return allAtOnce(decideStatement({ ...settings, ...changed }, wish, 1000, nothingKnown));
}

function statementOf(request: object, changed = {}) {
  const decided = decide(request, changed);
  assert.ok(decided.ok);
  return decided.statement;
}

function refusalOf(request: object, changed = {}) {
  const decided = decide(request, changed);
  assert.ok(!decided.ok);
  return [decided.failure.status, decided.failure.code, decided.failure.outcome];
}

test('a plain read leaves its session clean and may share a connection', () => {
  const statement = statementOf({ SQL: 'select * from t where id = ?', PARAMS: [7] });
  assert.equal(statement.sql, 'select * from t where id = 7');
  assert.deepEqual(
    [statement.isRead, statement.leavesSessionClean, statement.needsFreshSession],
    [true, true, false],
  );
  assert.equal(statement.shape, statementOf({ SQL: 'select * from t where id = 8' }).shape);
  assert.notEqual(statement.shape, null);
  const readOnly = statementOf({ SQL: 'select * from t where id = 9', READ_ONLY: true });
  assert.deepEqual([readOnly.shape, readOnly.isReadOnly], [statement.shape, true]);
});

test('a statement that writes, takes time, reads the session or asks its own session more runs alone', () => {
  for (const request of [
    { SQL: 'insert into t values (1)' },
    { SQL: 'select sleep(1)' },
    { SQL: 'select last_insert_id()' },
    { SQL: 'select 1', ROLLBACK_ON_ERROR: true },
    { SQL: 'select f_unknown()', READ_ONLY: true },
    { SQL: 'select 1; select 2' },
  ]) {
    assert.equal(statementOf(request).shape, null, request.SQL);
  }
  const always = statementOf({ SQL: 'select 1' }, { sessionReset: 'always' });
  assert.deepEqual([always.shape, always.leavesSessionClean], [null, false]);
});

test('refuses statements that the settings or the request do not allow, before any SQL', () => {
  const several = { SQL: 'select 1; select 2' };
  assert.deepEqual(refusalOf(several, { multiStatements: false }), [
    400,
    'MULTI_STATEMENTS_OFF',
    'not_executed',
  ]);
  const readOnly = [403, 'READ_ONLY', 'not_executed'];
  assert.deepEqual(refusalOf({ SQL: 'delete from t', READ_ONLY: true }), readOnly);
  assert.deepEqual(refusalOf({ SQL: 'delete from t' }, { readOnly: true }), readOnly);
  assert.deepEqual(refusalOf({ SQL: 'select ?', PARAMS: [] }).slice(0, 1), [400]);
});

test('identical reads with identical replies have one key; without coalesce none has', () => {
  const on = { coalesce: true };
  const keyOf = (request: object, changed: object = on) =>
    statementOf(request, changed).coalescingKey;
  const read = { SQL: 'select d from t where id = ?', PARAMS: [7] };
  const key = keyOf(read);
  assert.notEqual(key, null);
  assert.equal(keyOf({ SQL: 'select d from t where id = 7', TIMEOUT: 100 }), key);
  assert.equal(keyOf(read, { ...on, sessionReset: 'always' }), key);
  const others = [
    { ...read, PARAMS: ['7'] },
    { ...read, PARAMS: [8] },
    { ...read, NUMBERS: 'string' },
    { ...read, READ_ONLY: true },
    { ...read, READ_ONLY: true, NUMBERS: 'string' },
    { SQL: 'select d from t where id = 7 ' },
  ].map((request) => keyOf(request));
  assert.equal(new Set([key, ...others]).size, others.length + 1);
  assert.equal(keyOf(read, {}), null);
  for (const SQL of ['select now()', 'delete from t', 'select 1; select 2']) {
    assert.equal(keyOf({ SQL }), null, SQL);
  }
});
