// Loading of a section's directory: which files count, and which rights they need.
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { afterEach, beforeEach } from 'node:test';
import { loadStatements } from '../../../../src/shared/named/load-named.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'named-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

const statement = (name: string) => `-- name: ${name} :many\n-- for: *\nselect 1;\n`;

function write(name: string, content: string | Buffer): void {
  writeFileSync(join(directory, name), content);
}

function load(from = directory) {
  return loadStatements(from, { hasIdempotencyTable: false });
}

function names(): readonly string[] {
  const { statements, faults } = load();
  assert.deepEqual(faults, []);
  return statements.map(({ name, file, line }) => `${name} ${file}:${line}`);
}

/** The faults as `file:line problem`, with the directory as `.`. */
function faults(from = directory): readonly string[] {
  return load(from).faults.map(
    ({ file, line, problem }) => `${file.replace(directory, '.')}:${line ?? ''} ${problem}`,
  );
}

test('reads every *.sql directly in the directory, and nothing else', () => {
  write('b.sql', statement('two') + statement('one'));
  write('a.sql', `\ufeff${statement('three')}`);
  write('empty.sql', '');
  write('.#a.sql', 'no statement');
  write('readme.txt', 'no statement');
  write('a.sql~', 'no statement');
  mkdirSync(join(directory, 'more'));
  writeFileSync(join(directory, 'more', 'c.sql'), 'no statement');
  symlinkSync(join(directory, 'empty.sql'), join(directory, 'link.sql'));
  assert.deepEqual(names(), ['one b.sql:4', 'three a.sql:1', 'two b.sql:1']);
});

test('reports the faults of all files', () => {
  write('a.sql', statement('one') + statement('one'));
  write('b.sql', `${statement('one')}select 2;\nselect ?;`);
  write('c.sql', Buffer.from([...Buffer.from('-- a\n-- b\n-- '), 0xff, 0x0a]));
  mkdirSync(join(directory, 'd.sql'));
  symlinkSync(join(directory, 'nowhere'), join(directory, 'e.sql'));
  write('f.sql', statement('six'));
  write('g.sql', statement('six'));
  assert.deepEqual(
    faults().map((fault) => fault.replace(/ .*?(?=already|only|\?|UTF|regular|ENOENT)/, ' ')),
    [
      './a.sql:4 already in line 1',
      './b.sql:1 already in line 1 of a.sql',
      './b.sql:4 only a `:batch` has several statements',
      './b.sql:5 ?` is not a placeholder here: write `:name`',
      './c.sql:3 UTF-8',
      './d.sql: regular file)',
      './e.sql: ENOENT)',
      './g.sql:1 already in line 1 of f.sql',
    ],
  );
});

test('a name that is there twice is reported beside other faults of either file', () => {
  write('a.sql', `${statement('one')}${statement('two')}select ?;`);
  write('b.sql', statement('one'));
  write('c.sql', `${statement('two')}select ?;\n${statement('three')}`);
  write('d.sql', statement('two'));
  const text = faults().filter((fault) => fault.includes('already'));
  assert.deepEqual(text, [
    './b.sql:1 `one` is already in line 1 of a.sql',
    './c.sql:1 `two` is already in line 4 of a.sql',
    './d.sql:1 `two` is already in line 4 of a.sql',
  ]);
  assert.deepEqual(
    load().statements.map(({ name, file }) => `${name} ${file}`),
    ['one b.sql', 'two d.sql'],
    'those of sound files are tried on the server all the same',
  );
});

test('others may write neither the directory nor a file', () => {
  write('a.sql', statement('one'));
  chmodSync(join(directory, 'a.sql'), 0o646);
  assert.deepEqual(faults(), ['./a.sql: may be written by others (chmod o-w)']);
  chmodSync(join(directory, 'a.sql'), 0o664);
  chmodSync(directory, 0o777);
  assert.deepEqual(faults(), ['.: is a directory that others may write to (chmod o-w)']);
  chmodSync(directory, 0o755);
  assert.deepEqual(names(), ['one a.sql:1']);
});

test('a directory that cannot be read is a fault', () => {
  assert.deepEqual(faults(join(directory, 'none')), [
    './none: is not a directory that can be read (ENOENT)',
  ]);
  write('a.sql', '');
  assert.deepEqual(faults(join(directory, 'a.sql')), [
    './a.sql: is not a directory that can be read (ENOTDIR)',
  ]);
});
