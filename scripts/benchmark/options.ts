// The command line of scripts/bench, and its help text.
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { Fault, type NoRun, readCommand, readList } from '../support/command-line.ts';
import { type Cell, fits, listCells } from './cells.ts';
import { type Gauge, gaugeIds, gauges } from './gauges.ts';
import { type Peer, peers } from './peers.ts';
import { type Curve, curves } from './scale/curves.ts';
import { workloads } from './workloads.ts';

const workloadNames = workloads.map(({ name }) => name);
/** An earlier build is chosen by its path. */
const choosable = peers.filter((peer) => peer !== 'gateway-before');
const curveNames = curves.map(({ name }) => name);

export const help = `Usage: scripts/bench [options]
       scripts/bench scale [options]
       scripts/bench memory [options]
       scripts/bench fair [options]
       scripts/bench fair-step

Measures the gateway and its peers in alternating rounds against a private MariaDB, and compares the figures with a
table of targets. Takes about fifteen minutes. Prints a table, and writes every sample as JSON.

  --quick            one round of one second, only for the targets; about two minutes
  --only <list>      only these: ${workloadNames.join(', ')}, ${gaugeIds.join(', ')}
  --peers <list>     only these, in every cell:
                     ${choosable.slice(0, 5).join(', ')},
                     ${choosable.slice(5).join(', ')}
  --before <path>    another built checkout: compares its gateway with this one, only for the targets
  --rounds <n>       rounds (5)
  --seconds <n>      seconds of a measurement for a target (2); others take 1
  --json <path>      the file for the samples (docs/contributing/benchmarks/latest.json)
  --help             this text

scale: measures how the cost of a request grows in one dimension, and whether that is linear or better. Takes at most five
minutes. Prints a table, and writes a picture of each curve and every sample as JSON.

  --quick            one round instead of three
  --only <list>      only these: ${curveNames.join(', ')}
  --rounds <n>       rounds (3)
  --to <directory>   the directory for scale-<curve>.svg and scale-<date>.json (docs/contributing/benchmarks)

memory: measures what a gateway takes by workers, by connections to the database, and by idle clients. Takes about three minutes.
Prints a table, and writes every sample as JSON.

  --rounds <n>       rounds (3)
  --to <directory>   the directory for memory-<date>.json (docs/contributing/benchmarks)

fair: measures how long a quiet client waits beside 500 connections of another one, what that one gets alone and beside the quiet one,
and what 200 clients get for their shares. Takes about eight minutes.

  --seconds <n>      seconds of a round of long statements (15); the five rounds of short ones take a quarter of it each

fair-step: measures what fair turns cost a request, without a database. Takes a minute.
`;

/** A run of the benchmark. */
export type Options = {
  readonly cells: readonly Cell[];
  readonly gauges: readonly Gauge[];
  /** A checkout whose gateway is measured beside this one; null: none. */
  readonly before: string | null;
  readonly rounds: number;
  readonly seconds: number;
  readonly json: string;
};

/** A run that draws curves. */
export type ScaleOptions = {
  readonly curves: readonly Curve[];
  readonly rounds: number;
  readonly directory: string;
};

/** A run that measures memory. */
export type MemoryOptions = {
  readonly rounds: number;
  readonly directory: string;
};

/** A run that measures clients beside each other. */
export type FairOptions = { readonly seconds: number };

/** The outcome of reading the command line. */
export type Command =
  | { readonly kind: 'run'; readonly options: Options }
  | { readonly kind: 'scale'; readonly options: ScaleOptions }
  | { readonly kind: 'memory'; readonly options: MemoryOptions }
  | { readonly kind: 'fair'; readonly options: FairOptions }
  | { readonly kind: 'fair-step' }
  | NoRun;

const runFlags = {
  quick: { type: 'boolean', default: false },
  only: { type: 'string' },
  peers: { type: 'string' },
  before: { type: 'string' },
  rounds: { type: 'string' },
  seconds: { type: 'string' },
  json: { type: 'string', default: 'docs/contributing/benchmarks/latest.json' },
  help: { type: 'boolean', default: false },
} as const;

const scaleFlags = {
  quick: { type: 'boolean', default: false },
  only: { type: 'string' },
  rounds: { type: 'string' },
  to: { type: 'string', default: 'docs/contributing/benchmarks' },
  help: { type: 'boolean', default: false },
} as const;

const memoryFlags = {
  rounds: { type: 'string' },
  to: { type: 'string', default: 'docs/contributing/benchmarks' },
  help: { type: 'boolean', default: false },
} as const;

function readCount(name: string, text: string | undefined, otherwise: number): number {
  if (text === undefined) return otherwise;
  if (!/^[1-9]\d{0,2}$/.test(text)) throw new Fault(`--${name} takes a number from 1 to 999`);
  return Number(text);
}

function selectCells(
  quick: boolean,
  only: readonly string[] | null,
  wanted: readonly string[] | null,
): Cell[] {
  const cells: Cell[] = [];
  for (const cell of listCells()) {
    if (quick && !cell.decides) continue;
    if (only !== null && !only.includes(cell.workload.name)) continue;
    const chosen = (wanted as readonly Peer[] | null)?.filter((peer) => fits(peer, cell));
    if (chosen?.length === 0) continue;
    cells.push({ ...cell, peers: chosen ?? cell.peers });
  }
  return cells;
}

function readRun(argv: readonly string[]): Command {
  const { values } = parseArgs({ args: [...argv], options: runFlags });
  if (values.help) return { kind: 'help' };
  const only =
    values.only === undefined
      ? null
      : readList('only', values.only, [...workloadNames, ...gaugeIds]);
  const before = values.before === undefined ? null : resolve(values.before);
  const wanted = values.peers === undefined ? null : readList('peers', values.peers, choosable);
  const options: Options = {
    cells:
      before === null
        ? selectCells(values.quick, only, wanted)
        : selectCells(true, only, [...(wanted ?? ['gateway']), 'gateway-before']),
    gauges: gauges.filter(({ id }) => (only === null ? before === null : only.includes(id))),
    before,
    rounds: readCount('rounds', values.rounds, values.quick ? 1 : 5),
    seconds: readCount('seconds', values.seconds, values.quick ? 1 : 2),
    json: values.json,
  };
  return { kind: 'run', options };
}

function readScale(argv: readonly string[]): Command {
  const { values } = parseArgs({ args: [...argv], options: scaleFlags });
  if (values.help) return { kind: 'help' };
  const only = values.only === undefined ? null : readList('only', values.only, curveNames);
  const options: ScaleOptions = {
    curves: curves.filter(({ name }) => only === null || only.includes(name)),
    rounds: readCount('rounds', values.rounds, values.quick ? 1 : 3),
    directory: values.to,
  };
  return { kind: 'scale', options };
}

function readMemory(argv: readonly string[]): Command {
  const { values } = parseArgs({ args: [...argv], options: memoryFlags });
  if (values.help) return { kind: 'help' };
  const rounds = readCount('rounds', values.rounds, 3);
  return { kind: 'memory', options: { rounds, directory: values.to } };
}

const fairFlags = {
  seconds: { type: 'string' },
  help: { type: 'boolean', default: false },
} as const;

function readFair(argv: readonly string[]): Command {
  const { values } = parseArgs({ args: [...argv], options: fairFlags });
  if (values.help) return { kind: 'help' };
  return { kind: 'fair', options: { seconds: readCount('seconds', values.seconds, 15) } };
}

/** Reads argv (without node and script). */
export function parseOptions(argv: readonly string[]): Command {
  return readCommand((): Command => {
    const [mode, ...rest] = argv;
    if (mode === 'scale') return readScale(rest);
    if (mode === 'memory') return readMemory(rest);
    if (mode === 'fair') return readFair(rest);
    if (mode === 'fair-step' && rest.length === 0) return { kind: 'fair-step' };
    return readRun(argv);
  });
}
