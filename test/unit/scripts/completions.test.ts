// deploy/completions: the files are those of the table of options, and complete options, files and sections in the shells that are installed.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { after, test } from 'node:test';
import { completions } from '../../../scripts/support/completions.ts';
import { commandOptions } from '../../../src/supervisor/command-options.ts';
import { createWorkspace } from '../../support/workspace.ts';

const folder = resolve('deploy/completions');
const workspace = createWorkspace('completions', () => {});
after(workspace.remove);
const trap = join(workspace.path, 'ran');
const file = join(workspace.path, 'three databases.ini');
writeFileSync(file, `[world]\n[spare.two]\n[$(touch ${trap})]\n[\`touch ${trap}\`]\n[shop]\n`);
const typedFile = file.replaceAll(' ', '\\ ');

for (const [name, complete] of Object.entries(completions)) {
  test(`${name} is made from the table of options`, () => {
    assert.equal(readFileSync(join(folder, name), 'utf8'), complete(), 'run: npm run reference');
  });
}

test('there is no other file', () => {
  assert.deepEqual(readdirSync(folder).sort(), Object.keys(completions).sort());
});

/** Calls the function as bash does, and prints what it offers. */
const bashScript = `
source "$1"; shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_dbhttpd
printf '%s\\n' "\${COMPREPLY[@]}"`;

/** Completes in an interactive zsh, whose command prints the arguments that it got. */
const zshScript = `
zmodload zsh/zpty
zpty inner zsh -f -i
zpty -w inner "PS1=; fpath=($1 \\$fpath); autoload -Uz compinit; compinit -u -D"
zpty -w inner 'dbhttpd() { print -r -- "GO""T:\${(q)@[-1]}:EN""D" }; print -r -- "REA""DY"'
zpty -r inner seen '*READY*'
zpty -w inner "$2"$'\\t'
zpty -r inner seen '*GOT:*:END*'
print -r -- "\${\${seen#*GOT:}%:END*}"`;

/** Each shell's arguments, to print its offers for a line. */
const shells: Readonly<Record<string, (line: string) => readonly string[]>> = {
  bash: (line) => {
    // Bash takes a colon as a word of its own.
    const words = line.match(/:|(?:\\.|[^ :])+|(?<= )$/g) ?? [];
    const typed = words.map((word) => word.replaceAll('\\ ', ' '));
    return ['--norc', '-c', bashScript, 'bash', join(folder, 'dbhttpd.bash'), ...typed];
  },
  zsh: (line) => ['-f', '-c', zshScript, 'zsh', folder, line],
  fish: (line) => [
    '--no-config',
    '-c',
    `source ${join(folder, 'dbhttpd.fish')}; complete -C $argv[1]`,
    line,
  ],
};

function isInstalled(shell: string): boolean {
  return spawnSync(shell, ['-c', 'exit 0']).status === 0;
}

for (const [shell, argumentsFor] of Object.entries(shells)) {
  const options = isInstalled(shell) ? {} : { skip: `${shell} is not installed` };
  /** The candidates, as the whole last word of the line. */
  const complete = (line: string): readonly string[] => {
    const env = { ...process.env, HOME: workspace.path, TERM: 'dumb' };
    const ended = spawnSync(shell, [...argumentsFor(line)], {
      encoding: 'utf8',
      env,
      timeout: 60_000,
    });
    assert.equal(ended.status, 0, ended.stderr);
    return ended.stdout
      .trimEnd()
      .split('\n')
      .map((text) => (text.split('\t')[0] ?? '').trim().replaceAll('\\ ', ' '));
  };

  test(`${shell} completes every long option`, options, () => {
    const names = commandOptions.flatMap((option) => option.names);
    for (const name of names.filter((one) => one.startsWith('--'))) {
      assert.ok(complete(`dbhttpd ${name.slice(0, -1)}`).includes(name), name);
    }
  });

  test(`${shell} completes the file of -c`, options, () => {
    const [found] = complete(`dbhttpd -c ${join(workspace.path, 'thr')}`);
    assert.equal(found, file);
  });

  test(
    `${shell} completes sections from the file, also behind a colon, and runs nothing that a name holds`,
    options,
    () => {
      assert.deepEqual(complete(`dbhttpd -c ${typedFile} -s sh`), ['shop']);
      const [second] = complete(`dbhttpd --check -c ${typedFile} -s world -m shop:wo`);
      assert.equal(second?.split(':').at(-1), 'world');
      complete(`dbhttpd -c ${typedFile} -s \\$`);
      assert.ok(!existsSync(trap));
    },
  );
}
