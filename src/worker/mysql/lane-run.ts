// One quick read in the lane: written with others, and run once more outside when the lane's limit ended it.
// Must not know HTTP or the reply's shape.
import { performance } from 'node:perf_hooks';
import type { StopReason } from './fate.ts';
import type { PacketsAhead } from './framing.ts';
import type { Lane } from './lane.ts';
import { type LaneSession, type LaneStatement, laneLimitMs } from './lane-session.ts';
import type { Column, OkPacket, ServerError } from './packets.ts';
import { QueryCommand, type QueryOwner, type ResultSink } from './query.ts';
import type { RunOwner, StatementRun } from './statement-run.ts';

/** ER_STATEMENT_TIMEOUT of MariaDB, ER_QUERY_TIMEOUT of MySQL. */
const limitErrors = new Set([1969, 3024]);

/** A row as JSON has at most so many times its bytes (a control character is six), and brackets. */
const mostGrowth = 6;
const rowBrackets = 8;

/** A read that the lane has a place for. */
export class LaneRun implements StatementRun, LaneStatement, QueryOwner, ResultSink {
  readonly command: QueryCommand;
  readonly #lane: Lane;
  readonly #place: LaneSession;
  readonly #shape: number;
  readonly #owner: RunOwner;
  readonly #createOutside: () => StatementRun;
  readonly #askedAt: number;
  /** When it was written; 0 while it waits. */
  #writtenAt = 0;
  /** 0 while there is no answer. */
  #answeredAt = 0;
  /** What the lane still answers does not matter: the run is over, or goes on outside. */
  #isDetached = false;
  #outside: StatementRun | null = null;
  #movedAt = 0;

  /**
   * @param now performance.now(), which whoever asks for the run has looked up already
   * @param createOutside the ordinary run, for when nothing was written or the lane is no place for the read
   */
  constructor(
    lane: Lane,
    place: LaneSession,
    shape: number,
    sql: string,
    owner: RunOwner,
    now: number,
    createOutside: () => StatementRun,
  ) {
    this.#lane = lane;
    this.#place = place;
    this.#shape = shape;
    this.#owner = owner;
    this.#askedAt = now;
    this.#createOutside = createOutside;
    this.command = new QueryCommand(sql, place.session.connection.columns, this, this);
  }

  start(): void {
    this.#lane.submit(this.#place, this);
  }

  get isSent(): boolean {
    return this.#outside === null ? this.#writtenAt > 0 : this.#outside.isSent;
  }

  get queueMs(): number {
    if (this.#outside !== null) return this.#movedAt - this.#askedAt + this.#outside.queueMs;
    return (this.#writtenAt === 0 ? performance.now() : this.#writtenAt) - this.#askedAt;
  }

  get databaseMs(): number {
    if (this.#outside !== null) return this.#outside.databaseMs;
    if (this.#writtenAt === 0) return 0;
    return (this.#answeredAt === 0 ? performance.now() : this.#answeredAt) - this.#writtenAt;
  }

  /** Not in the lane, where others wait behind: small results are what it is for. */
  pause(): void {
    this.#outside?.pause();
  }

  resume(): void {
    this.#outside?.resume();
  }

  abandonResults(): void {
    this.#outside?.abandonResults();
  }

  /** Nobody is killed in the lane: the answer is forgotten when it comes. */
  stop(reason: StopReason): void {
    if (this.#outside !== null) {
      this.#outside.stop(reason);
    } else if (!this.#isDetached) {
      const wasWaiting = this.#place.withdraw(this);
      void this.command.discardResults();
      this.#end({ kind: wasWaiting ? 'not executed' : 'stopped', reason });
      if (wasWaiting) this.#lane.ended(this.#place);
    }
  }

  columns(columns: readonly Column[], more: boolean): void {
    this.#owner.sink.columns(columns, more);
  }

  /** Before the reply is too large to be held back the read goes outside, where a slow reader can stop the flow. */
  row(bytes: Buffer, start: number, end: number): void {
    const { sink } = this.#owner;
    const fits = sink.heldRoom >= mostGrowth * (end - start) + rowBrackets;
    if (fits || !this.#moveOutside()) sink.row(bytes, start, end);
    else this.#lane.quickness.ban(this.#shape, performance.now());
  }

  /** Several at once only where all that is ahead fits. */
  rows(ahead: PacketsAhead): void {
    const { sink } = this.#owner;
    const fits = sink.heldRoom >= mostGrowth * (ahead.end - ahead.position) + rowBrackets;
    if (fits) sink.rows?.(ahead);
  }

  endOfRows(status: number): void {
    this.#owner.sink.endOfRows(status);
  }

  ok(ok: OkPacket, more: boolean): void {
    this.#owner.sink.ok(ok, more);
  }

  expelled(): void {
    if (!this.#isDetached) this.#moveOutside();
  }

  written(now: number): void {
    this.#writtenAt = now;
    this.#owner.runBegins?.();
  }

  answered(flagsClean: boolean, error: ServerError | null): void {
    const now = performance.now();
    this.#answeredAt = now;
    const headMs = this.#place.headEnded(now);
    const wasLimited = headMs >= laneLimitMs || (error !== null && limitErrors.has(error.errno));
    const { quickness } = this.#lane;
    if (wasLimited || !flagsClean) {
      quickness.ban(this.#shape, now);
      this.#lane.spoil(this.#place);
    } else if (this.#isDetached) {
      quickness.noteInLane(this.#shape, headMs, 0, now);
    } else {
      quickness.noteInLane(this.#shape, headMs, this.#owner.sink.totalBytes, now);
    }
    if (!this.#isDetached) this.#conclude(wasLimited, error);
    this.#lane.ended(this.#place);
  }

  lost(): void {
    this.#place.headEnded(performance.now());
    if (!this.#isDetached) {
      if (this.#writtenAt > 0) this.#end({ kind: 'lost' });
      else this.#moveOutside();
    }
    this.#lane.ended(this.#place);
  }

  /** An answer that took the limit's time is not trusted: a SLEEP that was ended answers as if it had slept. */
  #conclude(wasLimited: boolean, error: ServerError | null): void {
    if (wasLimited && this.#moveOutside()) return;
    if (error !== null) this.#owner.sink.error(error);
    this.#end({ kind: 'answered', error });
  }

  /** Begins anew outside; returns false when part of the reply has left already. */
  #moveOutside(): boolean {
    if (!this.#owner.sink.restart()) return false;
    void this.command.discardResults();
    this.#isDetached = true;
    if (this.#writtenAt > 0) this.#lane.noteRerun();
    this.#movedAt = performance.now();
    this.#outside = this.#createOutside();
    this.#outside.start();
    return true;
  }

  #end(end: Parameters<RunOwner['runEnded']>[0]): void {
    this.#isDetached = true;
    this.#owner.runEnded(end);
  }
}
