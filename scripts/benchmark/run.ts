// The full run: arena, rounds, verdicts; tables on stdout, every sample as JSON.
import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism, loadavg } from 'node:os';
import { dirname } from 'node:path';
import { openArena } from './arena.ts';
import { composeJson } from './json.ts';
import { judge, type Measured } from './judge.ts';
import { describeConditions, warnOfLoad } from './machine.ts';
import type { Options } from './options.ts';
import { warnOfOthers } from './others.ts';
import { type Row, renderFigures, renderGauges, renderTargets } from './report.ts';
import { type CellResult, type RunResult, runRounds, summarise } from './rounds.ts';
import { crew } from './servers.ts';
import { targets } from './targets.ts';

function showProgress(rounds: number): (round: number, what: string) => void {
  return (round, what) => {
    process.stderr.write(`round ${round}/${rounds}  ${what}\n`);
  };
}

function summariseAll(results: readonly CellResult[]): Row[] {
  return results.map(({ cell, samples }) => ({
    cell,
    summaries: new Map([...samples].map(([peer, list]) => [peer, summarise(list)])),
  }));
}

function lookIn(rows: readonly Row[], { gauges }: RunResult): Measured {
  const summary: Measured['summary'] = (id, peer) =>
    rows.find(({ cell }) => cell.id === id)?.summaries.get(peer) ?? null;
  return { summary, gauges, cores: availableParallelism() };
}

function listOthers(results: readonly CellResult[]): number[] {
  return results.flatMap(({ samples }) =>
    [...samples.values()].flat().map(({ othersCores }) => othersCores),
  );
}

/** Measures, prints, writes. Rejects when it cannot measure; nothing is left running. */
export async function runBenchmark(options: Options, signal: AbortSignal): Promise<void> {
  process.stderr.write('starting database, gateway and peers\n');
  const busy = warnOfLoad(loadavg()[0] ?? 0, availableParallelism());
  const arena = await openArena(options.cells, options.before, signal);
  try {
    const conditions = describeConditions(arena.database.version);
    const progress = showProgress(options.rounds);
    const results = await runRounds(arena, { ...options, progress });
    const rows = summariseAll(results.cells);
    // Targets compare with the peers. Beside an earlier build there are no peers.
    const judged = options.before === null ? targets : [];
    const verdicts = judged.map((target) => judge(target, lookIn(rows, results)));
    const settings = {
      ...crew,
      accessLog: 'json',
      rounds: options.rounds,
      seconds: options.seconds,
    };
    const json = composeJson({ ...conditions, settings }, results, verdicts);
    mkdirSync(dirname(options.json), { recursive: true });
    writeFileSync(options.json, json);
    const { machine, versions } = conditions;
    process.stdout.write(`${renderFigures(rows)}\n${renderGauges(results.gauges)}\n${verdicts.length === 0 ? '' : renderTargets(verdicts)}\n
${machine.cores} cores (${machine.cpu}), ${machine.kernel}, Node ${versions.node}, MariaDB ${versions.mariadb}
every sample: ${options.json}\n${busy}${warnOfOthers(listOthers(results.cells))}`);
  } finally {
    await arena.close();
  }
}
