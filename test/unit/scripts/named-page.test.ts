// docs/reference/named.md: every file of the page is one that the gateway accepts, and the tables name what the parser knows.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { parseFile } from '../../../src/shared/named/parse-file.ts';
import { statementKinds } from '../../../src/shared/named/statement.ts';
import { findBlocks } from '../../support/pages/page-blocks.ts';

const page = readFileSync('docs/reference/named.md', 'utf8');
const files = findBlocks(page).filter(
  ({ language, mark }) => language === 'sql' && mark === 'file',
);

test('every file of the page has no fault', () => {
  assert.ok(files.length >= 6);
  for (const { text } of files) {
    const parsed = parseFile(text, 'shop.sql', { hasIdempotencyTable: true });
    assert.ok(parsed.ok, JSON.stringify(parsed));
  }
});

test('together, the examples have every kind', () => {
  const names = new Set<string>();
  const kinds = new Set<string>();
  for (const { text } of files) {
    const parsed = parseFile(text, 'shop.sql', { hasIdempotencyTable: true });
    for (const { name, kind } of parsed.ok ? parsed.statements : []) {
      assert.ok(!names.has(name), `${name} is there twice`);
      names.add(name);
      kinds.add(kind);
    }
  }
  assert.deepEqual([...kinds].sort(), [...statementKinds].sort());
});

/** The first cells of a table's rows in a section, in back-quotes. */
function cellsIn(heading: string): readonly string[] {
  const [, section = ''] = page.split(`\n## ${heading}\n`);
  const [own = ''] = section.split('\n## ');
  return [...own.matchAll(/^\| (`[^|]*(?:\\\|[^|]*)*?) \|/gm)].flatMap(([, cell = '']) =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, text = '']) => text.replaceAll('\\|', '|')),
  );
}

test('every type of the table is a type', () => {
  const types = cellsIn('Parameters');
  assert.ok(types.length >= 17, types.join('\n'));
  for (const type of types) {
    const place = type.startsWith('list') ? '1 in (:p)' : ':p';
    const text = `-- name: a :many\n-- for: *\n-- param p: ${type}\nselect id from t where ${place};\n`;
    const parsed = parseFile(text, 'a.sql', { hasIdempotencyTable: false });
    assert.ok(parsed.ok, `${type}: ${JSON.stringify(parsed)}`);
  }
});

test('every step of the table is a step', () => {
  const lines = cellsIn('Steps').filter((line) => line.startsWith('-- '));
  assert.ok(lines.length >= 6);
  for (const line of lines) {
    const step = line.replace('NAME', 'a_step').replace('… else', 'row_count = 1 else');
    const text = `-- name: a :batch\n-- for: *\n-- param items: list(int; 3)\n${step}\nselect 1 as a from t where 1 in (:items);\n`;
    const parsed = parseFile(text, 'a.sql', { hasIdempotencyTable: false });
    assert.ok(parsed.ok, `${line}: ${JSON.stringify(parsed)}`);
  }
});

test('every line of the head in the table is one', () => {
  const lines = cellsIn('Files').filter((line) => /^-- (?!name|for)/.test(line));
  assert.ok(lines.length >= 7);
  for (const line of lines) {
    const [own, hasParameter] = [
      line
        .replace('-- param NAME: TYPE', '-- param name: int')
        .replace('DEFAULT', 'null')
        .replace('column NAME', 'column id'),
      line.startsWith('-- param'),
    ];
    const kind = line.startsWith('-- key') ? 'exec' : line.includes('CODE:') ? 'batch' : 'many';
    const sql =
      kind === 'exec'
        ? 'delete from t;'
        : `${kind === 'batch' ? '-- expect: row_count = 1 else CODE\n' : ''}select id from t${hasParameter ? ' where id = :name' : ''};`;
    const text = `-- name: a :${kind}\n-- for: *\n${own}\n${sql}\n`;
    const parsed = parseFile(text, 'a.sql', { hasIdempotencyTable: true });
    assert.ok(parsed.ok, `${line}: ${JSON.stringify(parsed)}`);
  }
});
