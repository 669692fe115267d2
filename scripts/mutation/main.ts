// scripts/mutate, once everything is built: options -> a copy of the checkout -> one mutation after the other -> the table.
// Exit 0: every one was caught; 1: one survived or does not apply, or a test fails without any; 64: command line; 130: stopped by a signal.
import { join } from 'node:path';
import { explain } from '../support/command-line.ts';
import { openRunDirectory, survivors } from '../support/survivors.ts';
import { type Copy, createCopy } from './copy.ts';
import { mutations } from './list/mutations.ts';
import { type Mutation, mutate } from './mutation.ts';
import { help, parseCommand } from './options.ts';
import { findFailure } from './run-tests.ts';

type Result = 'caught' | 'SURVIVED' | 'does not apply';

const say = (line: string) => process.stdout.write(`${line}\n`);

async function run(chosen: readonly Mutation[]): Promise<number> {
  const directory = openRunDirectory('dbhttpd-mutate-');
  const copy = createCopy(process.cwd(), join(directory, 'copy'));
  const tests = [...new Set(chosen.flatMap((mutation) => mutation.tests))].sort();
  say(`- ${tests.length} test files without any mutation`);
  const failure = await findFailure(copy.directory, tests);
  if (failure !== null) {
    say(`  failed without a mutation, so it proves nothing: ${failure}`);
    return 1;
  }
  const results: Result[] = [];
  for (const mutation of chosen) {
    const { result, by } = await attempt(copy, mutation);
    results.push(result);
    say(`${result.padEnd(14)}  ${mutation.name.padEnd(longestName(chosen))}  ${by}`);
    await endSurvivors(directory);
  }
  const count = (wanted: Result) => results.filter((result) => result === wanted).length;
  say(
    `${chosen.length} mutations: ${count('caught')} caught, ${count('SURVIVED')} survived, ${count('does not apply')} do not apply`,
  );
  return count('caught') === chosen.length ? 0 : 1;
}

async function attempt(
  copy: Copy,
  mutation: Mutation,
): Promise<{ readonly result: Result; readonly by: string }> {
  const { file, promise, tests } = mutation;
  const source = copy.read(file);
  const mutated = mutate(source, mutation);
  if (mutated === null) return { result: 'does not apply', by: file };
  try {
    await copy.write(file, mutated);
    const failure = await findFailure(copy.directory, tests);
    return failure === null
      ? { result: 'SURVIVED', by: promise }
      : { result: 'caught', by: failure };
  } finally {
    await copy.write(file, source);
  }
}

/** A fault may keep tests from ending what they have started. */
async function endSurvivors(directory: string): Promise<void> {
  for (const { pid } of await survivors(directory)) process.kill(pid, 'SIGKILL');
}

function longestName(chosen: readonly Mutation[]): number {
  return Math.max(...chosen.map(({ name }) => name.length));
}

async function main(): Promise<number> {
  const command = parseCommand(process.argv.slice(2), mutations);
  switch (command.kind) {
    case 'help':
    case 'fault':
      return explain(command, help);
    case 'list':
      for (const { name, file, promise } of command.mutations) say(`${name}: ${promise} (${file})`);
      return 0;
    case 'run':
      // All that the tests have started ends with this process.
      for (const name of ['SIGINT', 'SIGTERM'] as const) {
        process.once(name, () => process.exit(130));
      }
      return run(command.mutations);
    default:
      throw new Error(`no such command: ${command satisfies never}`);
  }
}

process.exitCode = await main();
