// A path to a unix socket that is short enough to bind and to connect to, whatever its directory is called.
// Must not know what the socket is for.
import { closeSync, constants, openSync } from 'node:fs';
import { basename, dirname } from 'node:path';

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
