// The real command in a separate directory: started, watched by its pidfile and log, stopped.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { blackBox } from './black-box.ts';
import { command } from './command.ts';
import { childrenOf, gone, isAlive, signal, startOf } from './processes.ts';

/** The output and status of a finished command. */
export type Finished = {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
};

/** One section in one directory. */
export type Daemon = {
  readonly directory: string;
  readonly configPath: string;
  readonly pidfile: string;
  readonly log: string;
  /** Missing until something is put there. */
  readonly stateDir: string;
  readonly start: (env?: NodeJS.ProcessEnv) => Promise<Finished>;
  readonly run: (args: readonly string[], env?: NodeJS.ProcessEnv) => Promise<Finished>;
  /** Runs the command; the caller must end it. */
  readonly spawn: (args: readonly string[], env?: NodeJS.ProcessEnv) => ChildProcess;
  /** The pidfile's process. Throws if there is no pidfile. */
  readonly pid: () => number;
  readonly findPid: () => number | null;
  readonly workers: () => readonly number[];
  readonly readLog: () => string;
  /** host:port of the last `listening` line. */
  readonly address: () => string;
  readonly configure: (settings: Settings) => void;
  /** Stops what runs, waits until it is gone, removes the directory. */
  readonly dispose: () => Promise<void>;
};

/** Keys of the section; null leaves a key out. */
export type Settings = Readonly<Record<string, string | null>>;

/** Runs the command to its end. @param runner node, and what runs before it */
export async function runCommand(
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
  [program, ...before]: readonly [string, ...string[]] = [process.execPath],
): Promise<Finished> {
  const child = spawn(program, [...before, command, ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const status = await new Promise<number | null>((resolve) => child.once('close', resolve));
  return { status, stdout, stderr };
}

/** The session that a process belongs to. */
export function sessionOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[3]);
}

const defaults: Settings = {
  database: 'world',
  host: '127.0.0.1',
  // No server listens there: these tests need no database.
  port: '1',
  user: 'app',
  listen: '127.0.0.1:0',
  workers: '1',
};

/** A daemon of one test, disposed of when that has ended, whatever its end is. */
export function daemonFor(t: TestContext, settings: Settings = {}): Daemon {
  const daemon = createDaemon(settings);
  t.after(daemon.dispose);
  return daemon;
}

/** Writes a configuration into a new directory. The caller disposes of it. */
export function createDaemon(settings: Settings = {}): Daemon {
  const directory = mkdtempSync(join(tmpdir(), 'dbhttpd-'));
  const configPath = join(directory, 'dbhttpd.ini');
  const pidfile = join(directory, 'world.pid');
  const log = join(directory, 'world.log');
  const stateDir = join(directory, 'state');
  // With their starts: in a long run the system gives a pid to another process.
  const started = new Map<number, number | null>();
  const target = ['-c', configPath, '-s', 'world'];
  // A test may configure another one. Its process must not survive a test that fails.
  let configuredPidfile = pidfile;
  const configure = (changed: Settings) => {
    const all = { ...defaults, pidfile, log, state_dir: stateDir, ...changed };
    if (all.pidfile !== null) configuredPidfile = String(all.pidfile);
    const lines = Object.entries(all).flatMap(([key, value]) =>
      value === null ? [] : [`${key} = ${value}`],
    );
    writeFileSync(configPath, `[world]\n${lines.join('\n')}\n`, { mode: 0o600 });
  };
  const read = (path: string) => {
    try {
      return readFileSync(path, 'utf8');
    } catch {
      return '';
    }
  };
  const findPid = () => {
    const found = Number(read(configuredPidfile));
    if (found === 0) return null;
    if (found !== process.pid && !started.has(found)) started.set(found, startOf(found));
    return found;
  };
  const pid = () => {
    const found = findPid();
    // Never 0: as the target of a signal that would be our own process group.
    if (found === null) throw new Error(`no pidfile; the log says:\n${read(log)}`);
    return found;
  };
  configure(settings);
  let lastLog: string | null = null;
  blackBox.add({ name: `the log in ${directory}`, show: () => lastLog ?? read(log) });
  return {
    directory,
    configPath,
    pidfile,
    log,
    stateDir,
    configure,
    pid,
    findPid,
    run: (args, env) => runCommand([...args, ...target], env),
    spawn: (args, env) =>
      spawn(process.execPath, [command, ...args, ...target], {
        env: { ...process.env, ...env },
        stdio: ['ignore', 'pipe', 'pipe'],
      }),
    start: async (env) => {
      const finished = await runCommand(target, env);
      findPid();
      return finished;
    },
    workers: () => childrenOf(pid()),
    readLog: () => read(log),
    address: () => [...read(log).matchAll(/ listening (\S+)$/gm)].at(-1)?.[1] ?? '',
    dispose: async () => {
      const running = findPid();
      if (running !== null && started.has(running)) {
        const workers = childrenOf(running);
        signal(running, 'SIGTERM');
        // A test may have left some of them stopped.
        for (const one of [running, ...workers]) signal(one, 'SIGCONT');
      }
      try {
        await Promise.all(remaining(started).map((one) => gone(one)));
      } finally {
        for (const one of remaining(started)) endAbruptly(one);
        lastLog = read(log);
        rmSync(directory, { recursive: true, force: true });
      }
    },
  };
}

function remaining(started: ReadonlyMap<number, number | null>): readonly number[] {
  return [...started]
    .filter(([pid, start]) => start !== null && startOf(pid) === start)
    .map(([pid]) => pid);
}

function endAbruptly(pid: number): void {
  for (const one of isAlive(pid) ? [...childrenOf(pid), pid] : []) signal(one, 'SIGKILL');
}
