// A file lock that the kernel frees when its process dies, by flock(1), which calls flock(2).
import { spawn } from 'node:child_process';
import { closeSync, constants, fchmodSync, fstatSync, lstatSync, openSync } from 'node:fs';

/** The directories of flock(1) of util-linux, tried before the caller's PATH. */
const usualPath = '/usr/bin:/bin:/usr/local/bin';
const lockBoundMs = 5000;
const mode = 0o600;

/**
 * Opens a lock file and creates it if it is missing. It is never deleted. The caller closes the descriptor. Spawned processes do not
 * inherit it. @throws if the file is not a regular one, or belongs to another user
 */
export function openLockFile(path: string): number {
  const fd = openOwn(path, constants.O_CREAT);
  try {
    // A process that can open it can lock it.
    if ((fstatSync(fd).mode & 0o777) !== mode) fchmodSync(fd, mode);
    return fd;
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

/** Why a lock file cannot be opened; null: it can be, or is missing. Creates and changes nothing. */
export function findLockObstacle(path: string): string | null {
  try {
    closeSync(openOwn(path, 0));
    return null;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return code === 'ENOENT' ? null : (code ?? message);
  }
}

function openOwn(path: string, further: number): number {
  const { O_RDWR, O_NOFOLLOW, O_NONBLOCK } = constants;
  const fd = openSync(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | further, mode);
  try {
    const stats = fstatSync(fd);
    if (!stats.isFile()) throw new Error(`${path} is not a regular file`);
    if (stats.uid !== process.getuid?.()) throw new Error(`${path} belongs to another user`);
    return fd;
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

/**
 * Locks an open file without waiting. False: another process holds the lock. The lock belongs to the open file, so it remains when
 * flock(1) has ended, until the last descriptor is closed. Rejects if it cannot be tried.
 */
export function tryLock(fd: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const child = spawn('flock', ['-n', '3'], {
      stdio: ['ignore', 'ignore', 'ignore', fd],
      env: { PATH: `${usualPath}:${process.env.PATH ?? ''}` },
      timeout: lockBoundMs,
      killSignal: 'SIGKILL',
    });
    child.once('error', (error: NodeJS.ErrnoException) => {
      const isMissing = error.code === 'ENOENT';
      reject(isMissing ? new Error('flock(1) of util-linux is not installed') : error);
    });
    child.once('exit', (status, signal) => {
      if (status === 0 || status === 1) resolve(status === 0);
      else reject(new Error(`flock(1) failed: ${signal ?? `exit status ${status}`}`));
    });
  });
}

/** Whether the path still names the opened file, which may have been deleted. */
export function isStillAt(path: string, fd: number): boolean {
  const [there, ours] = [lstatSync(path, { throwIfNoEntry: false }), fstatSync(fd)];
  return there?.ino === ours.ino && there.dev === ours.dev;
}
