// The HTTP servers under test: the gateway and the peers, each with the same number of processes and connections.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startGateway } from '../../test/support/gateway.ts';
import type { Settings } from '../../test/support/ini-text.ts';
import { type Database, keysTable } from './database.ts';
import type { Client, Peer } from './peers.ts';
import { namedStatements, workloads } from './workloads.ts';

/** Worker processes of each server, and MySQL connections of each worker. */
export const crew = { workers: 2, pool: 10 } as const;

/** A server that listens on 127.0.0.1. The caller must stop it. */
export type Server = {
  readonly port: number;
  /** The root of its processes. */
  readonly pid: number;
  /** Before the question mark of a workload's URL. */
  readonly path: (workload: string) => string;
  /** The protocol of its requests. `v1-keys` is with an Idempotency-Key, `v1-named` calls the named statement of the workload. A batch goes to `/v1/batch` of every server. */
  readonly speaks: 'db' | 'db-post' | 'v1' | 'v1-keys' | 'v1-named';
  /** Cuts what it has logged: no measurement pays for a disk that others have filled. */
  readonly trimLogs: () => void;
  readonly stop: () => Promise<void>;
};

/** Reply sizes by workload, for the constants. */
export type Sizes = ReadonlyMap<string, number>;

/**
 * Starts one peer. Rejects when it does not listen within 15 s. The C client is no server.
 * @param before the checkout, with its build, that `gateway-before` runs from; null: it takes no part
 */
export async function startServer(
  peer: Exclude<Peer, Client>,
  database: Database,
  sizes: Sizes,
  before: string | null,
): Promise<Server> {
  switch (peer) {
    case 'gateway':
      return startLoggingGateway(database);
    case 'gateway-unix':
      return startLoggingGateway(database, {}, { overSocket: database.socket });
    case 'gateway-unlogged':
      return startLoggingGateway(database, { access_log: 'off' });
    case 'gateway-post':
      return { ...(await startLoggingGateway(database)), speaks: 'db-post' };
    case 'gateway-v1':
      return { ...(await startLoggingGateway(database)), speaks: 'v1' };
    case 'gateway-keys': {
      const settings = { idempotency_table: keysTable };
      return { ...(await startLoggingGateway(database, settings)), speaks: 'v1-keys' };
    }
    case 'gateway-named':
      return startNamingGateway(database);
    case 'gateway-before':
      return startLoggingGateway(database, {}, { command: commandOf(before ?? '') });
    case 'fastify':
      return startFastify('plain', database);
    case 'fastify-tuned':
      return startFastify('tuned', database);
    case 'constant':
      return startConstant('rr', sizes);
    case 'constant-none':
      return startConstant('none', sizes);
    default:
      throw new Error(`no such server: ${peer satisfies never}`);
  }
}

/** The command's entry file in a checkout that has been built. */
function commandOf(checkout: string): string {
  const manifest = readFileSync(join(checkout, 'package.json'), 'utf8');
  const { bin } = JSON.parse(manifest) as { bin: { dbhttpd: string } };
  return join(checkout, bin.dbhttpd);
}

/** Starts a gateway with everything on that it promises, the access log included. It cannot be without metrics. */
export async function startLoggingGateway(
  database: Database,
  further: Settings = {},
  how: { readonly overSocket?: string; readonly command?: string } = {},
): Promise<Server> {
  const gateway = await startGateway({
    database,
    ...how,
    settings: { ...crew, access_log: 'json', ...further },
    section: database.name,
  });
  const accessLog = join(gateway.directory, 'log.access.log');
  const trimLogs = () => {
    // The gateway appends, so its next line is the first of the file.
    if (existsSync(accessLog)) truncateSync(accessLog);
  };
  return { ...gateway, path: () => '/db', speaks: 'db', trimLogs };
}

/** The same, with a named statement for each workload that is one statement. */
async function startNamingGateway(database: Database): Promise<Server> {
  const directory = mkdtempSync(join(tmpdir(), 'dbhttpd-bench-named-'));
  const remove = () => rmSync(directory, { recursive: true });
  try {
    writeFileSync(join(directory, 'workloads.sql'), namedStatements(workloads), { mode: 0o640 });
    const gateway = await startLoggingGateway(database, { named: directory });
    return { ...gateway, speaks: 'v1-named', stop: () => gateway.stop().finally(remove) };
  } catch (error) {
    remove();
    throw error;
  }
}

function startFastify(style: 'plain' | 'tuned', database: Database): Promise<Server> {
  const { host, port, user, password, name } = database;
  const account = [host, String(port), user, password, name];
  const args = [style, String(crew.workers), String(crew.pool), ...account];
  return startPeer('fastify', args, () => '/db');
}

function startConstant(scheduling: 'rr' | 'none', sizes: Sizes): Promise<Server> {
  const bodies = [...sizes].map(([workload, bytes]) => `/${workload}=${bytes}`);
  return startPeer('constant', [String(crew.workers), scheduling, ...bodies], (name) => `/${name}`);
}

async function startPeer(
  name: string,
  args: readonly string[],
  path: (workload: string) => string,
): Promise<Server> {
  // A separate session, as the gateway has. Linux divides the processor among sessions first (autogroup), and the same server measured 7 %
  // apart inside and outside of the benchmark's session.
  const options = { detached: true };
  const child = fork(join(import.meta.dirname, 'peers', `${name}.js`), args, options);
  try {
    const port = await listening(name, child);
    const stop = () => stopChild(child);
    return { port, pid: child.pid ?? 0, path, speaks: 'db', trimLogs: () => {}, stop };
  } catch (error) {
    await stopChild(child);
    throw error;
  }
}

async function listening(name: string, child: ChildProcess): Promise<number> {
  const giveUp = new AbortController();
  const timer = setTimeout(() => giveUp.abort(), 15_000);
  child.once('exit', () => giveUp.abort());
  try {
    const [message] = (await once(child, 'message', { signal: giveUp.signal })) as [
      { port: number },
    ];
    return message.port;
  } catch (cause) {
    throw new Error(`the peer ${name} does not listen`, { cause });
  } finally {
    clearTimeout(timer);
  }
}

// Closing the channel ends the primary, and its end the workers.
async function stopChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const impatience = setTimeout(() => child.kill('SIGKILL'), 5_000);
  const ended = once(child, 'exit');
  if (child.connected) child.disconnect();
  await ended;
  clearTimeout(impatience);
}
