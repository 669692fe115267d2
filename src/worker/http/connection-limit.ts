// How many client connections a worker takes, from the descriptors that the system grants it.
// Must not know sockets.
import { readFileSync } from 'node:fs';

/** `served` connections may ask for anything; `reserved` more only whether the worker lives, and its metrics. */
export type ConnectionLimit = { readonly served: number; readonly reserved: number };

/** Logs, channel, watchdog, runtime: more than a worker without clients holds open (/proc/<pid>/fd). */
const ownDescriptors = 64;
/** Each costs memory, idle or not: less than 20 KiB, as the test of idle connections measures. */
const mostServed = 16_384;
const fewestServed = 8;
const mostReserved = 256;
/** Where the system does not tell: POSIX's usual default. */
const usualDescriptors = 1024;

/** @param descriptors the limit of open files. @param forDatabase connections to the database */
export function decideConnectionLimit(descriptors: number, forDatabase: number): ConnectionLimit {
  const available = descriptors - ownDescriptors - forDatabase;
  const reserved = Math.max(fewestServed, Math.min(mostReserved, Math.floor(available / 8)));
  const served = Math.max(fewestServed, Math.min(mostServed, available - reserved));
  return { served, reserved };
}

/** This process's limit of open files (Node raises the soft one to the hard one by itself). */
export function openFilesLimit(): number {
  try {
    const limits = readFileSync('/proc/self/limits', 'latin1');
    const soft = /^Max open files\s+(\d+)/m.exec(limits)?.[1];
    return soft === undefined ? usualDescriptors : Number(soft);
  } catch {
    return usualDescriptors;
  }
}
