// scripts/bench, once everything is built: the command line to a full run, or to one of the other measurements.
// Exit 0: measured (targets met or not); 1: could not measure; 64: command line; 130: stopped by a signal.
import { inspect } from 'node:util';
import { explain } from '../support/command-line.ts';
import { runFair } from './fair.ts';
import { runFairStep } from './fair-step.ts';
import { runMemory } from './memory.ts';
import { help, parseOptions } from './options.ts';
import { runBenchmark } from './run.ts';
import { runScale } from './scale/run.ts';

// Far above a full run: the end of a run that hangs beyond every other limit.
const limitMs = 20 * 60_000;

/** Runs until done, a signal, or the limit. */
async function runBounded(work: (signal: AbortSignal) => Promise<void>): Promise<number> {
  const stop = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    process.once(name, () => stop.abort(new Error(name)));
  }
  try {
    await work(AbortSignal.any([stop.signal, AbortSignal.timeout(limitMs)]));
    return 0;
  } catch (error) {
    if (!stop.signal.aborted) throw error;
    process.stderr.write('stopped before the end; nothing was written\n');
    return 130;
  }
}

async function main(): Promise<number> {
  const command = parseOptions(process.argv.slice(2));
  switch (command.kind) {
    case 'help':
    case 'fault':
      return explain(command, help);
    case 'run':
      return runBounded((signal) => runBenchmark(command.options, signal));
    case 'scale':
      return runBounded((signal) => runScale(command.options, signal));
    case 'memory':
      return runBounded((signal) => runMemory(command.options, signal));
    case 'fair':
      return runBounded((signal) => runFair(command.options, signal));
    case 'fair-step':
      return runBounded(() => runFairStep());
    default:
      throw new Error(`no such command: ${command satisfies never}`);
  }
}

try {
  process.exitCode = await main();
} catch (error) {
  process.stderr.write(`${inspect(error)}\n`);
  process.exitCode = 1;
}
