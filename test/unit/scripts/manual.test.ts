// docs/reference/dbhttpd.8 is a valid manual page for man(1), and has every option, key, exit status and signal of the program.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { clientOptions } from '../../../src/shared/config/clients-file.ts';
import { optionKeys } from '../../../src/shared/config/options.ts';
import { exitCodes } from '../../../src/shared/process/exit-codes.ts';
import { commandOptions } from '../../../src/supervisor/command-options.ts';
import { environmentMeanings } from '../../../src/supervisor/help.ts';

const path = 'docs/reference/dbhttpd.8';
const lines = readFileSync(path, 'utf8').trimEnd().split('\n');

/** The arguments of each line that calls this macro. */
function called(macro: string): readonly string[] {
  return lines.filter((line) => line.startsWith(`.${macro} `)).map((line) => line.slice(4));
}

/** The terms of the lists in a section. */
function termsOf(section: string): readonly string[] {
  const from = lines.indexOf(`.Sh ${section}`) + 1;
  assert.ok(from > 0, section);
  const length = lines.slice(from).findIndex((line) => line.startsWith('.Sh '));
  return lines
    .slice(from, from + length)
    .filter((line) => line.startsWith('.It '))
    .map((line) => line.slice(4));
}

test('it has the sections of a manual page, in their order', () => {
  assert.deepEqual(called('Sh'), [
    'NAME',
    'SYNOPSIS',
    'DESCRIPTION',
    'OPTIONS',
    'CONFIGURATION',
    'CLIENTS',
    'SIGNALS',
    'ENVIRONMENT',
    'FILES',
    'EXIT STATUS',
    'EXAMPLES',
    'SEE ALSO',
  ]);
  const prologue = lines.filter((line) => !line.startsWith('.\\"')).slice(0, 6);
  const shapes = [/^\.Dd \w+ \d+, \d{4}$/, /^\.Dt DBHTTPD 8$/, /^\.Os$/, /^\.Sh NAME$/];
  for (const [index, shape] of shapes.entries()) assert.match(prologue[index] ?? '', shape);
});

test('every macro is one of mdoc, every list and display is closed, no line is empty or long', () => {
  const known = 'Bd Bl Cm Dd Dt Dv Ed El Ev Fl It Nd Nm Op Os Pa Pp Sh Xr'.split(' ');
  const open: string[] = [];
  for (const [index, line] of lines.entries()) {
    const where = `${path}:${index + 1}: ${line}`;
    assert.ok(line !== '' && line.length <= 80, where);
    assert.equal(line, line.trimEnd(), where);
    assert.doesNotMatch(line, /^'|`/, where);
    const macro = /^\.(\w+)/.exec(line)?.[1];
    if (macro !== undefined) assert.ok(known.includes(macro), where);
    if (macro === 'Bl' || macro === 'Bd') open.push(macro);
    if (macro === 'El' || macro === 'Ed') assert.equal(open.pop(), `B${macro[1]}`, where);
    if (macro === 'It') assert.equal(open.at(-1), 'Bl', where);
  }
  assert.deepEqual(open, []);
});

test('it has every option of the command line', () => {
  const options = commandOptions.flatMap(({ names }) => names);
  const reported = termsOf('OPTIONS').flatMap((term) => term.match(/(?<=Fl )\S+/g) ?? []);
  const written = reported.map((name) => `-${name.replaceAll('\\-', '-')}`);
  assert.deepEqual(written.sort(), [...options].sort());
});

test('it has every key, every key of the clients file and every exit status', () => {
  const ofCommand = (term: string) => term.replace(/^Cm /, '');
  assert.deepEqual(termsOf('CONFIGURATION').map(ofCommand), optionKeys);
  assert.deepEqual(termsOf('CLIENTS').map(ofCommand), Object.keys(clientOptions));
  assert.deepEqual(termsOf('EXIT STATUS').map(ofCommand), Object.values(exitCodes).map(String));
});

test('it has every environment variable of --help', () => {
  const variables = termsOf('ENVIRONMENT').map((term) => term.replace(/^Ev /, ''));
  assert.deepEqual(variables, Object.keys(environmentMeanings));
});

test('it has every signal that the supervisor handles', () => {
  const source = readFileSync('src/supervisor/supervisor-process.ts', 'utf8');
  const reported = termsOf('SIGNALS').flatMap((term) => term.match(/SIG\w+/g) ?? []);
  for (const [name] of source.matchAll(/SIG[A-Z]+/g)) assert.ok(reported.includes(name), name);
});

test('every page that it names exists', () => {
  const named = called('Pa').filter((name) => name.endsWith('.md'));
  assert.ok(named.length > 2);
  for (const name of named) assert.ok(existsSync(`docs/${name.replaceAll('\\-', '-')}`), name);
});

test('the package installs it', () => {
  const { man, files } = JSON.parse(readFileSync('package.json', 'utf8'));
  // npm installs none that is not in a list.
  assert.deepEqual(man, [`./${path}`]);
  assert.ok(files.includes('docs'));
});
