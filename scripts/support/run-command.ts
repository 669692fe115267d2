// The command of a long run: its help, what is wrong with its options, the run to its verdicts, its exit status.
// Must not know what is run.
// Exit 0: every promise kept; 1: one broken, or the run could not be made; 64: command line; 130: stopped by a signal.
import { inspect } from 'node:util';
import { runToVerdicts } from './verdict-run.ts';
import type { Verdict } from './verdicts.ts';

/** A run that can be asked for. */
export type RunCommand<Order extends object> = {
  readonly help: string;
  /** Reads argv (without node and script); a string says what is wrong with it; null: help is wanted. May throw as parseArgs does. */
  readonly parse: (argv: readonly string[]) => Order | string | null;
  /** How the name of the run's own directory begins. */
  readonly prefix: string;
  readonly longestMs: (order: Order) => number;
  readonly run: (order: Order) => Promise<readonly Verdict[]>;
};

/** A line for whoever has started the run. */
export const say = (line: string): void => void process.stdout.write(`${line}\n`);

/** Does what this process's command line asks for, and sets its exit status. Where the run cannot be made, the process ends at once. */
export async function runCommand<Order extends object>(command: RunCommand<Order>): Promise<void> {
  try {
    process.exitCode = await runOrder(command);
  } catch (error) {
    process.stderr.write(`${inspect(error)}\n`);
    process.exit(1);
  }
}

async function runOrder<Order extends object>(command: RunCommand<Order>): Promise<number> {
  const { help, prefix, longestMs, run } = command;
  const order = readOrder(command);
  if (order === null) {
    process.stdout.write(help);
    return 0;
  }
  if (typeof order === 'string') {
    process.stderr.write(`${order}\n\n${help}`);
    return 64;
  }
  return runToVerdicts({ prefix, longestMs: longestMs(order) }, () => run(order), say);
}

function readOrder<Order extends object>({ parse }: RunCommand<Order>): Order | string | null {
  try {
    return parse(process.argv.slice(2));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code?.startsWith('ERR_PARSE_ARGS')) return message;
    throw error;
  }
}

/** What is wrong with a number of a command line; null: nothing. */
export function findWrongCount(
  option: string,
  text: string,
  { least = 1, most }: { readonly least?: number; readonly most: number },
): string | null {
  const isFine = /^\d+$/.test(text) && Number(text) >= least && Number(text) <= most;
  return isFine ? null : `--${option} wants a number from ${least} to ${most}`;
}
