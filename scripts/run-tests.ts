// Runs the test files with Node's own runner: one MariaDB for all of them, one gateway for each folder that shares one. If a process
// outlives the tests, the run fails.
import { join, relative, resolve } from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { shareDataDirectory } from '../test/support/database/data-directory.ts';
import {
  type Database,
  describeServer,
  isServerGiven,
  startDatabase,
} from '../test/support/database/mariadb.ts';
import { chooseProgram, userToRunAs } from '../test/support/database/server-process.ts';
import { startSharedGateways } from '../test/support/shared-gateway.ts';
import { joinChangedProgram } from './support/program.ts';
import { openRunDirectory, survivors } from './support/survivors.ts';
import reportTap from './support/tap-reporter.ts';
import { describeSlowest, type Timed } from './testing/slowest.ts';
import { compiled, findTests, sharingFolders } from './testing/test-files.ts';
import { divide, writeGroups } from './testing/unit-groups.ts';

// Everything that this process starts ends with it, and its directory is removed.
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => process.exit(130));

const fileTimeoutMs = 300_000;
/**
 * At least two more than there are cores, because every file waits for a server or a process now and then. Measured with two, three and
 * four files at a time.
 */
const concurrency = 4;
/**
 * Removed from the tests' environment. The tests ask no server outside, and Node reads further authorities again in every process that it
 * starts, which takes a tenth of a second of the processor; the tests start thousands of processes. A shell would read BASH_ENV.
 */
const removedVariables = ['NODE_EXTRA_CA_CERTS', 'BASH_ENV'];

const words = process.argv.slice(2).filter((word) => word !== '--slowest');
const isSlowestWanted = process.argv.includes('--slowest');
const files = findTests(words);
if (files.length === 0) {
  console.error('no test file has one of these words in its path');
  process.exit(1);
}
// The tests start what is installed. `tsc` does not make it.
await joinChangedProgram(resolve(import.meta.dirname, '../..'));
const directory = openRunDirectory('dbhttpd-run-');
if (!isServerGiven()) shareDataDirectory(join(directory, 'data'), chooseProgram(), userToRunAs());
const database = await startDatabase();
console.log(`  ${files.length} files, ${database.flavour} ${database.version}`);
const { hasFailed, timed } = await runFiles(database);
await database.stop();
if (isSlowestWanted) console.log(describeSlowest(timed));
const left = await survivors(directory);
for (const { pid, command } of left) {
  console.error(`left behind by a test, ended now: ${pid} ${command}`);
  process.kill(pid, 'SIGKILL');
}
process.exitCode = hasFailed || left.length > 0 ? 1 : 0;

/** Runs all files. Their reports go to stdout, as TAP, or in Node's own form at a terminal. */
async function runFiles(server: Database): Promise<{ hasFailed: boolean; timed: Timed[] }> {
  const shared = await startSharedGateways(sharingFolders(files), server);
  Object.assign(process.env, describeServer(server), shared.env);
  for (const name of removedVariables) delete process.env[name];
  const timed: Timed[] = [];
  let hasFailed = false;
  const { groups, alone } = divide(files);
  const entries = [...alone.map(compiled), ...writeGroups(groups)];
  const events = run({ files: entries, concurrency, timeout: fileTimeoutMs });
  events.on('test:fail', () => {
    hasFailed = true;
  });
  events.on('test:complete', ({ name, file, details }) => {
    timed.push({ name, file: relative('dist', file ?? name), durationMs: details.duration_ms });
  });
  const report = events.compose(process.stdout.isTTY ? new spec() : reportTap);
  for await (const text of report) process.stdout.write(String(text));
  await shared.stop();
  return { hasFailed, timed };
}
