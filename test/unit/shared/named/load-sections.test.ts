// Loading of the directories of several sections: what they may not have in common, and which clients they may name.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { afterEach, beforeEach } from 'node:test';
import { type Client, type Clients, defaultClient } from '../../../../src/shared/clients/client.ts';
import { findNamedFaults, parseDirectories } from '../../../../src/shared/named/load-sections.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'named-'));
});
afterEach(() => rmSync(root, { recursive: true }));

const client = (name: string): Client => ({ ...defaultClient, name });
const clients: Clients = { clients: [client('web')], anonymous: client('anonymous') };

const statement = (name: string, allowed = '*') =>
  `-- name: ${name} :many\n-- for: ${allowed}\nselect 1;\n`;

/** The faults of one section for each directory, as `directory/file:line problem`. */
function faultsOf(
  directories: Readonly<Record<string, Readonly<Record<string, string>>>>,
  known: Clients | null,
): readonly string[] {
  const sources = Object.entries(directories).map(([section, files]) => {
    const named = join(root, section);
    mkdirSync(named, { recursive: true });
    for (const [file, text] of Object.entries(files)) writeFileSync(join(named, file), text);
    return { section, named, idempotencyTable: null };
  });
  return findNamedFaults(parseDirectories(sources), known).map(
    ({ file, line, problem, section }) => {
      assert.ok(file.startsWith(join(root, section)), 'the fault belongs to its section');
      return `${file.slice(root.length + 1)}:${line ?? ''} ${problem}`;
    },
  );
}

test('every client that a statement names exists', () => {
  const world = {
    'a.sql': statement('one', 'web, anonymous') + statement('two', 'default') + statement('three'),
  };
  assert.deepEqual(faultsOf({ world }, clients), []);
  assert.deepEqual(faultsOf({ world }, { ...clients, anonymous: null }), [
    'world/a.sql:1 `-- for: …` of `one`: there is no client `anonymous`',
  ]);
  assert.deepEqual(faultsOf({ world }, null), [
    'world/a.sql:1 `-- for: …` of `one`: there is no client `web`',
    'world/a.sql:1 `-- for: …` of `one`: there is no client `anonymous`',
  ]);
});

test('names are unique over all sections', () => {
  const world = { 'a.sql': statement('one') + statement('two') };
  const shop = { 'a.sql': statement('three') + statement('two'), 'b.sql': statement('one') };
  assert.deepEqual(faultsOf({ world, shop }, null), [
    'shop/a.sql:4 `two` is already in line 4 of a.sql of the section world',
    'shop/b.sql:1 `one` is already in line 1 of a.sql of the section world',
  ]);
});

test('a faulty file hides no fault of other files, nor of its own heads', () => {
  const world = { 'a.sql': statement('one'), 'b.sql': `${statement('two', 'guest')}select ?;` };
  const shop = { 'a.sql': statement('one', 'guest'), 'b.sql': statement('two') };
  assert.deepEqual(faultsOf({ world, shop }, clients), [
    'world/b.sql:4 `?` is not a placeholder here: write `:name`',
    'world/b.sql:4 only a `:batch` has several statements',
    'shop/a.sql:1 `one` is already in line 1 of a.sql of the section world',
    'shop/b.sql:1 `two` is already in line 1 of b.sql of the section world',
    'world/b.sql:1 `-- for: …` of `two`: there is no client `guest`',
    'shop/a.sql:1 `-- for: …` of `one`: there is no client `guest`',
  ]);
});
