// How long a client may take over each step.
// Must not know sockets.
import { readFileSync } from 'node:fs';

/** How long the client of a reply may take nothing of it; then the reply is reset. */
export type StallLimits = {
  readonly stallMs: number;
  /** For a client on the same host: over loopback it acknowledges 64 KiB at a time, which takes 130 s at 0.5 KB/s. */
  readonly sameHostStallMs: number;
  /** For a client whose acknowledgements cannot be seen: a third of a send buffer of 4 MiB takes so long at 5 KB/s. */
  readonly unseenStallMs: number;
};

/** How long a client may take. Handed in because a test of them would else last minutes. */
export type ClientTimeouts = StallLimits & {
  /** From the connection, or the first byte of a further request, to the end of its headers. */
  readonly headersMs: number;
  /** The same to the end of its body. */
  readonly requestMs: number;
  /** What a connection beyond the limit may last. */
  readonly beyondLimitMs: number;
  /** How often all this is looked at. */
  readonly checkMs: number;
};

/** The gateway's own. */
export const clientTimeouts: ClientTimeouts = {
  headersMs: 20_000,
  requestMs: 60_000,
  stallMs: 30_000,
  sameHostStallMs: 130_000,
  unseenStallMs: 300_000,
  beyondLimitMs: 2_000,
  checkMs: 2_000,
};

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
