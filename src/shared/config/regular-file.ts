// Regular files that the configuration names: their bytes, their text, and which rights other users have.
import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats } from 'node:fs';

/** Reads a regular file only: a pipe or a terminal would block until something is written to it. @throws the system's error */
export function readRegularFile(path: string): { readonly bytes: Buffer; readonly stats: Stats } {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  try {
    const stats = fstatSync(fd);
    if (!stats.isFile()) throw new Error('not a regular file');
    return { bytes: readFileSync(fd), stats };
  } finally {
    closeSync(fd);
  }
}

/** The text of a file. Null: it is not UTF-8. */
export function decodeText(bytes: Buffer): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}

/** Whether users other than owner and group may read or write the file. The group may, because service accounts use it. */
export function isOpenToOthers(stats: Stats): boolean {
  return (stats.mode & 0o006) !== 0;
}

/** Whether users other than owner and group may write the file. */
export function isWritableByOthers(stats: Stats): boolean {
  return (stats.mode & 0o002) !== 0;
}

/** A reading of a file as text, or the problem with it. */
export type TextRead =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly problem: string };

/** Reads a text in UTF-8. @param rights those that other users must not have */
export function readText(path: string, rights: 'read or write' | 'write' | 'any'): TextRead {
  try {
    const { bytes, stats } = readRegularFile(path);
    if (rights === 'read or write' && isOpenToOthers(stats)) {
      return { ok: false, problem: 'is open to others: take their rights away (chmod o-rwx)' };
    }
    if (rights === 'write' && isWritableByOthers(stats)) {
      return { ok: false, problem: 'may be written by others (chmod o-w)' };
    }
    const text = decodeText(bytes);
    return text === null || text.includes('\0')
      ? { ok: false, problem: 'is not UTF-8 text' }
      : { ok: true, text };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return { ok: false, problem: `cannot be read (${code ?? message})` };
  }
}
