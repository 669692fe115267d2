// A real Prometheus and its promtool: the system's, or what scripts/test has unpacked into its cache.
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { eventually } from './eventually.ts';
import { gone, signal } from './processes.ts';
import { createWorkspace } from './workspace.ts';

const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'dbhttpd/prometheus');
const env = { ...process.env, PATH: `${process.env.PATH}:${cache}/usr/bin` };

/** Tells whether both programs are here. */
export function hasPrometheus(): boolean {
  return ['prometheus', 'promtool'].every(
    (program) => spawnSync(program, ['--version'], { env }).error === undefined,
  );
}

/** Runs promtool with these arguments. Throws if the program is missing. */
export function promtool(args: readonly string[], input = ''): { ok: boolean; said: string } {
  const { error, status, stdout, stderr } = spawnSync('promtool', args, {
    env,
    input,
    encoding: 'utf8',
  });
  if (error !== undefined) throw error;
  return { ok: status === 0, said: stdout + stderr };
}

/** One series that a query has found: its labels and its value. */
export type FoundSeries = {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: number;
};

/** A running Prometheus. The caller must stop it. */
export type Prometheus = {
  /**
   * Evaluates an expression. Throws Prometheus' error if it does not understand the expression.
   * @param at seconds since 1970; now by default
   */
  readonly query: (expression: string, at?: number) => Promise<readonly FoundSeries[]>;
  /** Another request to its API: a path below /api/v1. */
  readonly ask: (path: string) => Promise<unknown>;
  readonly log: () => string;
  readonly stop: () => Promise<void>;
};

/** Starts it with this configuration, on a port of loopback and in a separate directory. Resolves when it is ready. */
export async function startPrometheus(configuration: string): Promise<Prometheus> {
  let pid = 0;
  const workspace = createWorkspace('prometheus', () => {
    if (pid !== 0) signal(pid, 'SIGKILL');
  });
  const path = (name: string) => join(workspace.path, name);
  mkdirSync(path('data'));
  writeFileSync(path('prometheus.yml'), configuration);
  const address = `127.0.0.1:${await findPort()}`;
  const child = spawn(
    'prometheus',
    [
      `--config.file=${path('prometheus.yml')}`,
      `--storage.tsdb.path=${path('data')}`,
      `--web.listen-address=${address}`,
    ],
    { env, stdio: ['ignore', 'ignore', 'pipe'] },
  );
  pid = child.pid ?? 0;
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  const stop = async () => {
    child.kill('SIGKILL');
    await gone(pid);
    workspace.remove();
  };
  const ask = async (way: string) => {
    const response = await fetch(`http://${address}/api/v1/${way}`);
    const answer = (await response.json()) as { status: string; data: unknown; error?: string };
    if (answer.status !== 'success') throw new Error(answer.error);
    return answer.data;
  };
  try {
    await eventually('Prometheus is ready', async () => {
      if (child.exitCode !== null) throw new Error(said);
      return (await fetch(`http://${address}/-/ready`)).ok;
    });
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    ask,
    query: async (expression, at) => {
      const time = at === undefined ? '' : `&time=${at}`;
      const found = await ask(`query?query=${encodeURIComponent(expression)}${time}`);
      return (found as Found).result.map(({ metric, value }) => ({
        metric,
        value: Number(value[1]),
      }));
    },
    log: () => said,
    stop,
  };
}

type Found = {
  readonly result: readonly {
    readonly metric: FoundSeries['metric'];
    readonly value: readonly [number, string];
  }[];
};

/** It takes no port of the system's choice: one that was free a moment ago. */
async function findPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise<void>((resolve) => server.close(() => resolve()));
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}
