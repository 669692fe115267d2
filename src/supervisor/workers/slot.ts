// A slot: its present worker with its heartbeat, its restarts, and what every worker of the slot receives.
import type { Sections } from '../../shared/config/config.ts';
import { withCredentials } from '../../shared/config/credentials.ts';
import type { NamedBySection } from '../../shared/named/load-sections.ts';
import type { Snapshot } from '../../shared/observe/metrics.ts';
import { type Answerers, answerCall, type Call, Caller } from '../../shared/process/calls.ts';
import type { ExitCode } from '../../shared/process/exit-codes.ts';
import { type Log, whereThrown } from '../../shared/process/log.ts';
import type {
  LogDestination,
  Renewed,
  SupervisorCalls,
  ToSupervisor,
  ToWorker,
  WorkerCalls,
  WorkerReport,
} from '../../shared/process/messages.ts';
import { removeWorkerSocket } from '../../shared/process/socket-paths.ts';
import type { PrimaryMemory } from '../../shared/servers/primary-memory.ts';
import type { Marks } from '../claim/orphans.ts';
import type { SlotState } from '../observe/stats.ts';
import type { CommitMemory } from './commit-memory.ts';
import { forkWorkerProcess, type WorkerProcess } from './worker-process.ts';

/** The inputs for the workers of an instance. */
export type Making = {
  readonly sections: Sections;
  readonly named: NamedBySection;
  readonly log: Log;
  readonly logTo: LogDestination;
  readonly marks: Marks;
  /** The listening socket is inherited and outlives the instance. */
  readonly socketStays: boolean;
  /** The code that the supervisor runs. */
  readonly build: string;
  readonly commits: CommitMemory;
};

/** The reports and requests of a slot. */
export type SlotEvents = {
  readonly onListening: () => void;
  /** Its worker has closed the listener. */
  readonly onClosed: () => void;
  readonly onFailed: (exitCode: ExitCode, reason: string) => void;
  readonly onReport: (slot: number, report: WorkerReport) => void;
  readonly onTablesChanged: (slot: number) => void;
  /** The slot is empty. `delayMs`: how long the restart policy wants it to remain so. */
  readonly onEmpty: (slot: Slot, delayMs: number) => void;
  /** The answers to what its workers ask. */
  readonly answerers: Answerers<SupervisorCalls>;
  /** The primaries that are remembered now. */
  readonly primaries: () => Readonly<Record<string, PrimaryMemory>>;
};

const maxBootTicks = 15;
/** A request for metrics is answered within 1 s even if a worker hangs: this leaves time to render and to send. */
const maxAnswerMs = 700;

/** One worker, from its fork to its exit. */
type Life = {
  readonly worker: WorkerProcess;
  bootTicks: number;
  /** Null: it boots. */
  serving: { readonly since: number; readonly heartbeat: Heartbeat } | null;
  /** It has closed the listener. */
  isClosed: boolean;
  /** It runs other code than the supervisor. */
  runsOtherCode: boolean;
  lastReport: { readonly inFlight: number; readonly at: number } | null;
};

/** A slot, empty at first. */
export class Slot {
  readonly number: number;
  readonly #making: Making;
  readonly #events: SlotEvents;
  readonly #caller: Caller<WorkerCalls>;
  /** Null: the slot is empty. */
  #life: Life | null = null;
  #sections: Sections;
  #named: NamedBySection;
  #forks = 0;
  /** How many workers in a row died before they had served. */
  #failures = 0;
  /** Requests that were in flight when a worker died, by its last report. */
  #requestsLost = 0;
  #refill: NodeJS.Timeout | undefined;
  #drainOrder: (ToWorker & { readonly kind: 'drain' }) | null = null;

  constructor(number: number, making: Making, events: SlotEvents) {
    this.number = number;
    this.#making = making;
    this.#events = events;
    this.#sections = making.sections;
    this.#named = making.named;
    this.#caller = new Caller<WorkerCalls>((call) => this.send(call), maxAnswerMs);
  }

  /** Null: it is empty. */
  pid(): number | null {
    return this.#life?.worker.pid ?? null;
  }

  isEmpty(): boolean {
    return this.#life === null;
  }

  isListening(): boolean {
    return this.#life !== null && this.#life.serving !== null;
  }

  /** No worker of the slot holds the listening socket any more. */
  isClosed(): boolean {
    return this.#life === null || this.#life.isClosed;
  }

  isSilent(): boolean {
    return this.#life?.serving?.heartbeat.isSilent() ?? false;
  }

  restarts(): number {
    return Math.max(0, this.#forks - 1);
  }

  describe(): SlotState {
    return {
      slot: this.number,
      pid: this.pid(),
      state: this.#state(),
      restarts: this.restarts(),
      runsOtherCode: this.#life?.runsOtherCode ?? false,
      requestsLost: this.#requestsLost,
    };
  }

  #state(): SlotState['state'] {
    if (this.#life === null) return 'down';
    if (this.#life.serving === null) return 'starting';
    return this.isSilent() ? 'silent' : 'serving';
  }

  fill(): void {
    const { marks, log } = this.#making;
    this.#forks += 1;
    const worker: WorkerProcess = forkWorkerProcess(marks, log, {
      onMessage: (message) => {
        // A late message of the worker before is not its successor's.
        if (this.#life?.worker === worker) this.#receive(message, this.#life);
      },
      onExit: (reason) => {
        if (this.#life?.worker === worker) this.#end(reason, this.#life);
      },
    });
    this.#life = {
      worker,
      bootTicks: 0,
      serving: null,
      isClosed: false,
      runsOtherCode: false,
      lastReport: null,
    };
  }

  fillAfter(delayMs: number): void {
    this.#refill = setTimeout(() => this.fill(), delayMs);
  }

  send(message: ToWorker): void {
    this.#life?.worker.send(message);
  }

  /** Asks its worker. Null: it has not answered in time, or is gone. */
  ask<Name extends keyof WorkerCalls>(
    name: Name,
    asked: WorkerCalls[Name]['asked'],
  ): Promise<WorkerCalls[Name]['answer'] | null> {
    return this.#caller.ask(name, asked);
  }

  /** Hands new contents of files to the worker and to its successors. A worker that has not booted gets them with `boot`. */
  renew(renewed: Renewed): void {
    const { credentials, named } = renewed;
    if (credentials !== null) this.#sections = withCredentials(this.#sections, credentials);
    if (named !== null) this.#named = named;
    this.send({ kind: 'renew', ...renewed });
  }

  /** One second has passed: sends a ping, or ends a worker that hangs. */
  tick(): void {
    const life = this.#life;
    if (life === null) return;
    life.bootTicks += 1;
    const due = life.serving?.heartbeat.tick();
    if (due?.kind === 'ping') {
      life.worker.send(due);
      return;
    }
    if (due === undefined && life.bootTicks <= maxBootTicks) return;
    this.#making.log.error(due === undefined ? 'a worker does not get ready' : 'a worker hangs', {
      slot: this.number,
      pid: life.worker.pid ?? 0,
    });
    life.worker.kill();
  }

  /** Lets the worker finish and cancels a planned refill. `socketStays`: other processes hold the listening socket. */
  drain(socketStays: boolean): void {
    this.#drainOrder = { kind: 'drain', socketStays };
    clearTimeout(this.#refill);
    this.send(this.#drainOrder);
  }

  /** Has the worker kill what it runs in MySQL and exit, and cancels a planned refill. A worker that serves nothing yet is killed. */
  stopNow(): void {
    clearTimeout(this.#refill);
    if (this.isListening()) this.send({ kind: 'stop now' });
    else this.kill();
  }

  /** Kills the worker and cancels a planned refill. */
  kill(): void {
    clearTimeout(this.#refill);
    this.#life?.worker.kill();
  }

  #receive(message: ToSupervisor, life: Life): void {
    const { number } = this;
    const events = this.#events;
    switch (message.kind) {
      case 'ready':
        this.#compareBuild(message.build, life);
        // A worker loses what is sent before it is ready, so an order to drain is repeated here.
        life.worker.send(this.#drainOrder ?? this.#bootMessage());
        return;
      case 'listening':
        life.serving = { since: performance.now(), heartbeat: new Heartbeat() };
        events.onListening();
        return;
      case 'closed':
        life.isClosed = true;
        events.onClosed();
        return;
      case 'failed': {
        const { exitCode, reason } = message;
        this.#making.log.error('a worker could not start', { slot: number, reason });
        events.onFailed(exitCode, reason);
        return;
      }
      case 'pong':
        life.serving?.heartbeat.pong(message.sequence);
        return;
      case 'tables changed':
        events.onTablesChanged(number);
        return;
      case 'report':
        life.lastReport = { inFlight: inFlightOf(message.report.snapshot), at: performance.now() };
        events.onReport(number, message.report);
        return;
      case 'call':
        this.#answer(message, life);
        return;
      case 'answer':
        this.#caller.answered(message);
        return;
      default:
        message satisfies never;
    }
  }

  #answer(call: Call<SupervisorCalls>, { worker }: Life): void {
    const onFault = (name: keyof SupervisorCalls, cause: unknown) =>
      this.#making.log.error('a question was not answered', { name, thrown: whereThrown(cause) });
    void answerCall(this.#events.answerers, call, worker.send, onFault);
  }

  #bootMessage(): ToWorker {
    const { logTo, commits } = this.#making;
    return {
      kind: 'boot',
      sections: this.#sections,
      slot: this.number,
      logTo,
      transactionKey: commits.key,
      primaries: this.#events.primaries(),
      named: this.#named,
    };
  }

  /** The package may have been replaced on disk after the start. Older workers send no build. */
  #compareBuild(build: string | undefined, life: Life): void {
    const { build: own, log } = this.#making;
    life.runsOtherCode = build !== own;
    if (!life.runsOtherCode) return;
    log.warn('a worker runs other code than its supervisor: restart the instance', {
      slot: this.number,
      supervisor: own,
      worker: build ?? 'unknown',
    });
  }

  #end(reason: string, { worker, serving, lastReport }: Life): void {
    const { log } = this.#making;
    const pid = worker.pid ?? 0;
    removeWorkerSocket(this.#sections[0].pidfile, pid);
    this.#life = null;
    this.#caller.abandon();
    if (reason === 'exit status 0') {
      log.info('a worker ended', { slot: this.number, pid, reason });
    } else {
      this.#requestsLost += lastReport?.inFlight ?? 0;
      log.warn('a worker ended', { slot: this.number, pid, reason, ...describeLoss(lastReport) });
    }
    const servedMs = serving === null ? null : performance.now() - serving.since;
    const { failures, delayMs } = decideRestart(servedMs, this.#failures, Math.random());
    this.#failures = failures;
    this.#events.onEmpty(this, delayMs);
  }
}

function inFlightOf({ samples }: Snapshot): number {
  return samples.find(({ metric }) => metric === 'dbhttpd_requests_in_flight')?.value ?? 0;
}

/** Only its last report says what a dead worker had in flight. It is at most a second old if the worker was well. */
function describeLoss(last: Life['lastReport']) {
  if (last === null) return { requests_lost: 'unknown' };
  const age = Math.round(performance.now() - last.at);
  return { requests_lost: last.inFlight, counted_ms_ago: age };
}

const maxUnanswered = 10;
const silentAfter = 2;

/** The unanswered pings of a worker that listens. It counts the supervisor's ticks: while a machine is suspended, no worker dies. */
export class Heartbeat {
  #sent = 0;
  #answered = 0;

  /** One tick: what to do now. */
  tick(): { readonly kind: 'ping'; readonly sequence: number } | { readonly kind: 'hung' } {
    if (this.#sent - this.#answered >= maxUnanswered) return { kind: 'hung' };
    this.#sent += 1;
    return { kind: 'ping', sequence: this.#sent };
  }

  pong(sequence: number): void {
    this.#answered = Math.max(this.#answered, Math.min(sequence, this.#sent));
  }

  /** The last two pings are unanswered: do not wait for this worker. */
  isSilent(): boolean {
    return this.#sent - this.#answered >= silentAfter;
  }
}

const minDelayMs = 100;
const maxDelayMs = 10_000;
// A worker that served this long was sound: its slot is filled at once, however often it is killed.
const soundAfterMs = 500;

/**
 * Decides how long a slot remains empty: 0.1 s after a worker that had served, doubling up to 10 s while workers die at boot.
 * @param servedMs how long the dead worker had been listening; null: never
 * @param failures how many workers in a row had died before they had served
 * @param chance from 0 to 1; takes up to a fifth off, so that slots do not restart in step
 */
export function decideRestart(
  servedMs: number | null,
  failures: number,
  chance: number,
): { readonly failures: number; readonly delayMs: number } {
  if (servedMs !== null && servedMs >= soundAfterMs) return { failures: 0, delayMs: minDelayMs };
  const wantedMs = Math.min(maxDelayMs, minDelayMs * 2 ** failures);
  const delayMs = Math.max(minDelayMs, Math.round(wantedMs * (1 - chance / 5)));
  return { failures: failures + 1, delayMs };
}

// 0.1 + 0.2 + … + 3.2 s of patience: a passing fault at boot is over by then, and a lasting one is reported before the
// start's own time limit. With less, booting the supervisor would be most of what a failed start costs.
const maxBootDeaths = 7;

/** Whether a first start is given up: a slot's workers keep dying before all slots listen. */
export function isHopeless(deathsInSlot: number): boolean {
  return deathsInSlot >= maxBootDeaths;
}
