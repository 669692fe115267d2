// The HTTP socket: this process binds and holds it, but accepts no connection.
import { lstatSync, unlinkSync } from 'node:fs';
import { connect } from 'node:net';
import { Worker } from 'node:worker_threads';
import type { ListenAddress } from '../../shared/config/addresses.ts';

/** A bound, listening descriptor. `address` has the port that the system chose. */
export type Listener = {
  readonly fd: number;
  readonly address: ListenAddress;
  /** It is inherited (socket activation), and remains with its name when the instance ends. */
  readonly outlives: boolean;
  /** Closes this process's copy before it returns. Idempotent. */
  readonly close: () => void;
};

/** The bound socket, or why there is none. */
export type Bound =
  | { readonly ok: true; readonly listener: Listener }
  | { readonly ok: false; readonly reason: string };

/** The thread's answer. */
export type ThreadReport =
  | { readonly ok: true; readonly fd: number; readonly port: number | null }
  | { readonly ok: false; readonly reason: string };

/** The thread's order. */
export type ThreadOrder = {
  readonly address: ListenAddress;
  readonly mode: number;
  readonly gate: SharedArrayBuffer;
};

/** The values of the thread's gate. */
export const gateStates = { held: 0, toBeClosed: 1, closed: 2 } as const;

const closeBoundMs = 1000;

/** Binds and listens. The reason of a failure is the system's (EADDRINUSE, EADDRNOTAVAIL, EACCES). */
export async function bindListener(address: ListenAddress, mode: number): Promise<Bound> {
  if (address.kind === 'unix' && (await isTaken(address.path)))
    return { ok: false, reason: 'EADDRINUSE' };
  const gate = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
  const order: ThreadOrder = { address, mode, gate };
  // An event loop with a server would accept connections. This thread sleeps from the moment that it listens, so its loop never polls.
  // Descriptors belong to the whole process.
  const thread = new Worker(new URL('./listener-thread.js', import.meta.url), {
    workerData: order,
  });
  const report = await new Promise<ThreadReport>((resolve) => {
    thread.once('message', resolve);
    thread.once('error', (error) => resolve({ ok: false, reason: error.message }));
  });
  thread.unref();
  if (!report.ok) return report;
  const state = new Int32Array(gate);
  const close = () => {
    if (
      Atomics.compareExchange(state, 0, gateStates.held, gateStates.toBeClosed) !== gateStates.held
    )
      return;
    Atomics.notify(state, 0);
    // The last process to close the socket loses the queued connections. That must be a worker, because workers accept them first.
    Atomics.wait(state, 0, gateStates.toBeClosed, closeBoundMs);
  };
  const bound =
    address.kind === 'tcp' ? { ...address, port: report.port ?? address.port } : address;
  return { ok: true, listener: { fd: report.fd, address: bound, outlives: false, close } };
}

/** Whether the path is in use: a process answers there, or it is no socket. The name of a dead socket is free. */
export async function isTaken(path: string): Promise<boolean> {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return false;
  if (!stats.isSocket()) return true;
  return new Promise((resolve) => {
    const probe = connect(path);
    probe.once('connect', () => {
      probe.destroy();
      resolve(true);
    });
    probe.once('error', (error: NodeJS.ErrnoException) => resolve(error.code !== 'ECONNREFUSED'));
  });
}

/**
 * Remembers the name of a unix socket that the instance has just bound. The returned function removes it, so that a client is refused
 * and does not wait. It never removes a name that another process has put in its place.
 */
export function rememberSocketName({ address, outlives }: Listener): () => void {
  if (address.kind === 'tcp' || outlives) return () => {};
  const { path } = address;
  const inode = inodeOf(path);
  return () => {
    try {
      if (inode !== null && inodeOf(path) === inode) unlinkSync(path);
    } catch {
      // Another process has removed it already.
    }
  };
}

function inodeOf(path: string): number | null {
  return lstatSync(path, { throwIfNoEntry: false })?.ino ?? null;
}
