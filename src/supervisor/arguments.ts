// The command line: parses it into one command. The only user of minimist.

import { isAbsolute } from 'node:path';
import minimist from 'minimist';
import type { Target } from '../shared/config/load-config.ts';

/** The outcome of reading the command line. */
export type Command =
  | ({ readonly kind: 'start' | 'check' | 'foreground' } & Target)
  | ({ readonly kind: 'primary'; readonly address: string } & Target)
  | { readonly kind: 'help' | 'version' | 'new-token' }
  | Misuse;

type Misuse = { readonly kind: 'misuse'; readonly problem: string };

/** The text of --help, also printed after a misuse. */
export const usage = `usage: dbhttpd -c <absolute path of the INI file> -s <section>[:<section>...] [-m <section>[:<section>...]]
       dbhttpd --check -c <path> -s ... [-m ...]
       dbhttpd --foreground -c <path> -s ... [-m ...]
       dbhttpd --primary <address> -c <path> -s ... [-m ...]
       dbhttpd --new-token
       dbhttpd --help | -h | --version

  -c            the configuration file
  -s            the section to serve; further sections list more servers of the same database
  -m            sections to serve beside it, each a database of its own
  --check       validate everything, connect once, print the effective settings; start nothing
  --foreground  stay in the foreground and log to stderr
  --primary     set the server that is the primary, after a deliberate return to it or a restore
  --new-token   print a random token and its line of the clients file; takes nothing else
  --help, -h    this text
  --version     the version

A start prints nothing. Its exit status is the result, and the log has the reason.
  0 running   64 command line   66 file unreadable   69 cannot listen   73 pidfile or log
  75 already running   78 configuration invalid
Stop it with kill $(cat <pidfile>).
`;

const modes = ['check', 'foreground', 'new-token', 'help', 'version'] as const;

/** Parses the arguments after the script's name. */
export function parseArguments(argv: readonly string[]): Command {
  const unknown: string[] = [];
  const parsed = minimist([...argv], {
    string: ['c', 's', 'm', 'primary'],
    boolean: [...modes],
    alias: { h: 'help' },
    unknown: (argument) => {
      unknown.push(argument);
      return false;
    },
  });
  // minimist reads --no-x as x = false, and words after -- as operands. The command has neither.
  const foreign =
    unknown[0] ?? argv.find((argument) => argument.startsWith('--no-')) ?? parsed._[0];
  if (foreign !== undefined) return misuse(`unknown argument: ${foreign}`);
  const chosen = modes.filter((mode) => parsed[mode] === true);
  if (chosen.includes('help')) return { kind: 'help' };
  if (chosen.includes('version')) return { kind: 'version' };
  if (chosen.includes('new-token')) {
    return argv.length === 1 ? { kind: 'new-token' } : misuse('--new-token takes nothing else');
  }
  const address: unknown = parsed.primary;
  if (chosen.length + (address === undefined ? 0 : 1) > 1) {
    return misuse('--check, --foreground and --primary exclude each other');
  }
  const target = parseTarget(parsed);
  if ('problem' in target) return target;
  if (address === undefined) {
    const [mode] = chosen;
    return { kind: mode === 'check' || mode === 'foreground' ? mode : 'start', ...target };
  }
  if (typeof address !== 'string') return misuse('--primary is given once');
  if (address === '') return misuse('--primary needs an address');
  return { kind: 'primary', address, ...target };
}

function parseTarget(parsed: minimist.ParsedArgs): Target | Misuse {
  const { c: configPath, s: served, m: others }: Record<string, unknown> = parsed;
  if ([configPath, served, others].some(Array.isArray)) {
    return misuse('-c, -s and -m are given once');
  }
  if (typeof configPath !== 'string' || configPath === '') return misuse('-c is missing');
  if (typeof served !== 'string' || served === '') return misuse('-s is missing');
  if (!isAbsolute(configPath)) return misuse('the path after -c must be absolute');
  const [section = '', ...listed] = served.split(':');
  const beside = typeof others === 'string' ? others.split(':') : [];
  const names = [section, ...listed, ...beside];
  if (names.includes('')) return misuse('a section without a name after -s or -m');
  const repeated = names.find((name, index) => names.indexOf(name) < index);
  if (repeated !== undefined) return misuse(`a section is named twice: ${repeated}`);
  return { configPath, sections: [section, ...listed], beside };
}

function misuse(problem: string): Misuse {
  return { kind: 'misuse', problem };
}
