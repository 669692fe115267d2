// A lock that the kernel holds for a process and frees when it dies, however it dies: flock(2), by way of flock(1).
import { spawn } from 'node:child_process';
import { closeSync, constants, fchmodSync, fstatSync, lstatSync, openSync } from 'node:fs';

/** Where flock(1) of util-linux is, whatever the caller's PATH. */
const usualPath = '/usr/bin:/bin:/usr/local/bin';
const lockBoundMs = 5000;
const mode = 0o600;

/**
 * Opens a lock file, creating it where it is missing; it is never deleted. The caller closes the descriptor, which
 * processes that are spawned do not inherit by themselves. @throws when the file is not a regular one of our own
 */
export function openLockFile(path: string): number {
  const { O_RDWR, O_CREAT, O_NOFOLLOW, O_NONBLOCK } = constants;
  const fd = openSync(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, mode);
  try {
    const stats = fstatSync(fd);
    if (!stats.isFile()) throw new Error(`${path} is no regular file`);
    if (stats.uid !== process.getuid?.()) throw new Error(`${path} belongs to another user`);
    // Whoever may open it may lock it.
    if ((stats.mode & 0o777) !== mode) fchmodSync(fd, mode);
    return fd;
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

/**
 * Locks what the descriptor stands for, without waiting; false when somebody else has. The lock belongs to the open
 * file and so stays when flock(1) has ended, until its last descriptor is closed. Rejects when it cannot be tried.
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

/** Whether the file of this path still is the one that was opened: somebody may have deleted it. */
export function isStillAt(path: string, fd: number): boolean {
  const [there, ours] = [lstatSync(path, { throwIfNoEntry: false }), fstatSync(fd)];
  return there?.ino === ours.ino && there.dev === ours.dev;
}
