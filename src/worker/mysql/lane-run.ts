// One quick read in the lane: written with others, and run once more outside when the lane's limit ended it.
// Must not know HTTP or the reply's shape.
import type { StopReason } from './fate.ts';
import type { Lane } from './lane.ts';
import { type LaneSession, type LaneStatement, laneLimitMs } from './lane-session.ts';
import type { ServerError } from './packets.ts';
import { QueryCommand, type QueryOwner } from './query.ts';
import type { RunOwner, StatementRun } from './statement-run.ts';

/** ER_STATEMENT_TIMEOUT of MariaDB, ER_QUERY_TIMEOUT of MySQL. */
const limitErrors = new Set([1969, 3024]);

/** A read that the lane has a place for. */
export class LaneRun implements StatementRun, LaneStatement, QueryOwner {
  readonly command: QueryCommand;
  readonly #lane: Lane;
  readonly #place: LaneSession;
  readonly #shape: number;
  readonly #owner: RunOwner;
  readonly #createOutside: () => StatementRun;
  readonly #askedAt = performance.now();
  #wasWritten = false;
  #isOver = false;
  #outside: StatementRun | null = null;

  /** @param createOutside the ordinary run, for when nothing was written or the lane's limit ended the read */
  constructor(
    lane: Lane,
    place: LaneSession,
    shape: number,
    sql: string,
    owner: RunOwner,
    createOutside: () => StatementRun,
  ) {
    this.#lane = lane;
    this.#place = place;
    this.#shape = shape;
    this.#owner = owner;
    this.#createOutside = createOutside;
    this.command = new QueryCommand(sql, place.session.connection.columns, owner.sink, this);
  }

  start(): void {
    this.#lane.submit(this.#place, this);
  }

  get isSent(): boolean {
    return this.#outside === null ? this.#wasWritten : this.#outside.isSent;
  }

  get queueMs(): number {
    return this.#outside === null ? 0 : this.#outside.queueMs;
  }

  get databaseMs(): number {
    return this.#outside === null ? performance.now() - this.#askedAt : this.#outside.databaseMs;
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
    } else if (!this.#isOver) {
      this.#isOver = true;
      void this.command.discardResults();
      this.#owner.runEnded({ kind: 'stopped', reason });
    }
  }

  written(): void {
    this.#wasWritten = true;
  }

  answered(flagsClean: boolean, error: ServerError | null): void {
    const now = performance.now();
    const headMs = this.#place.headEnded(now);
    const wasLimited = headMs >= laneLimitMs || (error !== null && limitErrors.has(error.errno));
    if (wasLimited || !flagsClean) this.#leave(now);
    else this.#lane.quickness.noteInLane(this.#shape, headMs, this.#owner.sink.totalBytes, now);
    if (!this.#isOver) this.#conclude(wasLimited, error);
    this.#lane.ended(this.#place);
  }

  lost(): void {
    this.#place.headEnded(performance.now());
    if (!this.#isOver) {
      if (this.#wasWritten) this.#end({ kind: 'lost' });
      else this.#runOutside();
    }
    this.#lane.ended(this.#place);
  }

  /** An answer that took the limit's time is not trusted: a SLEEP that was ended answers as if it had slept. */
  #conclude(wasLimited: boolean, error: ServerError | null): void {
    if (wasLimited && this.#owner.sink.restart()) {
      this.#lane.observations.rerun += 1;
      this.#runOutside();
      return;
    }
    if (error !== null) this.#owner.sink.error(error);
    this.#end({ kind: 'answered', error });
  }

  /** The shape is no longer quick, and the session no longer known to be clean. */
  #leave(now: number): void {
    this.#lane.quickness.ban(this.#shape, now);
    this.#lane.retire(this.#place);
  }

  #runOutside(): void {
    this.#outside = this.#createOutside();
    this.#outside.start();
  }

  #end(end: Parameters<RunOwner['runEnded']>[0]): void {
    this.#isOver = true;
    this.#owner.runEnded(end);
  }
}
