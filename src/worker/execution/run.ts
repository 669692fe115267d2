// One request's statements: answered with an identical read that waits, run in the pipeline, or run on a session of their own.
// They are sent once, except a read whose READ ONLY run in the pipeline was cut short.
import { performance } from 'node:perf_hooks';
import type { PacketsAhead } from '../../shared/mysql/framing.ts';
import type { Column, OkPacket, ServerError } from '../../shared/mysql/packets.ts';
import type { ServerFailure } from '../failure/failure.ts';
import {
  RequestConsistency,
  type TokenResult,
  unknownToken,
} from '../servers/consistency/consistency.ts';
import type { Token } from '../servers/consistency/token.ts';
import type { Refusal, RequestWaiter } from '../servers/pool/queue.ts';
import type { Session } from '../servers/pool/session.ts';
import type { WaitLimit } from '../servers/pool/wait-limit.ts';
import type {
  Answer,
  Execution,
  RunContext,
  RunEnd,
  RunEvents,
  ServerWarning,
  Unrouted,
} from './execution.ts';
import { type PipelineClient, PipelineEntry } from './pipeline/pipeline.ts';
import type { PositionRead } from './pipeline/pipeline-session.ts';
import type { Activity, RunTimes } from './run-times.ts';
import { describeError, lacks, type Row, SessionRun, type SessionRunOwner } from './session-run.ts';
import { type Coalescer, type Sharer, Sharing } from './sharing.ts';
import type { StopReason } from './stop-reason.ts';
import type { Statement } from './work.ts';

/**
 *     created ──> following ──────────────────────────┐  the leader's answer
 *        │            │ the leader has none for it    │
 *        ├────────────┤                               │
 *        v            │                               v
 *     placed ──> pipelined ────────────────────────> ended
 *        │            │ cut short                     ^
 *        v            v                               │
 *     alone, in a SessionRun ─────────────────────────┘
 */
type Phase = 'created' | 'following' | 'placed' | 'pipelined' | 'alone' | 'ended';

const activities: Readonly<Record<Phase, Activity>> = {
  created: 'waiting',
  following: 'waiting',
  placed: 'waiting',
  pipelined: 'working',
  // The acquisition of its session says when MySQL begins to work.
  alone: 'waiting',
  ended: 'over',
};

/** A server, and the reads there that others may join. */
export type RunPlace = {
  readonly context: RunContext;
  /** Null: identical reads are not coalesced. */
  readonly coalescer: Coalescer<Run> | null;
};

/** A run. Its creator starts it, and may stop it at any time. */
export class Run implements Execution, SessionRunOwner, PipelineClient, Sharer {
  readonly #context: RunContext;
  readonly #coalescer: Coalescer<Run> | null;
  readonly #statement: Statement;
  readonly #events: RunEvents;
  readonly #times: RunTimes;
  /** Null: positions are not tracked. */
  readonly #consistency: RequestConsistency | null;
  #phase: Phase = 'created';
  /** Whether it has a place of the admission for itself, beside those in the pool's queue. */
  #hasPlace = false;
  /** Shares the answer with identical reads; null: it runs for itself. */
  #sharing: Sharing<Run> | null = null;
  #entry: PipelineEntry | null = null;
  #alone: SessionRun | null = null;
  /** It may have run in the pipeline: from then on no reply says that nothing was executed. */
  #wasWritten = false;
  /** The question about the position behind what the pipeline has written; null: there is none. */
  #position: PositionRead | null = null;
  /** How long it may wait for a session. */
  #waitLimit: WaitLimit;
  /** Ends the wait for a leader that does not begin. */
  #followingUntil: NodeJS.Timeout | undefined;

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

  start(): void {
    this.#times.enter('waiting');
    this.#sharing = this.#createSharing();
    if (this.#sharing?.join(() => this.#takePlace()) === true) this.#follow();
    else this.#execute();
  }

  /** Statements that were sent for another request do not count. */
  get isSent(): boolean {
    return this.#wasWritten || this.#alone?.isSent === true;
  }

  /** A stop undoes nothing. */
  get isRevocable(): boolean {
    return !this.isSent;
  }

  get backend(): string {
    return this.#context.address;
  }

  stop(reason: StopReason): void {
    switch (this.#phase) {
      case 'alone':
        if (this.#alone?.isQueued === true && this.#handOver()) this.#end(this.#unanswered(reason));
        else this.#alone?.stop(reason, this.#unanswered(reason));
        break;
      case 'ended':
        break;
      default:
        this.#withdraw();
        this.#end(this.#unanswered(reason));
    }
  }

  /** In the pipeline others wait behind, and small results are what it is for: only a run alone can pause. */
  pause(): void {
    this.#alone?.pause();
  }

  resume(): void {
    this.#alone?.resume();
  }

  seeNow(): Promise<TokenResult> {
    return this.#alone?.seeNow() ?? Promise.resolve(unknownToken);
  }

  abandonResults(): void {
    this.#alone?.abandonResults();
  }

  get waitLimit(): WaitLimit {
    return this.#waitLimit;
  }

  get traceparent(): string | null {
    return this.#events.traceparent;
  }

  get resultBytes(): number {
    return this.#events.sink.totalBytes;
  }

  // Reports of the run on its own session.

  /** The first of the identical reads that follow it goes on waiting in its place. */
  handOverPlace(): RequestWaiter | null {
    const next = this.#wasWritten ? null : (this.#sharing?.handOver() ?? null);
    return next === null ? null : next.#goAlone().enqueued();
  }

  sessionGranted(): void {
    this.#sharing?.close();
  }

  listWarnings(warnings: readonly ServerWarning[]): void {
    this.#events.sink.listWarnings?.(warnings);
  }

  noteSeen(session: Session, row: Row, isWriteAlone: boolean): RunEnd | null {
    if (this.#consistency === null) return null;
    const seen = this.#consistency.see(session, row, isWriteAlone);
    this.#events.seen(seen);
    const { isRead, isReadOnly } = this.#statement;
    return isRead || isReadOnly ? lacks[seen.missing] : null;
  }

  sessionRunEnded(end: RunEnd): void {
    if (end.kind === 'not executed' && end.reason !== 'behind') {
      this.#end(this.#unanswered(end.reason));
    } else if (end.kind === 'faulted') {
      this.#end({ ...end, isSent: end.isSent || this.#wasWritten });
    } else this.#end(end);
  }

  // Reports of the pipeline.

  pipelineWrote(now: number, position: PositionRead | null): void {
    this.#wasWritten = true;
    this.#position = position;
    this.#sharing?.close();
    this.#enter('pipelined', now);
  }

  pipelineExpelled(): void {
    this.#leavePipeline();
  }

  pipelineAnswered(error: ServerError | null, isTrusted: boolean): void {
    if (!isTrusted && this.#leavePipeline()) return;
    const command = this.#entry?.command ?? null;
    this.#entry = null;
    const failure = error === null ? null : describeError(this.#statement, command, error, false);
    const position = this.#position;
    if (position === null) this.#end({ kind: 'answered', failure, facts: null });
    else position.watch((row) => this.#positionRead(position.session, row, failure));
  }

  /** The question behind a read in the pipeline bounds what the read has seen. */
  #positionRead(session: Session, row: Row, failure: ServerFailure | null): void {
    if (this.#phase !== 'pipelined') return;
    this.#end(this.noteSeen(session, row, false) ?? { kind: 'answered', failure, facts: null });
  }

  pipelineLost(): void {
    this.#entry = null;
    this.#end({ kind: 'lost', outcome: 'unknown' });
  }

  // The results: in the pipeline only while nothing of the reply leaves.

  columns(columns: readonly Column[], more: boolean): void {
    const { sink } = this.#events;
    // A pipelined answer is small: it ends as it begins.
    if (this.#phase === 'alone') this.#times.answerBegins();
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

  /** In the pipeline it takes several at once only if all that is ahead fits. */
  rows(ahead: PacketsAhead): void {
    const { sink } = this.#events;
    if (this.#phase === 'pipelined' && !sink.fitsRows(ahead.end - ahead.position)) return;
    sink.rows?.(ahead);
    if (this.#sharing?.hasFollowers === true && sink.hasLeft) this.#sharing.letGo();
  }

  endOfRows(status: number, warnings: number): void {
    this.#events.sink.endOfRows(status, warnings);
  }

  ok(ok: OkPacket, more: boolean): void {
    if (this.#phase === 'alone') this.#times.answerBegins();
    this.#events.sink.ok(ok, more);
  }

  // The places in which it waits.

  #enter(phase: Phase, now?: number): void {
    clearTimeout(this.#followingUntil);
    if (phase !== 'placed') this.#leavePlace();
    this.#phase = phase;
    this.#times.enter(activities[phase], now);
  }

  #execute(): void {
    this.#entry = this.#findPlace();
    if (this.#entry === null) {
      this.#goAlone().start();
    } else {
      this.#enter('placed');
      this.#entry.submit();
    }
  }

  /** A place in the pipeline, if the read is known to be quick and to do nothing else; null: it needs a session of its own. */
  #findPlace(): PipelineEntry | null {
    const { pipeline } = this.#context;
    const { sql, shape, effects, isRead } = this.#statement;
    if (pipeline === null || shape === null || sql === null) return null;
    if (this.#consistency?.mustWait(isRead) === true) return null;
    const { account } = this.#times;
    const place = pipeline.placeFor(shape, sql.length, account, performance.now());
    if (place === null || !effects.isHarmless()) return null;
    if (place.isDeep && !this.#takePlace()) return null;
    return new PipelineEntry(pipeline, place, { sql, shape, effects }, this);
  }

  #goAlone(): SessionRun {
    this.#enter('alone');
    this.#alone = new SessionRun(
      this.#context,
      this.#statement,
      this.#consistency,
      this,
      this.#times,
    );
    return this.#alone;
  }

  /** Begins again on a session of its own; returns false if part of the reply has left already. */
  #leavePipeline(): boolean {
    if (!this.#events.sink.restart()) return false;
    if (this.#phase === 'pipelined') this.#context.pipeline?.noteRerun();
    this.#entry?.detach();
    this.#entry = null;
    this.#goAlone().start();
    return true;
  }

  #leaveForSize(): boolean {
    const entry = this.#entry;
    if (!this.#leavePipeline()) return false;
    entry?.ban();
    return true;
  }

  #takePlace(): boolean {
    this.#hasPlace = this.#context.pool.admission.admit(this.#times) === null;
    return this.#hasPlace;
  }

  #leavePlace(): void {
    if (!this.#hasPlace) return;
    this.#hasPlace = false;
    this.#context.pool.admission.leave(this.#times.account);
  }

  /** Leaves its leader, or the pipeline; the first follower takes its place. */
  #withdraw(): void {
    if (this.#sharing?.leave() !== true && !this.#handOver()) this.#entry?.detach();
    this.#entry = null;
  }

  /** The end of statements that are not running: what was written before is never reported as not executed. */
  #unanswered(reason: Refusal | StopReason | Unrouted): RunEnd {
    return this.#wasWritten ? { kind: 'cut short', reason } : { kind: 'not executed', reason };
  }

  #end(end: RunEnd): void {
    if (this.#phase === 'ended') return;
    this.#sharing?.close();
    this.#enter('ended');
    if (this.#sharing?.hasFollowers !== true) this.#events.runEnded(end);
    else if (end.kind === 'answered' && end.failure === null) this.#share(this.#sharing, end);
    else {
      this.#events.runEnded(end);
      this.#sharing.endFollowers('reason' in end ? end.reason : null);
    }
  }

  // Requests of identical reads that share this run.

  /** Null: it runs for itself. */
  #createSharing(): Sharing<Run> | null {
    const coalescer = this.#coalescer;
    const { coalescingKey: key, effects } = this.#statement;
    if (coalescer === null || key === null || this.#consistency?.hasToken === true) return null;
    return effects.isRepeatable() ? new Sharing(this, coalescer, key) : null;
  }

  #follow(): void {
    this.#phase = 'following';
    this.#followingUntil = setTimeout(() => this.#checkLeader(), this.#longestWaitMs);
  }

  get #longestWaitMs(): number {
    const { pool } = this.#context;
    return Math.min(pool.maxWaitMs, this.#times.account.maxWaitMs, this.#waitLimit.longestMs);
  }

  /** The time in which the leader runs is no wait for a connection. If another run leads by then, the wait begins with that run. */
  #checkLeader(): void {
    const leader = this.#sharing?.waitingLeader ?? null;
    const now = performance.now();
    const ownSince = this.#waitLimit.since;
    const since = leader === null ? now : Math.max(ownSince, leader.#waitLimit.since);
    const leftMs = this.#longestWaitMs - (now - since);
    if (leftMs > 0) {
      this.#followingUntil = setTimeout(() => this.#checkLeader(), leftMs);
      return;
    }
    this.#withdraw();
    this.#end(this.#unanswered('waited too long'));
  }

  /** Before anything is sent the first follower takes its place. Returns false if there is none, or it is too late. */
  #handOver(): boolean {
    const next = this.#wasWritten ? null : (this.#sharing?.handOver() ?? null);
    if (next === null) return false;
    if (this.#alone !== null) {
      next.#goAlone().startInPlaceOf(this.#alone);
    } else if (this.#entry !== null) {
      if (!this.#hasPlace) next.#leavePlace();
      next.#entry = this.#entry.handOver(next);
      next.#enter('placed');
    }
    return true;
  }

  /** The followers copy the bytes before the leader sends them. The leader is answered first. */
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

  beginAgain(): void {
    if (this.#phase !== 'following') return;
    this.#leavePlace();
    this.#waitLimit = this.#times.waitLimit(performance.now());
    this.#execute();
  }

  endUnexecuted(reason: 'stopping' | 'server left'): void {
    this.#end({ kind: 'not executed', reason });
  }
}
