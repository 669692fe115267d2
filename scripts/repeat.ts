// Runs the whole suite again and again, alone or beside endless loops, and adds a line for each run to the table in test/runs.md.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { appendFileSync, createWriteStream, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import { parseArgs } from 'node:util';
import { readTap, type Tally } from './compatibility/tap.ts';

const help = `Usage: scripts/repeat [<runs>] [--busy]    (10)

Runs all tests several times and adds a line for each run to test/runs.md. Keeps the output of a failed run and prints its path.
Exits with 1 if a run has failed.

  --busy   run an endless loop on every core meanwhile
`;
const tablePath = 'test/runs.md';
/** Everything that decides how a run ends. The table itself does not. */
const sources = ['src', 'test', 'scripts', 'package-lock.json', `:(exclude)${tablePath}`];
const runner = 'dist/scripts/run-tests.js';

type Run = { readonly tally: Tally | null; readonly status: number | null; readonly ms: number };

const { runs, isBusy } = readCommand();
const loops = isBusy ? startLoops(availableParallelism()) : [];
let suite: ChildProcess | null = null;
// However this ends, neither the loops nor the suite go on.
process.once('exit', () => {
  for (const loop of loops) loop.kill('SIGKILL');
  suite?.kill('SIGTERM');
});
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => process.exit(130));

const directory = mkdtempSync(join(tmpdir(), 'dbhttpd-repeat-'));
let failedRuns = 0;
for (let number = 1; number <= runs; number += 1) {
  const log = join(directory, `run-${number}.log`);
  const run = await runSuite(log);
  const line = describeRun(run);
  appendFileSync(tablePath, `${line}\n`);
  console.log(line);
  if (hasPassed(run)) rmSync(log);
  else {
    failedRuns += 1;
    console.log(describeFailures(run, log));
  }
}
if (failedRuns === 0) rmSync(directory, { recursive: true });
console.log(`${runs - failedRuns} of ${runs} runs passed`);
process.exit(failedRuns === 0 ? 0 : 1);

function readCommand(): { runs: number; isBusy: boolean } {
  const options = { busy: { type: 'boolean' }, help: { type: 'boolean' } } as const;
  try {
    const { values, positionals } = parseArgs({ options, allowPositionals: true });
    const count = Number(positionals[0] ?? 10);
    if (values.help) {
      process.stdout.write(help);
      process.exit(0);
    }
    if (positionals.length <= 1 && Number.isInteger(count) && count > 0) {
      return { runs: count, isBusy: values.busy ?? false };
    }
  } catch {
    // An unknown option: the same answer as to a bad number.
  }
  process.stderr.write(help);
  process.exit(64);
}

function startLoops(count: number): ChildProcess[] {
  return Array.from({ length: count }, () =>
    spawn('sh', ['-c', 'while :; do :; done'], { stdio: 'ignore' }),
  );
}

async function runSuite(logPath: string): Promise<Run> {
  const log = createWriteStream(logPath);
  const startedAt = performance.now();
  const child = spawn(process.execPath, [runner], { stdio: ['ignore', 'pipe', 'pipe'] });
  suite = child;
  child.stdout.pipe(log, { end: false });
  child.stderr.pipe(log, { end: false });
  const status = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  suite = null;
  log.end();
  await finished(log);
  return {
    status,
    tally: readTap(readFileSync(logPath, 'utf8')),
    ms: performance.now() - startedAt,
  };
}

function hasPassed({ status, tally }: Run): boolean {
  return status === 0 && tally !== null && tally.failed === 0;
}

function describeRun(run: Run): string {
  const { passed = 0, failed = 0, skipped = 0 } = run.tally ?? {};
  const cells = [
    new Date().toISOString().slice(0, 16).replace('T', ' '),
    hashSources(),
    `${process.version}, ${availableParallelism()} cores`,
    isBusy ? `beside ${loops.length} endless loops` : 'alone',
    `${Math.floor(run.ms / 60_000)} min ${Math.round((run.ms % 60_000) / 1000)} s`,
    passed,
    failed,
    skipped,
    hasPassed(run) ? 'passed' : 'FAILED',
  ];
  return `| ${cells.join(' | ')} |`;
}

function describeFailures({ tally, status }: Run, log: string): string {
  const failures = tally?.failures ?? [`no summary, exit ${status}`];
  return [...failures.map((failure) => `  failed: ${failure}`), `  the output: ${log}`].join('\n');
}

/** A short name for the sources as they are committed; a + says that the working tree differs from them. */
function hashSources(): string {
  const git = (...args: readonly string[]) => execFileSync('git', args, { encoding: 'utf8' });
  const tree = git('ls-tree', '-r', 'HEAD', '--', ...sources.filter((path) => path[0] !== ':'))
    .split('\n')
    .filter((line) => !line.endsWith(tablePath))
    .join('\n');
  const hash = execFileSync('git', ['hash-object', '--stdin'], { input: tree, encoding: 'utf8' });
  const isDirty = git('status', '--porcelain', '--', ...sources).trim() !== '';
  return `${hash.slice(0, 10)}${isDirty ? '+' : ''}`;
}
