// Limits on clients: how long each step may take, and how many connections a worker accepts.
import { readFileSync } from 'node:fs';

/** How long the client of a reply may acknowledge nothing; then the reply is reset. */
export type StallLimits = {
  readonly stallMs: number;
  /** For a client on the same host: over loopback it acknowledges 64 KiB at a time, which takes 130 s at 0.5 KB/s. */
  readonly sameHostStallMs: number;
  /** For a client whose acknowledgements are not visible: at 5 KB/s, a third of a send buffer of 4 MiB takes this long. */
  readonly unseenStallMs: number;
};

/** How long a client may take. A parameter, because tests with the real values would last minutes. */
export type ClientTimeouts = StallLimits & {
  /** From the connection, or the first byte of a further request, to the end of its headers. */
  readonly headersMs: number;
  /** The same, to the end of its body. */
  readonly requestMs: number;
  /** How long a connection beyond the limit lasts. */
  readonly beyondLimitMs: number;
  /** How often the server checks the limits: each ends up to this much later. */
  readonly checkMs: number;
};

/** The values of the gateway. */
export const clientTimeouts: ClientTimeouts = {
  headersMs: 20_000,
  requestMs: 60_000,
  stallMs: 30_000,
  sameHostStallMs: 130_000,
  unseenStallMs: 300_000,
  beyondLimitMs: 2_000,
  checkMs: 500,
};

/** On `served` connections everything is answered, on `reserved` more only health and metrics. */
export type ConnectionLimit = { readonly served: number; readonly reserved: number };

/** Descriptors for logs, channel, watchdog and runtime: more than a worker without clients has open (/proc/<pid>/fd). */
const ownDescriptors = 64;
/** Each connection costs less than 20 KiB of memory, idle or not (measured by the test of idle connections). */
const maxServed = 16_384;
const minServed = 8;
const maxReserved = 256;
/** If the system does not say: the usual default of POSIX. */
const usualDescriptors = 1024;

/** Decides how many client connections a worker accepts. @param descriptors the limit of open files @param forDatabase connections to databases */
export function decideConnectionLimit(descriptors: number, forDatabase: number): ConnectionLimit {
  const available = descriptors - ownDescriptors - forDatabase;
  const reserved = Math.max(minServed, Math.min(maxReserved, Math.floor(available / 8)));
  const served = Math.max(minServed, Math.min(maxServed, available - reserved));
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
