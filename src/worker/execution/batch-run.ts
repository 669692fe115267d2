// A batch: its statements run on one session, again after a conflict, and end in one reply.
import { performance } from 'node:perf_hooks';
import { fetchRows, RefusedError } from '../../shared/mysql/commands.ts';
import type { LostSession } from '../../shared/mysql/identity.ts';
import type { Outcome } from '../failure/failure.ts';
import { RequestConsistency } from '../servers/consistency/consistency.ts';
import type { Token } from '../servers/consistency/token.ts';
import type { Session } from '../servers/pool/session.ts';
import type { WaitLimit } from '../servers/pool/wait-limit.ts';
import { type Break, describeBreak, type Interruption, isWorthAnotherTry } from './batch-break.ts';
import { type BatchOwner, BatchWork, tableErrors } from './batch-work.ts';
import {
  type Execution,
  type RunContext,
  type RunEnd,
  type RunEvents,
  type RunSink,
  succeeded,
} from './execution.ts';
import type { KeyAttempt, KeyStore } from './idempotency/key-store.ts';
import { findReadOnlyDoubt, needsProof } from './read-only-proof.ts';
import type { Activity, RunTimes } from './run-times.ts';
import { SessionAcquisition, type SessionUser } from './session-acquisition.ts';
import { SessionLease } from './session-lease.ts';
import type { StopReason } from './stop-reason.ts';
import { areUndoable } from './undoable-tables.ts';
import type { Batch, BatchStep } from './work.ts';

/** The parts of a server that a batch uses. */
export type BatchContext = Pick<RunContext, 'address' | 'pool' | 'control' | 'consistency'>;

/** A batch to run. */
export type BatchRequest = {
  readonly batch: Batch;
  /** Null: the batch has no key. */
  readonly attempt: KeyAttempt | null;
  /** The client's token; null: it sends none. */
  readonly after: Token | null;
};

/**
 *     acquiring ──> working ──> committing ──> concluding ──> ended
 *                    │   ^          │             ^
 *                    v   │ again    │             │
 *                  undoing <────────┘             │
 *                    └────────────────────────────┘
 */
type Phase = 'acquiring' | 'working' | 'undoing' | 'committing' | 'concluding' | 'ended';

const activities: Readonly<Record<Phase, Activity>> = {
  // The acquisition of its session says when MySQL begins to work.
  acquiring: 'waiting',
  working: 'working',
  undoing: 'working',
  committing: 'working',
  concluding: 'working',
  ended: 'over',
};

/** A batch. Its creator starts it, and may stop it at any time. */
export class BatchRun implements Execution, SessionUser, BatchOwner {
  /** A read-only batch too is asked first whether its server has lost what the client has seen. */
  readonly isRead = false;
  /** Its texts begin their own transaction. */
  readonly isReadOnly = false;
  readonly waitLimit: WaitLimit;
  readonly #context: BatchContext;
  readonly #batch: Batch;
  readonly #attempt: KeyAttempt | null;
  /** Null: positions are not tracked. */
  readonly #consistency: RequestConsistency | null;
  readonly #events: RunEvents;
  readonly #times: RunTimes;
  readonly #acquisition: SessionAcquisition;
  #phase: Phase = 'acquiring';
  #lease: SessionLease | null = null;
  #work: BatchWork | null = null;
  #stopReason: StopReason | null = null;
  /** MySQL may have received one of the statements. */
  #wasSent = false;

  constructor(
    context: BatchContext,
    { batch, attempt, after }: BatchRequest,
    events: RunEvents,
    times: RunTimes,
  ) {
    const { consistency, pool } = context;
    this.#context = context;
    this.#batch = batch;
    this.#attempt = attempt;
    this.#consistency = consistency === null ? null : new RequestConsistency(consistency, after);
    this.#events = events;
    this.#times = times;
    this.waitLimit = times.waitLimit(performance.now());
    this.#acquisition = new SessionAcquisition(pool, this.#consistency, this, times);
  }

  start(): void {
    this.#acquisition.start();
  }

  get isSent(): boolean {
    return this.#wasSent;
  }

  get backend(): string {
    return this.#context.address;
  }

  /** Up to COMMIT a transaction is undone by a stop. */
  get isRevocable(): boolean {
    return this.#batch.isAtomic ? this.#phase !== 'committing' : !this.#wasSent;
  }

  get isRecovering(): boolean {
    return this.#attempt?.owner.isRecovering === true;
  }

  /** Whether this run has the key, or had it. */
  get hasKey(): boolean {
    return this.#work?.hasKey === true;
  }

  /** Whether COMMIT was sent, and has no answer that says otherwise. */
  get mayHaveCommitted(): boolean {
    return this.#work?.mayHaveCommitted === true;
  }

  /** The session in which its transaction may still run; null: nothing was sent, or the connection is there. */
  get lostSession(): LostSession | null {
    const lease = this.#lease;
    if (lease === null || !this.#wasSent || !lease.isLost) return null;
    const { connection, identity } = lease.session;
    return { threadId: connection.threadId, identity };
  }

  stop(reason: StopReason): void {
    switch (this.#phase) {
      case 'acquiring':
        this.#acquisition.stop();
        this.#end({ kind: 'not executed', reason });
        break;
      case 'working':
      case 'undoing':
        this.#interrupt(reason);
        break;
      case 'committing':
        this.#end({ kind: 'stopped', reason });
        this.#interrupt(reason);
        break;
      case 'concluding':
      case 'ended':
        break;
      default:
        this.#phase satisfies never;
    }
  }

  #interrupt(reason: StopReason): void {
    this.#stopReason ??= reason;
    this.#lease?.interrupt();
  }

  // Questions and reports of the acquisition of a session.

  needsFreshSession(): boolean {
    return this.#batch.steps.some(
      ({ statement }) => statement.needsFreshSession || !statement.effects.isHarmless(),
    );
  }

  get check(): SessionUser['check'] {
    return this.#mustAsk ? (session) => this.#ask(session) : null;
  }

  /** Whether only the server can tell if it begins. */
  get #mustAsk(): boolean {
    const { mustUndo, steps } = this.#batch;
    const attempt = this.#attempt;
    const mustAskOfKey = attempt !== null && (attempt.hasPredecessor || !attempt.store.isBelieved);
    return mustUndo !== null || mustAskOfKey || steps.some(mustProve);
  }

  /** Why it does not begin; null: it begins. */
  async #ask(session: Session): Promise<RunEnd | null> {
    const { mustUndo } = this.#batch;
    const attempt = this.#attempt;
    try {
      if (mustUndo !== null && !(await areUndoable(session.connection, mustUndo))) {
        const fault = { kind: 'not undoable' } as const;
        return { kind: 'batch failed', fault, statement: null, outcome: 'not_executed' };
      }
      const doubted = await this.#findDoubt(session);
      if (doubted !== null) return doubted;
      await attempt?.endPredecessor(session);
      if (attempt === null || attempt.store.isBelieved) return null;
      return await checkTable(attempt.store, session);
    } catch (error) {
      if (!(error instanceof RefusedError)) throw error;
      if (attempt === null) return { kind: 'not executed', reason: 'server unavailable' };
      attempt.store.refused(error.errno);
      return noTable;
    }
  }

  /** Why a read-only batch does not begin: one of its statements may do more. Null: none may. */
  async #findDoubt({ connection }: Session): Promise<RunEnd | null> {
    for (const [number, step] of this.#batch.steps.entries()) {
      const { sql, effects } = step.statement;
      if (sql === null || !mustProve(step)) continue;
      const doubt = await findReadOnlyDoubt(connection, sql, effects);
      if (doubt !== null) return { kind: 'not only reading', doubt, statement: number };
    }
    return null;
  }

  denied(end: RunEnd): void {
    this.#end(end);
  }

  acquired(session: Session): void {
    const { traceparent } = this.#events;
    const noteSent = () => this.#noteSent();
    this.#lease = new SessionLease(session, this.#context.control, noteSent, traceparent);
    void this.#serve(this.#lease);
  }

  /** An exception ends this run alone: a session is granted while another request's answer is handled. */
  async #serve(lease: SessionLease): Promise<void> {
    const { session } = lease;
    let isClean = false;
    try {
      session.isFresh = false;
      this.#work = new BatchWork(this.#batch, this.#attempt, lease, this);
      const end = await this.#perform(this.#work, session);
      isClean = end?.kind === 'answered' && end.failure === null && this.#leavesClean(lease);
      if (end !== null) {
        await this.#noteSeen(session);
        this.#end(end);
      }
    } catch (cause) {
      session.connection.destroy(new Error('a batch ended in an exception', { cause }));
      this.#end({ kind: 'faulted', isSent: this.#wasSent, cause });
    }
    lease.end();
    this.#context.pool.release(session, lease.isLost ? 'broken' : isClean ? 'clean' : 'unclean');
  }

  /** The server's flags and the text must both show it. */
  #leavesClean(lease: SessionLease): boolean {
    const says = ({ statement }: Batch['steps'][number]) =>
      statement.leavesSessionClean && statement.effects.isHarmless();
    return lease.isClean && this.#batch.steps.every(says);
  }

  /** Once the end is known, and before it is reported: what the batch has seen at most. A stop has no effect any more. */
  async #noteSeen(session: Session): Promise<void> {
    const consistency = this.#consistency;
    if (consistency === null || this.#phase === 'ended') return;
    this.enter('concluding');
    this.#lease?.boundWhatFollows();
    const { connection } = session;
    const { sql } = consistency.queryOn(connection);
    const rows = await fetchRows(connection, sql).catch(() => []);
    this.#events.seen(consistency.see(session, rows[0] ?? null, false));
  }

  /** Null: its end has been reported. */
  async #perform(work: BatchWork, session: Session): Promise<RunEnd | null> {
    for (let retries = 0; ; ) {
      const broken = (await work.run()) ?? (await work.finish());
      if (broken === null) return succeeded;
      if (this.#isUnder('ended')) return null;
      if (broken.kind === 'taken') {
        if (await this.#lookUp(work, session)) return null;
        continue;
      }
      if (broken.kind === 'other engine') {
        const refused = await this.#explainTable(session);
        if (refused !== null) return refused;
        continue;
      }
      const outcome = await work.undo(broken);
      if (!(await this.#mayRunAgain(broken, outcome, retries, session)))
        return this.#describe(broken, outcome);
      if (broken.kind === 'refused' && broken.isOfKey) continue;
      retries += 1;
      this.#events.sink.restart();
    }
  }

  /** The whole check says what is wrong with the idempotency table. Null: it has changed since, and is usable. */
  async #explainTable(session: Session): Promise<RunEnd | null> {
    const { store } = this.#attempt as KeyAttempt;
    try {
      return await checkTable(store, session);
    } catch {
      return this.#describe({ kind: 'lost' }, 'unknown');
    }
  }

  /** Asked after every wait: a stop may have come meanwhile. */
  #isUnder(phase: Phase): boolean {
    return this.#phase === phase;
  }

  /** Waiting for a key is no rerun. A conflict at COMMIT may concern the key, so that one more try is free. */
  async #mayRunAgain(
    broken: Break,
    outcome: Outcome,
    retries: number,
    session: Session,
  ): Promise<boolean> {
    const isUndone = outcome === 'rolled_back' && this.#stopReason === null;
    if (!isUndone || broken.kind !== 'refused' || !isWorthAnotherTry(broken)) return false;
    if (broken.isOfKey) return true;
    const isAtCommit = this.#attempt !== null && broken.step === null;
    if (retries >= this.#batch.maxRetries + (isAtCommit ? 1 : 0)) return false;
    return this.#resetForRerun(session);
  }

  /** Reports what the key was used for. Returns false if the key is free again. */
  async #lookUp(work: BatchWork, session: Session): Promise<boolean> {
    const { connection } = session;
    const attempt = this.#attempt as KeyAttempt;
    const undone = await work.rollBack();
    let rows: (string | null)[][] | null = null;
    try {
      if (undone !== 'unknown') rows = await fetchRows(connection, attempt.lookUp);
    } catch (error) {
      if (error instanceof RefusedError && tableErrors.has(error.errno)) {
        attempt.store.refused(error.errno);
        this.#end({ kind: 'key refused', reason: 'no table' });
        return true;
      }
    }
    if (rows === null) {
      connection.destroy(new Error('a key could not be looked up'));
      this.#end(this.#describe({ kind: 'lost' }, 'unknown'));
      return true;
    }
    const row = attempt.parseRow(rows);
    if (row !== null) {
      await this.#noteSeen(session);
      this.#end({ kind: 'key taken', row });
    } else if (this.#stopReason !== null) this.#end(this.#describe({ kind: 'lost' }, 'unknown'));
    return !this.#isUnder('undoing');
  }

  /** Resets the session to what the first run found: variables outlive a ROLLBACK. Returns whether the batch may run again. */
  async #resetForRerun(session: Session): Promise<boolean> {
    if (!this.#batch.isAtomic || this.#stopReason !== null) return false;
    try {
      await this.#context.pool.refresh(session);
    } catch {
      return false;
    }
    session.isFresh = false;
    return this.#stopReason === null;
  }

  /** With a key, the keyed run finds out what is unknown. */
  #describe(broken: Interruption, outcome: Outcome): RunEnd {
    const canBeAsked = this.#attempt !== null && this.#stopReason === null;
    if (canBeAsked && outcome === 'unknown') return { kind: 'lost', outcome };
    return describeBreak(broken, outcome, this.#batch.isReadOnly, this.#stopReason);
  }

  // Reports of the statements.

  get sink(): RunSink {
    return this.#events.sink;
  }

  get stopReason(): StopReason | null {
    return this.#stopReason;
  }

  enter(phase: Phase): void {
    this.#phase = phase;
    this.#times.enter(activities[phase]);
  }

  stepDone(): void {
    this.#times.answerBegins();
  }

  resultsTooLarge(): void {
    this.stop('too large');
  }

  #noteSent(): void {
    if (this.#wasSent) return;
    this.#wasSent = true;
    for (const { statement } of this.#batch.steps) statement.effects.sent();
  }

  #end(end: RunEnd): void {
    if (this.#phase === 'ended') return;
    this.enter('ended');
    const { kind } = end;
    const isCertain = kind === 'answered' || kind === 'batch failed' || kind === 'key taken';
    if (this.#wasSent) {
      for (const { statement } of this.#batch.steps) statement.effects.ended(isCertain);
    }
    this.#events.runEnded(end);
  }
}

const noTable: RunEnd = { kind: 'key refused', reason: 'no table' };

/** Why a batch with a key does not begin; null: the idempotency table is usable. Rejects when the connection is lost. */
async function checkTable(store: KeyStore, session: Session): Promise<RunEnd | null> {
  try {
    return (await store.isUsable(session)) ? null : noTable;
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error;
    store.refused(error.errno);
    return noTable;
  }
}

/** Whether a statement that must only read may do more, as far as its text shows. */
function mustProve({ statement: { isReadOnly, sql, effects } }: BatchStep): boolean {
  return isReadOnly && sql !== null && needsProof(effects);
}
