// Acquires a session for statements: waits in the pool's queue, asks the server what must be known first, and makes the session ready.
// A session that is lost before anything was sent is replaced by another one, once.
import { performance } from 'node:perf_hooks';
import { runTogether, statementCommand } from '../../shared/mysql/commands.ts';
import type { RequestConsistency } from '../servers/consistency/consistency.ts';
import { killTimeoutMs } from '../servers/pool/control.ts';
import type { Pool } from '../servers/pool/pool.ts';
import type { Refusal, RequestWaiter } from '../servers/pool/queue.ts';
import { type Session, staleAfterMs } from '../servers/pool/session.ts';
import type { WaitLimit } from '../servers/pool/wait-limit.ts';
import type { RunEnd } from './execution.ts';
import type { RunTimes } from './run-times.ts';

/** The user of a session. Exactly one of `acquired` and `denied` is called, once, unless it stops. Neither may throw. */
export interface SessionUser {
  readonly waitLimit: WaitLimit;
  readonly isRecovering?: boolean;
  /** Called when it has waited for too long. Returns what takes its place in the queue; null, or missing: nothing does. */
  handOverPlace?(): RequestWaiter | null;
  /** The session is for reading only, so its position may be checked behind the statement. */
  readonly isRead: boolean;
  /** The following statements run in a READ ONLY transaction. */
  readonly isReadOnly: boolean;
  /** Whether what an earlier request left in the session may be read. */
  needsFreshSession(): boolean;
  /** Asks the server whether anything may be sent; resolves with the end if not. Null: nothing need be asked. */
  readonly check: ((session: Session) => Promise<RunEnd | null>) | null;
  /** A session is there, and is made ready. */
  granted?(): void;
  /** The session is the user's until it is released. */
  acquired(session: Session): void;
  /** Nothing was sent, and no session is kept. */
  denied(end: RunEnd): void;
}

/**
 *     created ──> queued ──> preparing ──> over
 *                    ^           │
 *                    └───────────┘  another session
 */
type Phase = 'created' | 'queued' | 'preparing' | 'over';

/** An acquisition. Its creator starts it, and may stop it at any time. */
export class SessionAcquisition implements RequestWaiter {
  readonly #pool: Pool;
  /** Null: positions are not tracked. */
  readonly #consistency: RequestConsistency | null;
  readonly #user: SessionUser;
  readonly #times: RunTimes;
  #phase: Phase = 'created';
  #session: Session | null = null;
  #mayTryAnother = true;
  /** Destroys the connection if a preparation goes on for too long after a stop. */
  #bound: NodeJS.Timeout | undefined;

  constructor(
    pool: Pool,
    consistency: RequestConsistency | null,
    user: SessionUser,
    times: RunTimes,
  ) {
    this.#pool = pool;
    this.#consistency = consistency;
    this.#user = user;
    this.#times = times;
  }

  start(): void {
    this.enqueued();
    this.#pool.request(this);
  }

  get isQueued(): boolean {
    return this.#phase === 'queued';
  }

  /** It has taken the place of another waiter in the queue. */
  enqueued(): void {
    this.#phase = 'queued';
    this.#times.enter('waiting');
  }

  /** The next one goes on waiting in its place. */
  giveWayTo(next: SessionAcquisition): void {
    this.#phase = 'over';
    this.#pool.queue.replace(this, next);
    next.enqueued();
  }

  /** A session that is being prepared goes back to the pool within a second. */
  stop(): void {
    if (this.#phase === 'queued') this.#pool.queue.remove(this);
    if (this.#phase === 'preparing') {
      this.#bound = setTimeout(
        () => this.#session?.connection.destroy(new Error('the preparation did not end')),
        killTimeoutMs,
      );
    }
    this.#phase = 'over';
  }

  /** The session was lost before anything was done on it. It may have been handed out already. */
  retry(session: Session): void {
    this.#pool.release(session, 'broken');
    if (this.#mayTryAnother) {
      this.#mayTryAnother = false;
      this.start();
    } else {
      this.#phase = 'over';
      this.#user.denied({ kind: 'not executed', reason: 'server unreachable' });
    }
  }

  get waitLimit(): WaitLimit {
    return this.#user.waitLimit;
  }

  get isRecovering(): boolean {
    return this.#user.isRecovering === true;
  }

  handOverPlace(): RequestWaiter | null {
    return this.#user.handOverPlace?.() ?? null;
  }

  refused(reason: Refusal): void {
    this.#deny({ kind: 'not executed', reason });
  }

  granted(session: Session, openingSince: number | null): void {
    const now = performance.now();
    this.#times.connected(openingSince);
    this.#times.enter('working', now);
    this.#phase = 'preparing';
    this.#session = session;
    try {
      this.#user.granted?.();
      const { isReadOnly, check } = this.#user;
      const needsFresh = this.#needsFresh(session);
      const mustAsk = check !== null || this.#mustWait;
      if (mustAsk || needsPreparation(session, isReadOnly, needsFresh, now)) {
        void this.#prepare(session, needsFresh, mustAsk);
        return;
      }
    } catch (cause) {
      this.#fault(session, cause);
      return;
    }
    this.#handOut(session);
  }

  /** An exception ends this request alone: a session is granted while another request's answer is handled. */
  #fault(session: Session, cause: unknown): void {
    try {
      this.#deny({ kind: 'faulted', isSent: false, cause });
    } finally {
      this.#pool.release(session, 'broken');
    }
  }

  async #prepare(session: Session, needsFresh: boolean, mustAsk: boolean): Promise<void> {
    let end: RunEnd | null = null;
    let isChecked = false;
    try {
      const { isReadOnly, check } = this.#user;
      if (mustAsk && isStale(session, performance.now())) await this.#pool.proveAlive(session);
      if (this.#isPreparing && this.#mustWait) end = await this.#waitForPosition(session);
      if (this.#isPreparing && end === null && check !== null) {
        isChecked = true;
        end = await check(session);
      }
      if (this.#isPreparing && end === null) {
        await makeReady(this.#pool, session, isReadOnly, needsFresh || this.#needsFresh(session));
      }
    } catch {
      clearTimeout(this.#bound);
      if (this.#isPreparing) this.retry(session);
      else this.#pool.release(session, 'broken');
      return;
    }
    clearTimeout(this.#bound);
    if (this.#isPreparing && end === null) {
      this.#handOut(session);
      return;
    }
    try {
      if (end !== null) this.#deny(end);
    } finally {
      this.#pool.release(session, session.isFresh && !isChecked ? 'clean' : 'unclean');
    }
  }

  #handOut(session: Session): void {
    if (session.connection.isLost) {
      this.retry(session);
      return;
    }
    this.#phase = 'over';
    this.#user.acquired(session);
  }

  #deny(end: RunEnd): void {
    if (this.#phase === 'over') return;
    this.#phase = 'over';
    this.#user.denied(end);
  }

  /** Asked after every wait: a stop may have come meanwhile. */
  get #isPreparing(): boolean {
    return this.#phase === 'preparing';
  }

  #needsFresh(session: Session): boolean {
    return !session.isFresh && this.#user.needsFreshSession();
  }

  get #mustWait(): boolean {
    return this.#consistency?.mustWait(this.#user.isRead) === true;
  }

  /** The end, if the server does not show what the client has seen. A server that cannot tell is used, and the reply says so. */
  async #waitForPosition(session: Session): Promise<RunEnd | null> {
    const position = (await this.#consistency?.waitForPosition(session)) ?? 'ready';
    if (position === 'lost') return { kind: 'token lost', isRead: false };
    return position === 'behind' ? { kind: 'not executed', reason: 'behind' } : null;
  }
}

function isStale(session: Session, now: number): boolean {
  return now - session.aliveAt > staleAfterMs;
}

/**
 * Whether `makeReady` has something to do; under load, for ordinary statements, it has not.
 * @param needsFresh the statement may read what was left in the session
 */
export function needsPreparation(
  session: Session,
  isReadOnly: boolean,
  needsFresh: boolean,
  now: number,
): boolean {
  return isStale(session, now) || isReadOnly || (needsFresh && !session.isFresh);
}

/**
 * Makes a granted session ready. Rejects if the connection must not be used.
 * @param isReadOnly what follows runs in a READ ONLY transaction
 */
export async function makeReady(
  pool: Pool,
  session: Session,
  isReadOnly: boolean,
  needsFresh: boolean,
): Promise<void> {
  const isReset = needsFresh && !session.isFresh;
  // A reset may take longer than a ping. They go out together, so that the ping costs no round trip.
  await Promise.all([
    isStale(session, performance.now()) ? pool.proveAlive(session) : null,
    isReset ? pool.refresh(session) : null,
  ]);
  if (!isReadOnly) return;
  session.isFresh = false;
  const begin = statementCommand('START TRANSACTION READ ONLY', session.connection);
  await runTogether(session.connection, [begin]);
}
