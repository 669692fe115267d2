// One statement in a transaction that its client holds: sent, and afterwards looked whether the transaction is still there.
// Must not know whose turn it is.
import { fetchStatus } from '../../../shared/mysql/commands.ts';
import type { PacketsAhead } from '../../../shared/mysql/framing.ts';
import {
  type Column,
  type OkPacket,
  type ServerError,
  serverStatus,
} from '../../../shared/mysql/packets.ts';
import type { ResultNote } from '../../../shared/mysql/query.ts';
import type { ServerFailure } from '../../failure/failure.ts';
import { serverFailure } from '../../failure/server-failure.ts';
import { undoesTransaction } from '../batch-break.ts';
import type { RunEnd, RunSink } from '../execution.ts';
import { findReadOnlyDoubt, needsProof } from '../read-only-proof.ts';
import type { RunTimes } from '../run-times.ts';
import type { LeaseSink, SessionLease } from '../session-lease.ts';
import { mayBePartial, statementFailure } from '../statement-failure.ts';
import type { Statement } from '../work.ts';
import type { Doubt } from './held-transaction.ts';
import { type Done, type Job, type JobTools, transactionOver } from './held-turn.ts';

const succeeded: RunEnd = { kind: 'answered', failure: null, facts: null };

/** A statement that may stand in a transaction, as far as its text tells. */
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
    const answered = await lease.ask(this.#statement.sql ?? '', results);
    effects.ended(answered.kind === 'answered');
    if (tools.stopReason !== null) return tools.undoAfterStop(tools.stopReason);
    if (answered.kind === 'lost')
      return { end: { kind: 'lost', outcome: 'unknown' }, ended: 'lost' };
    if (answered.error !== null) return this.#refused(tools, answered.error, results.notes);
    if (results.isOpen) return { end: succeeded, ended: null };
    await lease.rollBack(null);
    return { end: { kind: 'transaction ended', outcome: 'partial' }, ended: 'ended' };
  }

  get #doubt(): Doubt {
    const { isRead, effects, analysis } = this.#statement;
    const isCall = analysis?.statements[0]?.isCall === true;
    const { confinedTo } = effects;
    if (confinedTo === null) return { writes: null, isCall };
    const writes = isRead ? { tables: [], reads: confinedTo } : { tables: confinedTo };
    return { writes, isCall };
  }

  afterEnd(): RunEnd {
    return transactionOver;
  }

  /** What a statement comes to that is not sent, as it may do more than read; null: it is sent. The transaction stays open. */
  async #refuse(tools: JobTools): Promise<Done | null> {
    const { sql, effects } = this.#statement;
    if (!this.#isReadOnly || sql === null || !needsProof(effects)) return null;
    const { connection } = tools.lease.session;
    const doubt = await findReadOnlyDoubt(connection, sql, effects);
    if (tools.stopReason !== null) return tools.undoAfterStop(tools.stopReason);
    if (doubt === null) return null;
    return { end: { kind: 'not only reading', doubt, statement: null }, ended: null };
  }

  /** An error has no flags: the server is asked whether the transaction is still there. */
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
    // The error undoes the transaction that there was; a procedure may have committed the one that was begun.
    const isUnknown = lease.isLost || (!isPartial && mayBeAnother);
    const outcome = isUnknown ? 'unknown' : isPartial ? 'partial' : 'rolled_back';
    const failure = serverFailure(error, text, outcome);
    return { end: answeredWith(failure), ended: lease.isLost ? 'lost' : 'ended' };
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

/** Hands results on, and remembers what the server's flags say behind the last one. */
class Results implements LeaseSink {
  /** Nobody asks: the session is reset after the transaction in any case. */
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

  endOfRows(status: number): void {
    this.#note(true, status);
    this.#sink.endOfRows(status);
  }

  ok(ok: OkPacket, more: boolean): void {
    this.#times.answerBegins();
    this.#note(false, ok.status);
    this.#sink.ok(ok, more);
  }

  #note(isResultSet: boolean, status: number): void {
    const inTransaction = (status & serverStatus.inTransaction) !== 0;
    this.notes.push({ isResultSet, inTransaction });
  }
}
