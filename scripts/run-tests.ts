// Runs the test files under Node's own runner: one MariaDB for all of them, one temporary directory for the run.
// Must not know what is tested. A process that outlives the tests is a failure of the run.
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from '../test/support/eventually.ts';
import { type Database, describeServer, startDatabase } from '../test/support/mariadb.ts';

const fileTimeoutMs = 300_000;
const concurrency = 2;

const files = findTests(process.argv.slice(2));
if (files.length === 0) {
  console.error('no test file has that in its path');
  process.exit(1);
}
// Everything that the tests start inherits TMPDIR: that is how what they leave behind is recognised.
const directory = mkdtempSync(join(tmpdir().length > 40 ? '/tmp' : tmpdir(), 'dbhttpd-run-'));
process.env.TMPDIR = directory;
process.once('exit', () => rmSync(directory, { recursive: true, force: true }));

const database = await startDatabase();
console.log(`  ${files.length} files, ${database.flavour} ${database.version}`);
const status = await runNode(files, database);
await database.stop();
const left = await survivors();
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

function runNode(tests: readonly string[], server: Database): Promise<number> {
  const options = [`--test-concurrency=${concurrency}`, `--test-timeout=${fileTimeoutMs}`];
  const runner = spawn(process.execPath, ['--test', ...options, ...tests], {
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...process.env, ...describeServer(server) },
  });
  process.once('exit', () => runner.kill());
  return new Promise((resolve, reject) => {
    runner.once('error', reject);
    runner.once('exit', (code) => resolve(code ?? 1));
  });
}

type Survivor = { readonly pid: number; readonly command: string };

/** Processes of this run that still live after a moment in which the last of them may go. */
async function survivors(): Promise<Survivor[]> {
  try {
    await eventually('all is gone', () => ours().length === 0, { timeoutMs: 3000, everyMs: 50 });
    return [];
  } catch {
    return ours();
  }
}

function ours(): Survivor[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((pid) => read(`/proc/${pid}/environ`).split('\0').includes(`TMPDIR=${directory}`))
    .map((pid) => ({
      pid: Number(pid),
      command: read(`/proc/${pid}/cmdline`).replaceAll('\0', ' '),
    }));
}

function read(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return '';
  }
}
