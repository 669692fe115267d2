// One request's statements from being asked for to a known end: answered with an identical read that waits, written in the
// pipeline, or sent on a session of their own. Sent once, but for a read whose READ ONLY run in the pipeline was cut short.
// Must not know HTTP or the reply's shape: results go to a sink, the end to a callback.
import { performance } from 'node:perf_hooks';
import { firstRowCommand } from '../../shared/mysql/commands.ts';
import type { PacketsAhead } from '../../shared/mysql/framing.ts';
import type { Column, OkPacket, ServerError } from '../../shared/mysql/packets.ts';
import type { QueryCommand, QueryEvents, ResultNote } from '../../shared/mysql/query.ts';
import type { ServerFailure } from '../failure/failure.ts';
import {
  type PositionCheck,
  RequestConsistency,
  type TokenResult,
  unknownToken,
} from '../servers/consistency/consistency.ts';
import type { Token } from '../servers/consistency/token.ts';
import { killRunning, killTimeoutMs } from '../servers/pool/control.ts';
import type { Refusal, Waiter, WaitLimit } from '../servers/pool/queue.ts';
import type { Session } from '../servers/pool/session.ts';
import { isTooLarge, packetTooLarge } from '../servers/pool/session.ts';
import type {
  Answer,
  Execution,
  RunContext,
  RunEnd,
  RunEvents,
  ServerFacts,
  StopReason,
} from './execution.ts';
import { type PipelineClient, PipelineEntry } from './pipeline/pipeline.ts';
import type { Look } from './pipeline/pipeline-session.ts';
import { makeReady, needsPreparation } from './preparation.ts';
import { findReadOnlyDoubt, needsProof, type ReadOnlyDoubt } from './read-only-proof.ts';
import type { Activity, RunTimes } from './run-times.ts';
import { askServer, rollBack } from './session-questions.ts';
import { type Coalescer, type Sharer, Sharing } from './sharing.ts';
import { statementFailure } from './statement-failure.ts';
import type { Statement } from './work.ts';

/**
 *     created ──> following ──────────────────────────────┐  the leader's answer
 *        │            │ the leader has none for it        │
 *        ├────────────┤                                   │
 *        v            │                                   v
 *     batched ──> pipelined ──────────────────────────> ended
 *        │            │ cut short                         ^
 *        v            v                                   │
 *     queued ──> preparing ──> running ───────────────────┘
 */
type Phase =
  | 'created'
  | 'following'
  | 'batched'
  | 'pipelined'
  | 'queued'
  | 'preparing'
  | 'running'
  | 'ended';

const activities: Readonly<Record<Phase, Activity>> = {
  created: 'waiting',
  following: 'waiting',
  batched: 'waiting',
  pipelined: 'working',
  queued: 'waiting',
  preparing: 'working',
  running: 'working',
  ended: 'over',
};

type Row = readonly (string | null)[] | null;

const behind: RunEnd = { kind: 'not executed', reason: 'behind' };
const tokenLost: RunEnd = { kind: 'token lost', isRead: true };
/** What the statement's answer is worth where the server lacks something. */
const lacks = { nothing: null, behind, lost: tokenLost } as const;

/** A server, and the reads there that others may join. */
export type RunPlace = {
  readonly context: RunContext;
  /** Null: identical reads are not coalesced. */
  readonly coalescer: Coalescer<Run> | null;
};

/** A server that cannot tell is used, and its reply says so. */
function mayRunAfter(check: PositionCheck): boolean {
  return check === 'ready' || check === 'unverified';
}

/** A run. Whoever created it starts it, and may stop it at any time. */
export class Run implements Execution, Waiter, QueryEvents, PipelineClient, Sharer {
  readonly #context: RunContext;
  readonly #coalescer: Coalescer<Run> | null;
  readonly #statement: Statement;
  readonly #events: RunEvents;
  readonly #times: RunTimes;
  /** Null: it is the only server, and nobody asks what was seen there. */
  readonly #consistency: RequestConsistency | null;
  #phase: Phase = 'created';
  /** Whether it has a place of the admission for itself, beside those in the pool's queue. */
  #hasPlace = false;
  /** With identical reads; null: it is run for itself alone. */
  #sharing: Sharing<Run> | null = null;
  #entry: PipelineEntry | null = null;
  /** It may have run in the pipeline: nobody is told any more that nothing was executed. */
  #wasWritten = false;
  #session: Session | null = null;
  #command: QueryCommand | null = null;
  #mayTryAnother = true;
  /** What is asked behind what the pipeline has written; null: nothing. */
  #look: Look | null = null;
  /** Something is asked behind the statement, whose own answer is kept until then. */
  #isAsking = false;
  /** The ROLLBACK behind a failed statement could not undo what was written to tables without transactions. */
  #hasLeft = false;
  #answer: { readonly flagsClean: boolean; readonly error: ServerError | null } | null = null;
  /** Why the answer does not count: the server lacks what the client has seen. */
  #lack: RunEnd | null = null;
  /** How long it may wait for a session. */
  #waitLimit: WaitLimit;
  /** Ends the wait for the answer to an identical read that does not begin. */
  #followingUntil: NodeJS.Timeout | undefined;
  /** Set when the run was stopped while its session was being prepared. */
  #preparingUntil: NodeJS.Timeout | undefined;

  /**
   * @param after what the client has seen before; null: it does not say
   * @param times kept by this run until it has ended
   */
  constructor(
    { context, coalescer }: RunPlace,
    statement: Statement,
    after: Token | null,
    events: RunEvents,
    times: RunTimes,
  ) {
    const { consistency } = context;
    this.#consistency = consistency === null ? null : new RequestConsistency(consistency, after);
    this.#context = context;
    this.#coalescer = coalescer;
    this.#statement = statement;
    this.#events = events;
    this.#times = times;
    this.#waitLimit = times.waitLimit(performance.now());
  }

  /** Asks for an answer; what follows is told by the events. */
  start(): void {
    this.#times.enter('waiting');
    this.#sharing = this.#createSharing();
    if (this.#sharing?.join(() => this.#takePlace()) === true) this.#follow();
    else this.#execute();
  }

  /** Whether MySQL may have got the statements. What was sent in another request's name does not count. */
  get isSent(): boolean {
    return this.#command !== null || this.#wasWritten;
  }

  /** What may have been done is not undone by a stop. */
  get isRevocable(): boolean {
    return !this.isSent;
  }

  get backend(): string {
    return this.#context.address;
  }

  /** Ends the run: withdraws it from where it waits, or kills what runs. */
  stop(reason: StopReason): void {
    switch (this.#phase) {
      case 'running':
        this.#end({ kind: 'stopped', reason });
        void killRunning(
          this.#context.pool,
          this.#context.control,
          this.#session as Session,
          this.#command,
        );
        break;
      case 'preparing':
        this.#end(this.#unanswered(reason));
        this.#preparingUntil = setTimeout(
          () => this.#session?.connection.destroy(new Error('the preparation did not end')),
          killTimeoutMs,
        );
        break;
      case 'ended':
        break;
      default:
        this.#withdraw();
        this.#end(this.#unanswered(reason));
    }
  }

  /** The reader does not keep up: no more rows for now. In the pipeline others wait behind, and small results are what it is for. */
  pause(): void {
    if (this.#phase === 'running') this.#session?.connection.pause();
  }

  resume(): void {
    if (this.#phase === 'running') this.#session?.connection.resume();
  }

  /** Of rows that are read at several moments, and of what is not committed yet, nothing is known before the end. */
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

  /** Lets the statements run to their end though nobody wants the results any more. */
  abandonResults(): void {
    void this.#command?.discardResults();
    this.resume();
  }

  // What the pool says.

  get waitLimit(): WaitLimit {
    return this.#waitLimit;
  }

  /** The first of the identical reads that follow it goes on waiting in its place. */
  handOverPlace(): Waiter | null {
    const next = this.#wasWritten ? null : (this.#sharing?.handOver() ?? null);
    if (next !== null) next.#enter('queued');
    return next;
  }

  granted(session: Session, openingSince: number | null): void {
    this.#times.connected(openingSince);
    this.#session = session;
    try {
      this.#begin(session);
    } catch (cause) {
      this.#faulted(session, cause);
    }
  }

  refused(reason: Refusal): void {
    this.#end(this.#unanswered(reason));
  }

  // What the pipeline says.

  get traceparent(): string | null {
    return this.#events.traceparent;
  }

  get resultBytes(): number {
    return this.#events.sink.totalBytes;
  }

  pipelineWrote(now: number, look: Look | null): void {
    this.#wasWritten = true;
    this.#look = look;
    this.#sharing?.close();
    this.#enter('pipelined', now);
  }

  pipelineExpelled(): void {
    this.#moveOutside();
  }

  pipelineAnswered(error: ServerError | null, isTrusted: boolean): void {
    if (!isTrusted && this.#moveOutside()) return;
    const results = this.#entry?.command.results ?? [];
    this.#entry = null;
    const failure = this.#failureOf(error, results, false);
    const look = this.#look;
    if (look === null) this.#end({ kind: 'answered', failure, facts: null });
    else look.watch((row) => this.#looked(look.session, row, failure));
  }

  /** Read in the pipeline: what is asked behind it bounds what it saw. */
  #looked(session: Session, row: Row, failure: ServerFailure | null): void {
    if (this.#phase !== 'pipelined') return;
    this.#tellSeen(session, row, false);
    this.#end(this.#lack ?? { kind: 'answered', failure, facts: null });
  }

  pipelineLost(): void {
    this.#entry = null;
    this.#end({ kind: 'lost', outcome: 'unknown' });
  }

  // The results: in the pipeline only while nothing of the reply leaves.

  columns(columns: readonly Column[], more: boolean): void {
    const { sink } = this.#events;
    // What is pipelined is small: it ends as it begins.
    if (this.#phase === 'running') this.#times.answerBegins();
    if (this.#phase !== 'pipelined' || sink.fitsColumns(columns) || !this.#leaveForSize()) {
      sink.columns(columns, more);
    }
  }

  tooWide(): void {
    this.#events.sink.tooWide();
  }

  row(bytes: Buffer, start: number, end: number): void {
    const { sink } = this.#events;
    if (this.#phase === 'pipelined' && !sink.fitsRows(end - start) && this.#leaveForSize()) return;
    sink.row(bytes, start, end);
    if (this.#sharing?.hasFollowers === true && sink.hasLeft) this.#sharing.letGo();
  }

  /** In the pipeline several at once only where all that is ahead fits. */
  rows(ahead: PacketsAhead): void {
    const { sink } = this.#events;
    if (this.#phase === 'pipelined' && !sink.fitsRows(ahead.end - ahead.position)) return;
    sink.rows?.(ahead);
    if (this.#sharing?.hasFollowers === true && sink.hasLeft) this.#sharing.letGo();
  }

  endOfRows(status: number): void {
    this.#events.sink.endOfRows(status);
  }

  ok(ok: OkPacket, more: boolean): void {
    if (this.#phase === 'running') this.#times.answerBegins();
    this.#events.sink.ok(ok, more);
  }

  // What the query on the run's own session says.

  answered(flagsClean: boolean, error: ServerError | null): void {
    if (this.#phase !== 'running') return;
    if (this.#isAsking) this.#answer = { flagsClean, error };
    else this.#proceed(flagsClean, error);
  }

  /** What was asked behind the statement has its answer. */
  #asked(row: Row): void {
    const answer = this.#answer;
    if (this.#phase !== 'running' || answer === null) {
      this.#consistency?.forget(this.#session as Session);
      return;
    }
    const results = this.#command?.results ?? [];
    const isWriteAlone = results.length === 1 && results[0]?.isResultSet === false;
    this.#tellSeen(this.#session as Session, row, isWriteAlone);
    this.#proceed(answer.flagsClean, answer.error);
  }

  #tellSeen(session: Session, row: Row, isWriteAlone: boolean): void {
    if (this.#consistency === null) return;
    const seen = this.#consistency.see(session, row, isWriteAlone);
    this.#events.seen(seen);
    const { isRead, isReadOnly } = this.#statement;
    if (isRead || isReadOnly) this.#lack = lacks[seen.missing];
  }

  #proceed(flagsClean: boolean, error: ServerError | null): void {
    const { rollbackOnError, asksServer } = this.#statement;
    if (error === null ? asksServer : rollbackOnError) void this.#askMore(flagsClean, error);
    else this.#finish(flagsClean, error, null);
  }

  lost(): void {
    if (this.#phase !== 'running') return;
    try {
      this.#end({ kind: 'lost', outcome: 'unknown' });
    } finally {
      this.#context.pool.release(this.#session as Session, 'broken');
    }
  }

  /** Where the phase changes. */
  #enter(phase: Phase, now?: number): void {
    clearTimeout(this.#followingUntil);
    if (phase !== 'batched') this.#leavePlace();
    this.#phase = phase;
    this.#times.enter(activities[phase], now);
  }

  #follow(): void {
    this.#phase = 'following';
    this.#followingUntil = setTimeout(() => this.#lookAhead(), this.#longestWaitMs);
  }

  get #longestWaitMs(): number {
    return Math.min(this.#context.pool.maxWaitMs, this.#waitLimit.longestMs);
  }

  /** The time in which the leader runs is no wait for a connection; if another one leads then, the wait begins with it. */
  #lookAhead(): void {
    const leader = this.#sharing?.waitingLeader ?? null;
    const now = performance.now();
    const ownSince = this.#waitLimit.since;
    const since = leader === null ? now : Math.max(ownSince, leader.#waitLimit.since);
    const leftMs = this.#longestWaitMs - (now - since);
    if (leftMs > 0) {
      this.#followingUntil = setTimeout(() => this.#lookAhead(), leftMs);
      return;
    }
    this.#withdraw();
    this.#end(this.#unanswered('waited too long'));
  }

  #execute(): void {
    this.#entry = this.#findPlace();
    if (this.#entry === null) {
      this.#queue();
    } else {
      this.#enter('batched');
      this.#entry.submit();
    }
  }

  /** A place in the pipeline, where the read is known to be quick and to do nothing else; null: it has a session of its own. */
  #findPlace(): PipelineEntry | null {
    const { pipeline } = this.#context;
    const { sql, shape, effects } = this.#statement;
    if (pipeline === null || shape === null || sql === null || this.#mustWait()) return null;
    const place = pipeline.placeFor(shape, sql.length, performance.now());
    if (place === null || !effects.isHarmless()) return null;
    if (place.isDeep && !this.#takePlace()) return null;
    return new PipelineEntry(pipeline, place, { sql, shape, effects }, this);
  }

  #queue(): void {
    this.#enter('queued');
    this.#context.pool.request(this);
  }

  #takePlace(): boolean {
    this.#hasPlace = this.#context.pool.admission.admit();
    return this.#hasPlace;
  }

  /** Leaves wherever it waits, or where its answer is still to come; those who share it take its place. */
  #withdraw(): void {
    if (this.#sharing?.leave() !== true && !this.#handOver()) {
      if (this.#phase === 'queued') this.#context.pool.queue.remove(this);
      this.#entry?.detach();
    }
    this.#entry = null;
  }

  /** Begins anew on a session of its own; returns false when part of the reply has left already. */
  #moveOutside(): boolean {
    if (!this.#events.sink.restart()) return false;
    if (this.#phase === 'pipelined') this.#context.pipeline?.noteRerun();
    this.#entry?.detach();
    this.#entry = null;
    this.#queue();
    return true;
  }

  #leaveForSize(): boolean {
    const entry = this.#entry;
    if (!this.#moveOutside()) return false;
    entry?.ban();
    return true;
  }

  #begin(session: Session): void {
    this.#sharing?.close();
    const now = performance.now();
    this.#enter('preparing', now);
    const needsFresh = !session.isFresh && this.#mayReadWhatWasLeft();
    if (this.#mustWait() || needsPreparation(session, this.#statement, needsFresh, now)) {
      void this.#prepare(session, needsFresh);
    } else {
      this.#send(session);
    }
  }

  #mayReadWhatWasLeft(): boolean {
    return this.#statement.needsFreshSession || !this.#statement.effects.isHarmless();
  }

  async #prepare(session: Session, needsFresh: boolean): Promise<void> {
    const { pool } = this.#context;
    let check: PositionCheck = 'ready';
    let doubt: ReadOnlyDoubt | null = null;
    try {
      if (this.#mustWait())
        check = await (this.#consistency as RequestConsistency).waitForPosition(session);
      if (mayRunAfter(check)) doubt = await this.#findDoubt(session);
      if (mayRunAfter(check) && doubt === null) {
        const isLeft = !session.isFresh && this.#mayReadWhatWasLeft();
        await makeReady(pool, session, this.#statement.isReadOnly, needsFresh || isLeft);
      }
    } catch {
      this.#tryAnother(session);
      return;
    } finally {
      clearTimeout(this.#preparingUntil);
    }
    if (this.#phase === 'preparing' && doubt !== null) this.#refuse(session, doubt);
    else if (this.#phase === 'preparing' && mayRunAfter(check)) this.#sendPrepared(session);
    else if (this.#phase === 'preparing') this.#turnBack(session, check);
    else pool.release(session, session.isFresh ? 'clean' : 'unclean');
  }

  /** Why a read-only statement must not be sent; null: it may be. */
  async #findDoubt(session: Session): Promise<ReadOnlyDoubt | null> {
    const { isReadOnly, sql, effects } = this.#statement;
    if (!isReadOnly || sql === null || !needsProof(effects)) return null;
    session.isFresh = false;
    return await findReadOnlyDoubt(session.connection, sql, effects);
  }

  #refuse(session: Session, doubt: ReadOnlyDoubt): void {
    try {
      this.#end({ kind: 'not only reading', doubt, statement: null });
    } finally {
      this.#context.pool.release(session, 'unclean');
    }
  }

  #mustWait(): boolean {
    return this.#consistency?.mustWait(this.#statement.isRead) === true;
  }

  /** The server does not show what the client has seen: nothing was sent. */
  #turnBack(session: Session, check: PositionCheck): void {
    try {
      this.#end(check === 'lost' ? { kind: 'token lost', isRead: false } : behind);
    } finally {
      this.#context.pool.release(session, session.isFresh ? 'clean' : 'unclean');
    }
  }

  #sendPrepared(session: Session): void {
    try {
      this.#send(session);
    } catch (cause) {
      this.#faulted(session, cause);
    }
  }

  /** An exception is this run's own: a session is granted while somebody else's answer is handled. */
  #faulted(session: Session, cause: unknown): void {
    try {
      this.#end({ kind: 'faulted', isSent: this.isSent, cause });
    } finally {
      this.#context.pool.release(session, 'broken');
    }
  }

  /** Nothing has been sent on this session: another one may be tried, once. */
  #tryAnother(session: Session): void {
    this.#context.pool.release(session, 'broken');
    if (this.#phase === 'ended') return;
    if (this.#mayTryAnother) {
      this.#mayTryAnother = false;
      this.#queue();
    } else {
      this.#end(this.#unanswered('database unreachable'));
    }
  }

  #send(session: Session): void {
    const { connection } = session;
    const { sql, effects } = this.#statement;
    if (connection.isLost) {
      this.#tryAnother(session);
      return;
    }
    this.#enter('running');
    if (sql === null) {
      this.answered(true, null);
      return;
    }
    const command = session.createQuery(sql, this.traceparent, this, this);
    if (isTooLarge(command.packet, session)) {
      this.answered(true, packetTooLarge);
      return;
    }
    session.isFresh = false;
    this.#command = command;
    effects.sent();
    if (this.#consistency === null) {
      connection.send(command);
      return;
    }
    this.#isAsking = true;
    const { sql: question } = this.#consistency.queryOn(connection);
    const ask = firstRowCommand(question, connection, (row) => this.#asked(row));
    connection.sendTogether([command, ask]);
  }

  /** What is asked on the session between the statements' end and its release. */
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
    const { leavesSessionClean, isReadOnly, shape, effects, rollbackOnError } = this.#statement;
    const undoesAll = rollbackOnError && !this.#hasLeft;
    const failure = this.#failureOf(error, this.#command?.results ?? [], undoesAll);
    this.#times.enter('over');
    const isClean = flagsClean && leavesSessionClean && !isReadOnly && effects.isHarmless();
    if (isClean && shape !== null) {
      pipeline?.latencies.noteOutside(shape, this.#times.workedMs, this.resultBytes);
    }
    try {
      this.#end(this.#lack ?? { kind: 'answered', failure, facts });
    } finally {
      session.connection.resume();
      pool.release(session, isClean ? 'clean' : 'unclean');
    }
  }

  #failureOf(
    error: ServerError | null,
    results: readonly ResultNote[],
    isRolledBack: boolean,
  ): ServerFailure | null {
    if (error === null) return null;
    const { analysis, isReadOnly, isRead } = this.#statement;
    const statements = analysis?.statements ?? [];
    return statementFailure({ statements, isReadOnly, isRead }, results, error, isRolledBack);
  }

  /** The end of statements that are not running: what was written before is never told as not executed. */
  #unanswered(reason: Refusal | StopReason): RunEnd {
    return { kind: this.#wasWritten ? 'cut short' : 'not executed', reason };
  }

  #end(end: RunEnd): void {
    if (this.#phase === 'ended') return;
    this.#sharing?.close();
    this.#enter('ended');
    if (this.#command !== null) this.#statement.effects.ended(end.kind === 'answered');
    if (this.#sharing?.hasFollowers !== true) this.#events.runEnded(end);
    else if (end.kind === 'answered' && end.failure === null) this.#share(this.#sharing, end);
    else {
      this.#events.runEnded(end);
      this.#sharing.endFollowers('reason' in end ? end.reason : null);
    }
  }

  // What is shared with identical reads.

  /** Null: it is run for itself alone. */
  #createSharing(): Sharing<Run> | null {
    const coalescer = this.#coalescer;
    const { coalescingKey: key, effects } = this.#statement;
    if (coalescer === null || key === null || this.#consistency?.hasToken === true) return null;
    return effects.isRepeatable() ? new Sharing(this, coalescer, key) : null;
  }

  /** Before anything is sent the first of the followers takes the place; returns false when there is none, or it is too late. */
  #handOver(): boolean {
    const next = this.#wasWritten ? null : (this.#sharing?.handOver() ?? null);
    if (next === null) return false;
    if (this.#entry === null) {
      this.#context.pool.queue.replace(this, next);
      next.#enter('queued');
    } else {
      if (!this.#hasPlace) next.#leavePlace();
      next.#entry = this.#entry.handOver(next);
      next.#enter('batched');
    }
    return true;
  }

  /** Bytes first: they are the leader's, who is served before those who came later. */
  #share(sharing: Sharing<Run>, answer: Answer): void {
    const held = this.#events.sink.held();
    if (held === null) {
      this.#events.runEnded(answer);
      sharing.letGo();
      return;
    }
    const followers = sharing.takeFollowers();
    for (const follower of followers) follower.#events.sink.adopt(held);
    this.#events.runEnded(answer);
    for (const follower of followers) follower.#answeredBy(this, answer);
  }

  #answeredBy(leader: Run, answer: Answer): void {
    if (this.#phase !== 'following') return;
    this.#times.shareWork(leader.#times.workedMs);
    const seen = leader.#consistency?.seen ?? null;
    if (seen !== null) this.#events.seen(seen);
    if (this.#coalescer !== null) this.#coalescer.coalesced += 1;
    this.#end(answer);
  }

  beginAnew(): void {
    if (this.#phase !== 'following') return;
    this.#leavePlace();
    this.#waitLimit = this.#times.waitLimit(performance.now());
    this.#execute();
  }

  endUnexecuted(reason: 'stopping' | 'server left'): void {
    this.#end({ kind: 'not executed', reason });
  }

  #leavePlace(): void {
    if (!this.#hasPlace) return;
    this.#hasPlace = false;
    this.#context.pool.admission.leave();
  }
}
