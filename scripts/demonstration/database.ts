// The demo's MariaDB: an unprivileged, separate server that runs until `scripts/demo stop`.
import { spawnSync } from 'node:child_process';
import { chownSync, existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { greets, launchServer } from '../support/launch-server.ts';
import {
  createDataDirectory,
  findMariadb,
  freePort,
  listenArguments,
  type ServerFiles,
  type ServerProgram,
  serverArguments,
  serverFiles,
} from '../support/private-server.ts';
import { findRunning, stopRunning } from './running.ts';
import type { Places, State } from './state.ts';

/** How the server came to run. */
export type Begun = { readonly state: State; readonly what: 'running' | 'started' | 'created' };

/** Makes sure that the server runs. Rejects with its log. */
export async function ensureDatabase(places: Places, state: State): Promise<Begun> {
  const files = serverFiles(places.database);
  const running = findRunning(files.pidfile, usesData(files)) !== null;
  if (running && (await greets({ port: state.databasePort, socket: files.socket }))) {
    return { state, what: 'running' };
  }
  await stopDatabase(places);
  const program = findMariadb(process.env.PATH ?? '');
  if (program === null) throw new Error('mariadbd is missing');
  const runAs = findAccount(places);
  const fresh = state.databasePort === 0 || !existsSync(join(files.data, 'ibdata1'));
  if (fresh) create(places, files, program, state, runAs);
  const port = await freePort(state.databasePort);
  const args = [...serverArguments(program, files, runAs), ...listenArguments(files, port)];
  await launchServer({ program, args, files, port, tied: false });
  const worldVersion = fresh ? 0 : state.worldVersion;
  return {
    state: { ...state, databasePort: port, worldVersion },
    what: fresh ? 'created' : 'started',
  };
}

/** Ends the server; false when none runs. */
export function stopDatabase(places: Places): Promise<boolean> {
  const files = serverFiles(places.database);
  return stopRunning(files.pidfile, usesData(files));
}

function create(
  places: Places,
  files: ServerFiles,
  program: ServerProgram,
  state: State,
  runAs: string | null,
): void {
  rmSync(places.database, { recursive: true, force: true });
  mkdirSync(places.database, { mode: 0o700 });
  mkdirSync(files.data, { mode: 0o700 });
  mkdirSync(files.tmp, { mode: 0o700 });
  if (runAs !== null) {
    const [user, group] = ['-u', '-g'].map((option) => Number(ask('id', [option, runAs])));
    for (const path of [places.database, files.data, files.tmp]) {
      chownSync(path, user ?? 0, group ?? 0);
    }
  }
  createDataDirectory({ program, files, rootPassword: state.rootPassword, runAs });
}

/** As root, an account without rights runs the server. It must be able to reach the directory. */
function findAccount(places: Places): string | null {
  if (process.getuid?.() !== 0) return null;
  const account = ['mysql', 'nobody'].find((name) => ask('id', ['-u', name]) !== '');
  if (account === undefined) return 'root';
  const reach = ['--reuid', account, '--clear-groups', 'test', '-x', places.directory];
  if (spawnSync('setpriv', reach).status !== 0) {
    throw new Error(`the account ${account}, under which MariaDB runs, cannot reach ${places.directory}:
choose another directory with DBHTTPD_DEMO_DIR`);
  }
  return account;
}

function usesData(files: ServerFiles): (commandLine: string) => boolean {
  return (commandLine) => commandLine.split(' ').includes(`--datadir=${files.data}`);
}

function ask(command: string, args: readonly string[]): string {
  return spawnSync(command, args, { encoding: 'utf8' }).stdout?.trim() ?? '';
}
