// The demo's directory, and what it remembers from one run to the next.
import { createHash, randomBytes } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Passwords and ports of the demo; `worldVersion` is that of the loaded rows, 0 before any. */
export type State = {
  readonly rootPassword: string;
  readonly appPassword: string;
  readonly databasePort: number;
  readonly worldVersion: number;
};

/** The paths of all files of the demo. */
export type Places = {
  readonly directory: string;
  readonly database: string;
  readonly config: string;
  readonly pidfile: string;
  readonly log: string;
  /** The gateway's port, if it is free. */
  readonly wishedPort: number;
};

const usualPort = 9090;

/**
 * The demo's files: in DBHTTPD_DEMO_DIR, or in the user's folder for the state of programs, separate for each checkout. Root's home is
 * closed to the account that runs root's MariaDB, hence /var/lib.
 */
export function findPlaces(env: NodeJS.ProcessEnv): Places {
  const ordinary = env.XDG_STATE_HOME || join(homedir(), '.local/state');
  const base = process.getuid?.() === 0 ? '/var/lib' : ordinary;
  const checkout = fileURLToPath(new URL('../../..', import.meta.url));
  const name = createHash('sha256').update(checkout).digest('hex').slice(0, 8);
  const directory = resolve(env.DBHTTPD_DEMO_DIR || join(base, 'dbhttpd-demo', name));
  return {
    directory,
    database: join(directory, 'db'),
    config: join(directory, 'dbhttpd.ini'),
    pidfile: join(directory, 'dbhttpd.pid'),
    log: join(directory, 'dbhttpd.log'),
    wishedPort: Number(env.DBHTTPD_DEMO_PORT ?? usualPort),
  };
}

/**
 * Reads what the last run wrote, or creates and writes a new state: from then on the demo's names in the directory are its own. Throws
 * if another program's files have these names.
 */
export function ensureState(places: Places): State {
  mkdirSync(places.directory, { recursive: true, mode: 0o755 });
  const before = readState(places);
  if (before !== null) return before;
  const foreign = readdirSync(places.directory).filter((name) => ownName.test(name));
  if (foreign.length > 0) {
    const paths = foreign.map((name) => join(places.directory, name)).join(', ');
    throw new Error(`the demo needs these names, and has not made these files: ${paths}
choose an empty directory with DBHTTPD_DEMO_DIR`);
  }
  const password = () => randomBytes(15).toString('hex');
  const passwords = { rootPassword: password(), appPassword: password() };
  const state = { ...passwords, databasePort: 0, worldVersion: 0 };
  writeState(places, state);
  return state;
}

/** Writes the state, completely or not at all. */
export function writeState(places: Places, state: State): void {
  const path = stateFile(places);
  writeFileSync(`${path}.new`, `${JSON.stringify(state, null, 2)}\n`, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

/** The names of the demo's files, and of those that its gateway keeps beside its pidfile. */
const ownName = /^(?:db|state\.json|dbhttpd[.-].*)$/;

/** Deletes the demo's files, and its directory if nothing else is in it. Says what it has done. */
export function removeFiles(places: Places): string {
  const { directory } = places;
  // Without its state it is another program's directory, whatever the names in it.
  if (readState(places) === null) return `there is no demo in ${directory}`;
  for (const name of readdirSync(directory)) {
    if (ownName.test(name)) rmSync(join(directory, name), { recursive: true });
  }
  const left = readdirSync(directory).map((name) => join(directory, name));
  if (left.length > 0) return `removed the demo's files; these remain: ${left.join(', ')}`;
  rmdirSync(directory);
  return `removed ${directory}`;
}

/** The state in the directory; null if there is none, or if `state.json` is another program's. */
function readState(places: Places): State | null {
  if (!existsSync(stateFile(places))) return null;
  try {
    const state = JSON.parse(readFileSync(stateFile(places), 'utf8'));
    const { rootPassword, appPassword, databasePort, worldVersion } = state;
    const texts = [rootPassword, appPassword].every((value) => typeof value === 'string');
    return texts && Number.isInteger(databasePort) && Number.isInteger(worldVersion) ? state : null;
  } catch {
    return null;
  }
}

function stateFile(places: Places): string {
  return join(places.directory, 'state.json');
}
