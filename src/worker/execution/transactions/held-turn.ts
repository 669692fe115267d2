// One request's turn in a transaction that its client holds: it waits for those before it, has its job done, and tells the end.
// Must not know what the job is, nor HTTP.
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
import { type Session, staleAfterMs } from '../../servers/pool/session.ts';
import type { Execution, RunEnd, RunEvents, RunSink, StopReason } from '../execution.ts';
import type { RunTimes } from '../run-times.ts';
import { SessionLease, type Undone } from '../session-lease.ts';
import type { Doubt, HeldTransaction, Left, TransactionEnd, Turn } from './held-transaction.ts';

/** What a job has come to. */
export type Done = {
  readonly end: RunEnd;
  /** How the transaction has ended by it; null: it is open. */
  readonly ended: TransactionEnd | null;
  /** What stands of a transaction that has ended otherwise than by COMMIT; missing: `end` says. */
  readonly left?: Left;
};

/** What a job has to do with. */
export interface JobTools {
  readonly lease: SessionLease;
  readonly sink: RunSink;
  readonly times: RunTimes;
  readonly savepoint: string;
  /** Why it is to stop; null: it is not. Asked behind every wait. */
  readonly stopReason: StopReason | null;
  /** Whether something of the transaction may stand unless the server says otherwise. */
  readonly isDoubted: boolean;
  /** Whether a procedure may have committed it, and begun another one. */
  readonly mayBeAnother: boolean;
  /** To be called before something is sent that a ROLLBACK may not undo, as far as the catalogue knows. Resolves when it may be sent. */
  doubt(doubt: Doubt): Promise<void>;
  /** From here on a stop is told, and stops nothing: what was sent may have been done. */
  commitIsSent(): void;
  /** Ends the transaction after a stop, and tells what that came to. */
  undoAfterStop(reason: StopReason): Promise<Done>;
}

/** What is done in a turn. */
export interface Job {
  readonly kind: 'statement' | 'commit' | 'rollback';
  /** Whether all that it answers is of one moment: then what it has seen can be bounded. */
  readonly seesOneMoment: boolean;
  /** Never stops halfway: whoever calls it waits for its end. */
  perform(tools: JobTools): Promise<Done>;
  /** What it comes to where the transaction had ended so before its turn. */
  afterEnd(end: TransactionEnd, left: Left): RunEnd;
}

/** It was over before anything was sent. */
export const transactionOver: RunEnd = { kind: 'transaction ended', outcome: 'not_executed' };

/**
 *     created ──> waiting ──> working ──> committing ──> ended
 */
type Phase = 'created' | 'waiting' | 'working' | 'committing' | 'ended';

/** A turn. Whoever created it starts it, and may stop it at any time. */
export class HeldTurn implements Execution, Turn, JobTools {
  readonly #transaction: HeldTransaction;
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
    transaction: HeldTransaction,
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

  resume(): void {
    this.#lease?.session.connection.resume();
  }

  /** The transaction is undone when its client leaves: nothing is wanted to run on. */
  abandonResults(): void {}

  async seeNow(): Promise<TokenResult> {
    return (await this.#look()) ?? unknownToken;
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

  // What the transaction says.

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

  refused(reason: 'queue full'): void {
    this.#end(this.#notRun(reason));
  }

  get isCommit(): boolean {
    return this.#job.kind === 'commit';
  }

  isTooLate(end: TransactionEnd, left: Left): void {
    this.#end(this.#job.afterEnd(end, left));
  }

  /** No time that is over ends a COMMIT that was sent. */
  expire(): void {
    if (this.#phase === 'working') this.stop('deadline');
  }

  // What the job asks for.

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
    return { end: { kind: 'batch stopped', reason, outcome: outcomeOf(undone) }, ended: 'stopped' };
  }

  #withdraw(reason: StopReason): void {
    const end = this.#notRun(reason);
    this.#transaction.withdraw(this);
    this.#end(end);
  }

  /** A client that asks for the end of its transaction again must not conclude from the reply that nothing was committed. */
  #notRun(reason: StopReason | 'queue full'): RunEnd {
    const asksForEnd = this.#job.kind !== 'statement' && reason !== 'client gone';
    return asksForEnd && this.#transaction.hasCommitBefore(this)
      ? { kind: 'commit running' }
      : { kind: 'not executed', reason };
  }

  /** The session is granted while somebody else's answer is handled, perhaps: what is thrown stays here. */
  async #serve(lease: SessionLease): Promise<void> {
    const { session } = lease;
    let done: Done;
    try {
      done = (await this.#isThere(session)) ? await this.#job.perform(this) : this.#gone();
      await this.#tellSeen();
    } catch (cause) {
      session.connection.destroy(new Error('a turn ended in an exception', { cause }));
      const ended = this.#hasSentCommit ? 'unknown' : 'lost';
      done = { end: { kind: 'faulted', isSent: this.#isSent, cause }, ended };
    }
    lease.end();
    session.connection.resume();
    session.aliveAt = performance.now();
    // Before the end is told: whoever is told finds it as it is then.
    this.#transaction.release(done.ended, done.end, done.left ?? leftOf(done.end));
    this.#end(done.end);
  }

  /**
   * Nothing is sent on a connection of which it is not known that it is there, with its transaction: what is found out now is no
   * loss of anything. A server that is slow is waited for, up to a stop.
   */
  async #isThere({ connection, aliveAt }: Session): Promise<boolean> {
    if (connection.isLost) return false;
    if (performance.now() - aliveAt <= staleAfterMs) return true;
    const status = await fetchStatus(connection).catch(() => 0);
    return (status & serverStatus.inTransaction) !== 0;
  }

  /** It was stopped before anything was sent, or is over. */
  #gone(): Done {
    const reason = this.#stopReason;
    const left = this.#transaction.isDoubted ? 'unknown' : 'nothing';
    const end: RunEnd =
      reason === null ? this.#job.afterEnd('lost', left) : { kind: 'not executed', reason };
    return { end, ended: 'lost' };
  }

  async #tellSeen(): Promise<void> {
    if (this.#phase === 'ended') return;
    const seen = await this.#look();
    if (seen !== null) this.#events.seen(seen);
  }

  /** In a snapshot that may be older than what its client has seen elsewhere, nothing can be waited for. */
  async #look(): Promise<TokenResult | null> {
    if (this.#transaction.context.consistency === null) return null;
    const seen = (await this.#transaction.seenNow()) ?? unknownToken;
    const isBound = this.#after === null && this.#job.seesOneMoment;
    return isBound ? seen : { ...unverified(seen), missing: 'nothing' };
  }

  #end(end: RunEnd): void {
    if (this.#phase === 'ended') return;
    this.#phase = 'ended';
    this.times.enter('over');
    this.#events.runEnded(end);
  }
}

/** What stands of a transaction that has ended so. */
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

/** What became of a transaction that was undone. */
export function outcomeOf(undone: Undone): Outcome {
  switch (undone) {
    case 'rolled_back':
      return 'rolled_back';
    case 'no proof':
    case 'partial':
      return 'partial';
    case 'unknown':
      return 'unknown';
    default:
      return undone satisfies never;
  }
}
