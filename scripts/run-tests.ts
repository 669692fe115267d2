// Runs the test files under Node's own runner: one MariaDB for all of them, one temporary directory for the run.
// Must not know what is tested. A process that outlives the tests is a failure of the run.
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { shareDataDirectory } from '../test/support/database/data-directory.ts';
import {
  type Database,
  describeServer,
  isServerGiven,
  startDatabase,
} from '../test/support/database/mariadb.ts';
import { chooseProgram, userToRunAs } from '../test/support/database/server-process.ts';
import { openRunDirectory, survivors } from './support/survivors.ts';

// Whatever was started ends with this process, and its directory goes.
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => process.exit(130));

const fileTimeoutMs = 300_000;
/** One more than there are cores, where there are two: with two files at a time both stood idle for long, waiting for servers; with four, clocks ran out. */
const concurrency = 3;
/**
 * Taken from the tests' environment: they ask nobody outside, and Node reads these authorities anew in every process that it starts, for a
 * tenth of a second of the processor. The tests start some thousands.
 */
const furtherAuthorities = 'NODE_EXTRA_CA_CERTS';
/** In the head of a file whose bounds of time are narrow: what runs beside it would be measured with it. */
const aloneMark = /^\/\/ Runs alone\b/m;

const files = findTests(process.argv.slice(2));
if (files.length === 0) {
  console.error('no test file has that in its path');
  process.exit(1);
}
const directory = openRunDirectory('dbhttpd-run-');

if (!isServerGiven()) shareDataDirectory(join(directory, 'data'), chooseProgram(), userToRunAs());
const database = await startDatabase();
console.log(`  ${files.length} files, ${database.flavour} ${database.version}`);
const { alone = [], together = [] } = groupFiles(files);
// The many come last: their summary is the run's. What has failed before them is not to be lost above it.
let status = alone.length === 0 ? 0 : await runNode(alone, 1, database);
if (status === 0 && together.length > 0) status = await runNode(together, concurrency, database);
await database.stop();
const left = await survivors(directory);
for (const { pid, command } of left) {
  console.error(`left behind by a test, ended now: ${pid} ${command}`);
  process.kill(pid, 'SIGKILL');
}
process.exitCode = left.length > 0 ? 1 : status;

/** Compiled test files whose path contains one of the words; sources decide, not what an old build left. */
function findTests(words: readonly string[]): string[] {
  return ['test/unit', 'test/behaviour']
    .flatMap((folder) =>
      readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)),
    )
    .filter((path) => path.endsWith('.test.ts'))
    .filter((path) => words.length === 0 || words.some((word) => path.includes(word)))
    .sort()
    .map((path) => join('dist', path.replace(/\.ts$/, '.js')));
}

function groupFiles(tests: readonly string[]): { alone?: string[]; together?: string[] } {
  const groups: { alone?: string[]; together?: string[] } = {};
  for (const path of tests) {
    const source = readFileSync(path.replace(/^dist\//, '').replace(/\.js$/, '.ts'), 'utf8');
    const group = aloneMark.test(source) ? 'alone' : 'together';
    groups[group] ??= [];
    groups[group].push(path);
  }
  return groups;
}

function runNode(tests: readonly string[], atOnce: number, server: Database): Promise<number> {
  const options = [`--test-concurrency=${atOnce}`, `--test-timeout=${fileTimeoutMs}`];
  const reporter = new URL('support/tap-reporter.js', import.meta.url).href;
  // People at a terminal get Node's own.
  if (!process.stdout.isTTY) {
    options.push(`--test-reporter=${reporter}`, '--test-reporter-destination=stdout');
  }
  const runner = spawn(process.execPath, ['--test', ...options, ...tests], {
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...process.env, [furtherAuthorities]: undefined, ...describeServer(server) },
  });
  process.once('exit', () => runner.kill());
  return new Promise((resolve, reject) => {
    runner.once('error', reject);
    runner.once('exit', (code) => resolve(code ?? 1));
  });
}
