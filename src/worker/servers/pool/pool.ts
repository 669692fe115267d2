// The worker's sessions on one server, and the bounded queue in front of them.
import { performance } from 'node:perf_hooks';
import { IndexedSet } from '../../../shared/indexed-set.ts';
import { ping, quit } from '../../../shared/mysql/commands.ts';
import type { ConnectFailure } from '../../../shared/mysql/connect-failure.ts';
import type { Log } from '../../../shared/process/log.ts';
import type { Account } from '../account.ts';
import { proveAlive } from './connecting.ts';
import type { TurnRules } from './fair-queue.ts';
import { keptFree, type PoolAccount, PoolAccounts, reservedRoom } from './pool-accounts.ts';
import {
  Admission,
  isRequest,
  LateCheck,
  Queue,
  type Refusal,
  type RequestWaiter,
  type Waiter,
} from './queue.ts';
import { describeLoss, type Reachability } from './reachability.ts';
import { needsPings, pingEveryMs, type Session } from './session.ts';
import { type SessionEvents, SessionSource } from './session-source.ts';
import type { WaitLimit } from './wait-limit.ts';

/** How often the pool refuses requests that have waited for too long. */
const lateCheckMs = 25;
/** With the jitter, 30 s. */
const longestRetryS = 24;
const retryJitter = 1 / 4;

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
  /** The clients that have used it in the last minute. */
  readonly accounts: PoolAccounts;
  readonly queue: Queue;
  readonly #settings: PoolSettings;
  readonly #source: SessionSource;
  readonly #idle: Session[] = [];
  readonly #busy = new IndexedSet<Session>();
  readonly #resetting = new IndexedSet<Session>();
  readonly #resets = { resetsOk: 0, resetsFailed: 0 };
  readonly #lateCheck: LateCheck;
  /** Sessions that clients have; the others that are busy are the gateway's. */
  #lent = 0;
  /** Sessions that are being released, and will be lent again. */
  #returning = 0;
  readonly #pings: NodeJS.Timeout;
  #keepsIdle = true;
  #isClosing = false;
  #onEmpty: (() => void) | null = null;

  constructor(settings: PoolSettings, reachability: Reachability) {
    this.#settings = settings;
    // A request does not count while a session is being opened for it.
    const connecting = () => this.#source.connecting;
    this.admission = new Admission(() => settings.queue + connecting(), connecting);
    this.accounts = new PoolAccounts(settings.size, settings.maxWaitMs);
    this.accounts.onRoom(() => this.#serve());
    const rules: TurnRules = {
      mayTake: (account) => this.#mayTake(account),
      isBelowShare: (account) => this.isBelowShare(account),
    };
    this.queue = new Queue(this.admission, this.accounts, rules, () => this.#hasUnreserved);
    this.#source = new SessionSource(settings.open, this, reachability, settings.log);
    this.#lateCheck = new LateCheck(
      lateCheckMs,
      () => this.queue.length > 0,
      () => {
        this.refuseLate(performance.now());
        // The room that is reserved depends on which clients were seen in the last minute.
        this.#serve();
      },
    );
    this.#pings = setInterval(() => {
      this.accounts.sweep(performance.now());
      this.#pingIdle();
    }, pingEveryMs).unref();
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
  isLate(limit: WaitLimit, now: number): boolean {
    return now - limit.since >= Math.min(this.#longestOf(limit), limit.longestMs);
  }

  /** The longest wait of a request, whatever its deadline: the section's, or its client's if that is less. */
  #longestOf({ account }: WaitLimit): number {
    return Math.min(this.#settings.maxWaitMs, account.maxWaitMs);
  }

  /**
   * Refuses requests that have waited for too long. While a connection is being opened for a request, `max_wait` alone counts.
   * @param now performance.now
   */
  refuseLate(now: number): void {
    const isLate = (limit: WaitLimit, isPatient: boolean) =>
      isPatient ? now - limit.since >= this.#longestOf(limit) : this.isLate(limit, now);
    this.queue.refuseLate(this.#source.connecting, isLate, this.#whyLate);
  }

  /** Whether a request that comes now would wait for too long, or has already done so elsewhere. */
  #isHopeless({ waitLimit }: RequestWaiter, own: PoolAccount, now: number): boolean {
    const { connecting, mayConnect } = this.#source;
    const mayOpen = mayConnect && this.open + connecting < this.#settings.size;
    if ((mayOpen && own.account.room > 0) || this.queue.length < connecting) return false;
    const longestMs = Math.min(this.#longestOf(waitLimit), waitLimit.longestMs);
    const leftMs = longestMs - (now - waitLimit.since);
    const ahead = this.queue.aheadOf(own, waitLimit.user);
    return leftMs <= 0 || own.backlog.outlasts(ahead, leftMs, now);
  }

  /**
   * Whole seconds, from 1 to 30, after which a rejected client should come again: its own backlog decides, with up to a quarter more, so that
   * not all come at once.
   */
  retryAfterSeconds(account: Account, random: () => number = Math.random): number {
    const seconds = this.accounts.find(account)?.retryAfterSeconds(performance.now()) ?? 1;
    return Math.round(Math.min(seconds, longestRetryS) * (1 + random() * retryJitter));
  }

  // The rules of fair turns.

  /** Connections that no part of the worker uses, whether or not they are open. */
  get #free(): number {
    return this.#settings.size - this.#busy.size - this.#resetting.size;
  }

  /** Connections that only clients below their share may have now. A client that is alone gets everything, and a pool that closes is emptied. */
  get #reserved(): number {
    return this.accounts.isShared && this.#keepsIdle ? reservedRoom(this.#settings.size) : 0;
  }

  get #hasUnreserved(): boolean {
    return this.#free > this.#reserved;
  }

  /** Whether a client holds less than its share of the connections that clients can have, which are all but the pipeline's. */
  isBelowShare(own: PoolAccount): boolean {
    const connections = this.#settings.size - (this.#busy.size - this.#lent);
    return own.held.running < this.accounts.shareOf(own, connections);
  }

  #mayTake(own: PoolAccount): boolean {
    if (own.account.room <= 0) return false;
    const heldByOthers = this.#lent - own.held.running;
    return this.#free > keptFree(this.#reserved, heldByOthers) || this.isBelowShare(own);
  }

  /** Whether a request that comes now gets a session at once, or as soon as one is opened. */
  isFreeFor(own: PoolAccount): boolean {
    const { mayConnect, connecting } = this.#source;
    const mayOpen = mayConnect && this.open + connecting < this.#settings.size;
    return (this.#idle.length > 0 || mayOpen) && this.#isNext(own);
  }

  /** Whether a request that comes now would get a session that is idle. */
  #isNext(own: PoolAccount): boolean {
    return this.queue.waitingOf(own) === 0 && this.#mayTake(own);
  }

  /** Whether requests wait that could run if there were sessions. */
  get isShort(): boolean {
    return this.queue.wanted > 0;
  }

  /** Asks for a session: the waiter is granted one at once, queued, or refused at once. */
  request(waiter: Waiter): void {
    if (this.#isClosing) {
      waiter.refused('stopping');
      return;
    }
    const now = performance.now();
    if (!isRequest(waiter)) {
      this.#requestOwn(waiter, now);
      return;
    }
    const own = this.accounts.arrive(waiter.waitLimit.account, now);
    const isRecovering = waiter.isRecovering === true;
    const session = isRecovering || this.#isNext(own) ? this.#takeIdle() : undefined;
    if (session !== undefined) {
      this.#grant(session, waiter, null, now);
    } else if (isRecovering) {
      this.#enqueue(waiter, now);
    } else if (this.#isDown() && !this.#source.hurry()) {
      waiter.refused(this.#source.failureKind);
    } else if (this.#isHopeless(waiter, own, now)) {
      waiter.refused(this.#whyLate);
    } else {
      if (this.queue.waitingOf(own) === 0) own.backlog.begins(now);
      this.#enqueue(waiter, now);
      this.#rejectIfFull(waiter);
    }
  }

  /** A request that the gateway itself has. */
  #requestOwn(waiter: Waiter, now: number): void {
    const session = this.#hasUnreserved ? this.#takeIdle() : undefined;
    if (session !== undefined) this.#grant(session, waiter, null, now);
    else if (this.#isDown() && !this.#source.hurry()) waiter.refused(this.#source.failureKind);
    else this.#enqueue(waiter, now);
  }

  #enqueue(waiter: Waiter, now: number): void {
    this.queue.add(waiter, now);
    this.#openWhereNeeded();
    this.#lateCheck.begin();
  }

  /** If too many wait, the newest request of the client with the longest queue must leave. */
  #rejectIfFull(waiter: RequestWaiter): void {
    const { account, user } = waiter.waitLimit;
    const isBusy = this.admission.isBusy(account);
    if (!isBusy && this.admission.hasPlaceFor({ account, user, more: 0 })) return;
    this.queue.remove(waiter);
    waiter.refused(isBusy ? 'client busy' : 'queue full');
  }

  /**
   * Takes a session back. The waiter that was granted it must call this once.
   * @param resetWithinMs the time that a reset may take; after it the connection is destroyed
   */
  release(session: Session, verdict: SessionVerdict, resetWithinMs?: number): void {
    if (!this.#busy.has(session)) return;
    const now = performance.now();
    this.#endHold(session, verdict, now);
    this.#busy.delete(session);
    if (verdict === 'broken') session.connection.destroy(new Error('the connection was given up'));
    if (session.connection.isLost) this.#afterLoss();
    else if (verdict === 'clean') this.#lend(session, null, now);
    else this.#reset(session, resetWithinMs);
  }

  /** Its holder may now run another request. The session still counts as busy, or one more than `size` would be opened for that. */
  #endHold(session: Session, verdict: SessionVerdict, now: number): void {
    const { holder } = session;
    if (holder === null) return;
    session.holder = null;
    this.#lent -= 1;
    this.#returning = verdict === 'broken' ? 0 : 1;
    holder.end(session.heldSince, now);
    this.#returning = 0;
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

  /**
   * Asks on a session that was idle whether the server is still there. Rejects if it does not answer: the connection is then lost, and
   * the idle sessions on which it has not answered since are closed, because a retry would meet them.
   */
  async proveAlive(session: Session): Promise<void> {
    const askedAt = performance.now();
    try {
      await proveAlive(session.connection);
      session.aliveAt = performance.now();
    } catch (error) {
      const silent = this.#idle.filter(({ aliveAt }) => aliveAt < askedAt);
      for (const { connection } of silent) connection.destroy(error as Error);
      throw error;
    }
  }

  /** From now on sessions are closed instead of becoming idle. Sessions that are asked for are still opened and lent. */
  keepNoneIdle(): void {
    this.#keepsIdle = false;
    this.#lendIdle();
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
    this.accounts.close();
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
    this.#lend(session, since, performance.now());
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

  /** Reserved connections are opened too while other clients wait, so that they are there when they are needed. */
  #openWhereNeeded(): void {
    const source = this.#source;
    if (this.queue.length > source.connecting) source.hurry();
    while (source.mayConnect && this.open + source.connecting < this.#settings.size) {
      if (this.queue.wanted <= source.connecting + this.#returning) return;
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

  #grant(session: Session, waiter: Waiter, openingSince: number | null, now: number): void {
    this.#busy.add(session);
    if (isRequest(waiter)) {
      const own = this.accounts.of(waiter.waitLimit.account);
      session.holder = own;
      session.heldSince = now;
      this.#lent += 1;
      own.begin(now);
    }
    waiter.granted(session, openingSince);
  }

  #lend(session: Session, openingSince: number | null, now: number): void {
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
    session.aliveAt = now;
    const waiter = this.queue.take(now);
    if (waiter !== undefined) this.#grantNext(session, waiter, openingSince, now);
    else if (this.#keepsIdle) this.#idle.push(session);
    else dismiss(session);
    if (this.queue.length > 0) this.#lendIdle();
  }

  /** Requests that wait may have what they could not have before. */
  #serve(): void {
    if (this.#isClosing || this.queue.length === 0) return;
    this.#lendIdle();
    this.#openWhereNeeded();
  }

  /** Lends idle sessions to requests that may have one now. */
  #lendIdle(): void {
    while (this.#idle.length > 0 && this.queue.length > 0) {
      const session = this.#takeIdle();
      if (session === undefined) {
        this.#openWhereNeeded();
        return;
      }
      const now = performance.now();
      const waiter = this.queue.take(now);
      if (waiter === undefined) {
        this.#idle.push(session);
        return;
      }
      this.#grantNext(session, waiter, null, now);
    }
  }

  /** Grants a session to a waiter that was in the queue. */
  #grantNext(session: Session, waiter: Waiter, openingSince: number | null, now: number): void {
    if (isRequest(waiter)) this.accounts.of(waiter.waitLimit.account).backlog.shortened(now);
    this.#grant(session, waiter, openingSince, now);
  }

  #reset(session: Session, withinMs?: number): void {
    this.#resetting.add(session);
    this.refresh(session, withinMs).then(
      () => {
        if (this.#resetting.delete(session)) this.#lend(session, null, performance.now());
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
