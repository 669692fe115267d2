// One worker process as the supervisor sees it, from fork to exit. The only user of node:cluster.
import cluster, { type Worker } from 'node:cluster';
import type { Readable } from 'node:stream';
import type { Log } from '../../shared/process/log.ts';
import type { LogDestination, ToSupervisor, ToWorker } from '../../shared/process/messages.ts';
import type { Marks } from '../claim/orphans.ts';

/** The events of a worker process. `onExit` is called exactly once. */
export type WorkerProcessEvents = {
  readonly onMessage: (message: ToSupervisor) => void;
  readonly onExit: (reason: string) => void;
};

/** A worker process, from its fork to its end. */
export type WorkerProcess = {
  readonly pid: number | undefined;
  /** Sends nothing to a process that is gone, and never throws. */
  readonly send: (message: ToWorker) => void;
  readonly kill: () => void;
};

/**
 * Flags of a worker. V8's own limit of the young generation is 3 × 16 MiB. Memory under load reaches that limit and remains there, which
 * is most of what eight simultaneous downloads of 25 MB add. If the limit is too small, requests in flight survive collections: on one
 * worker a point query cost 30 µs at 2 MiB and 20 at 8 with 64 clients, 33 and 25 with 256.
 */
const workerHeapLimits: readonly string[] = ['--max-semi-space-size=8'];

const workerEntry = new URL('../../worker/main.js', import.meta.url);

/**
 * Sets what all workers are forked with. To be called once, before the first fork.
 * @param ownFlags flags of the supervisor that workers must not inherit
 */
export function prepareForks(
  listenFd: number,
  logTo: LogDestination,
  ownFlags: readonly string[],
): void {
  // The runtime writes its last message (out of memory) to stderr, which goes to the log.
  const stderr = logTo === 'stderr' ? 'inherit' : 'pipe';
  // The access log goes to stdout if there is no file.
  const stdout = logTo === 'stderr' ? 'inherit' : 'ignore';
  cluster.setupPrimary({
    exec: workerEntry.pathname,
    args: [],
    execArgv: [...process.execArgv.filter((flag) => !ownFlags.includes(flag)), ...workerHeapLimits],
    stdio: ['ignore', stdout, stderr, 'ipc', listenFd],
  });
}

/** Forks one worker. If the system refuses the fork, it calls `onExit` later. */
export function forkWorkerProcess(
  marks: Marks,
  log: Log,
  events: WorkerProcessEvents,
): WorkerProcess {
  let hasEnded = false;
  const end = (reason: string) => {
    if (hasEnded) return;
    hasEnded = true;
    events.onExit(reason);
  };
  const refused = (error: unknown) => end(`cannot be forked: ${(error as Error).message}`);
  let worker: Worker;
  try {
    worker = cluster.fork(marks);
  } catch (error) {
    // Node reports EAGAIN and four more by an event, and throws the others, such as ENOMEM.
    setImmediate(refused, error);
    return { pid: undefined, send: () => {}, kill: () => {} };
  }
  const child = worker.process;
  child.on('message', (message) => events.onMessage(message as ToSupervisor));
  // Its last messages may arrive after its exit, so it has ended when both exit and channel are over.
  child.once('exit', (code, signal) => {
    const reason = signal ?? `exit status ${code}`;
    if (child.connected) child.once('disconnect', () => end(reason));
    else end(reason);
  });
  // Both events also report messages that a dying worker no longer accepts.
  child.on('error', (error) => {
    if (child.pid === undefined) refused(error);
  });
  worker.on('error', () => {});
  if (child.stderr !== null && child.stderr !== undefined) logLines(child.stderr, child.pid, log);
  return {
    pid: child.pid,
    send: (message) => {
      // The callback keeps a failed send from being an error event. The worker's exit is what counts.
      if (child.connected) child.send(message, () => {});
    },
    kill: () => {
      child.kill('SIGKILL');
    },
  };
}

const maxLines = 40;

function logLines(stream: Readable, pid: number | undefined, log: Log): void {
  let linesLeft = maxLines;
  stream.setEncoding('utf8');
  stream.on('error', () => {});
  stream.on('data', (text: string) => {
    for (const line of text.split('\n')) {
      if (line.trim() === '' || linesLeft === 0) continue;
      linesLeft -= 1;
      log.warn('worker says', { pid: pid ?? 0, text: line.slice(0, 500) });
    }
  });
}
