// The command of a long run: reads its options, runs to the verdicts, leaves no process behind, sets the exit status.
// Exit 0: every promise kept; 1: one broken, or the run could not be made; 64: command line; 130: stopped by a signal.
import { inspect } from 'node:util';
import { signal } from '../../test/support/processes.ts';
import { explain, Fault, readCommand } from './command-line.ts';
import { openRunDirectory, survivors } from './survivors.ts';
import { renderVerdicts, type Verdict } from './verdicts.ts';

/** A run with its command line. */
export type RunCommand<Order extends object> = {
  readonly help: string;
  /** Reads argv (without node and script). Null: print the help text. Throws a Fault, or as parseArgs does. */
  readonly parse: (argv: readonly string[]) => Order | null;
  /** The beginning of the name of the run's directory. */
  readonly prefix: string;
  readonly longestMs: (order: Order) => number;
  readonly run: (order: Order) => Promise<readonly Verdict[]>;
};

/** Prints a line. */
export const say = (line: string): void => void process.stdout.write(`${line}\n`);

/** Runs this process's command line, and sets its exit status. If the run fails, the process ends at once. */
export async function runCommand<Order extends object>(command: RunCommand<Order>): Promise<void> {
  try {
    process.exitCode = await runOrder(command);
  } catch (error) {
    process.stderr.write(`${inspect(error)}\n`);
    process.exit(1);
  }
}

async function runOrder<Order extends object>(command: RunCommand<Order>): Promise<number> {
  const { help, prefix, longestMs, parse, run } = command;
  const read = readCommand(() => ({ kind: 'run', order: parse(process.argv.slice(2)) }) as const);
  if (read.kind !== 'run') return explain(read, help);
  const { order } = read;
  if (order === null) return explain({ kind: 'help' }, help);
  return runToVerdicts({ prefix, longestMs: longestMs(order) }, () => run(order));
}

/**
 * Makes the run and prints its verdicts. Resolves to the exit status: 0, or 1 if a promise was broken. The process ends with 1 if
 * the run takes longer than `longestMs`, and with 130 on a signal. Everything that it started ends with it.
 */
async function runToVerdicts(
  { prefix, longestMs }: { readonly prefix: string; readonly longestMs: number },
  run: () => Promise<readonly Verdict[]>,
): Promise<number> {
  const directory = openRunDirectory(prefix);
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => process.exit(130));
  setTimeout(() => {
    say('the run takes too long, and is ended');
    process.exit(1);
  }, longestMs).unref();
  const verdicts = await run();
  const left = await survivors(directory);
  for (const { pid } of left) signal(pid, 'SIGKILL');
  const found = left.map(({ pid, command: line }) => `${pid} ${line}`).join(' | ');
  const all = [...verdicts, { promise: 'no process outlives the run', kept: found === '', found }];
  say(renderVerdicts(all));
  return all.some(({ kept }) => kept === false) ? 1 : 0;
}

/** Reads a whole number of a command line. @throws Fault if it is out of range */
export function readCount(
  option: string,
  text: string,
  { min = 1, max }: { readonly min?: number; readonly max: number },
): number {
  const isFine = /^\d+$/.test(text) && Number(text) >= min && Number(text) <= max;
  if (isFine) return Number(text);
  throw new Fault(`--${option} takes a number from ${min} to ${max}`);
}
