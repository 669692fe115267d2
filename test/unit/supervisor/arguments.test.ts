// The command line is one command, or a misuse with its reason.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseArguments } from '../../../src/supervisor/arguments.ts';

const target = { configPath: '/etc/d.ini', sections: ['world'], beside: [] };

test('both options given start the section', () => {
  assert.deepEqual(parseArguments(['-c', '/etc/d.ini', '-s', 'world']), {
    kind: 'start',
    ...target,
  });
  assert.deepEqual(parseArguments(['--check', '-s', 'world', '-c', '/etc/d.ini']), {
    kind: 'check',
    isJson: false,
    ...target,
  });
  assert.deepEqual(parseArguments(['--check', '--json', '-s', 'world', '-c', '/etc/d.ini']), {
    kind: 'check',
    isJson: true,
    ...target,
  });
  assert.equal(parseArguments(['--foreground', '-c', '/x', '-s', 'y']).kind, 'foreground');
  assert.equal(parseArguments(['--types', '-c', '/x', '-s', 'y']).kind, 'types');
});

test('help and version need nothing else', () => {
  for (const asked of ['--help', '-h']) assert.equal(parseArguments([asked]).kind, 'help');
  assert.equal(parseArguments(['-c', '/x', '-h', '-s', 'y']).kind, 'help');
  for (const asked of ['--version', '-V']) assert.equal(parseArguments([asked]).kind, 'version');
});

test('a new token needs nothing else, and takes nothing else', () => {
  assert.deepEqual(parseArguments(['--new-token']), { kind: 'new-token' });
  assert.equal(parseArguments(['--new-token', '--help']).kind, 'help');
});

test('a section remains a text even if it looks like a number', () => {
  const command = parseArguments(['-c', '/x', '-s', '007']);
  assert.equal(command.kind === 'start' ? command.sections[0] : null, '007');
});

test('-s names the section and others that list its servers, -m the sections besides', () => {
  const command = parseArguments(['-c', '/x', '-s', 'a:b.c:d', '-m', 'e:f']);
  assert.deepEqual(command, {
    kind: 'start',
    configPath: '/x',
    sections: ['a', 'b.c', 'd'],
    beside: ['e', 'f'],
  });
});

test('--primary names an address, with the sections', () => {
  const command = parseArguments(['--primary', '[::1]:3307', '-c', '/etc/d.ini', '-s', 'world']);
  assert.deepEqual(command, { kind: 'primary', address: '[::1]:3307', ...target });
  assert.equal(parseArguments(['--primary=a', '--help']).kind, 'help');
});

test('--scaffold names a table, with the sections', () => {
  const command = parseArguments(['--scaffold', '007', '-c', '/etc/d.ini', '-s', 'world']);
  assert.deepEqual(command, { kind: 'scaffold', table: '007', ...target });
});

const misuses: readonly (readonly string[])[] = [
  [],
  ['-c', '/x'],
  ['-s', 'y'],
  ['-c', '-s', 'y'],
  ['-c', 'relative.ini', '-s', 'y'],
  ['-c', '/x', '-s', 'y', '-v'],
  ['-c', '/x', '-s', 'y', '--reload'],
  ['-c', '/x', '-s', 'y', '--no-check'],
  ['-c', '/x', '-s', 'y', 'operand'],
  ['-c', '/x', '-s', 'y', '--', 'operand'],
  ['-c', '/x', '-c', '/z', '-s', 'y'],
  ['-c', '/x', '-s', ''],
  ['-c', '/x', '-s', 'y:'],
  ['-c', '/x', '-s', ':y'],
  ['-c', '/x', '-s', 'y', '-m'],
  ['-c', '/x', '-s', 'y', '-m', 'a::b'],
  ['-c', '/x', '-s', 'y', '-m', 'a', '-m', 'b'],
  ['-c', '/x', '-s', 'y:y'],
  ['-c', '/x', '-s', 'y', '-m', 'a:a'],
  ['-c', '/x', '-s', 'y:z', '-m', 'z'],
  ['-c', '/x', '-m', 'y'],
  ['-c', '/x', '-s', 'y', '--check', '--foreground'],
  ['-c', '/x', '-s', 'y', '--types', '--foreground'],
  ['-c', '/x', '-s', 'y', '--types', '--json'],
  ['-c', '/x', '-s', 'y', '--scaffold'],
  ['--scaffold=', '-c', '/x', '-s', 'y'],
  ['--scaffold', 'a', '--scaffold', 'b', '-c', '/x', '-s', 'y'],
  ['--scaffold', 'a', '--types', '-c', '/x', '-s', 'y'],
  ['--types', 'a', '-c', '/x', '-s', 'y'],
  ['-c', '/x', '-s', 'y', '--json'],
  ['-c', '/x', '-s', 'y', '--foreground', '--json'],
  ['-c', '/x', '-s', 'y', '--primary'],
  ['--primary', '-c', '/x', '-s', 'y'],
  ['--primary=', '-c', '/x', '-s', 'y'],
  ['--primary', 'a', '--primary', 'b', '-c', '/x', '-s', 'y'],
  ['--primary', 'a', '--check', '-c', '/x', '-s', 'y'],
  ['--primary', 'a', '--foreground', '-c', '/x', '-s', 'y'],
  ['--primary', 'a', '-s', 'y'],
  ['--new-token', '-c', '/x', '-s', 'y'],
  ['--new-token', '--check', '-c', '/x', '-s', 'y'],
  ['--new-token', '--new-token'],
  ['--new-token', 'web'],
];
for (const argv of misuses) {
  test(`a misuse: ${argv.join(' ') || '(nothing)'}`, () => {
    assert.equal(parseArguments(argv).kind, 'misuse');
  });
}
