// One quick read in the pipeline: written with others, and run once more outside when the pipeline's limit ended it, or the
// server refused it because it writes: nothing had happened then, nor had anything left.
// Must not know HTTP or the reply's shape.
import { performance } from 'node:perf_hooks';
import type { PacketsAhead } from '../../shared/mysql/framing.ts';
import type { Column, OkPacket, ServerError } from '../../shared/mysql/packets.ts';
import { QueryCommand, type QueryEvents, type ResultSink } from '../../shared/mysql/query.ts';
import type { StopReason } from './outcome.ts';
import type { Pipeline } from './pipeline.ts';
import {
  type PipelinedStatement,
  type PipelineSession,
  pipelineLimitMs,
} from './pipeline-session.ts';
import { SecondRunEvents } from './second-run.ts';
import type { StatementEffects } from './statement-effects.ts';
import type { RunEvents, StatementRun } from './statement-run.ts';

/** ER_STATEMENT_TIMEOUT of MariaDB, ER_QUERY_TIMEOUT of MySQL. */
const limitErrors = new Set([1969, 3024]);

/** ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION: what was thought to be a read writes. */
const readOnlyError = 1792;

/** A column's name as JSON has six times its bytes at most; its type, quotes and commas stand beside it. */
const mostColumnGrowth = 6;
const columnFrame = 48;
/** `{"RESULT":{"HEADER":[],"TYPES":[],"ROWS":[` and room to spare. */
const headFrame = 64;

/** A row as JSON has at most so many times its bytes (a control character is six), and brackets. */
const mostGrowth = 6;
const rowBrackets = 8;

/** What is run: a statement with its shape and effects. */
type QuickRead = {
  readonly sql: string;
  readonly shape: number;
  readonly effects: StatementEffects;
};

/** A read that the pipeline has a place for. */
export class PipelinedRun implements StatementRun, PipelinedStatement, QueryEvents, ResultSink {
  readonly command: QueryCommand;
  readonly #pipeline: Pipeline;
  readonly #place: PipelineSession;
  readonly #shape: number;
  readonly #events: RunEvents;
  readonly #createOutside: (events: RunEvents) => StatementRun;
  readonly #effects: StatementEffects;
  readonly #askedAt: number;
  /** When it was written; 0 while it waits. */
  #writtenAt = 0;
  /** 0 while there is no answer. */
  #answeredAt = 0;
  /** What the pipeline still answers does not matter: the run is over, or goes on outside. */
  #isDetached = false;
  #outside: StatementRun | null = null;
  #movedAt = 0;

  /**
   * @param now performance.now(), which whoever asks for the run has looked up already
   * @param createOutside the ordinary run, for when nothing was written or the pipeline is no place for the read
   */
  constructor(
    pipeline: Pipeline,
    place: PipelineSession,
    { sql, shape, effects }: QuickRead,
    events: RunEvents,
    now: number,
    createOutside: (events: RunEvents) => StatementRun,
  ) {
    this.#pipeline = pipeline;
    this.#place = place;
    this.#shape = shape;
    this.#effects = effects;
    this.#events = events;
    this.#askedAt = now;
    this.#createOutside = createOutside;
    this.command = new QueryCommand(sql, place.session.connection.columns, this, this);
  }

  start(): void {
    this.#pipeline.submit(this.#place, this);
  }

  get isSent(): boolean {
    return this.#writtenAt > 0 || this.#outside?.isSent === true;
  }

  /** What was written and cut short has been running until then. */
  get queueMs(): number {
    if (this.#outside !== null) {
      return (this.#writtenAt || this.#movedAt) - this.#askedAt + this.#outside.queueMs;
    }
    return (this.#writtenAt === 0 ? performance.now() : this.#writtenAt) - this.#askedAt;
  }

  get databaseMs(): number {
    if (this.#outside !== null) {
      const firstMs = this.#writtenAt === 0 ? 0 : this.#movedAt - this.#writtenAt;
      return firstMs + this.#outside.databaseMs;
    }
    if (this.#writtenAt === 0) return 0;
    return (this.#answeredAt === 0 ? performance.now() : this.#answeredAt) - this.#writtenAt;
  }

  /** Not in the pipeline, where others wait behind: small results are what it is for. */
  pause(): void {
    this.#outside?.pause();
  }

  resume(): void {
    this.#outside?.resume();
  }

  abandonResults(): void {
    this.#outside?.abandonResults();
  }

  /** Nobody is killed in the pipeline: the answer is forgotten when it comes. */
  stop(reason: StopReason): void {
    if (this.#outside !== null) {
      this.#outside.stop(reason);
    } else if (!this.#isDetached) {
      const wasWaiting = this.#place.withdraw(this);
      void this.command.discardResults();
      this.#end({ kind: wasWaiting ? 'not executed' : 'cut short', reason });
      if (wasWaiting) this.#pipeline.ended(this.#place);
    }
  }

  /** A head that is too large to be held back goes outside as a row does. */
  columns(columns: readonly Column[], more: boolean): void {
    const { sink } = this.#events;
    if (sink.heldRoom >= mostHeadBytes(columns) || !this.#leaveForSize())
      sink.columns(columns, more);
  }

  /** Before the reply is too large to be held back the read goes outside, where a slow reader can stop the flow. */
  row(bytes: Buffer, start: number, end: number): void {
    const { sink } = this.#events;
    const fits = sink.heldRoom >= mostGrowth * (end - start) + rowBrackets;
    if (fits || !this.#leaveForSize()) sink.row(bytes, start, end);
  }

  #leaveForSize(): boolean {
    const leaves = this.#moveOutside();
    if (leaves) this.#pipeline.latencies.ban(this.#shape, performance.now());
    return leaves;
  }

  /** Several at once only where all that is ahead fits. */
  rows(ahead: PacketsAhead): void {
    const { sink } = this.#events;
    const fits = sink.heldRoom >= mostGrowth * (ahead.end - ahead.position) + rowBrackets;
    if (fits) sink.rows?.(ahead);
  }

  endOfRows(status: number): void {
    this.#events.sink.endOfRows(status);
  }

  ok(ok: OkPacket, more: boolean): void {
    this.#events.sink.ok(ok, more);
  }

  expelled(): void {
    if (!this.#isDetached) this.#moveOutside();
  }

  written(now: number): void {
    this.#writtenAt = now;
    this.#events.runBegins?.();
  }

  answered(flagsClean: boolean, error: ServerError | null): void {
    const now = performance.now();
    this.#answeredAt = now;
    const headMs = this.#place.headEnded(now);
    const wasLimited =
      headMs >= pipelineLimitMs || (error !== null && limitErrors.has(error.errno));
    const { latencies } = this.#pipeline;
    if (wasLimited || !flagsClean || !this.#effects.isHarmless()) {
      latencies.ban(this.#shape, now);
      this.#pipeline.spoil(this.#place);
    } else if (this.#isDetached) {
      latencies.notePipelined(this.#shape, headMs, 0, now);
    } else {
      latencies.notePipelined(this.#shape, headMs, this.#events.sink.totalBytes, now);
    }
    if (error?.errno === readOnlyError) this.#pipeline.noteWriter();
    if (!this.#isDetached) this.#conclude(wasLimited || error?.errno === readOnlyError, error);
    this.#pipeline.ended(this.#place);
  }

  lost(): void {
    this.#place.headEnded(performance.now());
    if (!this.#isDetached) {
      if (this.#writtenAt > 0) this.#end({ kind: 'lost' });
      else this.#moveOutside();
    }
    this.#pipeline.ended(this.#place);
  }

  /** An answer that took the limit's time is not trusted: a SLEEP that was ended answers as if it had slept. */
  #conclude(wasCutShort: boolean, error: ServerError | null): void {
    if (wasCutShort && this.#moveOutside()) return;
    if (error !== null) this.#events.sink.error(error);
    this.#end({ kind: 'answered', error });
  }

  /** Begins anew outside; returns false when part of the reply has left already. */
  #moveOutside(): boolean {
    if (!this.#events.sink.restart()) return false;
    void this.command.discardResults();
    this.#isDetached = true;
    this.#movedAt = performance.now();
    if (this.#writtenAt > 0) {
      this.#pipeline.noteRerun();
      this.#outside = this.#createOutside(new SecondRunEvents(this.#events));
    } else {
      this.#outside = this.#createOutside(this.#events);
    }
    this.#outside.start();
    return true;
  }

  #end(end: Parameters<RunEvents['runEnded']>[0]): void {
    this.#isDetached = true;
    this.#events.runEnded(end);
  }
}

function mostHeadBytes(columns: readonly Column[]): number {
  let bytes = headFrame;
  for (const { name } of columns) bytes += name.length * mostColumnGrowth + columnFrame;
  return bytes;
}
