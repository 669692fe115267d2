// The list of scripts/mutate: every mutation still fits the sources, and names tests that exist.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { mutations } from '../../../../scripts/mutation/list/mutations.ts';
import { type Mutation, mutate } from '../../../../scripts/mutation/mutation.ts';
import { parseCommand } from '../../../../scripts/mutation/options.ts';

test('the text that each mutation changes occurs exactly once in its source', () => {
  for (const mutation of mutations) {
    const source = readFileSync(mutation.file, 'utf8');
    const mutated = mutate(source, mutation);
    assert.ok(mutated !== null, `${mutation.name} does not apply to ${mutation.file}`);
    assert.notEqual(mutated, source, mutation.name);
  }
});

test('each mutation has a unique name, and tests that exist', () => {
  assert.equal(new Set(mutations.map(({ name }) => name)).size, mutations.length);
  for (const { name, tests } of mutations) {
    assert.match(name, /^[a-z0-9-]+$/);
    assert.ok(tests.length > 0, name);
    for (const file of tests) {
      assert.ok(file.endsWith('.test.ts') && existsSync(file), `${name}: there is no ${file}`);
    }
  }
});

const example: Mutation = {
  name: 'a-b',
  promise: 'it holds',
  file: 'src/c.ts',
  before: 'x',
  after: 'y',
  tests: [],
};

test('a text that is missing, or occurs twice, is not changed', () => {
  assert.equal(mutate('1 x 2', example), '1 y 2');
  assert.equal(mutate('1 2', example), null);
  assert.equal(mutate('x x', example), null);
});

test('words choose by name and file; a word without a match is a fault of the command line', () => {
  const all = [example, { ...example, name: 'd', file: 'src/e.ts' }];
  const chosen = (...argv: string[]) => {
    const command = parseCommand(argv, all);
    return 'mutations' in command ? command.mutations.map(({ name }) => name) : command.kind;
  };
  assert.deepEqual(chosen(), ['a-b', 'd']);
  assert.deepEqual(chosen('b'), ['a-b']);
  assert.deepEqual(chosen('--list', 'e.ts'), ['d']);
  assert.equal(chosen('f'), 'fault');
  assert.equal(chosen('--nothing'), 'fault');
  assert.equal(chosen('--help'), 'help');
});
