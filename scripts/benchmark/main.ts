// scripts/bench, once everything is built: options -> arena -> rounds -> tables and JSON.
// Must not know the gateway's code.
// Exit 0: measured (targets met or not); 1: could not measure; 64: command line; 130: stopped by a signal.
import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism, loadavg } from 'node:os';
import { dirname } from 'node:path';
import { inspect } from 'node:util';
import { openArena } from './arena.ts';
import { composeJson } from './json.ts';
import { describeConditions, warnOfLoad } from './machine.ts';
import { help, type Options, parseOptions } from './options.ts';
import { type Row, renderFigures, renderTargets } from './report.ts';
import { type CellResult, runRounds, summarise } from './rounds.ts';
import { crew } from './servers.ts';
import { judge, type Lookup, targets, type Verdict } from './targets.ts';
import type { Cell } from './workloads.ts';

// Far above a full run: an end for one that hangs where no other bound holds.
const limitMs = 20 * 60_000;

function showProgress(rounds: number): (round: number, cell: Cell) => void {
  return (round, cell) => {
    process.stderr.write(`round ${round}/${rounds}  ${cell.id}\n`);
  };
}

function summariseAll(results: readonly CellResult[]): Row[] {
  return results.map(({ cell, samples }) => ({
    cell,
    summaries: new Map([...samples].map(([peer, list]) => [peer, summarise(list)])),
  }));
}

function judgeAll(rows: readonly Row[]): Verdict[] {
  const lookup: Lookup = (id, peer) =>
    rows.find(({ cell }) => cell.id === id)?.summaries.get(peer) ?? null;
  return targets.map((target) => judge(target, lookup));
}

async function run(options: Options, signal: AbortSignal): Promise<void> {
  process.stderr.write('starting database, gateway and peers\n');
  const busy = warnOfLoad(loadavg()[0] ?? 0, availableParallelism());
  const arena = await openArena(options.cells, signal);
  try {
    const conditions = describeConditions(arena.database.version);
    const progress = showProgress(options.rounds);
    const results = await runRounds(arena, { ...options, progress });
    const rows = summariseAll(results);
    const verdicts = judgeAll(rows);
    const settings = { ...crew, rounds: options.rounds, seconds: options.seconds };
    const json = composeJson({ ...conditions, settings }, results, verdicts);
    mkdirSync(dirname(options.json), { recursive: true });
    writeFileSync(options.json, json);
    const { machine, versions } = conditions;
    process.stdout.write(`${renderFigures(rows)}\n${renderTargets(verdicts)}\n
${machine.cores} cores (${machine.cpu}), ${machine.kernel}, Node ${versions.node}, MariaDB ${versions.mariadb}
every sample: ${options.json}\n${busy}`);
  } finally {
    await arena.close();
  }
}

async function main(): Promise<number> {
  const command = parseOptions(process.argv.slice(2));
  switch (command.kind) {
    case 'help':
      process.stdout.write(help);
      return 0;
    case 'fault':
      process.stderr.write(`${command.message}\n\n${help}`);
      return 64;
    case 'run': {
      const stop = new AbortController();
      for (const name of ['SIGINT', 'SIGTERM'] as const) {
        process.once(name, () => stop.abort(new Error(name)));
      }
      const signal = AbortSignal.any([stop.signal, AbortSignal.timeout(limitMs)]);
      try {
        await run(command.options, signal);
        return 0;
      } catch (error) {
        if (!stop.signal.aborted) throw error;
        process.stderr.write('stopped before the end; nothing was written\n');
        return 130;
      }
    }
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
