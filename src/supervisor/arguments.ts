// The command line: parses it into one command. The only user of minimist.

import { isAbsolute } from 'node:path';
import minimist from 'minimist';
import type { Target } from '../shared/config/load-config.ts';
import { type CommandOption, commandOptions } from './command-options.ts';

/** The outcome of reading the command line. */
export type Command =
  | ({ readonly kind: 'start' | 'foreground' | 'types' } & Target)
  | ({ readonly kind: 'check'; readonly isJson: boolean } & Target)
  | ({ readonly kind: 'primary'; readonly address: string } & Target)
  | ({ readonly kind: 'scaffold'; readonly table: string } & Target)
  | { readonly kind: 'help' | 'version' | 'new-token' }
  | Misuse;

type Misuse = { readonly kind: 'misuse'; readonly problem: string };

const modes = ['check', 'foreground', 'types', 'new-token', 'help', 'version'] as const;

/** Parses the arguments after the script's name. */
export function parseArguments(argv: readonly string[]): Command {
  const unknown: string[] = [];
  const parsed = minimist([...argv], {
    string: namesOf(({ value }) => value !== null),
    boolean: namesOf(({ value }) => value === null),
    alias: { h: 'help', V: 'version' },
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
  const { primary: address, scaffold: table }: Record<string, unknown> = parsed;
  const valued = [address, table].filter((value) => value !== undefined);
  if (chosen.length + valued.length > 1) {
    const all = '--check, --foreground, --primary, --types and --scaffold';
    return misuse(`${all} exclude each other`);
  }
  const isJson = parsed.json === true;
  if (isJson && chosen[0] !== 'check') return misuse('--json belongs to --check');
  const target = parseTarget(parsed);
  if ('problem' in target) return target;
  if (table !== undefined) {
    if (typeof table !== 'string') return misuse('--scaffold is given once');
    return table === ''
      ? misuse('--scaffold needs a table')
      : { kind: 'scaffold', table, ...target };
  }
  if (address === undefined) {
    if (chosen[0] === 'check') return { kind: 'check', isJson, ...target };
    const [mode] = chosen;
    return { kind: mode === 'foreground' || mode === 'types' ? mode : 'start', ...target };
  }
  if (typeof address !== 'string') return misuse('--primary is given once');
  if (address === '') return misuse('--primary needs an address');
  return { kind: 'primary', address, ...target };
}

/** The names of options as minimist has them, without dashes. */
function namesOf(isMeant: (option: CommandOption) => boolean): string[] {
  return commandOptions
    .filter(isMeant)
    .flatMap(({ names }) => names.map((name) => name.replace(/^--?/, '')));
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
