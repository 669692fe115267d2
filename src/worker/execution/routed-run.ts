// A run among several servers: it begins where it may run, and begins again at another server if that is safe.
import { type TokenResult, unknownToken } from '../servers/consistency/consistency.ts';
import type { NoPlace } from '../servers/pool/queue.ts';
import type { WaitLimit } from '../servers/pool/wait-limit.ts';
import type { Server, WaitingForServer } from '../servers/server.ts';
import type { Servers } from '../servers/servers.ts';
import type { Execution, RouteWish, RunEnd, RunEvents, RunSink, Unrouted } from './execution.ts';
import type { RunTimes } from './run-times.ts';
import { concernsServer, endConcernsServer, foundNoConnection } from './server-errors.ts';
import type { StopReason } from './stop-reason.ts';

/** Creates what runs on one server. */
type CreateOn = (server: Server, events: RunEvents) => Execution;

/** A section's servers, of which one is chosen. */
export type Router = Pick<
  Servers,
  | 'admission'
  | 'maxWaitMs'
  | 'isContested'
  | 'choose'
  | 'probesOf'
  | 'remember'
  | 'addWaiting'
  | 'forget'
  | 'suspect'
>;

/**
 *     created ──> waiting ──> running ──> ended
 *                    ^           │
 *                    └───────────┘  the server is gone, and nothing was done there
 */
type Phase = 'created' | 'waiting' | 'running' | 'ended';

/** Failures on one server before its answer is final: the first one may have been due to a role that it no longer has. */
const maxFailures = 1;

/** A run among several servers. */
export class RoutedRun implements Execution, RunEvents, WaitingForServer {
  index = -1;
  /** Since it has begun to wait for a server. */
  waitLimit: WaitLimit;
  readonly #router: Router;
  #wish: RouteWish;
  readonly #create: CreateOn;
  readonly #events: RunEvents;
  readonly #times: RunTimes;
  #phase: Phase = 'created';
  #server: Server | null = null;
  #run: Execution | null = null;
  #wasSent = false;
  #hasPlace = false;
  /** Its present run was stopped only to begin again at another server. */
  #isMoving = false;
  /** Why it was stopped while it moved. */
  #stopReason: StopReason | null = null;
  /** The servers where it failed: how often, and how often the server had been probed the last time. */
  #failures: Map<Server, { probes: number; count: number }> | null = null;
  #waitTimer: NodeJS.Timeout | null = null;

  constructor(
    router: Router,
    wish: RouteWish,
    create: CreateOn,
    events: RunEvents,
    times: RunTimes,
  ) {
    this.#router = router;
    this.#wish = wish;
    this.#create = create;
    this.#events = events;
    this.#times = times;
    this.waitLimit = times.waitLimit(0);
  }

  start(): void {
    this.#seek();
  }

  get isSent(): boolean {
    return this.#wasSent || this.#run?.isSent === true;
  }

  get backend(): string | null {
    return this.#run?.backend ?? null;
  }

  get isRevocable(): boolean {
    return this.#run?.isRevocable !== false;
  }

  get isReadOnly(): boolean {
    return this.#wish.isReadOnly;
  }

  get sink(): RunSink {
    return this.#events.sink;
  }

  get traceparent(): string | null {
    return this.#events.traceparent;
  }

  stop(reason: StopReason): void {
    switch (this.#phase) {
      case 'created':
      case 'waiting':
        this.#end(this.#unrouted(reason));
        break;
      case 'running':
        if (this.#isMoving) this.#stopReason ??= reason;
        else this.#run?.stop(reason);
        break;
      case 'ended':
        break;
      default:
        this.#phase satisfies never;
    }
  }

  pause(): void {
    this.#run?.pause?.();
  }

  resume(): void {
    this.#run?.resume?.();
  }

  seeNow(): Promise<TokenResult> {
    return this.#run?.seeNow?.() ?? Promise.resolve(unknownToken);
  }

  abandonResults(): void {
    this.#run?.abandonResults?.();
  }

  // Reports of the router.

  reconsider(): void {
    if (this.#phase === 'waiting') this.#seek();
  }

  losePlace(): void {
    if (this.#phase === 'waiting') this.#end(this.#unserved('queue full'));
  }

  /** Moves to another server if nothing was sent, or if it was declared read-only and its reply can be taken back. */
  leaveServer(): void {
    const run = this.#run;
    if (this.#phase !== 'running' || run === null || this.#isMoving) return;
    if (run.isSent && !(this.#wish.isReadOnly && !this.sink.hasLeft)) return;
    this.#isMoving = true;
    run.stop('server left');
  }

  seen(seen: TokenResult): void {
    this.#events.seen(seen);
  }

  // Reports of the run.

  runEnded(end: RunEnd): void {
    const server = this.#server as Server;
    // A read that was sent to an earlier server is never reported as not executed.
    const wasSentBefore = this.isReadOnly && this.#wasSent;
    const reported: RunEnd =
      wasSentBefore && end.kind === 'not executed'
        ? { kind: 'cut short', reason: end.reason }
        : end;
    this.#wasSent ||= this.#run?.isSent === true;
    // The leader that it followed may also have moved.
    const isMoving = this.#isMoving || ('reason' in end && end.reason === 'server left');
    this.#isMoving = false;
    if (endConcernsServer(end, this.isReadOnly)) this.#router.suspect(server);
    if (this.#stopReason !== null) {
      // Stopped while it moved: its time is over, and it does not begin again.
      const hasReason = 'reason' in end && end.kind !== 'key refused';
      this.#end(hasReason ? ({ ...reported, reason: this.#stopReason } as RunEnd) : end);
      return;
    }
    const mayGoOn = isMoving ? this.#mayMove(end) : this.#mayRunElsewhere(end, server);
    if (!mayGoOn || !this.sink.restart()) {
      this.#end(reported);
      return;
    }
    if (!isMoving) this.#noteFailure(server);
    if ('reason' in end && end.reason === 'behind')
      this.#wish = { ...this.#wish, needsPrimary: true };
    this.#run = null;
    this.#seek();
  }

  /** Whether a run that was stopped in order to move has left nothing behind. */
  #mayMove(end: RunEnd): boolean {
    return end.kind === 'not executed' || this.#wish.isReadOnly;
  }

  #mayRunElsewhere(end: RunEnd, server: Server): boolean {
    const { isReadOnly, hasKey } = this.#wish;
    if ((this.#failures?.get(server)?.count ?? 0) >= maxFailures) return false;
    switch (end.kind) {
      case 'not executed':
        return foundNoConnection(end) || end.reason === 'behind';
      case 'lost':
        return isReadOnly;
      case 'cut short':
        return isReadOnly && foundNoConnection(end);
      case 'answered': {
        const { failure } = end;
        if (failure === null || !concernsServer(failure.error.errno, isReadOnly)) return false;
        return isReadOnly || (hasKey && failure.outcome === 'rolled_back');
      }
      default:
        return false;
    }
  }

  #noteFailure(server: Server): void {
    this.#failures ??= new Map();
    const count = (this.#failures.get(server)?.count ?? 0) + 1;
    this.#failures.set(server, { probes: this.#router.probesOf(server), count });
  }

  /** A server where it failed is tried again only when there is news of that server. */
  #isAvoided(server: Server): boolean {
    const failure = this.#failures?.get(server);
    return failure !== undefined && failure.probes === this.#router.probesOf(server);
  }

  #seek(): void {
    const server = this.#router.choose(this.#wish, (one) => this.#isAvoided(one));
    if (server === null) this.#wait();
    else this.#begin(server);
  }

  #begin(server: Server): void {
    this.#leavePlace();
    this.#phase = 'running';
    this.#server = server;
    this.#router.remember(this, server);
    this.#run = this.#create(server, this);
    this.#run.start();
  }

  #wait(): void {
    if (this.#phase === 'waiting') return;
    this.#phase = 'waiting';
    this.#times.enter('waiting');
    const noPlace = this.#router.admission.admit(this.#times);
    this.#hasPlace = noPlace === null;
    if (noPlace !== null) {
      this.#end(this.#unserved(noPlace));
      return;
    }
    this.waitLimit = this.#times.waitLimit(performance.now());
    this.#router.addWaiting(this);
    const { maxWaitMs } = this.#router;
    if (maxWaitMs !== null) {
      this.#waitTimer ??= setTimeout(() => this.stop('deadline'), maxWaitMs);
    }
  }

  #leavePlace(): void {
    if (this.#waitTimer !== null) clearTimeout(this.#waitTimer);
    this.#waitTimer = null;
    if (this.#hasPlace) this.#router.admission.leave(this.#times.account);
    this.#hasPlace = false;
  }

  /** If its time is over, the reason is that there is no server. The reads before changed nothing. */
  #unrouted(reason: StopReason): RunEnd {
    const why = this.#router.isContested ? 'two primaries' : 'no primary';
    return this.#unserved(reason === 'deadline' ? why : reason);
  }

  #unserved(reason: StopReason | Unrouted | NoPlace): RunEnd {
    return this.#wasSent ? { kind: 'cut short', reason } : { kind: 'not executed', reason };
  }

  #end(end: RunEnd): void {
    if (this.#phase === 'ended') return;
    this.#phase = 'ended';
    this.#leavePlace();
    this.#router.forget(this);
    this.#times.enter('over');
    this.#events.runEnded(end);
  }
}
