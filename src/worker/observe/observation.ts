// The one union of observations of requests. Metrics, log, access log, recent errors and statement sums each interpret it, and nothing is
// controlled through it.

import { performance } from 'node:perf_hooks';
import { type Caller, defaultCaller, shownUser } from '../../shared/clients/caller.ts';
import type { FailureCode, RequestOutcome } from '../../shared/failure-codes.ts';
import type { AnyFailure } from '../failure/failure.ts';
import type { RequestOrigin } from '../http/forward.ts';
import type { OutgoingReply } from '../http/reply.ts';
import type { IncomingRequest } from '../http/request.ts';
import type { Trace } from './trace-context.ts';

/** The answer to input that is not a request. */
export type Refused = {
  /** The client's address. */
  readonly address: string;
  readonly status: number;
  readonly code: FailureCode;
  /** For people, without host and SQL. */
  readonly reason: string;
  /** Bytes of the reply's body. */
  readonly bytes: number;
  readonly requestId: string;
};

export type Observation =
  /** The system has taken a whole reply. */
  | { readonly kind: 'reply complete'; readonly endpoint: Endpoint; readonly status: number }
  /** The reply and the statements of a request are over. */
  | { readonly kind: 'request finished'; readonly record: RequestRecord }
  /** Input that is not a request was answered. */
  | { readonly kind: 'malformed request'; readonly refused: Refused }
  /** The statements of a request are over, whether or not its client could be answered. */
  | { readonly kind: 'statements finished'; readonly summary: ExchangeSummary }
  /** The client of a failure may not see MySQL's text, nor the names of the database's objects. */
  | {
      readonly kind: 'failure hidden';
      readonly failure: AnyFailure;
      readonly record: RequestRecord;
    }
  /** An exception has ended a request. */
  | {
      readonly kind: 'exception';
      readonly cause: unknown;
      readonly record: RequestRecord;
    };

/** Notes an observation; never throws. */
export type Observe = (observation: Observation) => void;

/** The facts about a request's statements when they are over; times in ms. */
export type ExchangeSummary = {
  readonly requestId: string;
  /** The section's name. */
  readonly section: string;
  /** The client's name. */
  readonly client: string;
  /** The `sub` of its JSON Web Token, shortened for logs; null: it has sent none. */
  readonly user: string | null;
  /** Null: the request is part of no trace. */
  readonly traceId: string | null;
  readonly status: number;
  readonly outcome: RequestOutcome;
  /** Why the request failed; null: it did not, or MySQL rejected a statement. */
  readonly code: FailureCode | null;
  /** The number of MySQL's error; null: MySQL rejected no statement. */
  readonly errno: number | null;
  /** Whether the reply had begun and was reset. */
  readonly wasCut: boolean;
  readonly clientGone: boolean;
  readonly isRead: boolean;
  readonly rows: number;
  readonly bytes: number;
  readonly queueMs: number;
  /** The part of `queueMs` in which a connection was opened. */
  readonly connectingMs: number;
  readonly databaseMs: number;
  /** The part of `databaseMs` before the first row, or before the first answer without rows. */
  readonly firstRowMs: number;
  readonly durationMs: number;
  /** The statements with their literals, which no log may show. Null: there is none. */
  readonly sql: string | null;
  /** The tool of an agent that runs them; null: there is none. */
  readonly tool: string | null;
  /** The named statement that was called; null: none, or several. */
  readonly named: string | null;
};

const deadlinePassed = 504;

/**
 * Whether statements were slow. Statements that were killed at their deadline are; statements that never reached MySQL are not.
 * @param slowMs statements that run for at least this long are slow; 0: none is
 */
export function isSlow(summary: ExchangeSummary, slowMs: number): boolean {
  const { sql, outcome, databaseMs, status } = summary;
  if (slowMs === 0 || sql === null || outcome === 'not_executed') return false;
  return databaseMs >= slowMs || status === deadlinePassed;
}

/** The part of a summary that the access log shows. */
export type StatementTimes = Pick<ExchangeSummary, 'outcome' | 'rows' | 'queueMs' | 'databaseMs'>;

/** The status that nginx logs for a client that left before its reply began. */
const clientGoneStatus = 499;

/** The observer of requests. */
export type RequestObserver = {
  /** Whether addresses are needed: each costs a system call. */
  readonly needsAddresses: boolean;
  readonly observe: Observe;
};

/** All values of the label `endpoint`. */
export const endpoints = [
  'root',
  'db',
  'v1_query',
  'openapi',
  'v1_batch',
  'v1_transaction',
  'v1_named',
  'v1_tables',
  'v1_stats',
  'v1_requests',
  'v1_statements',
  'livez',
  'readyz',
  'health',
  'metrics',
  'console',
  'driver_execute',
  'driver_session',
  'mcp',
  'well_known',
  'other',
] as const;

export type Endpoint = (typeof endpoints)[number];

/** The facts about a request from its head. */
export type RecordedHead = {
  readonly requestId: string;
  readonly endpoint: Endpoint;
  readonly path: string;
  /** Null: the request is part of no trace. */
  readonly trace: Trace | null;
  /** Null: no other worker has passed the request on. */
  readonly origin: RequestOrigin | null;
};

/** A request, from its head to the end of its reply and of its statements, whichever is later. It holds no query string, because SQL may be there. */
export class RequestRecord {
  readonly head: RecordedHead;
  readonly request: IncomingRequest;
  /** The client's address. Empty if it is not needed, and for a unix socket. Read at the start, because a closed socket does not know its peer. */
  readonly startAddress: string;
  readonly httpVersion: string;
  readonly startedAt: number;
  /** How long the body was decoded in pieces before the statements were run, in ms: the deadline counts from the last byte. */
  workedMs = 0;
  /** The caller, once it is known. Null: the request was rejected before, or its path needs no client. */
  identified: Caller | null = null;
  /** The user name that a driver sends, which proves nothing; null: the client is no driver, or was rejected. */
  driverUser: string | null = null;
  /** The tool that an agent calls; null: the request calls none. */
  tool: string | null = null;
  /** Whether the result of that call is an error. */
  toolFailed = false;
  /** The named statement that it calls; null: none, or several. */
  named: string | null = null;
  /** Null: no statement has ended. */
  statements: StatementTimes | null = null;
  /** Whether another worker has the request and observes it. */
  isReportedElsewhere = false;
  readonly #reply: OutgoingReply;
  readonly #observer: RequestObserver;
  #isRunning = false;
  #isClosed = false;

  constructor(
    request: IncomingRequest,
    reply: OutgoingReply,
    head: RecordedHead,
    observer: RequestObserver,
  ) {
    this.request = request;
    this.#reply = reply;
    this.head = head;
    this.startAddress = observer.needsAddresses ? (this.address ?? '') : '';
    this.httpVersion = head.origin?.httpVersion ?? request.httpVersion;
    this.startedAt = performance.now() - (head.origin?.ageMs ?? 0);
    this.#observer = observer;
  }

  get requestId(): string {
    return this.head.requestId;
  }

  /** The client's name; null: it is not known. */
  get client(): string | null {
    return this.identified?.client.name ?? null;
  }

  /** The `sub` of its JSON Web Token, shortened for logs; null: it has sent none. */
  get user(): string | null {
    return this.identified === null ? null : shownUser(this.identified);
  }

  /** The caller of a request that was admitted. */
  get caller(): Caller {
    return this.identified ?? defaultCaller;
  }

  /** The client's address; null: it uses a unix socket, or has gone. Each read costs a system call. */
  get address(): string | null {
    const { origin } = this.head;
    if (origin !== null) return origin.client === '' ? null : origin.client;
    return this.request.socket.remoteAddress ?? null;
  }

  /** The origin for the worker that the request is passed on to. */
  describeOrigin(): RequestOrigin {
    const { httpVersion, startedAt } = this;
    return { client: this.address ?? '', httpVersion, ageMs: performance.now() - startedAt };
  }

  get trace(): Trace | null {
    return this.head.trace;
  }

  get traceId(): string | null {
    return this.head.trace?.traceId ?? null;
  }

  get status(): number {
    return this.#reply.headersSent ? this.#reply.statusCode : clientGoneStatus;
  }

  get bytes(): number {
    return this.#reply.bodyBytes;
  }

  /** Why the request failed, whether or not its client could be answered; null: it did not, or MySQL rejected a statement. */
  get code(): FailureCode | null {
    return this.#reply.failureCode;
  }

  /** Whether the system has taken the whole reply. */
  get isComplete(): boolean {
    return this.#reply.writableFinished;
  }

  /** Statements begin to wait and run. They may go on after the connection of the reply is gone. */
  statementsBegin(): void {
    this.#isRunning = true;
  }

  statementsEnded(statements: StatementTimes): void {
    this.statements = statements;
    this.#isRunning = false;
    if (this.#isClosed) this.#finish();
  }

  /** The reply has left, or its connection is gone. */
  closed(): void {
    this.#isClosed = true;
    if (this.isReportedElsewhere) return;
    if (this.isComplete) {
      const { statusCode: status } = this.#reply;
      this.#observer.observe({ kind: 'reply complete', endpoint: this.head.endpoint, status });
    }
    if (!this.#isRunning) this.#finish();
  }

  #finish(): void {
    this.#observer.observe({ kind: 'request finished', record: this });
  }
}
