// One request that runs SQL: starts its run, writes its reply in the chosen format, and watches its deadline and its client.
import { performance } from 'node:perf_hooks';
import { shownUser } from '../../shared/clients/caller.ts';
import { isAllowed } from '../../shared/clients/client.ts';
import type { Config } from '../../shared/config/config.ts';
import { type FailureCode, failures, type RequestOutcome } from '../../shared/failure-codes.ts';
import type { ServerError } from '../../shared/mysql/packets.ts';
import type { LivePhase, LiveRequest } from '../../shared/observe/stats.ts';
import { digest } from '../../shared/sql/digest.ts';
import type { Format, FormatChoice, FormatEvents } from '../encode/format.ts';
import type { ReplyHead } from '../encode/head.ts';
import { type BufferPool, ReplyWriter, type Transport } from '../encode/writer.ts';
import type { Answer, Execution, RunEnd, RunEvents } from '../execution/execution.ts';
import type { Executor, Work } from '../execution/executor.ts';
import { RunTimes } from '../execution/run-times.ts';
import type { StopReason } from '../execution/stop-reason.ts';
import { type AnyFailure, type Failure, internalFailure } from '../failure/failure.ts';
import { hasNames, withoutNames } from '../failure/shown-failure.ts';
import { endWithFault, resetConnection, sendFailure } from '../http/failure-reply.ts';
import type { Peers } from '../http/peers.ts';
import type { Attended, OutgoingReply } from '../http/reply.ts';
import {
  type GzipEvents,
  GzipTransport,
  ReplyTransport,
  serverTiming,
} from '../http/reply-transport.ts';
import { type ReaderEvents, SlowReader, type SlowReaders } from '../http/slow-readers.ts';
import type { ExchangeSummary, Observe, RequestRecord } from '../observe/observation.ts';
import type { Account, Accounts } from '../servers/account.ts';
import { type TokenResult, unknownToken } from '../servers/consistency/consistency.ts';
import type { Token } from '../servers/consistency/token.ts';
import { noToken, type Tokens } from './consistency-tokens.ts';
import type { LiveExchange, LiveExchanges } from './live-exchanges.ts';
import { faultedOutcome, runFailure, tokenLost } from './run-failure.ts';

/** The part of its deadline that a request may spend waiting behind others. */
const longestWaitShare = 1 / 4;

/** The parts that all exchanges of a worker share. */
export type ExchangeContext = {
  readonly executor: Executor;
  readonly buffers: BufferPool;
  readonly holdBytes: number;
  /** The accounts of the worker's clients. */
  readonly accounts: Accounts;
  /** When the waiting requests of a client will have had a connection. */
  readonly retryAfterSeconds: (account: Account) => number;
  readonly slowReaders: SlowReaders;
  /** For all sockets of the worker. */
  readonly peers: Peers;
  /** The exchanges that are not over. */
  readonly live: LiveExchanges<Exchange>;
  /** The section's name. */
  readonly section: string;
  readonly observe: Observe;
  /** Null: the section has one server, which shows what it showed. */
  readonly tokens: Tokens | null;
};

/** A request to run statements: which, on what section, and in what format the results are the reply. */
export type RunDecision = {
  readonly ok: true;
  readonly kind: 'run';
  readonly section: {
    readonly config: Pick<Config, 'statementTimeoutMs'>;
    readonly context: ExchangeContext;
  };
  readonly work: Work;
  /** As the request asks for; null: it does not. */
  readonly timeoutMs: number | null;
  readonly format: FormatChoice;
  /** Whether the reply may be compressed. */
  readonly mayCompress?: boolean;
  /** Whether a token in its headers says nothing. */
  readonly ignoresToken?: boolean;
  /** Whether its reply has no token, because a cache may give it to other clients. */
  readonly hidesToken?: boolean;
  /** Gives a failure the status and the code of the application's; missing: there are none. */
  readonly explain?: (failure: AnyFailure) => AnyFailure;
  /** The claims that its statements bind; missing: none. */
  readonly ownClaims?: ReadonlyMap<string, string>;
  /** Explains an error of MySQL's, by the statement's number in a batch; null: there is nothing to explain. */
  readonly hintFor?: (error: ServerError, statement: number) => string | null;
  /** The token of the open transaction that it is part of, as the request has it; null, or missing: there is none. */
  readonly transaction?: string | null;
  /** Takes the reply in place of the client; missing: the client gets it. */
  readonly receiver?: Receiver;
};

/** Takes the whole reply of an exchange, or why there is none, to make the client's reply of it. Exactly one of them is called, once. */
export type Receiver = {
  /** @param body valid during the call only */
  readonly reply: (status: number, body: Buffer) => void;
  readonly failed: (failure: Failure) => void;
};

type ExchangeRequest = Pick<RunDecision, 'work' | 'format' | 'mayCompress' | 'hidesToken'> & {
  readonly hintFor: NonNullable<RunDecision['hintFor']>;
  readonly timeoutMs: number;
  readonly record: RequestRecord;
  readonly explain: NonNullable<RunDecision['explain']> | null;
  readonly ownClaims: ReadonlyMap<string, string>;
  /** The client's token; null: it sends none. */
  readonly after: Token | null;
  /** Null: the client gets the reply. */
  readonly receiver: Receiver | null;
};

/** The deadline of a request: the section's limit, unless the request asks for less. In ms. */
export function timeoutOf(
  { statementTimeoutMs }: Pick<Config, 'statementTimeoutMs'>,
  asked: number | null,
): number {
  return Math.min(asked ?? statementTimeoutMs, statementTimeoutMs);
}

/** Runs a request's statements and answers it. */
export function startExchange(
  run: RunDecision,
  response: OutgoingReply,
  record: RequestRecord,
): void {
  const { section, work, format, mayCompress = false, ignoresToken = false } = run;
  const { receiver = null, explain = null, ownClaims = noClaims, hidesToken = false } = run;
  const hintFor = run.hintFor ?? noHint;
  const { config, context } = section;
  const tokens = ignoresToken ? null : context.tokens;
  const decoded = tokens === null ? noToken : tokens.decode(response.req.headers);
  if (!decoded.ok) {
    sendFailure(response, decoded.failure, record.requestId);
    return;
  }
  const timeoutMs = timeoutOf(config, run.timeoutMs);
  const after = decoded.token;
  const shown = { format, mayCompress, hidesToken, hintFor, explain, receiver };
  const request = { work, timeoutMs, record, after, ownClaims, ...shown };
  new Exchange(context, request, response).start();
}

/** Hands a whole reply to its receiver. Nothing of it is sent before. */
class HandOver implements Transport {
  readonly #receiver: Receiver;

  constructor(receiver: Receiver) {
    this.#receiver = receiver;
  }

  sendWhole({ status }: ReplyHead, bytes: Buffer, length: number, sent: () => void): void {
    this.#receiver.reply(status, bytes.subarray(0, length));
    sent();
  }

  begin(): void {
    throw new Error('a reply that is handed over is held back as a whole');
  }

  sendPart(): void {
    this.begin();
  }

  finish(): void {
    this.begin();
  }
}

const noHint = () => null;
const noClaims: ReadonlyMap<string, string> = new Map();

/** Runs a request's SQL and answers it. Reports to the context's `observe` when it is over. */
export class Exchange
  implements RunEvents, GzipEvents, Attended, ReaderEvents, FormatEvents, LiveExchange
{
  index = -1;
  liveId = 0;
  readonly startedAt = performance.now();
  readonly sink: Format;
  readonly #context: ExchangeContext;
  readonly #request: ExchangeRequest;
  readonly #response: OutgoingReply;
  readonly #times: RunTimes;
  readonly #writer: ReplyWriter;
  readonly #run: Execution;
  readonly #reader: SlowReader;
  #deadline: NodeJS.Timeout;
  #clientGone = false;
  #isCompressing = false;
  /** Why there can be no reply of the results. */
  #refusal: Failure | null = null;
  #over = false;
  #isReported = false;
  /** Null: nothing has been seen. */
  #seen: TokenResult | null = null;
  #hasTokenHeaders = false;
  /** How often the reply was full. If it began again meanwhile, an answer about the rows before counts no more. */
  #timesFull = 0;

  constructor(context: ExchangeContext, request: ExchangeRequest, response: OutgoingReply) {
    const { work, record, format, timeoutMs, receiver } = request;
    this.#context = context;
    this.#request = request;
    this.#response = response;
    const { client, user } = record.caller;
    const account = context.accounts.of(client);
    this.#times = new RunTimes(timeoutMs * longestWaitShare, account, user);
    const transport = receiver === null ? this.#transportToClient() : new HandOver(receiver);
    // The effect of a batch is not known before its end, and a receiver takes nothing but the whole.
    const isWhole = work.kind === 'batch' || format.isWhole === true || receiver !== null;
    const holdBytes = isWhole ? Number.POSITIVE_INFINITY : context.holdBytes;
    const onFull = context.tokens === null ? null : () => this.#replyIsFull();
    this.#writer = new ReplyWriter(context.buffers, holdBytes, transport, format.head, onFull);
    this.sink = format.create(this.#writer, this);
    this.#run = context.executor.create(work, request.after, this, this.#times);
    // A held transaction keeps its session whether or not its client reads, and is counted elsewhere.
    const others = work.kind === 'open step' ? null : context.slowReaders;
    this.#reader = new SlowReader(response, this, others, context.peers);
    const leftMs = Math.max(timeoutMs - record.workedMs, 0);
    this.#deadline = setTimeout(() => this.#deadlinePassed(), leftMs);
  }

  get owner(): string {
    return this.#request.record.caller.owner;
  }

  get ownClaims(): ReadonlyMap<string, string> {
    return this.#request.ownClaims;
  }

  #transportToClient(): Transport {
    const { record, mayCompress = false } = this.#request;
    const plain = new ReplyTransport(this.#response, record.requestId, this.#times, this);
    return mayCompress ? new GzipTransport(plain, this.#response, this) : plain;
  }

  get client(): string {
    return this.#times.account.client.name;
  }

  get user(): string | null {
    return shownUser(this.#request.record.caller);
  }

  get traceId(): string | null {
    return this.#request.record.traceId;
  }

  get traceparent(): string | null {
    return this.#request.record.trace?.traceparent ?? null;
  }

  start(): void {
    this.#context.live.add(this);
    this.#response.attended = this;
    const { record, timeoutMs } = this.#request;
    record.statementsBegin();
    try {
      // A long request may have waited for its turn to be decoded.
      if (record.workedMs >= timeoutMs) this.#stop('deadline');
      else this.#run.start();
    } catch (cause) {
      this.#faulted(cause);
    }
  }

  /** The worker drains, and its time for that is over: reads and streams end, writes have their own deadline. */
  endForStop(): void {
    if (this.#isRead || this.#writer.committed) this.#stop('stopping');
  }

  /** The worker stops at once: all that runs is stopped, writes too. */
  endNow(): void {
    this.#stop('stopping');
  }

  /** The worker ends before the run does: the outcome of what was sent is unknown. */
  giveUp(): void {
    const kind = this.#run.isSent ? 'stopped' : 'not executed';
    this.runEnded({ kind, reason: 'stopping' });
  }

  kill(): void {
    this.#stop('killed');
  }

  describe(now: number): Omit<LiveRequest, 'id'> {
    const sql = sqlOf(this.#request.work);
    return {
      request_id: this.requestId,
      trace_id: this.traceId,
      age_ms: Math.round(now - this.startedAt),
      phase: this.#phase,
      client: this.client,
      user: this.user,
      address: this.#request.record.address,
      backend: this.#run.backend,
      section: this.#context.section,
      named: this.#request.record.named,
      tool: this.#request.record.tool,
      shape: sql === null ? null : digest(sql),
    };
  }

  get #phase(): LivePhase {
    if (this.#reader.isWaiting) return 'stalled';
    if (this.#writer.committed) return 'streaming';
    return this.#times.activity === 'waiting' ? 'waiting' : 'running';
  }

  /** A reply must have begun by its deadline: one that streams may go on. */
  #deadlinePassed(): void {
    if (!this.#writer.committed || this.#clientGone) this.#stop('deadline');
  }

  readerIsSlow(): void {
    if (this.#over) {
      this.#reader.finish();
      return;
    }
    if (this.#reader.isWaiting || this.#clientGone) return;
    this.#run.pause?.();
    this.#reader.wait();
  }

  readerFlows(): void {
    if (!this.#isCompressing) this.#run.resume?.();
  }

  compressorIsBusy(): void {
    this.#isCompressing = true;
    this.#run.pause?.();
  }

  compressorFlows(): void {
    this.#isCompressing = false;
    if (!this.#reader.isWaiting) this.#run.resume?.();
  }

  readerStalled(): void {
    this.#stop('stalled');
  }

  /** The client is gone: a read is stopped, and so is what can be undone. Anything else runs on, to its end or its deadline. */
  closed(): void {
    try {
      this.#reader.stop();
      if (!this.#over) this.#goOnAlone();
      this.#run.replyLeft?.();
    } catch (cause) {
      this.#faulted(cause);
    }
  }

  #goOnAlone(): void {
    this.#clientGone = true;
    if (this.#isRead || this.#run.isRevocable) {
      this.#stop('client gone');
      return;
    }
    this.#run.abandonResults?.();
    if (!this.#writer.committed) return;
    clearTimeout(this.#deadline);
    this.#deadline = setTimeout(() => this.#deadlinePassed(), this.#request.timeoutMs);
  }

  replyTooLarge(): void {
    this.#stop('too large');
  }

  /**
   * A read is stopped, and so is a transaction that can be undone. Anything else runs to its end, and its reply says that rows are
   * missing: what was executed is never refused.
   */
  replyTooWide(): void {
    if (this.#isRead || (this.#request.work.kind === 'batch' && this.#run.isRevocable)) {
      this.#stop('too wide');
    }
  }

  /** The rest of a read would be left out: it is stopped, and what it has brought is the reply. */
  replyIsComplete(): void {
    if (this.#isRead) this.#stop('too large');
  }

  /** A read is stopped, and so is what can be undone. Anything else runs to its end, so that it is not left half done. */
  replyRefused(failure: Failure): void {
    this.#refusal = failure;
    if (this.#isRead || (this.#request.work.kind === 'batch' && this.#run.isRevocable)) {
      this.#stop('too large');
    }
  }

  seen(seen: TokenResult): void {
    this.#seen = seen;
  }

  /** The head reports what the rows have seen, so the run asks for that before the first of them leaves. */
  #replyIsFull(): void {
    this.#timesFull += 1;
    const time = this.#timesFull;
    this.#run.pause?.();
    const asked = this.#run.seeNow?.() ?? Promise.resolve(unknownToken);
    void asked.then((seen) => {
      if (this.#over || time !== this.#timesFull || !this.#writer.isFull) return;
      try {
        this.#beginWith(seen);
      } catch (cause) {
        this.#faulted(cause);
      }
    });
  }

  #beginWith(seen: TokenResult): void {
    if (seen.missing === 'lost') this.replyRefused(tokenLost);
    // It has not begun: the run begins it on another server.
    if (seen.missing !== 'nothing') return;
    this.#seen = seen;
    this.#addTokenHeaders();
    this.#writer.open();
    if (!this.#isCompressing && !this.#reader.isWaiting) this.#run.resume?.();
  }

  /** Once, and before the head leaves. */
  #addTokenHeaders(): void {
    const { tokens } = this.#context;
    const { after, hidesToken } = this.#request;
    if (tokens === null || hidesToken === true) return;
    if (this.#hasTokenHeaders || this.#response.headersSent) return;
    this.#hasTokenHeaders = true;
    this.#response.addHeaders(tokens.headers(this.#seen, after));
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

  /** An exception ends this request alone. Its buffer may be in use by the socket, and is left to the garbage collector. */
  #faulted(cause: unknown): void {
    this.#noteException(cause);
    this.#leave();
    this.#reader.stop();
    const outcome = faultedOutcome(this.#run.isSent, this.#isRead);
    const { receiver } = this.#request;
    if (receiver === null) endWithFault(this.#response, this.requestId, outcome);
    else receiver.failed(internalFailure(outcome));
    if (!this.#isReported) this.#report(500, outcome, 'INTERNAL', this.#writer.committed);
  }

  #noteException(cause: unknown): void {
    this.#context.observe({ kind: 'exception', cause, record: this.#request.record });
  }

  #conclude(end: RunEnd): void {
    this.#leave();
    if (end.kind === 'faulted') this.#noteException(end.cause);
    if (end.kind !== 'token lost' && this.#refusal !== tokenLost) this.#addTokenHeaders();
    if (this.#refusal !== null && mayBeRefused(end)) this.#refuse(this.#refusal, end);
    else if (end.kind === 'answered') this.#answer(end);
    else if (this.#isCompleteAt(end)) this.#answer(answeredInPart);
    else this.#fail(runFailure(end, this.#isRead, () => this.#retryAfterSeconds));
  }

  get #retryAfterSeconds(): number {
    return this.#context.retryAfterSeconds(this.#times.account);
  }

  /** Whether a read that was stopped has brought all that its reply takes. */
  #isCompleteAt(end: RunEnd): boolean {
    const wasStopped = end.kind === 'stopped' || end.kind === 'cut short';
    if (!wasStopped || !this.#isRead || !this.sink.isComplete) return false;
    return end.reason === 'too large' || end.reason === 'deadline';
  }

  /** An executed statement is never reported as `failed`. */
  #refuse(failure: Failure, end: RunEnd): void {
    if (end.kind === 'batch stopped') {
      this.#fail({ ...failure, outcome: end.outcome });
      return;
    }
    const isRead = this.#isRead;
    const message = isRead ? failure.message : `${failure.message} ${wasExecuted}`;
    this.#fail({ ...failure, message, outcome: isRead ? 'failed' : 'unknown' });
  }

  #answer(answered: Answer): void {
    const answer = this.#explain(answered);
    const isWanted = !this.#clientGone || this.#request.receiver !== null;
    const isEnded = isWanted && this.sink.finish(answer);
    if (isEnded) this.#reader.finish();
    else this.#writer.abandon();
    const wasCut = !isEnded && !this.#clientGone;
    if (wasCut) resetConnection(this.#response.socket);
    const errno = answer.failure?.error.errno ?? null;
    this.#report(this.#writer.head.status, outcomeOf(answer), null, wasCut, errno);
  }

  #explain(answer: Answer): Answer {
    const { failure } = answer;
    if (failure === null) return answer;
    const hint = this.#request.hintFor(failure.error, failure.place?.statement ?? 0);
    const hinted = hint === null ? failure : { ...failure, hint };
    return { ...answer, failure: this.#shown(hinted) };
  }

  /** The failure as the client may see it. The log has what is left out. */
  #shown<Shown extends AnyFailure>(failure: Shown): Shown {
    const { explain, record } = this.#request;
    // It replaces status, code and message, and keeps the kind of failure.
    const explained = explain === null ? failure : (explain(failure) as Shown);
    if (isAllowed(record.caller.client, 'sql')) return explained;
    if (hasNames(failure)) this.#context.observe({ kind: 'failure hidden', failure, record });
    return withoutNames(explained);
  }

  /** Answers with a failure. A reply that has begun reports it in its own format, or is reset, so that no client takes it for whole. */
  #fail(original: Failure): void {
    const failure = this.#shown(original);
    const hasBegun = this.#writer.committed;
    const isEnded =
      hasBegun && this.#canReport(failure) && this.sink.finishFailed?.(failure) === true;
    const wasCut = hasBegun && !isEnded && !this.#clientGone;
    this.#response.failureCode = failure.code;
    if (isEnded) this.#reader.finish();
    else this.#writer.abandon();
    const { receiver } = this.#request;
    if (receiver !== null) receiver.failed(failure);
    else if (!isEnded && !this.#response.destroyed) {
      const timing = ['Server-Timing', serverTiming(this.#times)];
      if (hasBegun) resetConnection(this.#response.socket);
      else sendFailure(this.#response, failure, this.requestId, timing);
    }
    this.#report(failure.status, failure.outcome, failure.code, wasCut);
  }

  /** Whether the client can still receive the failure at the end of what has left. */
  #canReport({ code }: Failure): boolean {
    const isSlow = code === 'STOPPING' && this.#reader.isWaiting;
    return !isSlow && code !== 'INTERNAL' && failures[code].repeat !== 'unreported';
  }

  /**
   * Whether stopping the statements cannot leave anything half done, as far as is known now. The tables that a statement
   * names cannot become something else while it runs.
   */
  get #isRead(): boolean {
    const { work } = this.#request;
    if (work.kind === 'batch') return work.isReadOnly;
    return work.isReadOnly || (work.isRead && work.effects.isHarmless());
  }

  get requestId(): string {
    return this.#request.record.requestId;
  }

  #report(
    status: number,
    outcome: RequestOutcome,
    code: FailureCode | null,
    wasCut: boolean,
    errno: number | null = null,
  ): void {
    const summary: ExchangeSummary = {
      requestId: this.requestId,
      section: this.#context.section,
      client: this.client,
      user: this.user,
      traceId: this.#request.record.traceId,
      status,
      outcome,
      code,
      errno,
      wasCut,
      clientGone: this.#clientGone,
      isRead: this.#isRead,
      rows: this.sink.rowCount,
      bytes: this.#writer.totalBytes,
      queueMs: this.#times.waitedMs,
      connectingMs: this.#times.connectingMs,
      databaseMs: this.#times.workedMs,
      firstRowMs: this.#times.firstAnswerMs,
      durationMs: performance.now() - this.startedAt,
      sql: sqlOf(this.#request.work),
      tool: this.#request.record.tool,
      named: this.#request.record.named,
    };
    this.#isReported = true;
    this.#context.observe({ kind: 'statements finished', summary });
    this.#request.record.statementsEnded(summary);
  }
}

/** The end of a read whose reply takes no more. */
const answeredInPart: Answer = { kind: 'answered', failure: null, facts: null };

const wasExecuted = 'The statement was executed all the same.';

/** Whether nothing is to be reported after this end except that there is no reply. */
function mayBeRefused(end: RunEnd): boolean {
  switch (end.kind) {
    case 'answered':
      return end.failure === null;
    case 'not executed':
    case 'stopped':
    case 'cut short':
    case 'batch stopped':
    case 'key unknown':
      return end.reason === 'too large';
    default:
      return false;
  }
}

function sqlOf(work: Work): string | null {
  return work.kind === 'batch' ? work.steps.map(({ sql }) => sql).join('\n;') : work.sql;
}

function outcomeOf({ failure }: Answer): RequestOutcome {
  if (failure === null) return 'ok';
  return failure.isAlone ? 'error' : failure.outcome;
}
