// All that is told of requests, as one union: metrics, access log and log each interpret it, and nothing is controlled
// through it. Must not know who tells it, nor who listens.

import { performance } from 'node:perf_hooks';
import type { FailureCode, RequestOutcome } from '../../shared/failure-codes.ts';
import type { RequestOrigin } from '../http/forward.ts';
import type { OutgoingReply } from '../http/reply.ts';
import type { IncomingRequest } from '../http/request.ts';
import type { Trace } from './trace-context.ts';

/** An answer to what was no HTTP. */
export type Refused = {
  readonly client: string;
  readonly status: number;
  readonly code: FailureCode;
  /** For people, in our own words: no host, no SQL. */
  readonly reason: string;
  /** Of the reply's body. */
  readonly bytes: number;
  readonly requestId: string;
};

/** What has happened. */
export type Observation =
  /** A reply was handed to the system in full. */
  | { readonly kind: 'reply complete'; readonly endpoint: Endpoint; readonly status: number }
  /** Nothing of a request goes on any more, answered or not. */
  | { readonly kind: 'request finished'; readonly record: RequestRecord }
  /** What was no request was answered all the same. */
  | { readonly kind: 'malformed request'; readonly refused: Refused }
  /** A request's statements are over, whether or not its client could be told. */
  | { readonly kind: 'statements finished'; readonly summary: ExchangeSummary }
  /** An exception was one request's own, and has ended it. */
  | {
      readonly kind: 'exception';
      readonly cause: unknown;
      readonly requestId: string;
      readonly traceId: string | null;
    };

/** Takes note of what has happened; never throws. */
export type Observe = (observation: Observation) => void;

/** What is told about an exchange when it is over; times in ms. */
export type ExchangeSummary = {
  readonly requestId: string;
  /** The section's name. */
  readonly section: string;
  /** Null: it is part of no trace. */
  readonly traceId: string | null;
  readonly status: number;
  readonly outcome: RequestOutcome;
  /** Why it failed; null: it did not, or by MySQL's own error. */
  readonly code: FailureCode | null;
  /** MySQL's number where it refused a statement; null: it did not. */
  readonly errno: number | null;
  /** Whether the reply had begun and was reset. */
  readonly wasCut: boolean;
  readonly clientGone: boolean;
  readonly isRead: boolean;
  readonly rows: number;
  readonly bytes: number;
  readonly queueMs: number;
  /** What part of `queueMs` was for a connection to be opened. */
  readonly connectingMs: number;
  readonly databaseMs: number;
  /** What part of `databaseMs` came before the first row, or the first answer without rows. */
  readonly firstRowMs: number;
  readonly durationMs: number;
  /** What was run, literals included: not to be logged as it is. Null: no statement. */
  readonly sql: string | null;
};

const deadlinePassed = 504;

/**
 * Whether statements were slow. Those killed at their deadline are, those that never reached MySQL are not: what took so
 * long was not theirs.
 * @param slowMs the running time from which they are; 0: none is
 */
export function isSlow(ran: ExchangeSummary, slowMs: number): boolean {
  if (slowMs === 0 || ran.sql === null || ran.outcome === 'not_executed') return false;
  return ran.databaseMs >= slowMs || ran.status === deadlinePassed;
}

/** What became of a request's statements; times in ms. */
export type Told = {
  readonly outcome: string;
  readonly rows: number;
  readonly queueMs: number;
  readonly databaseMs: number;
};

/** Nginx's status for a client that went before it had a reply. */
const clientGoneStatus = 499;

/** Who is told of requests. */
export type RequestObserver = {
  /** Whether clients' addresses are wanted: each is a question to the system. */
  readonly namesClients: boolean;
  readonly observe: Observe;
};

/** The fixed set of what answers. */
export const endpoints = [
  'db',
  'v1_query',
  'openapi',
  'v1_batch',
  'v1_transaction',
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
  'other',
] as const;

export type Endpoint = (typeof endpoints)[number];

/** What is known of a request from its head. */
export type RecordedHead = {
  readonly requestId: string;
  readonly endpoint: Endpoint;
  readonly path: string;
  /** Null: it is part of none. */
  readonly trace: Trace | null;
  /** Null: it is of one of our own clients. */
  readonly origin: RequestOrigin | null;
};

/** A request under way. */
export class RequestRecord {
  readonly head: RecordedHead;
  readonly request: IncomingRequest;
  /** Empty where it is not wanted, and for a unix socket. A socket that is gone no longer knows its peer. */
  readonly client: string;
  readonly httpVersion: string;
  readonly startedAt: number;
  /** How long it was worked on in pieces before its statements were run: its deadline counts from its last byte. ms */
  workedMs = 0;
  /** What a driver calls itself; null: it is none, or was not let in. */
  user: string | null = null;
  /** Null while, and if, no statement was run. */
  told: Told | null = null;
  /** Whether another worker, which has it now, tells of it. */
  isReportedElsewhere = false;
  readonly #response: OutgoingReply;
  readonly #observer: RequestObserver;
  #isRunning = false;
  #isClosed = false;

  constructor(
    request: IncomingRequest,
    response: OutgoingReply,
    head: RecordedHead,
    observer: RequestObserver,
  ) {
    this.request = request;
    this.#response = response;
    this.head = head;
    this.client = observer.namesClients ? (this.address ?? '') : '';
    this.httpVersion = head.origin?.httpVersion ?? request.httpVersion;
    this.startedAt = performance.now() - (head.origin?.ageMs ?? 0);
    this.#observer = observer;
  }

  get requestId(): string {
    return this.head.requestId;
  }

  /** The client's; null: it came by a unix socket, or has gone. Each look is a question to the system. */
  get address(): string | null {
    const { origin } = this.head;
    if (origin !== null) return origin.client === '' ? null : origin.client;
    return this.request.socket.remoteAddress ?? null;
  }

  /** As the worker is told that it is passed on to. */
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
    return this.#response.headersSent ? this.#response.statusCode : clientGoneStatus;
  }

  get bytes(): number {
    return this.#response.bodyBytes;
  }

  /** Why the request failed, whether or not its client could be told; null: it did not, or by MySQL's own error. */
  get code(): FailureCode | null {
    return this.#response.failureCode;
  }

  /** Whether the reply was handed to the system in full. */
  get isComplete(): boolean {
    return this.#response.writableFinished;
  }

  /** Statements begin to wait and run; they may go on though the reply's connection is gone. */
  statementsBegin(): void {
    this.#isRunning = true;
  }

  statementsEnded(told: Told): void {
    this.told = told;
    this.#isRunning = false;
    if (this.#isClosed) this.#over();
  }

  /** The reply has left, or its connection is gone. */
  closed(): void {
    this.#isClosed = true;
    if (this.isReportedElsewhere) return;
    if (this.isComplete) {
      const { statusCode: status } = this.#response;
      this.#observer.observe({ kind: 'reply complete', endpoint: this.head.endpoint, status });
    }
    if (!this.#isRunning) this.#over();
  }

  #over(): void {
    this.#observer.observe({ kind: 'request finished', record: this });
  }
}
