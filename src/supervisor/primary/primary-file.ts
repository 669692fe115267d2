// The file that keeps a section's memory of its primary over restarts and reboots. It is read whole and replaced whole.
import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Config } from '../../shared/config/config.ts';
import { currentPlace, makeStateDirectory } from '../../shared/config/machine-defaults.ts';
import {
  formatPrimaryMemory,
  type PrimaryMemory,
  parsePrimaryMemory,
} from '../../shared/servers/primary-memory.ts';

/** The content of the file. `unusable`: it exists, and is not a memory that an instance has written. */
export type PrimaryFileContent =
  | { readonly kind: 'none' }
  | { readonly kind: 'memory'; readonly memory: PrimaryMemory }
  | { readonly kind: 'unusable'; readonly reason: string };

const maxBytes = 1024 * 1024;
const mode = 0o600;
const othersWrite = 0o022;

/** The path of a section's memory. */
export function primaryFilePath({
  stateDir,
  section,
}: Pick<Config, 'stateDir' | 'section'>): string {
  return join(stateDir, `${section}.primary`);
}

/** Reads the file. It must be a regular file of the gateway's user, to which no other user may write. Never throws. */
export function readPrimaryFile(path: string): PrimaryFileContent {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return { kind: 'none' };
    return { kind: 'unusable', reason: code === 'ELOOP' ? 'it is a symbolic link' : message };
  }
  try {
    const stats = fstatSync(fd);
    if (!stats.isFile()) return { kind: 'unusable', reason: 'it is not a regular file' };
    if (stats.uid !== process.getuid?.()) {
      return { kind: 'unusable', reason: 'it belongs to another user' };
    }
    if ((stats.mode & othersWrite) !== 0) {
      return { kind: 'unusable', reason: 'others may write to it' };
    }
    if (stats.size > maxBytes) return { kind: 'unusable', reason: 'it is too long' };
    const memory = parsePrimaryMemory(readFileSync(fd, 'utf8'));
    return memory === null
      ? { kind: 'unusable', reason: 'its content is damaged' }
      : { kind: 'memory', memory };
  } catch (error) {
    return { kind: 'unusable', reason: (error as Error).message };
  } finally {
    closeSync(fd);
  }
}

/**
 * Replaces the file; makes its directory if that is missing. When this resolves with true, the memory survives a crash of the machine.
 * Until then the file holds the former memory or the new one, never a part.
 * @param mayReplace called in the same turn in which the file gets its name; if it returns false, nothing is replaced
 * @throws if the file or its directory cannot be written, or others may write to the directory
 */
export async function replacePrimaryFile(
  path: string,
  memory: PrimaryMemory,
  mayReplace: () => boolean,
): Promise<boolean> {
  const directory = dirname(path);
  makeStateDirectory(directory, currentPlace());
  const temporary = `${path}.new`;
  // A writer that was killed has left it.
  rmSync(temporary, { force: true });
  const file = await open(temporary, 'wx', mode);
  try {
    await file.writeFile(formatPrimaryMemory(memory));
    await file.sync();
  } finally {
    await file.close();
  }
  // Without this, the rename could take the temporary file that a successor is writing.
  if (!mayReplace()) return false;
  renameSync(temporary, path);
  const entries = await open(directory, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await entries.sync();
  } finally {
    await entries.close();
  }
  return true;
}
