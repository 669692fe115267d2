// One statement's place in the pipeline: what its answer says of the session and of its shape, whether or not somebody
// still wants it. Must not know what becomes of the read when the pipeline is no place for it.
import { performance } from 'node:perf_hooks';
import type { ServerError } from '../../../shared/mysql/packets.ts';
import type { QueryCommand, QueryEvents, ResultSink } from '../../../shared/mysql/query.ts';
import type { WaitLimit } from '../../servers/pool/waiter.ts';
import type { StatementEffects } from '../statement-effects.ts';
import type { Pipeline } from './pipeline.ts';
import {
  type Look,
  type PipelinedStatement,
  type PipelineSession,
  pipelineLimitMs,
} from './pipeline-session.ts';

/** ER_STATEMENT_TIMEOUT of MariaDB, ER_QUERY_TIMEOUT of MySQL. */
const limitErrors = new Set([1969, 3024]);

/** ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION: what was thought to be a read writes. */
const readOnlyError = 1792;

/** The limit of a read for which no request waits any more. */
const noLimit: WaitLimit = {
  since: Number.POSITIVE_INFINITY,
  longestMs: Number.POSITIVE_INFINITY,
};

/** What is run: a statement with its shape and effects. */
export type QuickRead = {
  readonly sql: string;
  readonly shape: number;
  readonly effects: StatementEffects;
};

/** Whose read it is: the results come to it as to a sink. */
export interface PipelineClient extends ResultSink {
  /** Bytes made of the results so far. */
  readonly resultBytes: number;
  /** What the server is told of the trace that the read is part of; null: nothing. */
  readonly traceparent: string | null;
  /** How long the read may wait to be written. */
  readonly waitLimit: WaitLimit;
  /** From here on the read may have run. */
  pipelineWrote(now: number, look: Look | null): void;
  /** @param isTrusted whether the answer is one: not that of a limit, nor a refusal because it writes */
  pipelineAnswered(error: ServerError | null, isTrusted: boolean): void;
  /** The answer is not wanted here any more, or not to be had; it is READ ONLY and may be run elsewhere. */
  pipelineExpelled(): void;
  /** The connection was lost after the read was written. */
  pipelineLost(): void;
}

/** A read that has been given a place. Its client may be told until it is detached. */
export class PipelineEntry implements PipelinedStatement, QueryEvents {
  readonly command: QueryCommand;
  readonly #pipeline: Pipeline;
  readonly #place: PipelineSession;
  readonly #read: QuickRead;
  #client: PipelineClient | null;
  #isWritten = false;

  constructor(pipeline: Pipeline, place: PipelineSession, read: QuickRead, client: PipelineClient) {
    this.#pipeline = pipeline;
    this.#place = place;
    this.#read = read;
    this.#client = client;
    this.command = place.session.createQuery(read.sql, client.traceparent, client, this);
  }

  get waitLimit(): WaitLimit {
    return this.#client?.waitLimit ?? noLimit;
  }

  /** Has it written with others that come about now. */
  submit(): void {
    this.#pipeline.submit(this.#place, this);
  }

  /** From here on the answer is nobody's: what has not been written never is. */
  detach(): void {
    this.#client = null;
    void this.command.discardResults();
    if (this.#place.withdraw(this)) this.#pipeline.ended(this.#place);
  }

  /** Hands the place over; nothing has been written. */
  handOver(client: PipelineClient): PipelineEntry {
    const next = new PipelineEntry(this.#pipeline, this.#place, this.#read, client);
    this.#place.replace(this, next);
    return next;
  }

  /** The result is no small one: reads of its shape stay out of the pipeline for a while. */
  ban(): void {
    this.#pipeline.latencies.ban(this.#read.shape, performance.now());
  }

  written(now: number, look: Look | null): void {
    this.#isWritten = true;
    this.#client?.pipelineWrote(now, look);
  }

  expelled(): void {
    this.#client?.pipelineExpelled();
  }

  answered(flagsClean: boolean, error: ServerError | null): void {
    const now = performance.now();
    const ms = this.#place.headEnded(now);
    const isRefusedWrite = error?.errno === readOnlyError;
    // An answer that took the limit's time is not trusted: a SLEEP that was ended answers as if it had slept.
    const isLimited = ms >= pipelineLimitMs || (error !== null && limitErrors.has(error.errno));
    this.#learn(isLimited || !flagsClean, ms, now);
    if (isRefusedWrite) this.#pipeline.noteWriter();
    this.#client?.pipelineAnswered(error, !isLimited && !isRefusedWrite);
    this.#pipeline.ended(this.#place);
  }

  lost(): void {
    this.#place.headEnded(performance.now());
    if (this.#isWritten) this.#client?.pipelineLost();
    else this.#client?.pipelineExpelled();
    this.#pipeline.ended(this.#place);
  }

  #learn(isSuspect: boolean, ms: number, now: number): void {
    const { shape, effects } = this.#read;
    const { latencies } = this.#pipeline;
    if (isSuspect || !effects.isHarmless()) {
      latencies.ban(shape, now);
      this.#pipeline.spoil(this.#place);
    } else {
      latencies.notePipelined(shape, ms, this.#client?.resultBytes ?? 0, now);
    }
  }
}
