// One /db request that runs SQL: its reply, its run, its deadline, its client.
// Must not know how a request is decoded, nor how statements are run.
import { performance } from 'node:perf_hooks';
import type { FailureCode, RequestOutcome } from '../../../shared/failure-codes.ts';
import type { Known } from '../../catalogue/table-effects.ts';
import type { Executor } from '../../execute/executor.ts';
import type { RunEnd, StopReason } from '../../execute/outcome.ts';
import type { Statement } from '../../execute/preparation.ts';
import type { Afterwards, RunEvents, StatementRun } from '../../execute/statement-run.ts';
import { type Failure, sendFailure } from '../../http/failure.ts';
import { endWithFault } from '../../http/internal-fault.ts';
import type { OutgoingReply } from '../../http/outgoing-reply.ts';
import { type ReplyEvents, ReplyTransport } from '../../http/reply-transport.ts';
import { resetConnection } from '../../http/reset.ts';
import { faultedOutcome, runFailure } from '../../http/run-failure.ts';
import { type ReaderEvents, SlowReader } from '../../http/slow-reader.ts';
import type { StalledReaders } from '../../http/stalled-readers.ts';
import type { Indexed, IndexedSet } from '../../indexed-set.ts';
import type { ExchangeSummary } from '../../observe/exchange-summary.ts';
import { tenths } from '../../observe/milliseconds.ts';
import type { Observe } from '../../observe/observation.ts';
import type { RequestRecord } from '../../observe/request-record.ts';
import type { BufferPool } from '../../reply/buffers.ts';
import {
  type DbEnding,
  DbReply,
  type DbReplyEvents,
  type DbReplyOptions,
  type ResultNote,
} from '../../reply/formats/db.ts';
import type { RowModule } from '../../reply/row-module.ts';
import { ReplyWriter } from '../../reply/writer.ts';
import { type Conclude, mapResults } from './conclusion.ts';

/** What all exchanges of a worker share. */
export type ExchangeContext = {
  readonly executor: Executor;
  readonly buffers: BufferPool;
  /** Null: rows are written one by one. */
  readonly rowModule: RowModule | null;
  readonly holdBytes: number;
  /** When those who wait for a connection will have had one. */
  readonly retryAfterSeconds: () => number;
  /** How long a statement may become by its parameters. */
  readonly mostStatementBytes: () => number;
  readonly catalogue: Known;
  readonly stalledReaders: StalledReaders;
  /** The exchanges that are not over. */
  readonly live: IndexedSet<DbExchange>;
  readonly observe: Observe;
};

/** What one exchange is asked to do. */
export type ExchangeRequest = {
  readonly statement: Statement;
  readonly timeoutMs: number;
  readonly record: RequestRecord;
  readonly reply: DbReplyOptions;
  /** What else is to be asked of the connection, and how the document ends; null: nothing. */
  readonly conclude: Conclude | null;
};

/** Runs a request's SQL and answers it; the context's `observe` is told when it is over. */
export class DbExchange implements RunEvents, ReplyEvents, ReaderEvents, DbReplyEvents, Indexed {
  index = -1;
  readonly sink: DbReply;
  readonly afterwards: Afterwards | null;
  readonly #context: ExchangeContext;
  readonly #request: ExchangeRequest;
  readonly #response: OutgoingReply;
  readonly #writer: ReplyWriter;
  readonly #run: StatementRun;
  readonly #reader: SlowReader;
  readonly #startedAt = performance.now();
  #deadline: NodeJS.Timeout;
  #ending: DbEnding = { trailer: [], rolledBack: false };
  #clientGone = false;
  #over = false;
  #isTold = false;

  constructor(context: ExchangeContext, request: ExchangeRequest, response: OutgoingReply) {
    this.#context = context;
    this.#request = request;
    this.#response = response;
    const transport = new ReplyTransport(response, this);
    this.#writer = new ReplyWriter(context.buffers, context.holdBytes, transport);
    this.sink = new DbReply(this.#writer, request.reply, this);
    this.afterwards = this.#createAfterwards(request.conclude);
    this.#run = context.executor.create(request.statement, this);
    this.#reader = new SlowReader(response, this, context.stalledReaders);
    this.#deadline = setTimeout(() => this.#deadlinePassed(), request.timeoutMs);
  }

  start(): void {
    this.#context.live.add(this);
    this.#response.attended = this;
    this.#request.record.statementsBegin();
    try {
      this.#run.start();
    } catch (cause) {
      this.#faulted(cause);
    }
  }

  /** The time for a stop in peace is over: reads and streams end, writes have their own deadline. */
  endForStop(): void {
    if (this.#isRead || this.#writer.committed) this.#stop('stopping');
  }

  #createAfterwards(conclude: Conclude | null): Afterwards | null {
    if (conclude === null) return null;
    return async (connection, error) => {
      this.#ending = await conclude(connection, error, this.sink.results);
    };
  }

  /** A deadline is the moment by which a reply must have begun: what streams may go on. */
  #deadlinePassed(): void {
    if (!this.#writer.committed || this.#clientGone) this.#stop('deadline');
  }

  readerIsSlow(): void {
    if (this.#reader.isWaiting || this.#clientGone) return;
    this.#run.pause();
    this.#reader.wait();
  }

  readerFlows(): void {
    this.#run.resume();
  }

  readerStalled(): void {
    this.#stop('stalled');
  }

  /** A read without its client is stopped, and what was not sent yet; anything else runs on, to its end or its deadline. */
  closed(): void {
    try {
      this.#reader.stop();
      if (!this.#over) this.#goOnAlone();
    } catch (cause) {
      this.#faulted(cause);
    }
  }

  #goOnAlone(): void {
    this.#clientGone = true;
    if (this.#isRead || !this.#run.isSent) {
      this.#stop('client gone');
      return;
    }
    this.#run.abandonResults();
    if (!this.#writer.committed) return;
    clearTimeout(this.#deadline);
    this.#deadline = setTimeout(() => this.#deadlinePassed(), this.#request.timeoutMs);
  }

  replyTooLarge(): void {
    this.#stop('too large');
  }

  failedStatement(results: readonly ResultNote[]): number {
    return mapResults(this.#request.statement.sql ?? '', results).failedIndex;
  }

  runEnded(end: RunEnd): void {
    if (this.#over) return;
    try {
      this.#conclude(end);
    } catch (cause) {
      this.#faulted(cause);
    }
  }

  #stop(reason: StopReason): void {
    try {
      this.#run.stop(reason);
    } catch (cause) {
      this.#faulted(cause);
    }
  }

  #leave(): void {
    this.#over = true;
    this.#context.live.delete(this);
    clearTimeout(this.#deadline);
  }

  /** What was thrown ends this request alone. Its buffer may be on its way already, and is left to the garbage collector. */
  #faulted(cause: unknown): void {
    this.#noteException(cause);
    this.#leave();
    this.#reader.stop();
    const outcome = faultedOutcome(this.#run.isSent, this.#isRead);
    endWithFault(this.#response, this.requestId, outcome);
    if (!this.#isTold) this.#tell(500, outcome, 'INTERNAL', this.#writer.committed);
  }

  #noteException(cause: unknown): void {
    this.#context.observe({ kind: 'exception', cause, requestId: this.requestId });
  }

  #conclude(end: RunEnd): void {
    this.#leave();
    if (end.kind === 'faulted') this.#noteException(end.cause);
    if (end.kind !== 'answered') {
      this.#fail(runFailure(end, this.#isRead, this.#context.retryAfterSeconds));
      return;
    }
    if (this.#clientGone) {
      this.#writer.abandon();
    } else {
      this.sink.finish(this.#ending);
      this.#reader.finish();
    }
    this.#tell(200, end.error === null ? 'ok' : this.#outcomeOfError(), null, false);
  }

  /** Answers with a failure; a reply that has begun is reset, so that no reader takes it for whole. */
  #fail(failure: Failure): void {
    this.#writer.abandon();
    const timing = ['Server-Timing', this.serverTiming()];
    const wasCut = this.#writer.committed && !this.#clientGone;
    this.#response.failureCode = failure.code;
    if (!this.#response.destroyed) {
      if (this.#writer.committed) resetConnection(this.#response.socket);
      else sendFailure(this.#response, failure, ['X-Request-ID', this.requestId, ...timing]);
    }
    this.#tell(failure.status, failure.outcome, failure.code, wasCut);
  }

  /** As the document says it, where it does. */
  #outcomeOfError(): RequestOutcome {
    if (this.failedStatement(this.sink.results) === 0) return 'error';
    return this.#ending.rolledBack ? 'rolled_back' : 'partial';
  }

  /**
   * Whether stopping the statements cannot leave anything half done, as far as is known now. What a statement names
   * cannot become something else while it runs.
   */
  get #isRead(): boolean {
    const { isReadOnly, isRead, effects } = this.#request.statement;
    return isReadOnly || (isRead && effects.isHarmless());
  }

  get requestId(): string {
    return this.#request.record.requestId;
  }

  serverTiming(): string {
    return `queue;dur=${tenths(this.#run.queueMs)}, db;dur=${tenths(this.#run.databaseMs)}`;
  }

  #tell(status: number, outcome: RequestOutcome, code: FailureCode | null, wasCut: boolean): void {
    const summary: ExchangeSummary = {
      requestId: this.requestId,
      status,
      outcome,
      code,
      wasCut,
      clientGone: this.#clientGone,
      isRead: this.#isRead,
      rows: this.sink.rowCount,
      bytes: this.#writer.totalBytes,
      queueMs: this.#run.queueMs,
      databaseMs: this.#run.databaseMs,
      durationMs: performance.now() - this.#startedAt,
      sql: this.#request.statement.sql,
    };
    this.#isTold = true;
    this.#context.observe({ kind: 'statements over', summary });
    this.#request.record.statementsEnded(summary);
  }
}
