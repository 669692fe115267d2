// One step of an open transaction: waits for the steps before it, does its job, and reports the end.
import { performance } from 'node:perf_hooks';
import { fetchStatus } from '../../../shared/mysql/commands.ts';
import { serverStatus } from '../../../shared/mysql/packets.ts';
import type { Outcome } from '../../failure/failure.ts';
import {
  type TokenResult,
  unknownToken,
  unverified,
} from '../../servers/consistency/consistency.ts';
import type { Token } from '../../servers/consistency/token.ts';
import type { NoPlace } from '../../servers/pool/queue.ts';
import { type Session, staleAfterMs } from '../../servers/pool/session.ts';
import type { Execution, RunEnd, RunEvents, RunSink } from '../execution.ts';
import type { RunTimes } from '../run-times.ts';
import { SessionLease } from '../session-lease.ts';
import type { StopReason } from '../stop-reason.ts';
import type { EndCause, Left, TransactionEnd } from '../transaction-end.ts';
import { type Done, type Job, type JobTools, outcomeOf } from './jobs.ts';
import type { Doubt, OpenTransaction, Step } from './open-transaction.ts';

/**
 *     created ──> waiting ──> working ──> committing ──> ended
 */
type Phase = 'created' | 'waiting' | 'working' | 'committing' | 'ended';

/** A step. Its creator starts it, and may stop it at any time. */
export class StepRun implements Execution, Step, JobTools {
  readonly #transaction: OpenTransaction;
  readonly #job: Job;
  readonly #after: Token | null;
  readonly #events: RunEvents;
  readonly times: RunTimes;
  #phase: Phase = 'created';
  #lease: SessionLease | null = null;
  #stopReason: StopReason | null = null;
  #isSent = false;
  #hasSentCommit = false;

  /** @param after what the client has seen before; null: it does not say */
  constructor(
    transaction: OpenTransaction,
    job: Job,
    after: Token | null,
    events: RunEvents,
    times: RunTimes,
  ) {
    this.#transaction = transaction;
    this.#job = job;
    this.#after = after;
    this.#events = events;
    this.times = times;
  }

  start(): void {
    this.#phase = 'waiting';
    this.times.enter('waiting');
    this.#transaction.request(this);
  }

  stop(reason: StopReason): void {
    switch (this.#phase) {
      case 'created':
      case 'waiting':
        this.#withdraw(reason);
        break;
      case 'working':
        this.#stopReason ??= reason;
        this.#lease?.interrupt();
        break;
      case 'committing':
        this.#reportUnknownPosition();
        this.#end({ kind: 'stopped', reason });
        break;
      case 'ended':
        break;
      default:
        this.#phase satisfies never;
    }
  }

  pause(): void {
    if (this.#phase === 'working') this.#lease?.session.connection.pause();
  }

  /** When the step is over, the next one may have paused the connection. */
  resume(): void {
    if (this.#phase === 'working') this.#lease?.session.connection.resume();
  }

  replyLeft(): void {
    this.#transaction.replyLeft(this);
  }

  async seeNow(): Promise<TokenResult> {
    const seen = (await this.#lookUp()) ?? unknownToken;
    return this.#job.seesOneMoment ? seen : unverified(seen);
  }

  get isSent(): boolean {
    return this.#isSent;
  }

  get isRevocable(): boolean {
    return this.#phase !== 'committing';
  }

  get backend(): string {
    return this.#transaction.context.address;
  }

  // Reports of the transaction.

  granted(session: Session): void {
    this.#phase = 'working';
    this.times.enter('working');
    const { control } = this.#transaction.context;
    const onSend = () => {
      this.#isSent = true;
    };
    const lease = new SessionLease(session, control, onSend, this.#events.traceparent);
    this.#lease = lease;
    void this.#serve(lease);
  }

  refused(reason: NoPlace): void {
    this.#end(this.#notRun(reason));
  }

  get isCommit(): boolean {
    return this.#job.kind === 'commit';
  }

  isTooLate(end: TransactionEnd, left: Left, cause: EndCause): void {
    if (end === 'committed' || end === 'unknown') this.#reportUnknownPosition();
    this.#end(this.#job.afterEnd(end, left, cause));
  }

  /** A COMMIT that was sent is not stopped by the transaction's age. */
  expire(): void {
    if (this.#phase === 'working') this.stop('deadline');
  }

  // Requests of the job.

  get lease(): SessionLease {
    return this.#lease as SessionLease;
  }

  get sink(): RunSink {
    return this.#events.sink;
  }

  get savepoint(): string {
    return this.#transaction.savepoint;
  }

  get stopReason(): StopReason | null {
    return this.#stopReason;
  }

  get isDoubted(): boolean {
    return this.#transaction.isDoubted;
  }

  get mayBeAnother(): boolean {
    return this.#transaction.mayBeAnother;
  }

  doubt(doubt: Doubt): Promise<void> {
    return this.#transaction.doubt(doubt);
  }

  commitIsSent(): void {
    this.#hasSentCommit = true;
    this.#phase = 'committing';
  }

  async undoAfterStop(reason: StopReason): Promise<Done> {
    const undone = await this.lease.rollBack(this.savepoint);
    const end = { kind: 'batch stopped', reason, outcome: outcomeOf(undone) } as const;
    return { end, ended: 'stopped', cause: { stop: reason } };
  }

  #withdraw(reason: StopReason): void {
    const end = this.#notRun(reason);
    this.#transaction.withdraw(this);
    this.#end(end);
  }

  /** A client that repeats the end of its transaction must not conclude from the reply that nothing was committed. */
  #notRun(reason: StopReason | NoPlace): RunEnd {
    const asksForEnd = this.#job.kind !== 'statement' && reason !== 'client gone';
    return asksForEnd && this.#transaction.hasCommitBefore(this)
      ? { kind: 'commit running' }
      : { kind: 'not executed', reason };
  }

  /** An exception ends this step alone: the session may be granted while another request's answer is handled. */
  async #serve(lease: SessionLease): Promise<void> {
    const { session } = lease;
    let done: Done;
    try {
      done = (await this.#isThere(session)) ? await this.#job.perform(this) : this.#gone();
      await this.#reportSeen(done.ended === 'unknown');
    } catch (cause) {
      session.connection.destroy(
        new Error('a step of a transaction ended in an exception', { cause }),
      );
      if (this.#hasSentCommit && this.#phase !== 'ended') this.#reportUnknownPosition();
      const ended = this.#hasSentCommit ? 'unknown' : 'lost';
      done = { end: { kind: 'faulted', isSent: this.#isSent, cause }, ended };
    }
    lease.end();
    session.connection.resume();
    session.aliveAt = performance.now();
    // Before the end is reported: the next request of the client finds the transaction as it is then.
    const left = done.left ?? leftOf(done.end);
    this.#transaction.release(done.ended, done.end, left, done.cause);
    this.#end(this.#explained(done, left));
  }

  /**
   * Nothing is sent before the connection and its transaction are known to be there: a loss that is found now has cost nothing. The
   * wait for a slow server is ended by a stop only.
   */
  async #isThere({ connection, aliveAt }: Session): Promise<boolean> {
    if (connection.isLost) return false;
    if (performance.now() - aliveAt <= staleAfterMs) return true;
    const status = await fetchStatus(connection).catch(() => 0);
    return (status & serverStatus.inTransaction) !== 0;
  }

  /** The end of a step of which nothing was sent: it was stopped, or the transaction is over. */
  #gone(): Done {
    const reason = this.#stopReason;
    const left = this.#transaction.isDoubted ? 'unknown' : 'nothing';
    const end: RunEnd =
      reason === null
        ? this.#job.afterEnd('lost', left, this.#transaction.causeOf('lost'))
        : { kind: 'not executed', reason };
    return { end, ended: 'lost' };
  }

  /** A step that has ended its transaction reports how. */
  #explained({ end, ended, cause }: Done, left: Left): RunEnd {
    if (end.kind !== 'transaction ended' || end.over !== undefined || ended === null) return end;
    return { ...end, over: { end: ended, left, cause: cause ?? this.#transaction.causeOf(ended) } };
  }

  /** @param isUnknown whether the server may commit later than it reports its position */
  async #reportSeen(isUnknown: boolean): Promise<void> {
    if (this.#phase === 'ended') return;
    const seen = await this.#lookUp();
    if (seen !== null) this.#events.seen(isUnknown ? unverified(seen) : seen);
  }

  /** Behind a COMMIT, of this request or of an earlier one, whose position is not known. */
  #reportUnknownPosition(): void {
    const showsNothing = this.#job.kind !== 'statement';
    if (showsNothing && this.#transaction.context.consistency !== null) {
      this.#events.seen(unknownToken);
    }
  }

  /**
   * The client's token after this step: what it had seen before, and what it may have seen now. A step does not wait for a position, so its
   * reply can be verified only if the token that was sent names this server. The reply to a statement never is, because the snapshot of the
   * transaction may be older than that token. COMMIT and ROLLBACK show no data. A token of lost writes does not refuse a step that was
   * executed: the next request with that token is refused.
   */
  async #lookUp(): Promise<TokenResult | null> {
    const after = this.#after;
    if (this.#transaction.context.consistency === null) return null;
    const found = (await this.#transaction.seenNow(after)) ?? unknownToken;
    if (after === null) return found;
    const seen = after.server === found.token?.server ? found : unverified(found);
    const isVerified = seen.isVerified && this.#job.kind !== 'statement';
    return { ...seen, isVerified, missing: 'nothing' };
  }

  #end(end: RunEnd): void {
    if (this.#phase === 'ended') return;
    this.#phase = 'ended';
    this.times.enter('over');
    this.#events.runEnded(end);
  }
}

/** The rest of a transaction whose last step ended in this way. */
function leftOf(end: RunEnd): Left {
  switch (end.kind) {
    case 'answered':
      return leftWith(end.failure === null || end.failure.isAlone ? null : end.failure.outcome);
    case 'batch stopped':
    case 'transaction ended':
      return leftWith(end.outcome);
    default:
      return 'unknown';
  }
}

function leftWith(outcome: Outcome | null): Left {
  if (outcome === 'partial') return 'something';
  return outcome === 'rolled_back' ? 'nothing' : 'unknown';
}
