// A transaction from being asked for to being held: it waits for room and for a session, and is begun on that.
// Must not know HTTP, nor how its client will name it.
import { randomUUID } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import type { ServerError } from '../../../shared/mysql/packets.ts';
import type { Isolation } from '../../../shared/sql/transactions.ts';
import { savepointPrefix } from '../../../shared/sql/transactions.ts';
import {
  type PositionCheck,
  type TokenResult,
  unknownToken,
} from '../../servers/consistency/consistency.ts';
import type { Token } from '../../servers/consistency/token.ts';
import type { Refusal, Waiter, WaitLimit } from '../../servers/pool/queue.ts';
import type { Reserving } from '../../servers/pool/reserved-sessions.ts';
import { boundIdling, type Session } from '../../servers/pool/session.ts';
import type { Execution, RunContext, RunEnd, RunEvents, StopReason } from '../execution.ts';
import { makeReady } from '../preparation.ts';
import type { RunTimes } from '../run-times.ts';
import { ofTransaction, SessionLease } from '../session-lease.ts';
import { statementFailure } from '../statement-failure.ts';
import type { Begun } from './held-transaction.ts';

/** What a transaction is to be. */
export type TransactionCharacteristics = {
  /** Null: the session's. */
  readonly isolation: Isolation | null;
  readonly isReadOnly: boolean;
  /** Whether a snapshot is taken at once (START TRANSACTION WITH CONSISTENT SNAPSHOT). */
  readonly hasSnapshot: boolean;
};

/**
 *     created ──> sharing ──> queued ──> working ──> ended
 */
type Phase = 'created' | 'sharing' | 'queued' | 'working' | 'ended';

const unreachable: RunEnd = { kind: 'not executed', reason: 'database unreachable' };
const separator = '\n;';

/** What is asked for. */
export type BeginWish = {
  readonly wish: TransactionCharacteristics;
  readonly after: Token | null;
  readonly idleMs: number;
};

/** A beginning. Whoever created it starts it, and may stop it at any time. */
export class BeginRun implements Execution, Reserving, Waiter {
  readonly #context: RunContext;
  readonly #wish: TransactionCharacteristics;
  readonly #after: Token | null;
  readonly #idleMs: number;
  readonly #onBegun: (begun: Begun) => void;
  readonly #events: RunEvents;
  readonly #times: RunTimes;
  #phase: Phase = 'created';
  #lease: SessionLease | null = null;
  #isSent = false;
  #mayTryAnother = true;
  readonly waitLimit: WaitLimit;

  /**
   * @param after what the client has seen before; null: it does not say
   * @param idleMs how long its client may leave it idle
   * @param onBegun called before the end is told, if at all: the session and its room are whoever's who is called
   */
  constructor(
    context: RunContext,
    { wish, after, idleMs }: BeginWish,
    onBegun: (begun: Begun) => void,
    events: RunEvents,
    times: RunTimes,
  ) {
    this.#context = context;
    this.#wish = wish;
    this.#after = after;
    this.#idleMs = idleMs;
    this.#onBegun = onBegun;
    this.#events = events;
    this.#times = times;
    this.waitLimit = times.waitLimit(performance.now());
  }

  start(): void {
    this.#phase = 'sharing';
    this.#times.enter('waiting');
    this.#context.reserved.acquire(this);
  }

  stop(reason: StopReason): void {
    const end: RunEnd = { kind: 'not executed', reason };
    switch (this.#phase) {
      case 'created':
        break;
      case 'sharing':
        this.#context.reserved.withdraw(this);
        break;
      case 'queued':
        this.#context.pool.queue.remove(this);
        this.#context.reserved.release();
        break;
      case 'working':
        // What has begun is given up when it has its answer, within a second.
        this.#lease?.interrupt();
        break;
      case 'ended':
        return;
      default:
        this.#phase satisfies never;
    }
    this.#end(end);
  }

  /** A beginning has no results. */
  pause(): void {}

  resume(): void {}

  abandonResults(): void {}

  seeNow(): Promise<TokenResult> {
    return Promise.resolve(unknownToken);
  }

  get isSent(): boolean {
    return this.#isSent;
  }

  get isRevocable(): boolean {
    return true;
  }

  get backend(): string {
    return this.#context.address;
  }

  // What the reserved sessions and the pool answer.

  reserved(): void {
    this.#queue();
  }

  refused(reason: Refusal): void {
    if (this.#phase === 'queued') this.#context.reserved.release();
    this.#end({ kind: 'not executed', reason });
  }

  granted(session: Session, openingSince: number | null): void {
    this.#times.connected(openingSince);
    this.#phase = 'working';
    this.#times.enter('working');
    const onSend = () => {
      this.#isSent = true;
    };
    const { control } = this.#context;
    this.#lease = new SessionLease(session, control, onSend, this.#events.traceparent);
    void this.#serve(this.#lease);
  }

  #queue(): void {
    this.#phase = 'queued';
    this.#times.enter('waiting');
    this.#context.pool.request(this);
  }

  async #serve(lease: SessionLease): Promise<void> {
    const { session } = lease;
    const savepoint = savepointPrefix + randomUUID().replaceAll('-', '');
    const end = await this.#begin(lease, savepoint).catch(() => unreachable);
    if (end === null && !lease.isLost && !this.#isOver) {
      lease.end();
      const { isReadOnly } = this.#wish;
      this.#onBegun({ session, context: this.#context, savepoint, isReadOnly });
      this.#end({ kind: 'answered', failure: null, facts: null });
      return;
    }
    lease.boundWhatFollows();
    const isUsable = !lease.isLost && (await isRolledBack(lease));
    lease.end();
    this.#context.pool.release(session, isUsable ? 'unclean' : 'broken');
    if (end === unreachable && this.#mayTryAnother && !this.#isOver) {
      this.#mayTryAnother = false;
      this.#queue();
      return;
    }
    this.#context.reserved.release();
    this.#end(end ?? unreachable);
  }

  /** Null: it has begun. Rejects when the connection is lost: nothing was done on it. */
  async #begin(lease: SessionLease, savepoint: string): Promise<RunEnd | null> {
    const { session } = lease;
    // What an earlier request has left is not to be read in it.
    await makeReady(this.#context.pool, session, false, true);
    if (this.#isOver) return null;
    const check = await this.#waitForPosition(session);
    if (check === 'lost') return { kind: 'token lost', isRead: false };
    if (check === 'behind') return { kind: 'not executed', reason: 'behind' };
    if (this.#isOver) return null;
    session.isFresh = false;
    const bound = boundIdling(session.connection, this.#idleMs);
    const answered = await lease.ask(beginText(this.#wish, savepoint, bound), ofTransaction);
    if (answered.kind === 'lost') return unreachable;
    return answered.error === null ? null : refusedEnd(answered.error);
  }

  async #waitForPosition(session: Session): Promise<PositionCheck> {
    const { consistency } = this.#context;
    const after = this.#after;
    const mustAsk = after !== null && consistency?.mustWait(after, false) === true;
    return mustAsk ? consistency.waitForPosition(session, after) : 'ready';
  }

  /** Asked behind every wait: a stop may have come meanwhile. */
  get #isOver(): boolean {
    return this.#phase === 'ended';
  }

  #end(end: RunEnd): void {
    if (this.#phase === 'ended') return;
    this.#phase = 'ended';
    this.#times.enter('over');
    this.#events.runEnded(end);
  }
}

/** ROLLBACK first: nothing that a session may have begun is committed by what follows. The server stops at the first error. */
function beginText(
  { isolation, isReadOnly, hasSnapshot }: TransactionCharacteristics,
  savepoint: string,
  bound: string,
): string {
  const characteristics = [
    ...(hasSnapshot ? ['WITH CONSISTENT SNAPSHOT'] : []),
    ...(isReadOnly ? ['READ ONLY'] : []),
  ].join(', ');
  return [
    'ROLLBACK',
    ...(isolation === null ? [] : [`SET TRANSACTION ISOLATION LEVEL ${isolation.toUpperCase()}`]),
    `START TRANSACTION ${characteristics}`.trimEnd(),
    `SAVEPOINT ${savepoint}`,
    `SET SESSION ${bound}`,
  ].join(separator);
}

async function isRolledBack(lease: SessionLease): Promise<boolean> {
  return (await lease.rollBack(null)) !== 'unknown';
}

function refusedEnd(error: ServerError): RunEnd {
  const statements = [{ verb: 'START', isCall: false }];
  const text = { statements, isReadOnly: false, isRead: false };
  const failure = statementFailure(text, [], error, false);
  return { kind: 'answered', failure, facts: null };
}
