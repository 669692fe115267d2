// Runs test files in a copy, one after the other, up to the first that fails.
import { spawn } from 'node:child_process';
import { join } from 'node:path';

/** A fault may make a test wait for something that never comes. */
const fileTimeoutMs = 180_000;
const failedTest = /^\s*not ok \d+ - (.*)$/m;

/** The failed test, as `file: title`; null: all passed. */
export async function findFailure(
  directory: string,
  tests: readonly string[],
): Promise<string | null> {
  for (const file of tests) {
    const failure = await runFile(directory, file);
    if (failure !== null) return `${file}: ${failure}`;
  }
  return null;
}

/** The title of the first failed test; null: none failed. */
function runFile(directory: string, file: string): Promise<string | null> {
  const compiled = join('dist', file.replace(/\.ts$/, '.js'));
  const options = ['--test', `--test-timeout=${fileTimeoutMs}`, '--test-reporter=tap'];
  const runner = spawn(process.execPath, [...options, compiled], {
    cwd: directory,
    stdio: ['ignore', 'pipe', 'ignore'],
    env: { ...process.env, NODE_EXTRA_CA_CERTS: undefined },
  });
  const end = () => runner.kill();
  process.once('exit', end);
  let said = '';
  runner.stdout.on('data', (bytes: Buffer) => {
    said += bytes;
  });
  return new Promise((resolve, reject) => {
    runner.once('error', reject);
    runner.once('close', (code) => {
      process.off('exit', end);
      resolve(code === 0 ? null : (failedTest.exec(said)?.[1] ?? `exit ${code}`));
    });
  });
}
