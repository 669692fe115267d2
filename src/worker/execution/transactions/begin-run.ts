// Begins a transaction that stays open: reserves room for it, acquires a session and begins it there.
import { randomUUID } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import type { ServerError } from '../../../shared/mysql/packets.ts';
import {
  beginStatements,
  savepointName,
  type TransactionCharacteristics,
} from '../../../shared/sql/transactions.ts';
import { RequestConsistency } from '../../servers/consistency/consistency.ts';
import type { Token } from '../../servers/consistency/token.ts';
import type { Refusal } from '../../servers/pool/queue.ts';
import type { Reserving } from '../../servers/pool/reserved-sessions.ts';
import type { Session } from '../../servers/pool/session.ts';
import { boundIdling } from '../../servers/pool/session.ts';
import type { WaitLimit } from '../../servers/pool/wait-limit.ts';
import {
  type Execution,
  type RunContext,
  type RunEnd,
  type RunEvents,
  succeeded,
} from '../execution.ts';
import type { RunTimes } from '../run-times.ts';
import { SessionAcquisition, type SessionUser } from '../session-acquisition.ts';
import { ofTransaction, SessionLease } from '../session-lease.ts';
import { statementFailure } from '../statement-failure.ts';
import type { StopReason } from '../stop-reason.ts';
import type { Begun } from './open-transaction.ts';

/**
 *     created ──> reserving ──> acquiring ──> beginning ──> ended
 *                                   ^             │
 *                                   └─────────────┘  another session
 */
type Phase = 'created' | 'reserving' | 'acquiring' | 'beginning' | 'ended';

const unreachable: RunEnd = { kind: 'not executed', reason: 'server unreachable' };
const separator = '\n;';

/** A BEGIN to run. */
export type BeginRequest = {
  readonly wish: TransactionCharacteristics;
  /** The client's token; null: it sends none. */
  readonly after: Token | null;
  /** How long its client may leave it idle. */
  readonly idleMs: number;
};

/** The beginning of a transaction. Its creator starts it, and may stop it at any time. */
export class BeginRun implements Execution, Reserving, SessionUser {
  readonly isRead = false;
  /** Its own text begins the transaction. */
  readonly isReadOnly = false;
  readonly check = null;
  readonly waitLimit: WaitLimit;
  readonly #context: RunContext;
  readonly #request: BeginRequest;
  readonly #onBegun: (begun: Begun) => void;
  readonly #events: RunEvents;
  readonly #times: RunTimes;
  /** Null: the section has one server. */
  readonly #consistency: RequestConsistency | null;
  readonly #acquisition: SessionAcquisition;
  #phase: Phase = 'created';
  #lease: SessionLease | null = null;
  #isSent = false;
  /** Whether it has, or had, a session. */
  #hasSession = false;

  /** @param onBegun called before the end is reported, if at all: from then on the session and its room are the callee's */
  constructor(
    context: RunContext,
    request: BeginRequest,
    onBegun: (begun: Begun) => void,
    events: RunEvents,
    times: RunTimes,
  ) {
    const { consistency, pool } = context;
    this.#consistency =
      consistency === null ? null : new RequestConsistency(consistency, request.after);
    this.#context = context;
    this.#request = request;
    this.#onBegun = onBegun;
    this.#events = events;
    this.#times = times;
    this.waitLimit = times.waitLimit(performance.now());
    this.#acquisition = new SessionAcquisition(pool, this.#consistency, this, times);
  }

  start(): void {
    this.#phase = 'reserving';
    this.#times.enter('waiting');
    this.#context.reserved.acquire(this);
  }

  stop(reason: StopReason): void {
    const { reserved } = this.#context;
    switch (this.#phase) {
      case 'created':
        break;
      case 'reserving':
        reserved.withdraw(this);
        break;
      case 'acquiring':
        this.#acquisition.stop();
        this.#leavePlace();
        break;
      case 'beginning':
        // A transaction that has begun is rolled back after its answer, within a second.
        this.#lease?.interrupt();
        break;
      case 'ended':
        return;
      default:
        this.#phase satisfies never;
    }
    this.#end({ kind: 'not executed', reason });
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

  // Answers of the reserved sessions.

  reserved(): void {
    this.#phase = 'acquiring';
    this.#acquisition.start();
  }

  refused(reason: Refusal): void {
    this.#end({ kind: 'not executed', reason });
  }

  // Questions and reports of the acquisition of a session.

  /** The transaction must not read what an earlier request left in the session. */
  needsFreshSession(): boolean {
    return true;
  }

  granted(): void {
    if (this.#hasSession) return;
    this.#hasSession = true;
    this.#context.reserved.noteSession(this.#times.account);
  }

  denied(end: RunEnd): void {
    this.#leavePlace();
    this.#end(end);
  }

  acquired(session: Session): void {
    this.#phase = 'beginning';
    const onSend = () => {
      this.#isSent = true;
    };
    const { control } = this.#context;
    const lease = new SessionLease(session, control, onSend, this.#events.traceparent);
    this.#lease = lease;
    this.#begin(lease).catch((cause) => this.#fault(cause));
  }

  /** An exception ends this request alone. If the session and its place are still this run's, it gives them back. */
  #fault(cause: unknown): void {
    const lease = this.#lease;
    if (lease !== null) {
      lease.session.connection.destroy(new Error('a BEGIN ended in an exception', { cause }));
      this.#endLease(lease);
      this.#context.pool.release(lease.session, 'broken');
      this.#leavePlace();
    }
    this.#end({ kind: 'faulted', isSent: this.#isSent, cause });
  }

  #leavePlace(): void {
    this.granted();
    this.#context.reserved.release(this.#times.account);
  }

  #endLease(lease: SessionLease): void {
    lease.end();
    this.#lease = null;
  }

  async #begin(lease: SessionLease): Promise<void> {
    const { session } = lease;
    const { wish, idleMs } = this.#request;
    const savepoint = savepointName(randomUUID());
    const bound = boundIdling(session.connection, idleMs);
    session.isFresh = false;
    // The server stops at the first error.
    const text = [...beginStatements(wish), `SAVEPOINT ${savepoint}`, `SET SESSION ${bound}`].join(
      separator,
    );
    const answered = await lease.ask(text, ofTransaction);
    const error = answered.kind === 'answered' ? answered.error : null;
    const isStopped = this.#phase !== 'beginning';
    if (answered.kind === 'answered' && error === null && !lease.isLost && !isStopped) {
      this.#endLease(lease);
      const { isReadOnly } = wish;
      this.#onBegun({ session, context: this.#context, savepoint, isReadOnly, owner: this.#times });
      this.#reportSeen();
      this.#end(succeeded);
      return;
    }
    if (lease.isLost && !isStopped) {
      this.#endLease(lease);
      this.#phase = 'acquiring';
      this.#acquisition.retry(session);
      return;
    }
    lease.boundWhatFollows();
    const isUsable = !lease.isLost && (await lease.rollBack(null)) !== 'unknown';
    this.#endLease(lease);
    this.#context.pool.release(session, isUsable ? 'unclean' : 'broken');
    this.#leavePlace();
    this.#end(error === null ? unreachable : refusedEnd(error));
  }

  /** From here on the client's token names the server of its transaction. */
  #reportSeen(): void {
    const seen = this.#consistency?.before ?? null;
    if (seen !== null) this.#events.seen(seen);
  }

  #end(end: RunEnd): void {
    if (this.#phase === 'ended') return;
    this.#phase = 'ended';
    this.#times.enter('over');
    this.#events.runEnded(end);
  }
}

function refusedEnd(error: ServerError): RunEnd {
  const statements = [{ isCall: false, effect: 'boundary' }] as const;
  const text = { statements, isReadOnly: false, isRead: false };
  const failure = statementFailure(text, [], error, false);
  return { kind: 'answered', failure, facts: null };
}
