// The real daemon, started by its own command line in front of a database, for one test file.

import { spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Ask, createAsk } from './ask.ts';
import { blackBox } from './black-box.ts';
import { command } from './command.ts';
import type { Database } from './database/mariadb.ts';
import { keySettings } from './database/server-key.ts';
import { eventually } from './eventually.ts';
import { formatSection, type Settings } from './ini-text.ts';
import { childrenOf, gone, isAlive, signal } from './processes.ts';
import { createWorkspace } from './workspace.ts';

/** The place of a running gateway: enough for another process to use it. */
export type Place = {
  readonly url: string;
  readonly port: number;
  /** The supervisor's pid. */
  readonly pid: number;
  readonly directory: string;
  readonly configPath: string;
  readonly pidfile: string;
  readonly logfile: string;
  readonly section: string;
};

/** A running gateway. The test that started it must stop it. */
export type Gateway = Ask &
  Omit<Place, 'logfile'> & {
    readonly place: Place;
    /** The pids of the workers that live now. */
    readonly workers: () => number[];
    readonly log: () => string;
    /** SIGTERM, and waits until the supervisor is gone; rejects when it does not go. */
    readonly stop: () => Promise<void>;
  };

/**
 * The database's address for the gateway: of a Database or of a fault proxy. Without a port, `host` is as in the configuration: several
 * candidates, each with its port.
 */
export type Target = Pick<Database, 'host' | 'user' | 'password' | 'name'> & {
  readonly port?: number;
  /** Keys of its servers, PEM; missing or null: they have none. */
  readonly serverKey?: string | null;
};

/**
 * Starts `dbhttpd --foreground -c … -s …`, listening on a port of the system's choice, with its output in the log. Rejects with the log's
 * text. A detached start has one process more, the launcher, and takes a quarter more of the processor.
 */
export async function startGateway(wish: {
  readonly database: Target;
  /** The database's unix socket, in the place of its host and port. */
  readonly overSocket?: string;
  readonly settings?: Settings;
  readonly section?: string;
  /** Sections that are served beside it (-m), by their names; `settings` are added to each one's database and account. */
  readonly beside?: Readonly<
    Record<string, { readonly database: Target; readonly settings?: Settings }>
  >;
  readonly env?: Readonly<Record<string, string>>;
  /** True: `dbhttpd -c … -s …`. By default it is if there is an access log, which in the foreground goes to stdout. */
  readonly detached?: boolean;
  /** The command's entry file; this checkout's own by default. */
  readonly command?: string;
}): Promise<Gateway> {
  const section = wish.section ?? 'world';
  let pid = 0;
  const workspace = createWorkspace('gw', () => endAbruptly(pid));
  const path = (name: string) => join(workspace.path, name);
  const configPath = path('gateway.ini');
  const pidfile = String(wish.settings?.pidfile ?? path('gateway.pid'));
  const logfile = String(wish.settings?.log ?? path('log'));
  const readLog = () => (existsSync(logfile) ? readFileSync(logfile, 'utf8') : '');
  const keyed = (target: Target, own: Settings = {}): Settings =>
    'tls' in own || 'socket' in own ? {} : keySettings(target);
  const settings: Settings = {
    ...accountOf(wish.database),
    ...(wish.overSocket === undefined
      ? { ...addressOf(wish.database), ...keyed(wish.database, wish.settings) }
      : { socket: wish.overSocket }),
    listen: '127.0.0.1:0',
    workers: 2,
    pidfile,
    log: logfile,
    // An earlier checkout's command may not know the key.
    ...(wish.command === undefined ? { state_dir: path('state') } : {}),
    ...wish.settings,
  };
  const beside = Object.entries(wish.beside ?? {});
  const sections = [
    formatSection(section, settings),
    ...beside.map(([name, { database, settings: own }]) =>
      formatSection(name, {
        ...accountOf(database),
        ...addressOf(database),
        ...keyed(database, own),
        ...own,
      }),
    ),
  ];
  writeFileSync(configPath, sections.join('\n'), { mode: 0o600 });
  const names = beside.length === 0 ? [] : ['-m', beside.map(([name]) => name).join(':')];

  try {
    const start: Start = {
      args: [wish.command ?? command, '-c', configPath, '-s', section, ...names],
      env: { ...process.env, NODE_TEST_CONTEXT: undefined, ...wish.env },
      readLog,
    };
    if (wish.detached ?? 'access_log' in settings) await launch(start);
    else await runInForeground(start, logfile, (child) => (pid = child));
    pid = existsSync(pidfile) ? Number(readFileSync(pidfile, 'utf8')) : 0;
    if (pid === 0) throw new Error(`dbhttpd: no pidfile\n${readLog()}`);
    const port = findPort(readLog());
    const url = `${'https_cert' in settings ? 'https' : 'http'}://127.0.0.1:${port}`;
    const place = { url, port, pid, section, configPath, pidfile, logfile };
    const gateway = openGateway({ ...place, directory: workspace.path });
    let lastLog: string | null = null;
    blackBox.add({ name: `the log of ${url}`, show: () => lastLog ?? readLog() });
    return {
      ...gateway,
      stop: async () => {
        await stopDaemon(pid, readLog);
        lastLog = readLog();
        workspace.remove();
      },
    };
  } catch (error) {
    endAbruptly(pid);
    workspace.remove();
    throw error;
  }
}

/** The gateway at this place, which another process has started and will stop. */
export function openGateway(place: Place): Omit<Gateway, 'stop'> {
  const { logfile, ...known } = place;
  return {
    ...createAsk(known.url),
    ...known,
    place,
    workers: () => childrenOf(place.pid),
    log: () => (existsSync(logfile) ? readFileSync(logfile, 'utf8') : ''),
  };
}

function accountOf({ name, user, password }: Target): Settings {
  return { database: name, user, ...(password === '' ? {} : { password }) };
}

function addressOf({ host, port }: Target): Settings {
  return port === undefined ? { host } : { host, port };
}

type Start = {
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly readLog: () => string;
};

/** Resolves when the command has started the gateway in the background. */
function launch({ args, env, readLog }: Start): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'], env });
    let output = '';
    child.stdout.on('data', (chunk) => (output += chunk));
    child.stderr.on('data', (chunk) => (output += chunk));
    child.once('error', reject);
    // A daemon that kept these pipes would hold 'close' back: 'exit' is the command's end.
    child.once('exit', (status) => {
      setImmediate(() => {
        child.stdout.destroy();
        child.stderr.destroy();
        if (status === 0) resolve();
        else reject(new Error(`dbhttpd: exit ${status}\n${output}\n${readLog()}`));
      });
    });
  });
}

/** Resolves when the gateway serves, in a session of its own, as below a service manager. `onPid` gets its pid before. */
async function runInForeground(
  { args, env, readLog }: Start,
  logfile: string,
  onPid: (pid: number) => void,
): Promise<void> {
  const [entry = '', ...further] = args;
  const earlier = readLog().length;
  const log = openSync(logfile, 'a');
  const child = spawn(process.execPath, [entry, '--foreground', ...further], {
    stdio: ['ignore', log, log],
    detached: true,
    env,
  });
  closeSync(log);
  if (child.pid !== undefined) onPid(child.pid);
  let hasEnded = false;
  child.once('error', () => (hasEnded = true)).once('exit', () => (hasEnded = true));
  await eventually('the gateway serves or has ended', () => {
    return hasEnded || / info \S+ listening /.test(readLog().slice(earlier));
  });
  if (hasEnded) throw new Error(`dbhttpd: exit ${child.exitCode}\n${readLog()}`);
  child.unref();
}

function findPort(log: string): number {
  const port = [...log.matchAll(/listening \S+:(\d+)/g)].at(-1)?.[1];
  if (port === undefined)
    throw new Error(`no line "listening <address>:<port>" in the log:\n${log}`);
  return Number(port);
}

async function stopDaemon(pid: number, readLog: () => string): Promise<void> {
  const workers = childrenOf(pid);
  signal(pid, 'SIGTERM');
  try {
    await gone(pid, 45_000);
    await Promise.all(workers.map((worker) => gone(worker)));
  } catch (error) {
    for (const left of [pid, ...workers]) signal(left, 'SIGKILL');
    throw new Error(`the gateway did not stop:\n${readLog()}`, { cause: error });
  }
}

function endAbruptly(pid: number): void {
  if (pid === 0 || !isAlive(pid)) return;
  for (const left of [...childrenOf(pid), pid]) signal(left, 'SIGKILL');
}
