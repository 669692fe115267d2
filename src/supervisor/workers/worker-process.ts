// One worker process as the supervisor sees it: forked, told, pinged, ended. The only user of node:cluster.
import cluster from 'node:cluster';
import type { Readable } from 'node:stream';
import type { Log } from '../../shared/process/log.ts';
import type { LogDestination, ToSupervisor, ToWorker } from '../../shared/process/messages.ts';
import type { Marks } from '../claim/orphans.ts';

/** What a worker process tells its slot. `onExit` is called once, whatever came before. */
export type WorkerProcessEvents = {
  readonly onMessage: (message: ToSupervisor) => void;
  readonly onExit: (reason: string) => void;
};

/** A worker process, from its fork to its end. */
export type WorkerProcess = {
  readonly pid: number | undefined;
  /** Never throws: to a process that is gone, nothing is sent. */
  readonly send: (message: ToWorker) => void;
  readonly kill: () => void;
};

/**
 * Flags of a worker. V8's own limit of the young generation is 3 × 16 MiB, which memory under load reaches and keeps:
 * most of what eight downloads of 25 MB at once add. Too small, and requests in flight survive collections: on one
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
  // What the runtime itself says when it dies (out of memory) goes to stderr: read into the log.
  const stderr = logTo === 'stderr' ? 'inherit' : 'pipe';
  // The access log's place when there is no file.
  const stdout = logTo === 'stderr' ? 'inherit' : 'ignore';
  cluster.setupPrimary({
    exec: workerEntry.pathname,
    args: [],
    execArgv: [...process.execArgv.filter((flag) => !ownFlags.includes(flag)), ...workerHeapLimits],
    stdio: ['ignore', stdout, stderr, 'ipc', listenFd],
  });
}

/** Forks one worker. A fork that the system refuses is reported by `onExit`, later. */
export function forkWorkerProcess(
  marks: Marks,
  log: Log,
  events: WorkerProcessEvents,
): WorkerProcess {
  const worker = cluster.fork(marks);
  const child = worker.process;
  let hasEnded = false;
  const end = (reason: string) => {
    if (hasEnded) return;
    hasEnded = true;
    events.onExit(reason);
  };
  child.on('message', (message) => events.onMessage(message as ToSupervisor));
  // What it said last may be read after its exit was noticed: it has ended when both are over.
  child.once('exit', (code, signal) => {
    const reason = signal ?? `exit status ${code}`;
    if (child.connected) child.once('disconnect', () => end(reason));
    else end(reason);
  });
  // Two ways to hear of errors, both also used for messages that a dying worker no longer takes.
  child.on('error', (error) => {
    if (child.pid === undefined) end(`cannot be forked: ${error.message}`);
  });
  worker.on('error', () => {});
  if (child.stderr !== null && child.stderr !== undefined) logLines(child.stderr, child.pid, log);
  return {
    pid: child.pid,
    send: (message) => {
      // Without a callback a failed send would be an error event; with one it is this worker's exit that counts.
      if (child.connected) child.send(message, () => {});
    },
    kill: () => {
      child.kill('SIGKILL');
    },
  };
}

const mostLines = 40;

function logLines(stream: Readable, pid: number | undefined, log: Log): void {
  let linesLeft = mostLines;
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
