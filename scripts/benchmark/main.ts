// scripts/bench, once everything is built: options -> arena -> rounds -> tables and JSON.
// Must not know the gateway's code. Exit 0: measured (targets met or not); 1: could not measure; 64: command line.
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { openArena } from './arena.ts';
import { describeConditions } from './machine.ts';
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

function composeJson(
  options: Options,
  conditions: ReturnType<typeof describeConditions>,
  results: readonly CellResult[],
  verdicts: readonly Verdict[],
): string {
  const cells = results.map(({ cell, samples }) => ({
    cell: cell.id,
    statement: cell.workload.statement,
    peers: Object.fromEntries(
      [...samples].map(([peer, list]) => [peer, { median: summarise(list), samples: list }]),
    ),
  }));
  const { rounds, seconds } = options;
  const document = {
    at: new Date().toISOString(),
    ...conditions,
    settings: { ...crew, rounds, seconds },
    targets: verdicts.map(({ target, measured, pass }) => ({ ...target, measured, pass })),
    cells,
  };
  return `${JSON.stringify(document, null, 1)}\n`;
}

async function run(options: Options, signal: AbortSignal): Promise<void> {
  process.stderr.write('starting database, gateway and peers\n');
  const arena = await openArena(options.cells, signal);
  try {
    const conditions = describeConditions(arena.database.version);
    const progress = showProgress(options.rounds);
    const results = await runRounds(arena, { ...options, progress });
    const rows = summariseAll(results);
    const lookup: Lookup = (id, peer) =>
      rows.find(({ cell }) => cell.id === id)?.summaries.get(peer) ?? null;
    const verdicts = targets.map((target) => judge(target, lookup));
    mkdirSync(dirname(options.json), { recursive: true });
    writeFileSync(options.json, composeJson(options, conditions, results, verdicts));
    const { machine, versions } = conditions;
    process.stdout.write(`${renderFigures(rows)}\n${renderTargets(verdicts)}\n
${machine.cores} cores (${machine.cpu}), ${machine.kernel}, Node ${versions.node}, MariaDB ${versions.mariadb}
every sample: ${options.json}\n`);
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
      await run(command.options, AbortSignal.any([stop.signal, AbortSignal.timeout(limitMs)]));
      return 0;
    }
    default:
      throw new Error(`no such command: ${command satisfies never}`);
  }
}

try {
  process.exitCode = await main();
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
  process.exitCode = 1;
}
