// One request as the logs tell it: over when its reply has ended and its statements have, whichever is later.
// Must not know who listens, nor how a line is written. Holds no query string: SQL and its literals stand there.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { performance } from 'node:perf_hooks';
import type { FailureCode } from '../../shared/failure-codes.ts';
import type { Observe } from './observation.ts';
import type { Trace } from './trace-context.ts';

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

/** What a worker says of a request that it passes on to another one. */
export type Origin = {
  /** Empty for a unix socket. */
  readonly client: string;
  /** Of HTTP, as its client speaks it. */
  readonly httpVersion: string;
  /** Since its head came. */
  readonly ageMs: number;
};

/** What is known of a request from its head. */
export type RecordedHead = {
  readonly requestId: string;
  readonly endpoint: Endpoint;
  readonly path: string;
  /** Null: it is part of none. */
  readonly trace: Trace | null;
  /** Null: it is of one of our own clients. */
  readonly origin: Origin | null;
};

/** A request under way. */
export class RequestRecord {
  readonly head: RecordedHead;
  readonly request: IncomingMessage;
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
  isToldElsewhere = false;
  readonly #response: ServerResponse & {
    readonly bodyBytes?: number;
    readonly failureCode?: FailureCode | null;
  };
  readonly #observer: RequestObserver;
  #isRunning = false;
  #isClosed = false;

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
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
  describeOrigin(): Origin {
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
    return this.#response.bodyBytes ?? 0;
  }

  /** Why the request failed, whether or not its client could be told; null: it did not, or by MySQL's own error. */
  get code(): FailureCode | null {
    return this.#response.failureCode ?? null;
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
    if (this.isToldElsewhere) return;
    if (this.isComplete) {
      const { statusCode: status } = this.#response;
      this.#observer.observe({ kind: 'reply complete', endpoint: this.head.endpoint, status });
    }
    if (!this.#isRunning) this.#over();
  }

  #over(): void {
    this.#observer.observe({ kind: 'request over', record: this });
  }
}
