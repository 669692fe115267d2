// The demo's directory, and what it remembers from one run to the next.
// Must not know how servers are started.
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** Passwords and ports of the demo; `worldVersion` is that of the loaded rows, 0 before any. */
export type State = {
  readonly rootPassword: string;
  readonly appPassword: string;
  readonly databasePort: number;
  readonly worldVersion: number;
};

/** Where everything of the demo lives. */
export type Places = {
  readonly directory: string;
  readonly database: string;
  readonly config: string;
  readonly pidfile: string;
  readonly log: string;
};

/**
 * The demo's files: below DBHTTPD_DEMO_DIR, or where programs of this user keep their state. Root's home is
 * closed to the account that root's demo runs MariaDB under, hence /var/lib.
 */
export function findPlaces(env: NodeJS.ProcessEnv): Places {
  const ordinary = join(env.XDG_STATE_HOME || join(homedir(), '.local/state'), 'dbhttpd-demo');
  const asRoot = process.getuid?.() === 0 ? '/var/lib/dbhttpd-demo' : ordinary;
  const directory = env.DBHTTPD_DEMO_DIR || asRoot;
  return {
    directory,
    database: join(directory, 'db'),
    config: join(directory, 'dbhttpd.ini'),
    pidfile: join(directory, 'dbhttpd.pid'),
    log: join(directory, 'dbhttpd.log'),
  };
}

/** What the last run wrote, or a beginning. */
export function readState(places: Places): State {
  mkdirSync(places.directory, { recursive: true, mode: 0o755 });
  const path = stateFile(places);
  if (existsSync(path)) return JSON.parse(readFileSync(path, 'utf8')) as State;
  const password = () => randomBytes(15).toString('hex');
  return { rootPassword: password(), appPassword: password(), databasePort: 0, worldVersion: 0 };
}

/** Remembers, whole or not at all. */
export function writeState(places: Places, state: State): void {
  const path = stateFile(places);
  writeFileSync(`${path}.new`, `${JSON.stringify(state, null, 2)}\n`, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

function stateFile(places: Places): string {
  return join(places.directory, 'state.json');
}
