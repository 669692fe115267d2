// Where pidfile and log are unless the configuration says otherwise.
// Must not know the configuration.
import { statSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';

/** Who asks, and what there is; handed in so that the rule can be tested. */
export type Place = {
  readonly uid: number;
  readonly home: string;
  readonly temporary: string;
  readonly isDirectory: (path: string) => boolean;
};

/** This process's place. */
export function currentPlace(): Place {
  return { uid: process.getuid?.() ?? 0, home: homedir(), temporary: tmpdir(), isDirectory };
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

/** The directory of pidfiles. */
export function runDirectory(place: Place): string {
  if (place.uid === 0) return '/run';
  const own = `/run/user/${place.uid}`;
  return place.isDirectory(own) ? own : place.temporary;
}

/** The directory of logs; it may have to be created below an existing home. */
export function logDirectory(place: Place): string {
  if (place.uid === 0 && place.isDirectory('/var/log')) return '/var/log';
  const hasHome = place.uid !== 0 && place.isDirectory(place.home);
  return hasHome ? join(place.home, '.local/state/dbhttpd') : place.temporary;
}

/** The log of failures that happen before a section's own log is known. */
export function fallbackLog(place: Place): string {
  return join(logDirectory(place), 'dbhttpd.log');
}
