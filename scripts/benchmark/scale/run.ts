// scripts/bench scale: a fresh gateway, every point of every curve in alternating rounds; table, pictures, JSON.
import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism, loadavg } from 'node:os';
import { join } from 'node:path';
import { startDatabase } from '../database.ts';
import { describeConditions, warnOfLoad } from '../machine.ts';
import type { ScaleOptions } from '../options.ts';
import { warnOfOthers } from '../others.ts';
import { crew, type Server, startLoggingGateway } from '../servers.ts';
import { drawChart } from './chart.ts';
import { curves, wideTables } from './curves.ts';
import { checkAnswer, measurePoint } from './point.ts';
import {
  type CurveResult,
  composeChart,
  composeScaleJson,
  renderScale,
  summariseCurve,
} from './report.ts';

/** Measures, prints, writes. Rejects when it cannot measure; nothing is left running. */
export async function runScale(options: ScaleOptions, signal: AbortSignal): Promise<void> {
  process.stderr.write('starting database and gateway\n');
  const busy = warnOfLoad(loadavg()[0] ?? 0, availableParallelism());
  const database = await startDatabase(wideTables);
  try {
    // A statement of 1 MiB is longer within its request.
    const gateway = await startLoggingGateway(database, { max_request_bytes: '2MiB' });
    try {
      const conditions = describeConditions(database.version);
      await warmUp(gateway, signal);
      const results = (await measureAll(gateway, options, signal)).map(summariseCurve);
      const settings = { ...crew, accessLog: 'json', rounds: options.rounds };
      const path = writeAll(options.directory, { ...conditions, settings }, results);
      const others = results.flatMap(({ points }) =>
        points.flatMap(({ samples }) => samples.map(({ othersCores }) => othersCores)),
      );
      process.stdout.write(
        `${renderScale(results)}\nevery sample: ${path}\n${busy}${warnOfOthers(others)}`,
      );
    } finally {
      await gateway.stop();
    }
  } finally {
    await database.stop();
  }
}

// Compiles the code before the first sample. Otherwise the first curve would begin with the cost of compiling for all of them.
async function warmUp(gateway: Server, signal: AbortSignal): Promise<void> {
  for (const curve of curves) {
    const probe = curve.probe(1000);
    const replyBytes = 1;
    if (curve.name !== 'columns')
      await measurePoint(gateway, probe, { size: null, replyBytes, signal });
  }
}

type Measured = Parameters<typeof summariseCurve>[0];

/** No round begins that would end after this time. */
const maxMs = 280_000;

async function measureAll(
  gateway: Server,
  { curves, rounds }: ScaleOptions,
  signal: AbortSignal,
): Promise<Measured[]> {
  const results = curves.map(
    (curve): Measured => ({ curve, points: curve.points.map((x) => ({ x, samples: [] })) }),
  );
  const sizes = new Map<string, number>();
  const begun = performance.now();
  for (let round = 1; round <= rounds; round += 1) {
    const spentMs = performance.now() - begun;
    if (spentMs * (round / Math.max(1, round - 1)) > maxMs) {
      process.stderr.write(`${round - 1} rounds fitted into the time\n`);
      break;
    }
    for (const { curve, points } of results) {
      process.stderr.write(`round ${round}/${rounds}  ${curve.name}\n`);
      for (const { x, samples } of points) {
        signal.throwIfAborted();
        const probe = curve.probe(x);
        const key = `${curve.name} ${x}`;
        const replyBytes = sizes.get(key) ?? (await checkAnswer(gateway, probe));
        sizes.set(key, replyBytes);
        const size = curve.name === 'connections' ? x : null;
        samples.push(await measurePoint(gateway, probe, { size, replyBytes, signal }));
      }
    }
  }
  return results;
}

function writeAll(
  directory: string,
  conditions: Readonly<Record<string, unknown>>,
  results: readonly CurveResult[],
): string {
  mkdirSync(directory, { recursive: true });
  for (const result of results) {
    const picture = drawChart(composeChart(result));
    writeFileSync(join(directory, `scale-${result.curve.name}.svg`), picture);
  }
  const path = join(directory, `scale-${new Date().toISOString().slice(0, 10)}.json`);
  writeFileSync(path, composeScaleJson(conditions, results));
  return path;
}
