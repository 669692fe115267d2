// The unix sockets at which an instance's workers pass requests on to each other: where they are, and which are left over.
// Must not know what is passed on.
import { createHash } from 'node:crypto';
import { closeSync, constants, openSync, readdirSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

/** Where the worker with this process id takes requests of the other workers: beside the claim, under a name of bounded length. */
export function workerSocketPath(pidfile: string, pid: number): string {
  return join(dirname(pidfile), `${prefixOf(pidfile)}${pid}.sock`);
}

/** Takes the name of a worker away that is gone. Never throws: a name that stays is in nobody's way. */
export function removeWorkerSocket(pidfile: string, pid: number): void {
  try {
    rmSync(workerSocketPath(pidfile, pid), { force: true });
  } catch {
    // The directory does not let us any more, or something else has that name.
  }
}

/** The same for all whose process is gone: an older instance may still drain, and its workers keep theirs. Never throws. */
export function removeStaleWorkerSockets(pidfile: string): void {
  const prefix = prefixOf(pidfile);
  for (const name of namesIn(dirname(pidfile))) {
    const [, pid] = name.startsWith(prefix)
      ? (/^(\d+)\.sock$/.exec(name.slice(prefix.length)) ?? [])
      : [];
    if (pid !== undefined && !isAlive(Number(pid))) removeWorkerSocket(pidfile, Number(pid));
  }
}

/** A directory may be one that we may write to, and not look into. */
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
const mostPathBytes = 107;

/** A path that holds a descriptor, perhaps: whoever has it forgets it when the socket is bound or reached. */
export type ShortPath = { readonly path: string; readonly forget: () => void };

/** The path itself; by a descriptor of its directory where it is too long. Throws when the directory cannot be opened. */
export function shortenPath(path: string): ShortPath {
  if (Buffer.byteLength(path) <= mostPathBytes) return { path, forget: () => {} };
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
