// One slot: its present worker, its restarts, its heartbeat. A replacement takes the slot over.
// Must not know the other slots, nor the instance's phase: whoever has them all decides whether to fill it again.

import type { Sections } from '../shared/config/config.ts';
import { type SectionCredentials, withCredentials } from '../shared/config/credentials.ts';
import type { Snapshot } from '../shared/observe/metrics.ts';
import { type Answerers, answerCall, Caller } from '../shared/process/calls.ts';
import type { ExitCode } from '../shared/process/exit-codes.ts';
import type { Log } from '../shared/process/log.ts';
import type {
  LogDestination,
  SupervisorCalls,
  ToSupervisor,
  ToWorker,
  WorkerCalls,
  WorkerReport,
} from '../shared/process/messages.ts';
import { whereThrown } from '../shared/process/where-thrown.ts';
import { removeWorkerSocket } from '../shared/process/worker-sockets.ts';
import type { PrimaryMemory } from '../shared/servers/primary-memory.ts';
import type { CommitMemory } from './commit-memory.ts';
import { createHeartbeat, type Heartbeat } from './heartbeat.ts';
import type { Marks } from './orphans.ts';
import { decideRestart, noHistory } from './restart-policy.ts';
import { forkWorkerProcess, type WorkerProcess } from './worker-process.ts';

/** What a slot's workers are made with. */
export type Making = {
  readonly sections: Sections;
  readonly log: Log;
  readonly logTo: LogDestination;
  readonly marks: Marks;
  /** The listening socket is somebody else's, and outlives the instance. */
  readonly socketStays: boolean;
  /** The code that the supervisor runs. */
  readonly build: string;
  readonly commits: CommitMemory;
};

/** What a slot tells whoever has them all. */
export type SlotEvents = {
  readonly onListening: () => void;
  /** Its worker listens no more. */
  readonly onClosed: () => void;
  readonly onFailed: (exitCode: ExitCode, reason: string) => void;
  readonly onReport: (slot: number, report: WorkerReport) => void;
  readonly onTablesChanged: (slot: number) => void;
  /** Who answers what its workers ask. */
  readonly answerers: Answerers<SupervisorCalls>;
  /** What is remembered of the primaries now. */
  readonly primaries: () => Readonly<Record<string, PrimaryMemory>>;
  /** The slot is empty; `delayMs`: how long the policy wants it to stay so. */
  readonly onEmpty: (slot: Slot, delayMs: number) => void;
};

/** A slot as whoever has them all sees it. */
export type Slot = {
  readonly number: number;
  readonly fill: () => void;
  readonly fillAfter: (delayMs: number) => void;
  /** Null: it is empty. */
  readonly pid: () => number | null;
  readonly isEmpty: () => boolean;
  readonly isListening: () => boolean;
  /** No worker of the slot holds the listening socket any more. */
  readonly isClosed: () => boolean;
  readonly isSilent: () => boolean;
  readonly restarts: () => number;
  /** Its worker runs other code than the supervisor. */
  readonly runsOtherCode: () => boolean;
  /** Requests that were in flight when a worker died, by its last report. */
  readonly requestsLost: () => number;
  readonly send: (message: ToWorker) => void;
  /** Asks its worker; null: it has not answered in time, or is gone. */
  readonly ask: Caller<WorkerCalls>['ask'];
  /** Hands them to the worker, and to those that come after it. */
  readonly renew: (credentials: SectionCredentials) => void;
  /** One second has passed: ping, or end a worker that hangs. */
  readonly tick: () => void;
  /** Lets the worker finish and gives up a planned refill. `socketStays`: others hold the listening socket. */
  readonly drain: (socketStays: boolean) => void;
  /** Has the worker kill what it runs in MySQL and exit, and gives up a planned refill. A worker that serves nothing yet is ended. */
  readonly stopNow: () => void;
  /** Ends the worker and gives up a planned refill. */
  readonly kill: () => void;
};

const mostBootTicks = 15;
/** Whoever asks for metrics is answered within 1 s, though a worker hangs: this leaves time to render and to travel. */
const answerBoundMs = 700;

/** Creates an empty slot. */
export function createSlot(number: number, making: Making, events: SlotEvents): Slot {
  const { log, logTo, marks } = making;
  const transactionKey = making.commits.key;
  let { sections } = making;
  let workerProcess: WorkerProcess | null = null;
  const caller = new Caller<WorkerCalls>((call) => workerProcess?.send(call), answerBoundMs);
  let heartbeat: Heartbeat | null = null;
  let listeningSince: number | null = null;
  let bootTicks = 0;
  let forks = 0;
  let history = noHistory;
  let refill: NodeJS.Timeout | undefined;
  let order: (ToWorker & { readonly kind: 'drain' }) | null = null;
  let requestsLost = 0;
  let lastReport = { inFlight: 0, at: 0 };
  let isClosed = false;
  let runsOtherCode = false;

  const receive = (message: ToSupervisor) => {
    switch (message.kind) {
      case 'ready':
        compare(message.build);
        // What is sent before this reaches nobody: the order to drain is repeated here.
        workerProcess?.send(order ?? bootMessage());
        return;
      case 'listening':
        listeningSince = performance.now();
        heartbeat = createHeartbeat();
        events.onListening();
        return;
      case 'closed':
        isClosed = true;
        events.onClosed();
        return;
      case 'failed':
        log.error('a worker could not start', { slot: number, reason: message.reason });
        events.onFailed(message.exitCode, message.reason);
        return;
      case 'pong':
        heartbeat?.pong(message.sequence);
        return;
      case 'tables changed':
        events.onTablesChanged(number);
        return;
      case 'report':
        lastReport = { inFlight: inFlightOf(message.report.snapshot), at: performance.now() };
        events.onReport(number, message.report);
        return;
      case 'call': {
        const asker = workerProcess;
        void answerCall(
          events.answerers,
          message,
          (answer) => asker?.send(answer),
          (name, cause) =>
            log.error('a question was not answered', { name, thrown: whereThrown(cause) }),
        );
        return;
      }
      case 'answer':
        caller.answered(message);
        return;
      default:
        message satisfies never;
    }
  };

  const bootMessage = (): ToWorker => {
    const primaries = events.primaries();
    return { kind: 'boot', sections, slot: number, logTo, transactionKey, primaries };
  };

  /** The package may have been replaced on disk since we were started. A worker of before this message has no build. */
  const compare = (build: string | undefined) => {
    runsOtherCode = build !== making.build;
    if (!runsOtherCode) return;
    log.warn('a worker runs other code than its supervisor: start the instance anew', {
      slot: number,
      supervisor: making.build,
      worker: build ?? 'unknown',
    });
  };

  const empty = (reason: string) => {
    const pid = workerProcess?.pid ?? 0;
    removeWorkerSocket(sections[0].pidfile, pid);
    const servedMs = listeningSince === null ? null : performance.now() - listeningSince;
    const decision = decideRestart({ servedMs }, history, Math.random());
    history = decision.history;
    workerProcess = null;
    caller.abandon();
    runsOtherCode = false;
    heartbeat = null;
    listeningSince = null;
    if (reason === 'exit status 0') {
      log.info('a worker ended', { slot: number, pid, reason });
    } else {
      requestsLost += lastReport.inFlight;
      log.warn('a worker ended', { slot: number, pid, reason, ...describeReport(lastReport) });
    }
    lastReport = { inFlight: 0, at: 0 };
    events.onEmpty(slot, decision.delayMs);
  };

  const slot: Slot = {
    number,
    fill: () => {
      forks += 1;
      bootTicks = 0;
      isClosed = false;
      // A late message of the one before must not be taken for its successor's.
      const own: { workerProcess: WorkerProcess | null } = { workerProcess: null };
      own.workerProcess = forkWorkerProcess(marks, log, {
        onMessage: (message) => {
          if (workerProcess !== null && workerProcess === own.workerProcess) receive(message);
        },
        onExit: empty,
      });
      workerProcess = own.workerProcess;
    },
    fillAfter: (delayMs) => {
      refill = setTimeout(slot.fill, delayMs);
    },
    pid: () => workerProcess?.pid ?? null,
    isEmpty: () => workerProcess === null,
    isListening: () => listeningSince !== null,
    isClosed: () => workerProcess === null || isClosed,
    isSilent: () => heartbeat?.isSilent() ?? false,
    restarts: () => Math.max(0, forks - 1),
    runsOtherCode: () => runsOtherCode,
    requestsLost: () => requestsLost,
    send: (message) => workerProcess?.send(message),
    ask: (name, asked) => caller.ask(name, asked),
    renew: (credentials) => {
      // Before its `boot` a worker cannot be told, and needs not be: that message will hold them.
      sections = withCredentials(sections, credentials);
      workerProcess?.send({ kind: 'renew', credentials });
    },
    tick: () => {
      if (workerProcess === null) return;
      bootTicks += 1;
      const due = heartbeat?.tick();
      if (due?.kind === 'ping') return workerProcess.send(due);
      if (due === undefined && bootTicks <= mostBootTicks) return;
      log.error(due === undefined ? 'a worker does not get ready' : 'a worker hangs', {
        slot: number,
        pid: workerProcess.pid ?? 0,
      });
      workerProcess.kill();
    },
    drain: (socketStays) => {
      order = { kind: 'drain', socketStays };
      clearTimeout(refill);
      workerProcess?.send(order);
    },
    stopNow: () => {
      if (listeningSince === null) return slot.kill();
      clearTimeout(refill);
      workerProcess?.send({ kind: 'stop now' });
    },
    kill: () => {
      clearTimeout(refill);
      workerProcess?.kill();
    },
  };
  return slot;
}

function inFlightOf({ samples }: Snapshot): number {
  return samples.find(({ metric }) => metric === 'dbhttpd_requests_in_flight')?.value ?? 0;
}

/** What a dead worker had in flight is known from its last report alone, which is a second old at most while it lives well. */
function describeReport({ inFlight, at }: { inFlight: number; at: number }) {
  if (at === 0) return { requests_lost: 'unknown' };
  return { requests_lost: inFlight, counted_ms_ago: Math.round(performance.now() - at) };
}
