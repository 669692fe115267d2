// What every failed request looks like to the client's caller: one class, whoever it was that failed.

/** What became of the request's statements. With `unknown` they may or may not have been applied: look before you repeat. */
export type Outcome = 'not_executed' | 'failed' | 'partial' | 'rolled_back' | 'unknown';

/** All of them. */
export const outcomes: readonly Outcome[] = [
  'not_executed',
  'failed',
  'partial',
  'rolled_back',
  'unknown',
];

/** What an error tells beside its message. */
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
  /** MySQL's name of the error (`ER_DUP_ENTRY`), a code of docs/errors.md, or the client's own: see docs/client.md. */
  readonly code: string;
  readonly outcome: Outcome;
  /** Whether the same request may be sent again without harm, and may succeed then. */
  readonly retryable: boolean;
  /** MySQL's number and state; null: the error is not MySQL's. */
  readonly errno: number | null;
  readonly sqlstate: string | null;
  /** Of the reply; null: there was none. */
  readonly status: number | null;
  /** What the gateway's log calls the request; null: its reply has not told. */
  readonly requestId: string | null;
  /** Of several statements the one that failed, from 0. */
  readonly statement: number | null;
  /** Where in the statement it is wrong, in UTF-16 units from 0. */
  readonly offset: number | null;
  /** What the request was sent with: sent with it again, it is executed once. */
  readonly idempotencyKey: string | null;
  /** When the gateway wants to be asked again. */
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

  /** The same error where more is known. */
  changed(facts: Partial<ErrorFacts>, message = this.message): DbhttpdError {
    return new DbhttpdError(message, { ...this, cause: this.cause, ...facts });
  }
}
