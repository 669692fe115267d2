// The console's files from where the build puts them.
// Must not know what is in them.
import { readdirSync, readFileSync } from 'node:fs';
import type { Log } from '../shared/process/log.ts';
import { type ConsoleFiles, isConsoleFile } from './endpoints/console.ts';

/** Reads them into memory. Null, with a word in the log, where the build has left none. */
export function loadConsoleFiles(log: Log): ConsoleFiles | null {
  const folder = new URL('../console/', import.meta.url);
  try {
    const names = readdirSync(folder).filter(isConsoleFile);
    return new Map(names.map((name) => [name, readFileSync(new URL(name, folder), 'utf8')]));
  } catch (error) {
    log.warn('there is no console', { reason: (error as Error).message });
    return null;
  }
}
