// The job of one step of an open transaction: a statement, COMMIT or ROLLBACK.
import { fetchStatus } from '../../../shared/mysql/commands.ts';
import type { PacketsAhead } from '../../../shared/mysql/framing.ts';
import {
  type Column,
  type OkPacket,
  type ServerError,
  serverStatus,
} from '../../../shared/mysql/packets.ts';
import type { ResultNote } from '../../../shared/mysql/query.ts';
import type { Outcome, ServerFailure } from '../../failure/failure.ts';
import { serverFailure } from '../../failure/server-failure.ts';
import { undoesTransaction } from '../batch-break.ts';
import { type RunEnd, type RunSink, succeeded } from '../execution.ts';
import { findReadOnlyDoubt, needsProof } from '../read-only-proof.ts';
import type { RunTimes } from '../run-times.ts';
import {
  type Answered,
  type LeaseSink,
  ofTransaction,
  type SessionLease,
  type Undone,
} from '../session-lease.ts';
import { mayBePartial, statementFailure } from '../statement-failure.ts';
import type { StopReason } from '../stop-reason.ts';
import type { EndCause, Left, TransactionEnd } from '../transaction-end.ts';
import { hasWarnings, showWarnings, WarningRows } from '../warnings.ts';
import type { Statement } from '../work.ts';
import { type Doubt, leftBy } from './open-transaction.ts';

/** COMMIT was sent, and has no answer. */
const unknown: RunEnd = { kind: 'lost', outcome: 'unknown' };

/** The result of a job. */
export type Done = {
  readonly end: RunEnd;
  /** How the job has ended the transaction; null: it is open. */
  readonly ended: TransactionEnd | null;
  /** The rest of a transaction that did not end by COMMIT; missing: `end` says. */
  readonly left?: Left;
  /** The cause of its end, if it is more than `ended` says. */
  readonly cause?: EndCause;
};

/** The tools of a job. */
export interface JobTools {
  readonly lease: SessionLease;
  readonly sink: RunSink;
  readonly times: RunTimes;
  readonly savepoint: string;
  /** Why it must stop; null: it goes on. Asked after every wait. */
  readonly stopReason: StopReason | null;
  /** Whether something of the transaction may remain unless the server says otherwise. */
  readonly isDoubted: boolean;
  /** Whether a procedure may have committed it and begun another one. */
  readonly mayBeAnother: boolean;
  /** Must be called before a statement that a ROLLBACK may not undo, as far as the catalogue knows. Resolves when it may be sent. */
  doubt(doubt: Doubt): Promise<void>;
  /** From now on a stop ends the request only: what was sent may have been done. */
  commitIsSent(): void;
  /** Ends the transaction after a stop. */
  undoAfterStop(reason: StopReason): Promise<Done>;
}

/** The job of a step. */
export interface Job {
  readonly kind: 'statement' | 'commit' | 'rollback';
  /** Whether all of its answer is of one moment, so that a position can bound what it has seen. */
  readonly seesOneMoment: boolean;
  /** Never stops halfway: the caller waits for its end. */
  perform(tools: JobTools): Promise<Done>;
  /** The end of the job if the transaction ended before it could begin. */
  afterEnd(end: TransactionEnd, left: Left, cause: EndCause): RunEnd;
}

/** It was over before anything was sent. */
function overBefore(end: TransactionEnd, left: Left, cause: EndCause): RunEnd {
  return { kind: 'transaction ended', outcome: 'not_executed', over: { end, left, cause } };
}

/** A statement that may run in a transaction, judged by its text. */
export class StatementJob implements Job {
  readonly kind = 'statement';
  readonly #statement: Statement;
  readonly #isReadOnly: boolean;

  /** @param isReadOnly whether its transaction only reads */
  constructor(statement: Statement, isReadOnly: boolean) {
    this.#statement = statement;
    this.#isReadOnly = isReadOnly;
  }

  get seesOneMoment(): boolean {
    return this.#statement.seesOneMoment && this.#statement.effects.isHarmless();
  }

  async perform(tools: JobTools): Promise<Done> {
    const { lease } = tools;
    const { effects } = this.#statement;
    const refused = await this.#refuse(tools);
    if (refused !== null) return refused;
    const results = new Results(tools.sink, tools.times);
    if (!effects.isUndoable()) await tools.doubt(this.#doubt);
    effects.sent();
    const answered = await this.#ask(tools, results);
    effects.ended(answered.kind === 'answered');
    if (tools.stopReason !== null) return tools.undoAfterStop(tools.stopReason);
    if (answered.kind === 'lost')
      return { end: { kind: 'lost', outcome: 'unknown' }, ended: 'lost' };
    if (answered.error !== null) return this.#refused(tools, answered.error, results.notes);
    if (results.isOpen) return { end: succeeded, ended: null };
    await lease.rollBack(null);
    return { end: { kind: 'transaction ended', outcome: 'partial' }, ended: 'ended' };
  }

  /** Sends the statement, and asks for its warnings if it has some. */
  async #ask({ lease, sink }: JobTools, results: Results): Promise<Answered> {
    const { sql, showsWarnings } = this.#statement;
    const answered = await lease.ask(sql ?? '', results);
    if (!showsWarnings || answered.kind === 'lost' || answered.error !== null) return answered;
    const rows = new WarningRows();
    const listed = hasWarnings(results.notes) ? await lease.ask(showWarnings, rows) : answered;
    sink.listWarnings?.(rows.list);
    return listed.kind === 'lost' ? listed : answered;
  }

  get #doubt(): Doubt {
    const { isRead, effects, analysis } = this.#statement;
    const isCall = analysis?.statements[0]?.isCall === true;
    const { confinedTo } = effects;
    if (confinedTo === null) return { writes: null, isCall };
    const writes = isRead ? { tables: [], reads: confinedTo } : { tables: confinedTo };
    return { writes, isCall };
  }

  afterEnd(end: TransactionEnd, left: Left, cause: EndCause): RunEnd {
    return overBefore(end, left, cause);
  }

  /** Rejects a statement that may do more than read; the transaction stays open. Null: it may be sent. */
  async #refuse(tools: JobTools): Promise<Done | null> {
    const { sql, effects } = this.#statement;
    if (!this.#isReadOnly || sql === null || !needsProof(effects)) return null;
    const { connection } = tools.lease.session;
    const doubt = await findReadOnlyDoubt(connection, sql, effects);
    if (tools.stopReason !== null) return tools.undoAfterStop(tools.stopReason);
    if (doubt === null) return null;
    return { end: { kind: 'not only reading', doubt, statement: null }, ended: null };
  }

  /** An error packet has no flags: the server is asked whether the transaction is still there. */
  async #refused(
    { lease, mayBeAnother }: JobTools,
    error: ServerError,
    notes: readonly ResultNote[],
  ): Promise<Done> {
    const { analysis, isRead } = this.#statement;
    const text = { statements: analysis?.statements ?? [], isReadOnly: this.#isReadOnly, isRead };
    const isUndoing = undoesTransaction(error, false);
    const hasLeft = isUndoing && (await lease.hasLeftSomething());
    const isOpen = await isInTransaction(lease);
    if (isOpen) {
      return { end: answeredWith(statementFailure(text, notes, error, false)), ended: null };
    }
    await lease.rollBack(null);
    const isPartial = !isUndoing || hasLeft || mayBePartial(text, error);
    // The error undoes the present transaction; a procedure may have committed the one that the client began.
    const isUnknown = lease.isLost || (!isPartial && mayBeAnother);
    const outcome = isUnknown ? 'unknown' : isPartial ? 'partial' : 'rolled_back';
    const failure = serverFailure(error, text, outcome);
    const cause = { errno: error.errno };
    return { end: answeredWith(failure), ended: lease.isLost ? 'lost' : 'ended', cause };
  }
}

/** MySQL refused something in a transaction. Its failure says what became of the transaction, unless that is still open. */
export function answeredWith(failure: ServerFailure): RunEnd {
  return { kind: 'answered', failure, facts: null };
}

async function isInTransaction({ session }: SessionLease): Promise<boolean> {
  const status = await fetchStatus(session.connection).catch(() => 0);
  return (status & serverStatus.inTransaction) !== 0;
}

/** Passes results on, and remembers the server's flags after the last one. */
class Results implements LeaseSink {
  /** Irrelevant: the session is reset after the transaction in any case. */
  readonly hasChangedState = false;
  readonly notes: ResultNote[] = [];
  readonly #sink: RunSink;
  readonly #times: RunTimes;

  constructor(sink: RunSink, times: RunTimes) {
    this.#sink = sink;
    this.#times = times;
  }

  /** Whether the transaction is still there. */
  get isOpen(): boolean {
    return this.notes.at(-1)?.inTransaction === true;
  }

  columns(columns: readonly Column[], more: boolean): void {
    this.#times.answerBegins();
    this.#sink.columns(columns, more);
  }

  tooWide(): void {
    this.#sink.tooWide();
  }

  row(bytes: Buffer, start: number, end: number): void {
    this.#sink.row(bytes, start, end);
  }

  rows(ahead: PacketsAhead): void {
    this.#sink.rows?.(ahead);
  }

  endOfRows(status: number, warnings: number): void {
    this.#note(true, status, warnings);
    this.#sink.endOfRows(status, warnings);
  }

  ok(ok: OkPacket, more: boolean): void {
    this.#times.answerBegins();
    this.#note(false, ok.status, ok.warnings);
    this.#sink.ok(ok, more);
  }

  #note(isResultSet: boolean, status: number, warnings: number): void {
    const inTransaction = (status & serverStatus.inTransaction) !== 0;
    this.notes.push({ isResultSet, inTransaction, warnings });
  }
}

/** Records, beyond this worker's life, that a COMMIT is on its way. */
export type CommitNotes = {
  /** Resolves when that is recorded, or cannot be. */
  readonly begun: () => Promise<void>;
  /** COMMIT was answered, or not sent after all. Resolves as `begun` does: a client that has its reply never reads another one later. */
  readonly settled: (isCommitted: boolean) => Promise<void>;
};

/** COMMIT, after a proof that the transaction is the one that was begun. A stop does not end a COMMIT that was sent. */
export class CommitJob implements Job {
  readonly kind = 'commit';
  readonly seesOneMoment = true;
  readonly #notes: CommitNotes;

  constructor(notes: CommitNotes) {
    this.#notes = notes;
  }

  async perform(tools: JobTools): Promise<Done> {
    const { lease } = tools;
    if (tools.stopReason !== null) return tools.undoAfterStop(tools.stopReason);
    const proven = await lease.ask(`RELEASE SAVEPOINT ${tools.savepoint}`, ofTransaction);
    if (tools.stopReason !== null) {
      const isReleased = proven.kind === 'answered' && proven.error === null;
      return isReleased ? this.#stopped(tools) : tools.undoAfterStop(tools.stopReason);
    }
    if (proven.kind === 'lost')
      return notCommitted(tools.isDoubted ? 'unknown' : 'rolled_back', 'lost');
    if (proven.error !== null) {
      const undone = await lease.rollBack(null);
      return notCommitted(undone === 'unknown' ? 'unknown' : 'partial', 'ended');
    }
    await this.#notes.begun();
    if (tools.stopReason !== null) return this.#stopped(tools);
    tools.commitIsSent();
    const answered = await lease.ask('COMMIT', ofTransaction);
    if (answered.kind === 'lost') return { end: unknown, ended: 'unknown' };
    if (answered.error !== null) return this.#refused(lease, answered.error);
    await this.#notes.settled(true);
    return { end: succeeded, ended: 'committed' };
  }

  /** An earlier request may have committed it already. */
  afterEnd(end: TransactionEnd, left: Left, cause: EndCause): RunEnd {
    if (end === 'committed') return succeeded;
    return end === 'unknown' ? unknown : overBefore(end, left, cause);
  }

  /** The savepoint is released by now: the ROLLBACK does without it. */
  async #stopped({ lease, stopReason: reason }: JobTools): Promise<Done> {
    await this.#notes.settled(false);
    const undone = await lease.rollBack(null);
    const outcome = outcomeOf(undone);
    return {
      end: { kind: 'batch stopped', reason: reason ?? 'deadline', outcome },
      ended: 'stopped',
      cause: { stop: reason ?? 'deadline' },
    };
  }

  async #refused(lease: SessionLease, error: ServerError): Promise<Done> {
    const isUndone = undoesTransaction(error, true);
    const hasLeft = isUndone && (await lease.hasLeftSomething());
    await lease.rollBack(null);
    const outcome = !isUndone ? 'unknown' : hasLeft ? 'partial' : 'rolled_back';
    if (outcome !== 'unknown') await this.#notes.settled(false);
    const failure = serverFailure(error, { isReadOnly: false, isRead: false }, outcome);
    const cause = { errno: error.errno };
    return { end: answeredWith(failure), ended: isUndone ? 'rolled_back' : 'unknown', cause };
  }
}

/** The extent of a ROLLBACK; `nothing`: the transaction had been committed before. */
export type RolledBack = 'all' | 'a part' | 'nothing' | 'unknown';

/** The extent of a ROLLBACK, by what remains. */
const undoneBut: Readonly<Record<Left, RolledBack>> = {
  nothing: 'all',
  something: 'a part',
  unknown: 'unknown',
};

/** ROLLBACK. */
export class RollbackJob implements Job {
  readonly kind = 'rollback';
  readonly seesOneMoment = true;
  /** Valid once the job has its end. */
  undoes: RolledBack = 'all';

  /** If the connection is lost meanwhile, the server undoes as much of the transaction as it can. */
  async perform({ lease, savepoint, isDoubted }: JobTools): Promise<Done> {
    const left = leftBy(await lease.rollBack(savepoint));
    this.undoes = undoneBut[left === 'unknown' && !isDoubted ? 'nothing' : left];
    return { end: succeeded, ended: 'rolled_back', left };
  }

  afterEnd(end: TransactionEnd, left: Left): RunEnd {
    if (end === 'unknown') return unknown;
    this.undoes = end === 'committed' ? 'nothing' : undoneBut[left];
    return succeeded;
  }
}

/** COMMIT was not sent. */
function notCommitted(outcome: Outcome, ended: 'lost' | 'ended'): Done {
  return { end: { kind: 'transaction ended', outcome }, ended };
}

/** The outcome of a transaction that was undone. */
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
