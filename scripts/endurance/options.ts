// The command line of scripts/soak, which chooses a mode and its length, and its help text.
import { parseArgs } from 'node:util';
import { Fault } from '../support/command-line.ts';
import type { Exploration } from './explore.ts';

export const help = `Usage: scripts/soak [mixed] [--minutes <n>]    (10)
       scripts/soak restarts [--cycles <n>]    (100)
       scripts/soak kills [--seconds <n>]      (60)
       scripts/soak exports [--rows <n>] [--cuts <n>]    (2000000, 5)
       scripts/soak slow
       scripts/soak keys [--batches <n>] [--seed <n>]    (10000)
       scripts/soak partitions [--minutes <n>] [--seed <n>]    (20)
       scripts/soak http [--requests <n>] [--seed <n>]    (1000000, 1)
       scripts/soak explore [--minutes <n>] [--seed <n>] [--only <word>]    (30)
       scripts/soak --help

Long runs of the real daemon with a private MariaDB, on the loopback address. Each ends with a verdict for each promise.

  mixed      good and bad clients of all kinds, while workers are killed and stopped, the database restarts, and SIGHUP is sent.
             The replies are compared with the table, and memory, descriptors and connections with those at the beginning
  restarts   kill and start at once, again and again, under constant load
  kills      kill -9 of a worker every second under 32 clients
  exports    many rows by /v1/query as lines of JSON and as CSV, compressed and not, which independent parsers read; then
             connections, server, workers and clients are killed at random places
  slow       500 connections of slowhttptest each in headers, bodies and reading, beside clients that must not be affected
  keys       batches with idempotency keys through a proxy that cuts, delays and drops around COMMIT, while workers are killed
             and the database crashes. Each batch is executed once, however often it is repeated. The seed is printed
  partitions three servers that replicate, while links are cut, primaries killed, replicas promoted, former primaries brought back writable,
             workers killed, and the gateway restarted. Nothing is lost or written twice, and only the primary gets writes. The seed is printed
  http       mutated requests to the gateway, to node's own HTTP server, and to haproxy. What the gateway accepts must be the same single
             request for all three, with the same body. A difference prints the command that repeats it
  explore    every random test of scripts/test, in rounds with a new seed each. A failure prints the command that repeats it.
             --seed runs one round, --only chooses files by a word in their path
`;

/** A run. */
export type Order =
  | { readonly mode: 'mixed'; readonly minutes: number }
  | { readonly mode: 'restarts'; readonly cycles: number }
  | { readonly mode: 'kills'; readonly seconds: number }
  | { readonly mode: 'exports'; readonly rows: number; readonly cuts: number }
  | { readonly mode: 'slow' }
  | { readonly mode: 'keys'; readonly batches: number; readonly seed: number }
  | { readonly mode: 'partitions'; readonly minutes: number; readonly seed: number }
  | { readonly mode: 'http'; readonly requests: number; readonly seed: number }
  | ({ readonly mode: 'explore' } & Exploration);

const flags = {
  minutes: { type: 'string' },
  cycles: { type: 'string' },
  seconds: { type: 'string' },
  rows: { type: 'string' },
  cuts: { type: 'string' },
  batches: { type: 'string' },
  requests: { type: 'string' },
  seed: { type: 'string' },
  only: { type: 'string' },
  help: { type: 'boolean', default: false },
} as const;

function readNumber(
  name: string,
  text: string | undefined,
  otherwise: number,
  most = 1000,
): number {
  if (text === undefined) return otherwise;
  const value = Number(text);
  if (/^\d+(\.\d+)?$/.test(text) && value > 0 && value <= most) return value;
  throw new Fault(`--${name} takes a number above 0, at most ${most}`);
}

type Values = { readonly [name in Exclude<keyof typeof flags, 'help'>]?: string };

const maxBatches = 100_000;
const maxSeconds = 3_600;
const maxSeed = 999_999;
const maxMutated = 1_000_000_000;
const maxExploreSeed = 999_999_999;
const maxExploreMinutes = 10_000;

function readOrder(
  mode: string,
  { minutes, cycles, seconds, rows, cuts, batches, requests, seed, only }: Values,
): Order {
  switch (mode) {
    case 'mixed':
      return { mode, minutes: readNumber('minutes', minutes, 10) };
    case 'restarts':
      return { mode, cycles: Math.ceil(readNumber('cycles', cycles, 100)) };
    case 'kills':
      return { mode, seconds: Math.ceil(readNumber('seconds', seconds, 60, maxSeconds)) };
    case 'exports':
      return {
        mode,
        rows: Math.ceil(readNumber('rows', rows, 2_000_000, 10_000_000)),
        cuts: Math.ceil(readNumber('cuts', cuts, 5)),
      };
    case 'slow':
      return { mode };
    case 'keys':
      return {
        mode,
        batches: Math.ceil(readNumber('batches', batches, 10_000, maxBatches)),
        seed: Math.ceil(readNumber('seed', seed, 1 + (Date.now() % maxSeed), maxSeed)),
      };
    case 'partitions':
      return {
        mode,
        minutes: readNumber('minutes', minutes, 20),
        seed: Math.ceil(readNumber('seed', seed, 1 + (Date.now() % maxSeed), maxSeed)),
      };
    case 'http':
      return {
        mode,
        requests: Math.ceil(readNumber('requests', requests, 1_000_000, maxMutated)),
        seed: Math.ceil(readNumber('seed', seed, 1, maxMutated)),
      };
    case 'explore':
      return {
        mode,
        minutes: readNumber('minutes', minutes, 30, maxExploreMinutes),
        seed: seed === undefined ? null : Math.ceil(readNumber('seed', seed, 1, maxExploreSeed)),
        only: only ?? '',
      };
    default:
      throw new Fault(`no such mode: ${mode}`);
  }
}

/** Reads argv (without node and script). Null: print the help text. @throws Fault, or as parseArgs does */
export function parseOrder(argv: readonly string[]): Order | null {
  const { values, positionals } = parseArgs({
    args: [...argv],
    options: flags,
    allowPositionals: true,
  });
  if (values.help) return null;
  const [mode = 'mixed', ...more] = positionals;
  if (more.length > 0) throw new Fault('one mode at a time');
  return readOrder(mode, values);
}
