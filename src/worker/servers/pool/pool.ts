// The worker's sessions on one server, and the bounded queue in front of them.
import { performance } from 'node:perf_hooks';
import { IndexedSet } from '../../../shared/indexed-set.ts';
import { ping, quit } from '../../../shared/mysql/commands.ts';
import type { ConnectFailure } from '../../../shared/mysql/connect-failure.ts';
import type { Log } from '../../../shared/process/log.ts';
import { Backlog } from './drain-rate.ts';
import { Admission, LateCheck, Queue, type Refusal, type Waiter, type WaitLimit } from './queue.ts';
import { describeLoss, type Reachability } from './reachability.ts';
import { needsPings, pingEveryMs, type Session } from './session.ts';
import { type SessionEvents, SessionSource } from './session-source.ts';

/** How often the pool refuses requests that have waited for too long. */
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
  /** Called whenever a session is released, broken or not. */
  readonly onRelease: () => void;
  readonly log: Log;
};

/** The verdict of a session's user: an `unclean` session is reset before it is lent again. */
export type SessionVerdict = 'clean' | 'unclean' | 'broken';

/** The present state of the pool, and its counts so far. */
export type PoolObservations = {
  /** The most sessions that there may be. */
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
export class Pool implements SessionEvents {
  /** The requests that wait, for a session or for the result of another request. */
  readonly admission: Admission;
  readonly queue: Queue;
  readonly #settings: PoolSettings;
  readonly #source: SessionSource;
  readonly #idle: Session[] = [];
  readonly #busy = new IndexedSet<Session>();
  readonly #resetting = new IndexedSet<Session>();
  readonly #resets = { resetsOk: 0, resetsFailed: 0 };
  readonly #lateCheck: LateCheck;
  readonly #backlog: Backlog;
  readonly #pings: NodeJS.Timeout;
  #keepsIdle = true;
  #isClosing = false;
  #onEmpty: (() => void) | null = null;

  constructor(settings: PoolSettings, reachability: Reachability) {
    this.#settings = settings;
    // A request does not count while a session is being opened for it.
    this.admission = new Admission(() => settings.queue + this.#source.connecting);
    this.queue = new Queue(this.admission);
    this.#source = new SessionSource(settings.open, this, reachability, settings.log);
    this.#backlog = new Backlog(settings.maxWaitMs, settings.size);
    this.#lateCheck = new LateCheck(
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
      ...this.#resets,
    };
  }

  /** Whether a request that waits behind others has done so for too long. @param now performance.now */
  isLate({ since, longestMs }: WaitLimit, now: number): boolean {
    return now - since >= Math.min(this.#settings.maxWaitMs, longestMs);
  }

  /**
   * Refuses requests that have waited for too long. While a connection is being opened for a request, `max_wait` alone counts.
   * @param now performance.now
   */
  refuseLate(now: number): void {
    const { connecting } = this.#source;
    this.queue.refuseLate((limit, place) => {
      if (place >= connecting) return this.isLate(limit, now);
      return now - limit.since >= this.#settings.maxWaitMs;
    }, this.#whyLate);
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

  /** Asks for a session: the waiter is granted one at once, queued, or refused at once. */
  request(waiter: Waiter): void {
    if (this.#isClosing) {
      waiter.refused('stopping');
      return;
    }
    const session = this.queue.length === 0 ? this.#takeIdle() : undefined;
    if (session !== undefined) {
      this.#grant(session, waiter, null);
    } else if (waiter.isRecovering !== true && this.#isDown() && !this.#source.hurry()) {
      waiter.refused(this.#source.failureKind);
    } else if (this.#isHopeless(waiter)) {
      waiter.refused(this.#whyLate);
    } else {
      if (this.queue.length === 0) this.#backlog.begins(performance.now());
      this.queue.add(waiter);
      this.#openWhereNeeded();
      this.#lateCheck.begin();
      const takesPlace = waiter.isOwn !== true && waiter.isRecovering !== true;
      if (!takesPlace || !this.admission.isOverfull) return;
      this.queue.remove(waiter);
      waiter.refused('queue full');
    }
  }

  /**
   * Takes a session back. The waiter that was granted it must call this once.
   * @param resetWithinMs the time that a reset may take; after it the connection is destroyed
   */
  release(session: Session, verdict: SessionVerdict, resetWithinMs?: number): void {
    if (!this.#busy.delete(session)) return;
    this.#settings.onRelease();
    if (verdict === 'broken') session.connection.destroy(new Error('the connection was given up'));
    if (session.connection.isLost) this.#afterLoss();
    else if (verdict === 'clean') this.#lend(session, null);
    else this.#reset(session, resetWithinMs);
  }

  /** Resets a session that is lent. Rejects if the connection is lost by it. */
  async refresh(session: Session, withinMs?: number): Promise<void> {
    const from = performance.now();
    try {
      await session.reset(withinMs);
      this.#resets.resetsOk += 1;
    } catch (error) {
      this.#resets.resetsFailed += 1;
      this.#settings.log.debug?.('a session could not be reset', {
        connection: session.connection.threadId,
        took_ms: Math.round(performance.now() - from),
        error: describeLoss(error),
      });
      throw error;
    }
  }

  /** From now on sessions are closed instead of becoming idle. Sessions that are asked for are still opened and lent. */
  keepNoneIdle(): void {
    this.#keepsIdle = false;
    for (const session of this.#idle.splice(0)) dismiss(session);
  }

  /** Ends every session, lent ones too: no further answer of the server is to be believed. */
  sever(reason: Error): void {
    for (const session of [...this.#idle, ...this.#busy, ...this.#resetting]) {
      session.connection.destroy(reason);
    }
  }

  /** An idle session, which must be released; null: there is none. */
  borrowIdle(): Session | null {
    const session = this.#takeIdle();
    if (session === undefined) return null;
    this.#busy.add(session);
    return session;
  }

  /** Why the latest attempt to open a session failed; null: it did not, or there was none. */
  get connectFailure(): ConnectFailure | null {
    return this.#source.failure;
  }

  /** Why no session can be had, after one more attempt; null: there is a session, or none has been asked for yet. */
  async revive(): Promise<ConnectFailure | null> {
    if (this.open > 0 || this.#source.failure === null) return null;
    this.#source.wake();
    await this.#source.attempt;
    return this.open > 0 ? null : this.#source.failure;
  }

  /** Refuses the waiters, closes idle sessions, and resolves when no session is open any more. */
  close(): Promise<void> {
    this.#isClosing = true;
    this.#lateCheck.end();
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
    // It counts as busy during `onOpened`, which may itself ask for a session.
    this.#busy.add(session);
    this.#settings.onOpened(session);
    this.#busy.delete(session);
    this.#lend(session, since);
    this.#openWhereNeeded();
  }

  failed(): void {
    if (this.#isClosing) this.#tellIfEmpty();
    else if (this.open === 0) this.queue.refuseNew(this.#source.failureKind);
  }

  /** Tries again without a request, so that service returns by itself. */
  retry(): void {
    const { connecting, mayConnect } = this.#source;
    if (mayConnect && this.open + connecting < this.#settings.size) this.#source.connect();
    this.#openWhereNeeded();
  }

  /** Why a request that has waited gets no session. If the last attempt to connect failed, the next one, which goes on, is no queue. */
  get #whyLate(): Refusal {
    const { failure } = this.#source;
    return failure !== null && this.open === 0 ? failure.kind : 'waited too long';
  }

  /** Whether no session is open, and the last attempt failed: waiting would not help. */
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
    this.refresh(session, withinMs).then(
      () => {
        if (this.#resetting.delete(session)) this.#lend(session, null);
      },
      () => {
        // The connection is lost, and `#lost` was called.
      },
    );
  }

  /** If a session is granted meanwhile, its statement is sent behind the ping. */
  #pingIdle(): void {
    const now = performance.now();
    for (const session of this.#idle) {
      const { connection, aliveAt } = session;
      if (!needsPings(connection) || now - aliveAt < pingEveryMs) continue;
      ping(connection).then(
        () => {
          session.aliveAt = performance.now();
        },
        // The connection is lost, and `#lost` was called.
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
    // The pipeline keeps sessions between statements. A session that the gateway itself abandoned is not lent any more.
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

/** Ends a session on purpose, so that the end of its connection is not reported as a loss. */
function dismiss({ connection }: Session): void {
  connection.watch(() => {});
  quit(connection);
}
