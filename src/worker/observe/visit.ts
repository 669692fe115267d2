// One request as the logs tell it: over when its reply has ended and its statements have, whichever is later.
// Must not know who listens, nor how a line is written. Holds no query string: SQL and its literals stand there.
import type { IncomingMessage, ServerResponse } from 'node:http';

/** What became of a request's statements; times in ms. */
export type Told = {
  readonly outcome: string;
  readonly rows: number;
  readonly queueMs: number;
  readonly databaseMs: number;
};

/** Nginx's status for a client that went before it had a reply. */
const clientGoneStatus = 499;

/** A request under way; `onOver` is called once. */
export class Visit {
  readonly requestId: string;
  readonly path: string;
  readonly request: IncomingMessage;
  /** Empty for a unix socket. Asked for at once: a socket that is gone no longer knows its peer. */
  readonly client: string;
  readonly startedAt = performance.now();
  /** Null while, and if, no statement was run. */
  told: Told | null = null;
  readonly #response: ServerResponse & { readonly bodyBytes?: number };
  readonly #onOver: (visit: Visit) => void;
  #isRunning = false;
  #isClosed = false;

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    about: { readonly requestId: string; readonly path: string },
    onOver: (visit: Visit) => void,
  ) {
    this.request = request;
    this.#response = response;
    this.requestId = about.requestId;
    this.path = about.path;
    this.client = request.socket.remoteAddress ?? '';
    this.#onOver = onOver;
    response.on('close', () => this.#closed());
  }

  get status(): number {
    return this.#response.headersSent ? this.#response.statusCode : clientGoneStatus;
  }

  get bytes(): number {
    return this.#response.bodyBytes ?? 0;
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
    if (this.#isClosed) this.#onOver(this);
  }

  #closed(): void {
    this.#isClosed = true;
    if (!this.#isRunning) this.#onOver(this);
  }
}
