// The command line of scripts/mutate, and its help text.
import { parseArgs } from 'node:util';
import { Fault, type NoRun, readCommand } from '../support/command-line.ts';
import { type Mutation, select } from './mutation.ts';

export const help = `Usage: scripts/mutate [options] [word…]

Applies one mutation after the other to a copy of the sources, builds it, and runs the tests that must fail. Prints a table: caught,
SURVIVED, or does not apply (the source has changed: fix scripts/mutation/list). Words choose mutations by their name or file.

  --list             print names, files and the promises that the mutations break; run nothing
  --help             this text
`;

/** The outcome of reading the command line. */
export type Command =
  | { readonly kind: 'run' | 'list'; readonly mutations: readonly Mutation[] }
  | NoRun;

const flags = {
  list: { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
} as const;

/** Reads argv (without node and script). */
export function parseCommand(argv: readonly string[], all: readonly Mutation[]): Command {
  return readCommand((): Command => {
    const { values, positionals } = parseArgs({
      args: [...argv],
      options: flags,
      allowPositionals: true,
    });
    if (values.help) return { kind: 'help' };
    const mutations = select(all, positionals);
    if (mutations.length > 0) return { kind: values.list ? 'list' : 'run', mutations };
    throw new Fault(`no mutation has one of these words in its name: ${positionals.join(' ')}`);
  });
}
