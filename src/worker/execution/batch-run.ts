// A batch from being asked for to a known end, on one session: sent, undone and begun anew where that is safe, committed.
// Must not know HTTP or the reply's shape: results go to a sink, the end to a callback.
import { randomUUID } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { fetchRows, RefusedError } from '../../shared/mysql/commands.ts';
import type { LostSession } from '../../shared/mysql/identity.ts';
import type { ServerError } from '../../shared/mysql/packets.ts';
import { savepointPrefix } from '../../shared/sql/transactions.ts';
import type { Outcome } from '../failure/failure.ts';
import {
  RequestConsistency,
  type TokenResult,
  unknownToken,
} from '../servers/consistency/consistency.ts';
import type { Token } from '../servers/consistency/token.ts';
import type { Refusal, Waiter, WaitLimit } from '../servers/pool/queue.ts';
import type { Session } from '../servers/pool/session.ts';
import {
  type Break,
  describeBreak,
  isOfCall,
  isUndoing,
  isWorthAnotherTry,
  outcomeWithoutTransaction,
  type Told,
} from './batch-break.ts';
import { TextResults } from './batch-results.ts';
import { type BatchText, type Piece, writeClosing, writeTexts } from './batch-texts.ts';
import type { Execution, RunContext, RunEnd, RunEvents, RunSink, StopReason } from './execution.ts';
import type { Attempt } from './idempotency/attempt.ts';
import { makeReady } from './preparation.ts';
import { findReadOnlyDoubt, needsProof } from './read-only-proof.ts';
import type { Activity, RunTimes } from './run-times.ts';
import { type Answered, ofTransaction, SessionLease, type Undone } from './session-lease.ts';
import { areUndoable } from './undoable-tables.ts';
import type { Batch } from './work.ts';

/** What all batches of a worker share. */
export type BatchContext = Pick<RunContext, 'address' | 'pool' | 'control' | 'consistency'>;

/** What is to be run. */
export type BatchWork = {
  readonly batch: Batch;
  /** Null: the batch has no key. */
  readonly attempt: Attempt | null;
  /** What the client has seen before; null: it does not say. */
  readonly after: Token | null;
};

/**
 *     created ──> queued ──> preparing ──> working ──> committing ──> ended
 *                               ^            │  ^          │            ^
 *                               └─ another   v  │ anew     v            │
 *                                 session    undoing <─────┘            │
 *                                            └──────────────────────────┘
 */
type Phase =
  | 'created'
  | 'queued'
  | 'preparing'
  | 'working'
  | 'undoing'
  | 'committing'
  | 'looking'
  | 'ended';

const activities: Readonly<Record<Phase, Activity>> = {
  created: 'waiting',
  queued: 'waiting',
  preparing: 'working',
  working: 'working',
  undoing: 'working',
  committing: 'working',
  looking: 'working',
  ended: 'over',
};

/** ER_SP_DOES_NOT_EXIST, also of savepoints. */
const noSavepoint = 1305;
/** ER_DUP_ENTRY */
const duplicateEntry = 1062;
/** What the server says of a table of keys that is missing, forbidden, or of another shape. */
const tableErrors = new Set([
  1036, 1048, 1054, 1136, 1142, 1143, 1146, 1288, 1364, 1366, 1406, 1442,
]);
/** Of a reply that is longer, what is kept is without its rows. */
const mostKeptBytes = 64 * 1024;
/** The statement around a reply that is kept. */
const keepingBytes = 1024;

/** A batch on its way. */
export class BatchRun implements Execution, Waiter {
  readonly #context: BatchContext;
  readonly #batch: Batch;
  readonly #events: RunEvents;
  readonly #times: RunTimes;
  readonly #savepoint = savepointPrefix + randomUUID().replaceAll('-', '');
  #phase: Phase = 'created';
  #mayTryAnother = true;
  #lease: SessionLease | null = null;
  #stopReason: StopReason | null = null;
  /** MySQL may have got one of the statements. */
  #wasSent = false;
  /** Whether the savepoint must be there, if nothing has ended the transaction. */
  #hasSavepoint = false;
  readonly #attempt: Attempt | null;
  /** Null: it is the only server, and nobody asks what was seen there. */
  readonly #consistency: RequestConsistency | null;
  #hasKey = false;
  #hasSentCommit = false;
  readonly waitLimit: WaitLimit;

  constructor(
    context: BatchContext,
    { batch, attempt, after }: BatchWork,
    events: RunEvents,
    times: RunTimes,
  ) {
    this.#attempt = attempt;
    const { consistency } = context;
    this.#consistency = consistency === null ? null : new RequestConsistency(consistency, after);
    this.#context = context;
    this.#batch = batch;
    this.#events = events;
    this.#times = times;
    this.waitLimit = times.waitLimit(performance.now());
  }

  start(): void {
    this.#queue();
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
    return this.#attempt?.isRecovering === true;
  }

  /** Whether it is this run that holds the key, or did. */
  get hasKey(): boolean {
    return this.#hasKey;
  }

  /** Whether COMMIT was sent, and has no answer that says otherwise. */
  get mayHaveCommitted(): boolean {
    return this.#hasSentCommit;
  }

  /** Where its transaction may still be at work; null: nothing was sent, or the connection is there. */
  get lostSession(): LostSession | null {
    const lease = this.#lease;
    if (lease === null || !this.#wasSent || !lease.isLost) return null;
    const { connection, identity } = lease.session;
    return { threadId: connection.threadId, identity };
  }

  stop(reason: StopReason): void {
    switch (this.#phase) {
      case 'queued':
        this.#context.pool.queue.remove(this);
        this.#end({ kind: 'not executed', reason });
        break;
      case 'created':
        this.#end({ kind: 'not executed', reason });
        break;
      case 'preparing':
        this.#end({ kind: 'not executed', reason });
        this.#lease?.boundWhatFollows();
        break;
      case 'working':
      case 'undoing':
        this.#interrupt(reason);
        break;
      case 'committing':
        this.#end({ kind: 'stopped', reason });
        this.#interrupt(reason);
        break;
      case 'looking':
      case 'ended':
        break;
      default:
        this.#phase satisfies never;
    }
  }

  /** Nothing of the reply leaves before the end: there is no reader yet. */
  pause(): void {}

  resume(): void {}

  /** The results are small, and what is expected of them counts in any case. */
  abandonResults(): void {}

  seeNow(): Promise<TokenResult> {
    return Promise.resolve(unknownToken);
  }

  // What the pool says.

  granted(session: Session, openingSince: number | null): void {
    this.#times.connected(openingSince);
    const { traceparent } = this.#events;
    const tellSent = () => this.#tellSent();
    this.#lease = new SessionLease(session, this.#context.control, tellSent, traceparent);
    this.#enter('preparing');
    void this.#serve(this.#lease);
  }

  refused(reason: Refusal): void {
    this.#end({ kind: 'not executed', reason });
  }

  // What the results say.

  get sink(): RunSink {
    return this.#events.sink;
  }

  pieceDone({ role }: Piece): void {
    if (role === 'savepoint') this.#hasSavepoint = true;
    else if (role === 'step') this.#times.answerBegins();
    else if (role === 'key') this.#hasKey = true;
    else if (role === 'proof') this.#hasSavepoint = false;
  }

  resultsTooLarge(): void {
    this.stop('too large');
  }

  #enter(phase: Phase): void {
    this.#phase = phase;
    this.#times.enter(activities[phase]);
  }

  #queue(): void {
    this.#enter('queued');
    this.#context.pool.request(this);
  }

  /** A session is granted while somebody else's answer is handled: what is thrown stays here. */
  async #serve(lease: SessionLease): Promise<void> {
    const { session } = lease;
    const { pool } = this.#context;
    let isClean = false;
    try {
      if (!(await this.#makeReady(lease))) return;
      const end = await this.#perform(session);
      isClean = end?.kind === 'answered' && end.failure === null && this.#leavesClean(lease);
      if (end !== null) {
        await this.#look(session);
        this.#end(end);
      }
    } catch (cause) {
      session.connection.destroy(new Error('a batch ended in an exception', { cause }));
      this.#end({ kind: 'faulted', isSent: this.#wasSent, cause });
    }
    lease.end();
    pool.release(session, lease.isLost ? 'broken' : isClean ? 'clean' : 'unclean');
  }

  /** Once the end is known, and before it is told: what the batch has seen at most. No stop counts any more. */
  async #look(session: Session): Promise<void> {
    const consistency = this.#consistency;
    if (consistency === null || this.#phase === 'ended') return;
    this.#enter('looking');
    this.#lease?.boundWhatFollows();
    const { connection } = session;
    const { sql } = consistency.queryOn(connection);
    const rows = await fetchRows(connection, sql).catch(() => []);
    this.#events.seen(consistency.see(session, rows[0] ?? null, false));
  }

  /** Flags and text must both say so. */
  #leavesClean(lease: SessionLease): boolean {
    const says = ({ statement }: Batch['steps'][number]) =>
      statement.leavesSessionClean && statement.effects.isHarmless();
    return lease.isClean && this.#batch.steps.every(says);
  }

  /** Whether the session is ready; else it has been given back, and another one may have been asked for. */
  async #makeReady(lease: SessionLease): Promise<boolean> {
    const { session } = lease;
    const { pool } = this.#context;
    const needsFresh = this.#batch.steps.some(
      ({ statement }) => statement.needsFreshSession || !statement.effects.isHarmless(),
    );
    let isReady = true;
    try {
      await makeReady(pool, session, false, needsFresh);
    } catch {
      isReady = false;
    }
    lease.end();
    if (isReady && !lease.isLost && this.#isUnder('preparing')) return true;
    pool.release(session, isReady && session.isFresh ? 'clean' : isReady ? 'unclean' : 'broken');
    if (!this.#isUnder('preparing')) return false;
    if (this.#mayTryAnother) {
      this.#mayTryAnother = false;
      this.#queue();
    } else {
      this.#end({ kind: 'not executed', reason: 'database unreachable' });
    }
    return false;
  }

  /** Asked behind every wait: a stop may have come meanwhile. */
  #isUnder(phase: Phase): boolean {
    return this.#phase === phase;
  }

  /** Null: its end has been told. */
  async #perform(session: Session): Promise<RunEnd | null> {
    session.isFresh = false;
    const whyNot = await this.#whyNot(session);
    if (!this.#isUnder('preparing')) return null;
    if (whyNot !== null) return whyNot;
    const insertion = this.#attempt?.entry.insertion ?? null;
    const texts = writeTexts(this.#batch, this.#savepoint, session.maxTextBytes, insertion);
    for (let retries = 0; ; ) {
      this.#enter('working');
      const broken = (await this.#work(texts)) ?? (await this.#finish());
      if (broken === null) return { kind: 'answered', failure: null, facts: null };
      if (this.#isUnder('ended')) return null;
      if (broken.kind === 'taken') {
        if (await this.#lookUp(session)) return null;
        continue;
      }
      const outcome = await this.#undo(broken);
      if (!(await this.#mayRunAnew(broken, outcome, retries)))
        return this.#describe(broken, outcome);
      if (broken.kind === 'refused' && broken.isOfKey) continue;
      retries += 1;
      this.#events.sink.restart();
    }
  }

  /** Why it is not begun, where only the server can tell; null: it is. */
  async #whyNot(session: Session): Promise<RunEnd | null> {
    const { mustUndo } = this.#batch;
    try {
      if (mustUndo !== null && !(await areUndoable(session.connection, mustUndo))) {
        const fault = { kind: 'not undoable' } as const;
        return { kind: 'batch failed', fault, statement: null, outcome: 'not_executed' };
      }
      // Also where it only reads, which could be asked behind it: whether its server has lost what the client has seen.
      const check =
        this.#consistency?.mustWait(false) === true
          ? await this.#consistency.waitForPosition(session)
          : 'ready';
      if (check === 'lost') return { kind: 'token lost', isRead: false };
      if (check === 'behind') return { kind: 'not executed', reason: 'behind' };
      const doubted = await this.#findDoubt(session);
      if (doubted !== null) return doubted;
      await this.#attempt?.endPredecessor(session);
      const isKept = this.#attempt === null || (await this.#attempt.ledger.isUsable(session));
      return isKept ? null : { kind: 'key refused', reason: 'no table' };
    } catch (error) {
      if (!(error instanceof RefusedError) || this.#attempt === null) {
        return { kind: 'not executed', reason: 'database unreachable' };
      }
      this.#attempt.ledger.refused(error.errno);
      return { kind: 'key refused', reason: 'no table' };
    }
  }

  /** Why a batch that only reads is not begun: one of its statements may do more. Null: none may. */
  async #findDoubt({ connection }: Session): Promise<RunEnd | null> {
    for (const [number, { statement }] of this.#batch.steps.entries()) {
      const { sql, isReadOnly, effects } = statement;
      if (!isReadOnly || sql === null || !needsProof(effects)) continue;
      const doubt = await findReadOnlyDoubt(connection, sql, effects);
      if (doubt !== null) return { kind: 'not only reading', doubt, statement: number };
    }
    return null;
  }

  /** Waiting for a key is no rerun; a conflict at COMMIT may be one about the key, so that looking once more is free. */
  async #mayRunAnew(broken: Break, outcome: Outcome, retries: number): Promise<boolean> {
    const isUndone = outcome === 'rolled_back' && this.#stopReason === null;
    if (!isUndone || broken.kind !== 'refused' || !isWorthAnotherTry(broken)) return false;
    if (broken.isOfKey) return true;
    const isAtCommit = this.#attempt !== null && broken.step === null;
    if (retries >= this.#batch.mostRetries + (isAtCommit ? 1 : 0)) return false;
    return this.#resetForRerun(this.#held.session);
  }

  /** Tells whose the key is. False: it is nobody's any more. */
  async #lookUp({ connection }: Session): Promise<boolean> {
    const attempt = this.#attempt as Attempt;
    const { entry } = attempt;
    const undone = await this.#rollBack();
    let rows: (string | null)[][] | null = null;
    try {
      if (undone !== 'unknown') rows = await fetchRows(connection, entry.lookUp);
    } catch (error) {
      if (error instanceof RefusedError && tableErrors.has(error.errno)) {
        this.#ledgerRefused(error);
        this.#end({ kind: 'key refused', reason: 'no table' });
        return true;
      }
    }
    if (rows === null) {
      connection.destroy(new Error('a key could not be looked up'));
      this.#end(this.#describe({ kind: 'lost' }, 'unknown'));
      return true;
    }
    const row = entry.parseRow(rows);
    if (row !== null) {
      await this.#look(this.#held.session);
      this.#conclude(true, () => attempt.keyTaken(row));
    } else if (this.#stopReason !== null) this.#end(this.#describe({ kind: 'lost' }, 'unknown'));
    return !this.#isUnder('undoing');
  }

  /** Takes the session back to what the first run found: variables outlive a ROLLBACK. Returns whether it may be begun anew. */
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

  /** Null: all statements have done what they were to do. */
  async #work(texts: readonly BatchText[]): Promise<Break | null> {
    this.#hasSavepoint = false;
    this.#hasKey = false;
    this.#hasSentCommit = false;
    for (const text of texts) {
      const broken = await this.#workOn(text);
      if (broken !== null) return broken;
    }
    const { isDryRun, isBarred } = this.#batch;
    if (this.#attempt === null || isDryRun || isBarred === true) return null;
    return this.#keepReply(this.#attempt);
  }

  async #workOn({ sql, pieces }: BatchText): Promise<Break | null> {
    const results = new TextResults(this.#batch, pieces, this);
    return this.#judge(await this.#held.ask(sql, results), results);
  }

  /** The reply is written into the transaction that it tells of. */
  #keepReply({ entry }: Attempt): Promise<Break | null> {
    const { commandLimitBytes } = this.#held.session;
    const most = Math.min(mostKeptBytes, Math.floor((commandLimitBytes - keepingBytes) / 2));
    const reply = this.sink.seal?.(most);
    if (reply === undefined) throw new Error('a batch with a key has a reply that cannot be kept');
    return this.#workOn(writeClosing(this.#batch, this.#savepoint, entry.completion(reply)));
  }

  #judge(answered: Answered, results: TextResults): Break | null {
    if (answered.kind === 'lost') return { kind: 'lost' };
    const { role, step } = results.current;
    const { error } = answered;
    if (this.#stopReason !== null) {
      return { kind: 'stopped', reason: this.#stopReason, error, isCall: this.#isCall(step) };
    }
    if (results.fault !== null && results.fault.fault.kind === 'ended') {
      return { kind: 'fault', ...results.fault };
    }
    if (error !== null && isProof(role) && error.errno === noSavepoint) {
      return { kind: 'fault', fault: { kind: 'ended' }, step: step ?? 0 };
    }
    if (error !== null && role === 'key') return this.#keyRefused(error);
    if (error !== null && role === 'reply' && tableErrors.has(error.errno)) {
      return this.#ledgerRefused(error);
    }
    if (error !== null) return this.#refused(error, role === 'step' ? step : null);
    return results.fault === null ? null : { kind: 'fault', ...results.fault };
  }

  #refused(error: ServerError, step: number | null): Break {
    return { kind: 'refused', error, step, isCall: this.#isCall(step), isOfKey: false };
  }

  #keyRefused(error: ServerError): Break {
    if (error.errno === duplicateEntry) return { kind: 'taken' };
    if (!tableErrors.has(error.errno)) {
      return { kind: 'refused', error, step: null, isCall: false, isOfKey: true };
    }
    return this.#ledgerRefused(error);
  }

  #ledgerRefused({ errno }: Pick<ServerError, 'errno'>): Break {
    this.#attempt?.ledger.refused(errno);
    return { kind: 'no ledger' };
  }

  #isCall(step: number | null): boolean {
    return step !== null && this.#batch.steps[step]?.isCall === true;
  }

  /** Where there is a key to ask, an answer is not waited for until it is too late to ask. */
  async #commit(): Promise<Answered> {
    const { connection } = this.#held.session;
    const giveUp = () => connection.destroy(new Error('COMMIT has no answer'));
    const timer =
      this.#attempt === null ? undefined : setTimeout(giveUp, this.#attempt.commitTimeoutMs);
    const answered = await this.#held.ask('COMMIT', ofTransaction);
    clearTimeout(timer);
    return answered;
  }

  /** COMMIT, alone; or ROLLBACK, where nothing was meant to stay. */
  async #finish(): Promise<Break | null> {
    if (!this.#batch.isAtomic) return null;
    if (this.#batch.isDryRun) {
      const undone = await this.#rollBack();
      if (undone === 'rolled_back') return null;
      if (undone === 'unknown') return { kind: 'lost' };
      return { kind: 'fault', fault: { kind: 'not undoable' }, step: 0 };
    }
    if (this.#stopReason !== null) {
      return { kind: 'stopped', reason: this.#stopReason, error: null, isCall: false };
    }
    this.#enter('committing');
    this.#hasSentCommit = true;
    const committed = await this.#commit();
    if (committed.kind === 'lost') return { kind: 'lost' };
    return committed.error === null ? null : this.#refused(committed.error, null);
  }

  /** What became of the data, after as much was undone as can be. */
  async #undo(broken: Break): Promise<Outcome> {
    const wasCommitting = this.#isUnder('committing');
    if (broken.kind === 'lost') return 'unknown';
    if (!this.#batch.isAtomic) return outcomeWithoutTransaction(broken);
    const isUndone = isUndoing(broken, wasCommitting);
    const wasLeft = isUndone && (await this.#held.hasLeftSomething());
    const undone = await this.#rollBack();
    if (undone === 'unknown') return 'unknown';
    if (wasLeft) return 'partial';
    if (wasCommitting && !isUndone) return 'unknown';
    const isEnded = broken.kind === 'fault' && broken.fault.kind !== 'unmet';
    if (isEnded || undone === 'partial') return 'partial';
    return undone === 'rolled_back' || (isUndone && !isOfCall(broken)) ? 'rolled_back' : 'partial';
  }

  #rollBack(): Promise<Undone> {
    this.#enter('undoing');
    return this.#held.rollBack(this.#hasSavepoint ? this.#savepoint : null);
  }

  /** Where there is a key to ask, what is unknown is found out by whoever has it. */
  #describe(broken: Told, outcome: Outcome): RunEnd {
    const canBeAsked = this.#attempt !== null && this.#stopReason === null;
    if (canBeAsked && outcome === 'unknown') return { kind: 'lost', outcome };
    return describeBreak(broken, outcome, this.#batch.isReadOnly, this.#stopReason);
  }

  /** Once it was granted. */
  get #held(): SessionLease {
    return this.#lease as SessionLease;
  }

  #tellSent(): void {
    if (this.#wasSent) return;
    this.#wasSent = true;
    for (const { statement } of this.#batch.steps) statement.effects.sent();
  }

  #interrupt(reason: StopReason): void {
    this.#stopReason ??= reason;
    this.#lease?.interrupt();
  }

  #end(end: RunEnd): void {
    const isCertain = end.kind === 'answered' || end.kind === 'batch failed';
    this.#conclude(isCertain, () => this.#events.runEnded(end));
  }

  #conclude(isCertain: boolean, tell: () => void): void {
    if (this.#phase === 'ended') return;
    this.#enter('ended');
    if (this.#wasSent) {
      for (const { statement } of this.#batch.steps) statement.effects.ended(isCertain);
    }
    tell();
  }
}

function isProof(role: Piece['role']): boolean {
  return role === 'proof' || role === 'call proof';
}
