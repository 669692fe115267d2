// One private database server: made, started, frozen, stopped, started again on the same port.
import type { ChildProcess } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { hasEnded, launchServer } from '../../../scripts/support/launch-server.ts';
import {
  findMariadb,
  freeLastingPort,
  freePort,
  listenArguments,
  openServerRoot,
  type ServerFiles,
  type ServerProgram,
  serverArguments,
  serverFiles,
  withoutTlsArguments,
} from '../../../scripts/support/private-server.ts';
import { createWorkspace } from '../workspace.ts';
import { fillDataDirectory } from './data-directory.ts';

/** A running server. It ends with this process, whatever happens to it; `remove` ends it at once. */
export type ServerProcess = {
  readonly port: number;
  readonly socket: string;
  readonly password: string;
  /** The pid of the server that runs now. Throws while none does. */
  readonly pid: () => number;
  readonly log: () => string;
  /** Ends the server and keeps its data. SIGKILL is the crash, SIGTERM the orderly shutdown. */
  readonly halt: (signal?: 'SIGTERM' | 'SIGKILL') => Promise<void>;
  /** Starts the halted server again, on the same port and socket. */
  readonly resume: () => Promise<void>;
  readonly remove: () => Promise<void>;
};

/** A folder with another server than the system's, and the libraries that it needs: scripts/matrix sets it. */
const rootVariable = 'DBHTTPD_TEST_SERVER_ROOT';

/** The options of a server, beside its arguments. */
export type ServerWish = {
  /** False: it offers none. */
  readonly tls?: boolean;
  /** `chooseProgram()` unless given. */
  readonly program?: ServerProgram;
  /** True: on a port that no client's connection is given, so that it is free whenever the server comes back. */
  readonly lastingPort?: boolean;
};

/** Creates and starts a server with these further arguments. Rejects with the server's log. */
export async function startServerProcess(
  further: readonly string[],
  { tls = true, program = chooseProgram(), lastingPort = false }: ServerWish = {},
): Promise<ServerProcess> {
  const args = [
    ...noWaitingArguments(program),
    ...further,
    ...(tls ? [] : withoutTlsArguments(program)),
  ];
  let child: ChildProcess | null = null;
  const workspace = createWorkspace('db', () => child?.kill('SIGKILL'));
  const files = serverFiles(workspace.path);
  const runAs = userToRunAs();
  const password = fillDataDirectory(files, program, runAs);

  const start = (port: number) => {
    const own = serverArguments(program, files, runAs);
    const options = [...own, ...listenArguments(files, port), ...args];
    return launchServer({ program, args: options, files, port, tied: true });
  };
  const findPort = lastingPort ? freeLastingPort : () => freePort();
  const { port, server } = await startOnFreePort(findPort, start, files);
  child = server;
  const halt = async (signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM') => {
    const ending = child;
    child = null;
    if (ending !== null) await end(ending, signal);
  };
  return {
    port,
    socket: files.socket,
    password,
    pid: () => {
      if (child?.pid === undefined) throw new Error('the server has been halted');
      return child.pid;
    },
    log: () => readLog(files),
    halt,
    resume: async () => {
      if (child === null) child = await start(port);
    },
    remove: async () => {
      await halt('SIGKILL');
      workspace.remove();
    },
  };
}

/** The server that is started here: that of `scripts/matrix`, else the system's MariaDB. Throws if there is none. */
export function chooseProgram(): ServerProgram {
  const root = process.env[rootVariable];
  if (root !== undefined) return openServerRoot(root);
  const program = findMariadb(process.env.PATH ?? '');
  if (program === null) throw new Error('mariadbd is missing: apt-get install mariadb-server-core');
  return program;
}

/** The user that a server runs as: it does not start as root without this setting. */
export function userToRunAs(): string | null {
  return process.getuid?.() === 0 ? 'root' : null;
}

/** Written data survive a kill of the server. The machine does not lose its power here, so nothing waits for the disk. */
function noWaitingArguments({ flavour }: ServerProgram): string[] {
  return flavour === 'mariadb' ? ['--innodb-flush-method=nosync'] : [];
}

// Between asking for a free port and using it, another process may take it.
async function startOnFreePort(
  findPort: () => Promise<number>,
  start: (port: number) => Promise<ChildProcess>,
  files: ServerFiles,
): Promise<{ port: number; server: ChildProcess }> {
  for (let attempt = 1; ; attempt += 1) {
    const port = await findPort();
    try {
      return { port, server: await start(port) };
    } catch (error) {
      if (attempt === 5 || !readLog(files).includes('Address already in use')) throw error;
    }
  }
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (hasEnded(child)) return;
  child.ref();
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const impatience = setTimeout(() => child.kill('SIGKILL'), 20_000);
  child.kill(signal);
  await ended;
  clearTimeout(impatience);
}

function readLog(files: ServerFiles): string {
  return existsSync(files.log) ? readFileSync(files.log, 'utf8') : '';
}
