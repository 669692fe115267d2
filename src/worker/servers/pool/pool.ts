// The worker's sessions and the bounded queue in front of them.
// Must not know what a statement is, nor HTTP.
import { performance } from 'node:perf_hooks';
import { ping, quit } from '../../../shared/mysql/commands.ts';
import type { ConnectFailure } from '../../../shared/mysql/connect-failure.ts';
import type { Log } from '../../../shared/process/log.ts';
import { IndexedSet } from '../../indexed-set.ts';
import { Admission } from './admission.ts';
import { Backlog } from './backlog.ts';
import { describeLoss } from './describe-loss.ts';
import { Queue } from './queue.ts';
import type { Reachability } from './reachability.ts';
import type { ProbedPool } from './readiness.ts';
import { Relief } from './relief.ts';
import type { Session } from './session.ts';
import { SessionResets } from './session-resets.ts';
import { type SessionEvents, SessionSource } from './session-source.ts';
import { needsPings, pingEveryMs } from './transaction-bound.ts';
import type { Verdict, Waiter, WaitLimit } from './waiter.ts';

/** How often the pool looks for requests that have waited for too long. */
const lateCheckMs = 25;

/** How many sessions, how many may wait for one, and where sessions come from. */
export type PoolSettings = {
  readonly size: number;
  readonly queue: number;
  /** The longest wait for a session, in ms. */
  readonly maxWaitMs: number;
  /** Opens a connection and prepares its session. */
  readonly open: (signal: AbortSignal) => Promise<Session>;
  /** Called with each session that has been opened, before it is lent. */
  readonly onOpened: (session: Session) => void;
  /** Whether a session may still be lent: one that may not is closed. Null: all may. */
  readonly mayLend: ((session: Session) => boolean) | null;
  /** Called whenever a session is given back, well or broken. */
  readonly onRelease: () => void;
  readonly log: Log;
};

/** What the pool holds now, and what it has done so far. */
export type PoolObservations = {
  /** The most that there may be of all. */
  readonly size: number;
  readonly idle: number;
  readonly busy: number;
  readonly resetting: number;
  readonly connecting: number;
  readonly waiting: number;
  readonly connectsOk: number;
  readonly connectsFailed: number;
  readonly resetsOk: number;
  readonly resetsFailed: number;
};

/** A bounded pool. Sessions are opened when they are needed and then kept. */
export class Pool implements SessionEvents, ProbedPool {
  /** How many wait, for a session or for what somebody else will get from one. */
  readonly admission: Admission;
  /** Who waits for a session. */
  readonly queue: Queue;
  readonly #settings: PoolSettings;
  readonly #source: SessionSource;
  readonly #idle: Session[] = [];
  readonly #busy = new IndexedSet<Session>();
  readonly #resetting = new IndexedSet<Session>();
  readonly #resets: SessionResets;
  /** Looks for requests that have waited for too long. */
  readonly #relief: Relief;
  readonly #backlog: Backlog;
  readonly #pings: NodeJS.Timeout;
  #keepsIdle = true;
  #isClosing = false;
  #onEmpty: (() => void) | null = null;

  constructor(settings: PoolSettings, reachability: Reachability) {
    this.#settings = settings;
    // Waiting for a session that is just being opened does not count.
    this.admission = new Admission(() => settings.queue + this.#source.connecting);
    this.queue = new Queue(this.admission);
    this.#source = new SessionSource(settings.open, this, reachability, settings.log);
    this.#resets = new SessionResets(settings.log);
    this.#backlog = new Backlog(settings.maxWaitMs, settings.size);
    this.#relief = new Relief(
      lateCheckMs,
      () => this.queue.length > 0,
      () => this.refuseLate(performance.now()),
    );
    this.#pings = setInterval(() => this.#pingIdle(), pingEveryMs).unref();
  }

  /** The longest wait for a session, in ms. */
  get maxWaitMs(): number {
    return this.#settings.maxWaitMs;
  }

  get size(): number {
    return this.#settings.size;
  }

  get open(): number {
    return this.#idle.length + this.#busy.size + this.#resetting.size;
  }

  observations(): PoolObservations {
    return {
      size: this.size,
      idle: this.#idle.length,
      busy: this.#busy.size,
      resetting: this.#resetting.size,
      connecting: this.#source.connecting,
      waiting: this.admission.waiting,
      ...this.#source.done,
      ...this.#resets.done,
    };
  }

  /** Whether a request that waits behind others has done so for too long. @param now performance.now */
  isLate({ since, longestMs }: WaitLimit, now: number): boolean {
    return now - since >= Math.min(this.#settings.maxWaitMs, longestMs);
  }

  /**
   * Refuses requests that have waited for too long. Those for which a connection is being opened wait behind no other: for them
   * `max_wait` alone counts.
   * @param now performance.now
   */
  refuseLate(now: number): void {
    const { connecting } = this.#source;
    this.queue.refuseLate((limit, place) => {
      if (place >= connecting) return this.isLate(limit, now);
      return now - limit.since >= this.#settings.maxWaitMs;
    });
  }

  /** Whether a request that comes now would wait for too long, or has already done so elsewhere. */
  #isHopeless({ waitLimit, isRecovering }: Waiter): boolean {
    const ahead = this.queue.length;
    const { connecting, mayConnect } = this.#source;
    const isOpenedForIt = mayConnect && this.open + connecting < this.#settings.size;
    if (waitLimit === undefined || isRecovering === true) return false;
    if (isOpenedForIt || ahead < connecting) return false;
    const now = performance.now();
    const longestMs = Math.min(this.#settings.maxWaitMs, waitLimit.longestMs);
    const leftMs = longestMs - (now - waitLimit.since);
    return leftMs <= 0 || this.#backlog.outlasts(ahead, leftMs, now);
  }

  /** Asks for a session: granted at once, queued, or refused at once. */
  request(waiter: Waiter): void {
    if (this.#isClosing) {
      waiter.refused('stopping');
      return;
    }
    const session = this.queue.length === 0 ? this.#takeIdle() : undefined;
    if (session !== undefined) {
      this.#grant(session, waiter, null);
    } else if (waiter.isRecovering !== true && this.#isDown() && !this.#source.hurry()) {
      waiter.refused('database unreachable');
    } else if (this.#isHopeless(waiter)) {
      waiter.refused('waited too long');
    } else {
      if (this.queue.length === 0) this.#backlog.begins(performance.now());
      this.queue.add(waiter);
      this.#openWhereNeeded();
      this.#relief.begin();
      if (waiter.isOwn === true || waiter.isRecovering === true || !this.admission.isOverfull)
        return;
      this.queue.remove(waiter);
      waiter.refused('queue full');
    }
  }

  /**
   * Takes a session back. Whoever was granted it must call this once.
   * @param resetWithinMs the time that a reset may take; after it the connection is destroyed
   */
  release(session: Session, verdict: Verdict, resetWithinMs?: number): void {
    if (!this.#busy.delete(session)) return;
    this.#settings.onRelease();
    if (verdict === 'broken') session.connection.destroy(new Error('the connection was given up'));
    if (session.connection.isLost) this.#afterLoss();
    else if (verdict === 'clean') this.#lend(session, null);
    else this.#reset(session, resetWithinMs);
  }

  /** Resets a session for whoever was granted it. Rejects when the connection is lost by it. */
  refresh(session: Session): Promise<void> {
    return this.#resets.reset(session);
  }

  /** From now on a session that nobody waits for is closed; those that are asked for are still opened and lent. */
  keepNoneIdle(): void {
    this.#keepsIdle = false;
    for (const session of this.#idle.splice(0)) dismiss(session);
  }

  /** Ends every session, lent ones too: whatever the server may still answer is not to be believed. */
  sever(reason: Error): void {
    for (const session of [...this.#idle, ...this.#busy, ...this.#resetting]) {
      session.connection.destroy(reason);
    }
  }

  borrowIdle(): Session | null {
    const session = this.#takeIdle();
    if (session === undefined) return null;
    this.#busy.add(session);
    return session;
  }

  async revive(): Promise<ConnectFailure | null> {
    if (this.open > 0 || this.#source.failure === null) return null;
    this.#source.wake();
    await this.#source.attempt;
    return this.open > 0 ? null : this.#source.failure;
  }

  /** Refuses who waits, closes what is idle, and resolves when nothing is open any more. */
  close(): Promise<void> {
    this.#isClosing = true;
    this.#relief.end();
    clearInterval(this.#pings);
    this.#source.close();
    this.queue.refuseAll('stopping');
    for (const session of this.#idle.splice(0)) dismiss(session);
    return new Promise((resolve) => {
      this.#onEmpty = resolve;
      this.#tellIfEmpty();
    });
  }

  opened(session: Session, since: number): void {
    session.connection.watch((reason, wasAsked) => this.#lost(session, reason, wasAsked));
    // It counts while others are told of it: they may ask for one themselves.
    this.#busy.add(session);
    this.#settings.onOpened(session);
    this.#busy.delete(session);
    this.#lend(session, since);
    this.#openWhereNeeded();
  }

  failed(): void {
    if (this.#isClosing) this.#tellIfEmpty();
    else if (this.open === 0) this.queue.refuseNew('database unreachable');
  }

  /** Tries again without a request's help, so that service returns by itself. */
  retry(): void {
    const { connecting, mayConnect } = this.#source;
    if (mayConnect && this.open + connecting < this.#settings.size) this.#source.connect();
    this.#openWhereNeeded();
  }

  /** Nothing is open, and the last attempt failed: waiting would be for nothing. */
  #isDown(): boolean {
    return this.#source.isPausing && this.open === 0;
  }

  #openWhereNeeded(): void {
    const source = this.#source;
    if (this.queue.length > source.connecting) source.hurry();
    while (
      source.mayConnect &&
      this.queue.length > source.connecting &&
      this.open + source.connecting < this.#settings.size
    ) {
      source.connect();
    }
  }

  #takeIdle(): Session | undefined {
    for (;;) {
      const session = this.#idle.pop();
      if (session === undefined || this.#mayLend(session)) return session;
      dismiss(session);
    }
  }

  #mayLend(session: Session): boolean {
    const { mayLend } = this.#settings;
    return mayLend === null || mayLend(session);
  }

  #grant(session: Session, waiter: Waiter, openingSince: number | null): void {
    this.#busy.add(session);
    waiter.granted(session, openingSince);
  }

  #lend(session: Session, openingSince: number | null): void {
    if (this.#isClosing) {
      dismiss(session);
      this.#tellIfEmpty();
      return;
    }
    if (!this.#mayLend(session)) {
      dismiss(session);
      this.#afterLoss();
      return;
    }
    session.aliveAt = performance.now();
    const waiter = this.queue.shift();
    if (waiter !== undefined) {
      this.#backlog.shortened(performance.now());
      this.#grant(session, waiter, openingSince);
    } else if (this.#keepsIdle) this.#idle.push(session);
    else dismiss(session);
  }

  #reset(session: Session, withinMs?: number): void {
    this.#resetting.add(session);
    this.#resets.reset(session, withinMs).then(
      () => {
        if (this.#resetting.delete(session)) this.#lend(session, null);
      },
      () => {
        // The connection is lost by now, and `#lost` has been told.
      },
    );
  }

  /** What is granted meanwhile has its statement behind the ping. */
  #pingIdle(): void {
    const now = performance.now();
    for (const session of this.#idle) {
      const { connection, aliveAt } = session;
      if (!needsPings(connection) || now - aliveAt < pingEveryMs) continue;
      ping(connection).then(
        () => {
          session.aliveAt = performance.now();
        },
        // The connection is lost by now, and `#lost` has been told.
        () => {},
      );
    }
  }

  #lost(session: Session, reason: Error, wasAsked: boolean): void {
    this.#settings.log.debug?.('a session was lost', {
      connection: session.connection.threadId,
      error: describeLoss(reason),
      was_lent: this.#busy.has(session),
      was_asked: wasAsked,
    });
    // The pipeline keeps sessions between statements; what we give up ourselves is not lent any more.
    this.#source.noteLoss(reason, wasAsked && this.#busy.has(session));
    const at = this.#idle.indexOf(session);
    if (at >= 0) this.#idle.splice(at, 1);
    if (at >= 0 || this.#resetting.delete(session)) this.#afterLoss();
    session.onLost?.();
  }

  #afterLoss(): void {
    if (this.#isClosing) this.#tellIfEmpty();
    else this.#openWhereNeeded();
  }

  #tellIfEmpty(): void {
    if (this.open + this.#source.connecting === 0) this.#onEmpty?.();
  }
}

/** Ends a session of our own accord: that its connection is gone then is no news. */
function dismiss({ connection }: Session): void {
  connection.watch(() => {});
  quit(connection);
}
