// The error of every failed request: one class, whether the client, the gateway or MySQL failed.

/** The fate of the request's statements. `unknown`: they may or may not have been applied, so check the data before you repeat. */
export type Outcome = 'not_executed' | 'failed' | 'partial' | 'rolled_back' | 'unknown';

/** All of them. */
export const outcomes: readonly Outcome[] = [
  'not_executed',
  'failed',
  'partial',
  'rolled_back',
  'unknown',
];

/** The fields of an error beside its message. */
export type ErrorFacts = {
  readonly code: string;
  readonly outcome: Outcome;
  readonly retryable: boolean;
  readonly errno?: number | null;
  readonly sqlstate?: string | null;
  readonly status?: number | null;
  readonly requestId?: string | null;
  readonly statement?: number | null;
  readonly offset?: number | null;
  readonly idempotencyKey?: string | null;
  readonly retryAfterMs?: number | null;
  readonly cause?: unknown;
};

/** A request that has failed. Messages are for people; `code` and `outcome` are for programs. */
export class DbhttpdError extends Error {
  override readonly name = 'DbhttpdError';
  /** MySQL's name of the error (`ER_DUP_ENTRY`), a code of docs/reference/errors.md, or the client's own: see docs/guides/client.md. */
  readonly code: string;
  readonly outcome: Outcome;
  /** Whether the same request may be sent again without harm, and may succeed then. */
  readonly retryable: boolean;
  /** MySQL's number and state; null: the error is not MySQL's. */
  readonly errno: number | null;
  readonly sqlstate: string | null;
  /** The reply's status; null: there was no reply. */
  readonly status: number | null;
  /** The request's id in the gateway's log; null: unknown. */
  readonly requestId: string | null;
  /** The number of the failed statement among several, from 0. */
  readonly statement: number | null;
  /** The position of the mistake in the statement, in UTF-16 units from 0. */
  readonly offset: number | null;
  /** The request's key. Sent again with this key, the request is executed once. */
  readonly idempotencyKey: string | null;
  /** How long the gateway wants the client to wait before it sends the request again. */
  readonly retryAfterMs: number | null;

  constructor(message: string, facts: ErrorFacts) {
    super(message, facts.cause === undefined ? {} : { cause: facts.cause });
    this.code = facts.code;
    this.outcome = facts.outcome;
    this.retryable = facts.retryable;
    this.errno = facts.errno ?? null;
    this.sqlstate = facts.sqlstate ?? null;
    this.status = facts.status ?? null;
    this.requestId = facts.requestId ?? null;
    this.statement = facts.statement ?? null;
    this.offset = facts.offset ?? null;
    this.idempotencyKey = facts.idempotencyKey ?? null;
    this.retryAfterMs = facts.retryAfterMs ?? null;
  }

  /** The same error with other facts. */
  changed(facts: Partial<ErrorFacts>, message = this.message): DbhttpdError {
    return new DbhttpdError(message, { ...this, cause: this.cause, ...facts });
  }
}
