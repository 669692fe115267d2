// A statement on a session of its own: sent once the session is acquired, and killed by a stop.
import { firstRowCommand } from '../../shared/mysql/commands.ts';
import type { Command, Connection } from '../../shared/mysql/connection.ts';
import type { ServerError } from '../../shared/mysql/packets.ts';
import { QueryCommand, type QueryEvents, type ResultSink } from '../../shared/mysql/query.ts';
import type { ServerFailure } from '../failure/failure.ts';
import type { RequestConsistency } from '../servers/consistency/consistency.ts';
import { type TokenResult, unknownToken } from '../servers/consistency/consistency.ts';
import { killRunning } from '../servers/pool/control.ts';
import type { RequestWaiter } from '../servers/pool/queue.ts';
import type { Session } from '../servers/pool/session.ts';
import { isTooLarge, packetTooLarge } from '../servers/pool/session.ts';
import type { WaitLimit } from '../servers/pool/wait-limit.ts';
import {
  type RunContext,
  type RunEnd,
  type ServerFacts,
  type ServerWarning,
  succeeded,
} from './execution.ts';
import { findReadOnlyDoubt, needsProof } from './read-only-proof.ts';
import type { RunTimes } from './run-times.ts';
import { SessionAcquisition, type SessionUser } from './session-acquisition.ts';
import { askServer, rollBack } from './session-lease.ts';
import { statementFailure } from './statement-failure.ts';
import type { StopReason } from './stop-reason.ts';
import { hasWarnings, showWarnings, WarningRows } from './warnings.ts';
import type { Statement } from './work.ts';

export type Row = readonly (string | null)[] | null;

const behind: RunEnd = { kind: 'not executed', reason: 'behind' };
const tokenLost: RunEnd = { kind: 'token lost', isRead: true };
/** The value of a read's answer if the server lacks something that the client has seen; null: it counts. */
export const lacks = { nothing: null, behind, lost: tokenLost } as const;

/** The run that the statement belongs to: the results go to it. */
export interface SessionRunOwner extends ResultSink {
  readonly waitLimit: WaitLimit;
  readonly traceparent: string | null;
  /** Bytes made of the results so far. */
  readonly resultBytes: number;
  handOverPlace(): RequestWaiter | null;
  /** The warnings of the statement, which has succeeded. Called at most once, and only if the statement asks for them. */
  listWarnings(warnings: readonly ServerWarning[]): void;
  /** A session is there: nothing is shared with later requests any more. */
  sessionGranted(): void;
  /** Reports what was seen behind the statement. Returns what its answer is worth then; null: it counts. */
  noteSeen(session: Session, row: Row, isWriteAlone: boolean): RunEnd | null;
  /** Called exactly once, before the session is released. */
  sessionRunEnded(end: RunEnd): void;
}

type Phase = 'acquiring' | 'running' | 'ended';

/** The statement on its session. Its creator starts it, and may stop it at any time. */
export class SessionRun implements SessionUser, QueryEvents {
  readonly #context: RunContext;
  readonly #statement: Statement;
  readonly #consistency: RequestConsistency | null;
  readonly #owner: SessionRunOwner;
  readonly #times: RunTimes;
  readonly #acquisition: SessionAcquisition;
  #phase: Phase = 'acquiring';
  #session: Session | null = null;
  #command: QueryCommand | null = null;
  /** The warnings are asked behind the statement, and then the position. The statement's own answer is kept until then. */
  #isListing = false;
  #isAsking = false;
  #answer: { readonly flagsClean: boolean; readonly error: ServerError | null } | null = null;
  /** Resolves when the questions behind the statement's answer are answered; null: there are none. */
  #furtherQuestions: Promise<void> | null = null;
  /** The ROLLBACK behind a failed statement could not undo what was written to tables without transactions. */
  #hasLeft = false;
  /** Why the answer does not count: the server lacks what the client has seen. */
  #lack: RunEnd | null = null;

  constructor(
    context: RunContext,
    statement: Statement,
    consistency: RequestConsistency | null,
    owner: SessionRunOwner,
    times: RunTimes,
  ) {
    this.#context = context;
    this.#statement = statement;
    this.#consistency = consistency;
    this.#owner = owner;
    this.#times = times;
    this.#acquisition = new SessionAcquisition(context.pool, consistency, this, times);
  }

  start(): void {
    this.#acquisition.start();
  }

  /** Waits in the queue in the place of another one, which is not called any more. */
  startInPlaceOf(other: SessionRun): void {
    other.#acquisition.giveWayTo(this.#acquisition);
  }

  /** Returns the waiter for it, in a place of the queue that the caller has. */
  enqueued(): RequestWaiter {
    this.#acquisition.enqueued();
    return this.#acquisition;
  }

  get isQueued(): boolean {
    return this.#acquisition.isQueued;
  }

  /** Whether MySQL may have received the statement. */
  get isSent(): boolean {
    return this.#command !== null;
  }

  /** Ends it. @param unsent the end if nothing was sent on this session */
  stop(reason: StopReason, unsent: RunEnd): void {
    switch (this.#phase) {
      case 'acquiring':
        this.#acquisition.stop();
        this.#end(unsent);
        break;
      case 'running': {
        this.#endRunning(reason);
        const { pool, control } = this.#context;
        void killRunning(pool, control, this.#session as Session, this.#settle());
        break;
      }
      case 'ended':
        break;
      default:
        this.#phase satisfies never;
    }
  }

  /** Discards the results. Resolves when the statement is answered, and so are the questions behind its answer. */
  async #settle(): Promise<void> {
    await this.#command?.discardResults();
    await this.#furtherQuestions;
  }

  /** If only the texts of its warnings are missing, the statement has its answer, and the reply has no texts. */
  #endRunning(reason: StopReason): void {
    // The rest of a reply that its client does not read is not waited for.
    const hasSucceeded = this.#answer?.error === null && !this.#isAsking && reason !== 'stalled';
    if (hasSucceeded) this.#owner.listWarnings([]);
    this.#end(hasSucceeded ? succeeded : { kind: 'stopped', reason });
  }

  pause(): void {
    if (this.#phase === 'running') this.#session?.connection.pause();
  }

  resume(): void {
    if (this.#phase === 'running') this.#session?.connection.resume();
  }

  abandonResults(): void {
    void this.#command?.discardResults();
    this.resume();
  }

  /** If rows are read at several moments, or are not committed yet, what they have seen is known only at the end. */
  async seeNow(): Promise<TokenResult> {
    const { seesOneMoment, effects } = this.#statement;
    const session = this.#session;
    if (this.#consistency === null || session === null) return unknownToken;
    const isOneMoment = seesOneMoment && effects.isHarmless();
    const seen = await this.#consistency.seeNow(this.#context.control, session, isOneMoment);
    this.#lack = lacks[seen.missing];
    if (seen.missing === 'behind') this.abandonResults();
    return seen;
  }

  // Questions and reports of the acquisition.

  get waitLimit(): WaitLimit {
    return this.#owner.waitLimit;
  }

  handOverPlace(): RequestWaiter | null {
    return this.#owner.handOverPlace();
  }

  get isRead(): boolean {
    return this.#statement.isRead;
  }

  get isReadOnly(): boolean {
    return this.#statement.isReadOnly;
  }

  needsFreshSession(): boolean {
    return this.#statement.needsFreshSession || !this.#statement.effects.isHarmless();
  }

  /** A read-only statement may call something that is not known to only read. */
  get check(): SessionUser['check'] {
    const { isReadOnly, sql, effects } = this.#statement;
    if (!isReadOnly || sql === null || !needsProof(effects)) return null;
    return async (session) => {
      session.isFresh = false;
      const doubt = await findReadOnlyDoubt(session.connection, sql, effects);
      return doubt === null ? null : { kind: 'not only reading', doubt, statement: null };
    };
  }

  granted(): void {
    this.#owner.sessionGranted();
  }

  denied(end: RunEnd): void {
    this.#end(end);
  }

  /** An exception ends this run alone: a session is granted while another request's answer is handled. */
  acquired(session: Session): void {
    this.#session = session;
    this.#phase = 'running';
    try {
      this.#send(session);
    } catch (cause) {
      try {
        this.#end({ kind: 'faulted', isSent: this.isSent, cause });
      } finally {
        this.#context.pool.release(session, 'broken');
      }
    }
  }

  #send(session: Session): void {
    const { connection } = session;
    const { sql, effects, showsWarnings } = this.#statement;
    if (sql === null) {
      this.answered(true, null);
      return;
    }
    const command = session.createQuery(sql, this.#owner.traceparent, this.#owner, this);
    if (isTooLarge(command.packet, session)) {
      this.answered(true, packetTooLarge);
      return;
    }
    session.isFresh = false;
    this.#command = command;
    effects.sent();
    const behind = [
      ...(showsWarnings ? [this.#listCommand(connection)] : []),
      ...(this.#consistency === null ? [] : [this.#askCommand(connection, this.#consistency)]),
    ];
    if (behind.length === 0) connection.send(command);
    else connection.sendTogether([command, ...behind]);
  }

  #listCommand(connection: Connection): QueryCommand {
    this.#isListing = true;
    const rows = new WarningRows();
    const listed = () => this.#listed(rows.list);
    return new QueryCommand(showWarnings, connection, rows, { answered: listed, lost: listed });
  }

  #askCommand(connection: Connection, consistency: RequestConsistency): Command {
    this.#isAsking = true;
    const { sql } = consistency.queryOn(connection);
    return firstRowCommand(sql, connection, (row) => this.#asked(row));
  }

  // Reports of the query.

  answered(flagsClean: boolean, error: ServerError | null): void {
    if (this.#phase !== 'running') return;
    if (this.#isListing || this.#isAsking) this.#answer = { flagsClean, error };
    else this.#proceed(flagsClean, error);
  }

  lost(): void {
    if (this.#phase !== 'running') return;
    try {
      this.#end({ kind: 'lost', outcome: 'unknown' });
    } finally {
      this.#context.pool.release(this.#session as Session, 'broken');
    }
  }

  /** The texts of the warnings are there, or the server does not give them. */
  #listed(warnings: readonly ServerWarning[]): void {
    const answer = this.#answer;
    this.#isListing = false;
    if (this.#phase !== 'running' || answer === null) return;
    const isOwn = hasWarnings(this.#command?.results ?? []);
    if (answer.error === null) this.#owner.listWarnings(isOwn ? warnings : []);
    if (!this.#isAsking) this.#proceed(answer.flagsClean, answer.error);
  }

  /** The question behind the statement has its answer. */
  #asked(row: Row): void {
    const session = this.#session as Session;
    const answer = this.#answer;
    if (this.#phase !== 'running' || answer === null) {
      this.#consistency?.forget(session);
      return;
    }
    const results = this.#command?.results ?? [];
    const isWriteAlone = results.length === 1 && results[0]?.isResultSet === false;
    this.#lack = this.#owner.noteSeen(session, row, isWriteAlone) ?? this.#lack;
    this.#proceed(answer.flagsClean, answer.error);
  }

  #proceed(flagsClean: boolean, error: ServerError | null): void {
    const { rollbackOnError, asksServer } = this.#statement;
    if (error === null ? asksServer : rollbackOnError)
      this.#furtherQuestions = this.#askMore(flagsClean, error);
    else this.#finish(flagsClean, error, null);
  }

  /** Sends the further questions on the session, between the statements' end and its release. */
  async #askMore(flagsClean: boolean, error: ServerError | null): Promise<void> {
    const { connection } = this.#session as Session;
    let facts: ServerFacts | null = null;
    try {
      if (error === null) facts = await askServer(connection);
      else this.#hasLeft = (await rollBack(connection)).hasLeft;
    } catch {
      this.lost();
      return;
    }
    if (this.#phase === 'running') this.#finish(flagsClean, error, facts);
  }

  #finish(flagsClean: boolean, error: ServerError | null, facts: ServerFacts | null): void {
    const session = this.#session as Session;
    const { pool, pipeline } = this.#context;
    const { leavesSessionClean, isReadOnly, shape, effects } = this.#statement;
    const failure = error === null ? null : this.#describe(error);
    this.#times.enter('over');
    const isHarmless = leavesSessionClean && effects.isHarmless();
    const isClean = flagsClean && isHarmless && !isReadOnly;
    // The flags of a read-only statement show the transaction around it. The pipeline looks at its own.
    if (shape !== null && (isReadOnly ? isHarmless : isClean)) {
      pipeline?.latencies.noteOutside(shape, this.#times.workedMs, this.#owner.resultBytes);
    }
    try {
      this.#end(this.#lack ?? { kind: 'answered', failure, facts });
    } finally {
      session.connection.resume();
      pool.release(session, isClean ? 'clean' : 'unclean');
    }
  }

  #describe(error: ServerError): ServerFailure {
    const undoesAll = this.#statement.rollbackOnError && !this.#hasLeft;
    return describeError(this.#statement, this.#command, error, undoesAll);
  }

  #end(end: RunEnd): void {
    if (this.#phase === 'ended') return;
    this.#phase = 'ended';
    if (this.#command !== null) this.#statement.effects.ended(end.kind === 'answered');
    this.#owner.sessionRunEnded(end);
  }
}

/** The failure that the reply reports. @param isRolledBack whether a ROLLBACK behind it has undone all */
export function describeError(
  { analysis, isReadOnly, isRead }: Statement,
  command: QueryCommand | null,
  error: ServerError,
  isRolledBack: boolean,
): ServerFailure {
  const text = { statements: analysis?.statements ?? [], isReadOnly, isRead };
  return statementFailure(text, command?.results ?? [], error, isRolledBack);
}
