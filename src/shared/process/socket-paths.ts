// Paths of unix sockets: those at which the workers of an instance forward requests to each other, and short names for long paths.
import { createHash } from 'node:crypto';
import { closeSync, constants, openSync, readdirSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

/** The socket at which a worker accepts requests of the other workers, beside the pidfile, with a name of limited length. */
export function workerSocketPath(pidfile: string, pid: number): string {
  return join(dirname(pidfile), `${prefixOf(pidfile)}${pid}.sock`);
}

/** Removes the socket of a worker that is gone. Never throws, because a leftover does no harm. */
export function removeWorkerSocket(pidfile: string, pid: number): void {
  try {
    rmSync(workerSocketPath(pidfile, pid), { force: true });
  } catch {
    // The directory has become read-only, or something else has that name.
  }
}

/** Removes the sockets of all workers that are gone. The workers of an older instance that drains keep theirs. Never throws. */
export function removeStaleWorkerSockets(pidfile: string): void {
  const prefix = prefixOf(pidfile);
  for (const name of namesIn(dirname(pidfile))) {
    const [, pid] = name.startsWith(prefix)
      ? (/^(\d+)\.sock$/.exec(name.slice(prefix.length)) ?? [])
      : [];
    if (pid !== undefined && !isAlive(Number(pid))) removeWorkerSocket(pidfile, Number(pid));
  }
}

/** None if the directory is writable but not readable. */
function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

function prefixOf(pidfile: string): string {
  const hash = createHash('sha256').update(basename(pidfile)).digest('hex').slice(0, 16);
  return `dbhttpd-${hash}-worker-`;
}

/** sun_path has 108 bytes, one of them NUL (unix(7)). */
const maxPathBytes = 107;

/** A path that may depend on a descriptor. Its owner calls `forget` when the socket is bound or connected. */
export type ShortPath = { readonly path: string; readonly forget: () => void };

/** The path itself, or if it is too long, a path by a descriptor of its directory. Throws if the directory cannot be opened. */
export function shortenPath(path: string): ShortPath {
  if (Buffer.byteLength(path) <= maxPathBytes) return { path, forget: () => {} };
  const fd = openSync(dirname(path), constants.O_RDONLY | constants.O_DIRECTORY);
  let isOpen = true;
  return {
    path: `/proc/self/fd/${fd}/${basename(path)}`,
    forget: () => {
      if (isOpen) closeSync(fd);
      isOpen = false;
    },
  };
}
