// The command line of scripts/prisma: arguments to words and a server, and the help text.
import { parseArgs } from 'node:util';
import { type NoRun, readCommand } from '../support/command-line.ts';

export const help = `Usage: scripts/prisma [--server <folder>] [word…]

Runs checks of Prisma's generated client with a gateway of three workers, and compares them with the same client directly on the server,
by Prisma's adapter for MariaDB. Words choose checks by their path.

  --server   the folder of a server that scripts/matrix has unpacked, in place of the system's MariaDB (or DBHTTPD_TEST_SERVER_ROOT)
  --help     this text

Prisma comes from npm, into a cache of 300 MB: DBHTTPD_PRISMA_DIR, or ~/.cache/dbhttpd/prisma.
`;

/** The outcome of reading the command line. */
export type Command =
  | { readonly kind: 'run'; readonly server: string | null; readonly words: readonly string[] }
  | NoRun;

/** Reads argv (without node and script). */
export function parseCommand(argv: readonly string[]): Command {
  return readCommand((): Command => {
    const { values, positionals } = parseArgs({
      args: [...argv],
      options: { server: { type: 'string' }, help: { type: 'boolean', default: false } },
      allowPositionals: true,
    });
    if (values.help) return { kind: 'help' };
    return { kind: 'run', server: values.server ?? null, words: positionals };
  });
}
