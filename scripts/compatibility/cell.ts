// Runs the tests in one cell of the matrix: on one Node, against one server.
import { spawn } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { finished } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import type { InstalledNode } from './nodes.ts';
import type { Installed } from './servers.ts';
import { readFailure, readTap, type Tally } from './tap.ts';

const runner = fileURLToPath(new URL('../run-tests.js', import.meta.url));
const longestMs = 25 * 60_000;
const progressMs = 60_000;

/** Runs the tests to their end, for at most 25 minutes. Their whole output goes to `logPath`. */
export async function runCell(wish: {
  readonly server: Installed;
  readonly node: InstalledNode;
  readonly words: readonly string[];
  readonly logPath: string;
  readonly say: (line: string) => void;
}): Promise<Tally> {
  const { server, node, words, logPath, say } = wish;
  const root = server.root === null ? {} : { DBHTTPD_TEST_SERVER_ROOT: server.root };
  const { DBHTTPD_TEST_MYSQL: _, ...inherited } = process.env;
  const child = spawn(join(node.directory, 'node'), [runner, ...words], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...inherited,
      ...root,
      PATH: `${node.directory}:${process.env.PATH}`,
    },
  });
  // On SIGTERM the runner ends what it has started.
  const end = () => child.kill('SIGTERM');
  process.once('exit', end);
  const limit = setTimeout(end, longestMs);
  const log = createWriteStream(logPath);
  const said: string[] = [];
  let tests = 0;
  const progress = setInterval(() => say(`  … ${tests} tests`), progressMs);
  const listen = async (stream: NodeJS.ReadableStream) => {
    for await (const line of createInterface({ input: stream })) {
      log.write(`${line}\n`);
      said.push(line);
      if (/^(not )?ok /.test(line)) tests += 1;
      const failure = readFailure(line);
      if (failure !== null) say(`  failed: ${failure}`);
    }
  };
  const status = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  try {
    await Promise.all([status, listen(child.stdout), listen(child.stderr)]);
    return judge(said, await status);
  } finally {
    clearTimeout(limit);
    clearInterval(progress);
    process.off('exit', end);
    log.end();
    await finished(log);
  }
}

/** If a run ended badly without a failed test (something left behind, no end), it counts as a failure. */
function judge(said: readonly string[], status: number | null): Tally {
  const tally = readTap(said.join('\n'));
  if (tally === null) {
    const last = said.slice(-5).join('\n    ');
    return {
      passed: 0,
      failed: 1,
      skipped: 0,
      failures: [`the run did not come to its end (exit ${status})\n    ${last}`],
      skips: [],
    };
  }
  if (status === 0 || tally.failed > 0) return tally;
  const reason = said.find((line) => line.startsWith('left behind')) ?? `exit ${status}`;
  return { ...tally, failed: 1, failures: [reason] };
}
