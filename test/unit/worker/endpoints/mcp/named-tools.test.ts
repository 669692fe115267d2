// The tools of named statements: kept until what they are made of changes, and annotated by what their texts show.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defaultClient } from '../../../../../src/shared/clients/client.ts';
import { parseFile } from '../../../../../src/shared/named/parse-file.ts';
import { createNamedTools } from '../../../../../src/worker/endpoints/mcp/named-tools.ts';
import {
  type NamedFacts,
  NamedStatements,
  nothingKnown,
} from '../../../../../src/worker/endpoints/named/statements.ts';
import type { AllSections } from '../../../../../src/worker/endpoints/sections.ts';

const sections = [
  { config: { section: 'world', idempotencyTable: null } },
] as unknown as AllSections;
const load = (kind: string, ...parts: readonly string[]) => {
  const text = `-- name: tool :${kind}\n-- for: *\n${parts.map((sql) => `${sql};\n`).join('')}`;
  const parsed = parseFile(text, 'a.sql', { hasIdempotencyTable: false });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults));
  return { world: parsed.statements };
};

test('tools are kept until statements are replaced, or a database was read again', () => {
  let states: readonly object[] = [{}];
  let row: Record<string, unknown> | null = null;
  const facts: NamedFacts = { ...nothingKnown, states: () => states, rowSchema: () => row };
  const statements = new NamedStatements(sections, load('one', 'select 1 as n'), facts);
  const toolsOf = createNamedTools(statements);
  const first = toolsOf(defaultClient);
  assert.equal(toolsOf(defaultClient), first);
  states = [...states];
  assert.equal(toolsOf(defaultClient), first);
  row = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] };
  states = [{}];
  const second = toolsOf(defaultClient);
  assert.notEqual(second, first);
  assert.deepEqual(second[0]?.definition.outputSchema, row);
  assert.equal(toolsOf(defaultClient), second);
  statements.replace(load('one', 'select 2 as n'));
  assert.notEqual(toolsOf(defaultClient), second);
});

test('a write may be repeated only if it needs a key: an optional one may be missing', () => {
  const keeping = [{ config: { section: 'world', idempotencyTable: { name: 'keys' } } }];
  const isIdempotent = (kind: string, sql: string, directive = '') => {
    const text = `-- name: tool :${kind}\n-- for: *\n${directive}${sql};\n`;
    const parsed = parseFile(text, 'a.sql', { hasIdempotencyTable: true });
    assert.ok(parsed.ok);
    const named = { world: parsed.statements };
    const statements = new NamedStatements(keeping as unknown as AllSections, named, nothingKnown);
    const [tool] = createNamedTools(statements)(defaultClient);
    return tool?.definition.annotations.idempotentHint;
  };
  const write = 'update t set a = a + 1';
  assert.equal(isIdempotent('exec', write), false);
  assert.equal(isIdempotent('exec', write, '-- key: required\n'), true);
  assert.equal(isIdempotent('many', 'select a from t'), true);
});

test('a write is destructive, unless its text shows that it only adds rows', () => {
  const isDestructive = (kind: string, ...parts: readonly string[]) => {
    const statements = new NamedStatements(sections, load(kind, ...parts), nothingKnown);
    const [tool] = createNamedTools(statements)(defaultClient);
    return tool?.definition.annotations.destructiveHint;
  };
  assert.equal(isDestructive('many', 'select a from t'), false);
  assert.equal(isDestructive('exec', 'INSERT into t (a) values (1)'), false);
  assert.equal(isDestructive('batch', 'insert into t values (f(1))', 'select a from t'), false);
  for (const sql of [
    'update t set a = 1',
    'delete from t',
    'replace into t values (1)',
    'insert into t values (1)\non  duplicate key update a = 2',
  ]) {
    assert.equal(isDestructive('exec', sql), true, sql);
  }
  assert.equal(isDestructive('batch', 'insert into t values (1)', 'select f() as a'), true);
});
