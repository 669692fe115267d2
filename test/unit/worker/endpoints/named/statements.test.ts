// The named statements of a worker: a load prepares none of them, and a client finds its own only.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Client, defaultClient } from '../../../../../src/shared/clients/client.ts';
import { parseFile } from '../../../../../src/shared/named/parse-file.ts';
import {
  NamedStatements,
  nothingKnown,
} from '../../../../../src/worker/endpoints/named/statements.ts';
import type { AllSections } from '../../../../../src/worker/endpoints/sections.ts';

const sections = ['world', 'other'].map((section) => ({
  config: { section },
})) as unknown as AllSections;
const load = (names: readonly string[], of = '*') => {
  const text = names
    .map((name) => `-- name: ${name} :one\n-- for: ${of}\n-- param id: int\nselect :id as id;\n`)
    .join('\n');
  const parsed = parseFile(text, 'a.sql', { hasIdempotencyTable: false });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults));
  return parsed.statements;
};
const client = (name: string, more: Partial<Client> = {}): Client => ({
  ...defaultClient,
  name,
  ...more,
});

test('a thousand statements are loaded and listed, and only those that are called are prepared', () => {
  const names = Array.from({ length: 1000 }, (_, at) => `s${at}`);
  const statements = new NamedStatements(sections, { world: load(names) }, nothingKnown);
  const entries = statements.list(defaultClient);
  assert.equal(entries.length, 1000);
  const prepared = () => entries.filter(({ isPrepared }) => isPrepared).length;
  const found = statements.find(defaultClient, 's7', null);
  assert.equal(prepared(), 0);
  const callable = found?.callable;
  assert.equal(found?.callable, callable);
  assert.equal(prepared(), 1);
});

test('a client finds what is for it, in the sections that it may use, with the permission', () => {
  const named = { world: load(['ours'], 'web'), other: load(['theirs', 'both'], '*') };
  const statements = new NamedStatements(sections, named, nothingKnown);
  const namesFor = (one: Client) => statements.list(one).map(({ statement }) => statement.name);
  assert.deepEqual(namesFor(client('web')), ['both', 'ours', 'theirs']);
  assert.deepEqual(namesFor(client('app')), ['both', 'theirs']);
  assert.deepEqual(namesFor(client('web', { sections: ['world'] })), ['ours']);
  assert.deepEqual(namesFor(client('web', { allow: ['sql'] })), []);
  assert.equal(statements.find(client('web'), 'ours', 'other'), null);
  assert.equal(statements.find(client('app'), 'ours', null), null);
  assert.equal(statements.find(client('web', { sections: ['other'] }), 'ours', null), null);
});

test('other statements take the place of all, at once', () => {
  const statements = new NamedStatements(sections, { world: load(['first']) }, nothingKnown);
  const before = statements.list(defaultClient);
  statements.replace({ world: load(['second']) });
  assert.notEqual(statements.list(defaultClient), before);
  assert.equal(statements.find(defaultClient, 'first', null), null);
  assert.notEqual(statements.find(defaultClient, 'second', 'world'), null);
});
