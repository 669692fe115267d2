// --help fits a terminal, and has every option, exit status and environment variable of the command.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exitCodes } from '../../../src/shared/process/exit-codes.ts';
import { commandOptions } from '../../../src/supervisor/command-options.ts';
import { environmentMeanings, formatHelp, usage } from '../../../src/supervisor/help.ts';

const help = formatHelp();

test('no line is wider than 80 columns, or ends in a space', () => {
  for (const line of `${help}${usage}`.split('\n')) {
    assert.ok(line.length <= 80, line);
    assert.equal(line, line.trimEnd());
  }
});

test('it has every option, every exit status, every variable, and an example', () => {
  const terms = [...help.matchAll(/^ {2}(\S.*?) {2}/gm)].map(([, term = '']) => term);
  const options = commandOptions.map(({ names }) => names.join(', '));
  assert.deepEqual(
    terms.map((term) => term.replace(/ <.*/, '')),
    [...options, ...Object.values(exitCodes).map(String), ...Object.keys(environmentMeanings)],
  );
  assert.match(help, /^example:\n/m);
});

test('the usage names every option', () => {
  for (const name of commandOptions.flatMap(({ names }) => names)) {
    assert.match(usage, new RegExp(`[ \\[]${name}[ \\]\\n]`), name);
  }
});
