// The statements of a batch on its session: sent, judged, committed or undone.
import { randomUUID } from 'node:crypto';
import { otherEngine } from '../../shared/database/idempotency-table.ts';
import type { ServerError } from '../../shared/mysql/packets.ts';
import { savepointName } from '../../shared/sql/transactions.ts';
import type { Outcome } from '../failure/failure.ts';
import { type Break, isOfCall, isUndoing, outcomeWithoutTransaction } from './batch-break.ts';
import { StepWarnings, TextResults } from './batch-results.ts';
import { type BatchText, type Piece, writeClosing, writeTexts } from './batch-texts.ts';
import type { RunSink } from './execution.ts';
import type { KeyAttempt } from './idempotency/key-store.ts';
import { type Answered, ofTransaction, type SessionLease, type Undone } from './session-lease.ts';
import type { StopReason } from './stop-reason.ts';
import type { Batch } from './work.ts';

/** The run that a batch belongs to. */
export interface BatchOwner {
  readonly sink: RunSink;
  /** Why it was stopped; null: it was not. May change during every wait. */
  readonly stopReason: StopReason | null;
  enter(phase: 'working' | 'committing' | 'undoing'): void;
  /** MySQL has answered a statement of the client's. */
  stepDone(): void;
  resultsTooLarge(): void;
}

/** ER_SP_DOES_NOT_EXIST, also of savepoints. */
const noSavepoint = 1305;
/** ER_DUP_ENTRY */
const duplicateEntry = 1062;
/** Errors of an idempotency table that is missing, forbidden, or of another shape. */
export const tableErrors = new Set([
  1036, 1048, 1054, 1136, 1142, 1143, 1146, 1288, 1364, 1366, 1406, 1442,
]);
/** A longer reply is stored without its rows. */
const maxKeptBytes = 64 * 1024;
/** The size of the statement around a stored reply. */
const keepingBytes = 1024;

/** The statements on one session. They may run several times. */
export class BatchWork {
  readonly #batch: Batch;
  /** Null: the batch has no key. */
  readonly #attempt: KeyAttempt | null;
  readonly #lease: SessionLease;
  readonly #owner: BatchOwner;
  readonly #savepoint = savepointName(randomUUID());
  readonly #texts: readonly BatchText[];
  readonly warnings = new StepWarnings();
  /** Whether the savepoint must be there, if nothing has ended the transaction. */
  #hasSavepoint = false;
  #hasKey = false;
  #hasSentCommit = false;

  constructor(batch: Batch, attempt: KeyAttempt | null, lease: SessionLease, owner: BatchOwner) {
    this.#batch = batch;
    this.#attempt = attempt;
    this.#lease = lease;
    this.#owner = owner;
    this.#texts = writeTexts(batch, this.#savepoint, lease.session.maxTextBytes, attempt);
  }

  /** Whether its transaction has the key, or had it. */
  get hasKey(): boolean {
    return this.#hasKey;
  }

  /** Whether COMMIT was sent, and nothing was run again after it. */
  get mayHaveCommitted(): boolean {
    return this.#hasSentCommit;
  }

  /** Runs all statements, and stores the reply if there is a key. Returns null if all succeed. */
  async run(): Promise<Break | null> {
    this.#owner.enter('working');
    this.#hasSavepoint = false;
    this.#hasKey = false;
    this.#hasSentCommit = false;
    for (const text of this.#texts) {
      const broken = await this.#workOn(text);
      if (broken !== null) return broken;
    }
    const { isDryRun, isBarred } = this.#batch;
    if (this.#attempt === null || isDryRun || isBarred === true) return null;
    return this.#keepReply(this.#attempt);
  }

  async #workOn({ sql, pieces }: BatchText): Promise<Break | null> {
    const results = new TextResults(this.#batch, pieces, this);
    return this.#judge(await this.#lease.ask(sql, results), results);
  }

  /** Writes the reply in the same transaction. */
  #keepReply(attempt: KeyAttempt): Promise<Break | null> {
    const { commandLimitBytes } = this.#lease.session;
    const most = Math.min(maxKeptBytes, Math.floor((commandLimitBytes - keepingBytes) / 2));
    const reply = this.#owner.sink.seal?.(most);
    if (reply === undefined) throw new Error('a batch with a key has a reply that cannot be kept');
    return this.#workOn(writeClosing(this.#batch, this.#savepoint, attempt.completion(reply)));
  }

  #judge(answered: Answered, results: TextResults): Break | null {
    if (answered.kind === 'lost') return { kind: 'lost' };
    const { role, step } = results.current;
    const { error } = answered;
    if (this.#owner.stopReason !== null) {
      return { kind: 'stopped', reason: this.#owner.stopReason, error, isCall: this.#isCall(step) };
    }
    if (results.fault !== null && results.fault.fault.kind === 'ended') {
      return { kind: 'fault', ...results.fault };
    }
    if (error !== null && isProof(role) && error.errno === noSavepoint) {
      return { kind: 'fault', fault: { kind: 'ended' }, step: step ?? 0 };
    }
    if (error !== null && role === 'engine proof' && error.errno === otherEngine)
      return { kind: 'other engine' };
    if (error !== null && (role === 'key' || role === 'engine proof'))
      return this.#keyRefused(error);
    if (error !== null && role === 'reply' && tableErrors.has(error.errno)) {
      return this.#tableRefused(error);
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
    return this.#tableRefused(error);
  }

  #tableRefused({ errno }: Pick<ServerError, 'errno'>): Break {
    this.#attempt?.store.refused(errno);
    return { kind: 'no table' };
  }

  #isCall(step: number | null): boolean {
    return step !== null && this.#batch.steps[step]?.isCall === true;
  }

  /** With a key, the wait for an answer leaves time to look the key up. */
  async #commit(): Promise<Answered> {
    const { connection } = this.#lease.session;
    const giveUp = () => connection.destroy(new Error('COMMIT has no answer'));
    const timer =
      this.#attempt === null ? undefined : setTimeout(giveUp, this.#attempt.owner.commitTimeoutMs);
    const answered = await this.#lease.ask('COMMIT', ofTransaction);
    clearTimeout(timer);
    return answered;
  }

  /** COMMIT, alone; or ROLLBACK after a dry run. */
  async finish(): Promise<Break | null> {
    if (!this.#batch.isAtomic) return null;
    if (this.#batch.isDryRun) {
      const undone = await this.rollBack();
      if (undone === 'rolled_back') return null;
      if (undone === 'unknown') return { kind: 'lost' };
      return { kind: 'fault', fault: { kind: 'not undoable' }, step: 0 };
    }
    if (this.#owner.stopReason !== null) {
      return { kind: 'stopped', reason: this.#owner.stopReason, error: null, isCall: false };
    }
    this.#owner.enter('committing');
    this.#hasSentCommit = true;
    const committed = await this.#commit();
    if (committed.kind === 'lost') return { kind: 'lost' };
    return committed.error === null ? null : this.#refused(committed.error, null);
  }

  /** Undoes as much as can be undone. Resolves to the outcome for the data. */
  async undo(broken: Break): Promise<Outcome> {
    const wasCommitting = this.#hasSentCommit;
    if (broken.kind === 'lost') return 'unknown';
    if (!this.#batch.isAtomic) return outcomeWithoutTransaction(broken);
    const isUndone = isUndoing(broken, wasCommitting);
    const wasLeft = isUndone && (await this.#lease.hasLeftSomething());
    const undone = await this.rollBack();
    if (undone === 'unknown') return 'unknown';
    if (wasLeft) return 'partial';
    if (wasCommitting && !isUndone) return 'unknown';
    const isEnded = broken.kind === 'fault' && broken.fault.kind !== 'unmet';
    if (isEnded || undone === 'partial') return 'partial';
    return undone === 'rolled_back' || (isUndone && !isOfCall(broken)) ? 'rolled_back' : 'partial';
  }

  rollBack(): Promise<Undone> {
    this.#owner.enter('undoing');
    return this.#lease.rollBack(this.#hasSavepoint ? this.#savepoint : null);
  }

  // Reports of the results.

  get sink(): RunSink {
    return this.#owner.sink;
  }

  pieceDone({ role }: Piece): void {
    if (role === 'savepoint') this.#hasSavepoint = true;
    else if (role === 'step') this.#owner.stepDone();
    else if (role === 'key') this.#hasKey = true;
    else if (role === 'proof') this.#hasSavepoint = false;
  }

  resultsTooLarge(): void {
    this.#owner.resultsTooLarge();
  }
}

function isProof(role: Piece['role']): boolean {
  return role === 'proof' || role === 'call proof';
}
