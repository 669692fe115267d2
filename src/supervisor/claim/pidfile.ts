// The pidfile: published atomically, and removed last, only by the process that wrote it.
import {
  closeSync,
  existsSync,
  openSync,
  readFileSync,
  renameSync,
  unlinkSync,
  writeSync,
} from 'node:fs';

/** A published pidfile. */
export type Pidfile = {
  /** Removes the file if it still names this process. Idempotent, never throws. */
  readonly release: () => void;
};

/** Writes this process's id and a newline, mode 0644, through a temporary file. Throws the system's error. */
export function publishPidfile(path: string): Pidfile {
  const content = `${process.pid}\n`;
  const temporary = `${path}.${process.pid}`;
  // A leftover of a dead process with the same id. `wx` below does not follow a link.
  removeQuietly(temporary);
  const umask = process.umask(0o022);
  try {
    const fd = openSync(temporary, 'wx', 0o644);
    try {
      if (writeSync(fd, content) !== content.length) throw new Error('the disk is full');
    } finally {
      closeSync(fd);
    }
    renameSync(temporary, path);
  } catch (error) {
    removeQuietly(temporary);
    throw error;
  } finally {
    process.umask(umask);
  }
  return { release: () => release(path, content) };
}

/** The living process that a pidfile names. Null: the file is missing, names none, or a dead one. */
export function readPidfile(path: string): number | null {
  try {
    const pid = Number(readFileSync(path, 'utf8'));
    return Number.isSafeInteger(pid) && pid > 0 && existsSync(`/proc/${pid}`) ? pid : null;
  } catch {
    return null;
  }
}

function release(path: string, content: string): void {
  try {
    if (readFileSync(path, 'utf8') === content) unlinkSync(path);
  } catch {
    // It is gone already, or cannot be read any more.
  }
}

function removeQuietly(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // There was none.
  }
}
