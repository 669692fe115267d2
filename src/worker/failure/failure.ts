// A failure: why a request got no result, with the status, code, outcome and sentence that its reply has.
import type { Permission } from '../../shared/clients/client.ts';
import { type FailureCode, failures } from '../../shared/failure-codes.ts';
import type { ServerError } from '../../shared/mysql/packets.ts';

/** The outcome of the statements of a request that got no result. */
export type Outcome = 'not_executed' | 'failed' | 'partial' | 'rolled_back' | 'unknown';

/** A failure of the gateway's own. */
export type Failure = Reported & { readonly code: FailureCode };

/** A statement that MySQL refused: a failure with MySQL's error in place of a code. */
export type ServerFailure = Reported & {
  readonly code: null;
  readonly error: ServerError;
  /** The gateway's addition to MySQL's message, if that alone misleads. */
  readonly hint?: string;
  /** It was the first statement, and no batch's: logs and metrics count it as `error`. */
  readonly isAlone: boolean;
};

/** The gateway's own, or MySQL's. */
export type AnyFailure = Failure | ServerFailure;

/** The common fields of both. */
type Reported = {
  readonly status: number;
  /** For people: MySQL's own, or ours, which names no host, user or SQL. */
  readonly message: string;
  readonly outcome: Outcome;
  /** Seconds after which a repetition may succeed. */
  readonly retryAfterSeconds?: number;
  /** Whether the same request may be sent again without harm. Missing: its code and outcome decide. */
  readonly mayRepeat?: boolean;
  /** The permission that the client lacks. */
  readonly missing?: Permission;
  /** The parameter of a named statement that was refused. */
  readonly parameter?: string;
  /** The methods that a 405 allows. */
  readonly allow?: string;
  /** The part of the request that failed, for formats which report it. */
  readonly place?: Place;
  /** The application's code, which the client gets in place of the gateway's or MySQL's. Logs and metrics have the latter. */
  readonly shownCode?: string;
  /** The message for clients that may not see names of the database's objects; missing: it names none, unless MySQL wrote it. */
  readonly namelessMessage?: string;
};

/** The part of a request that a failure is about. */
export type Place = {
  /** The number of its statement, from 0. */
  readonly statement?: number;
  /** The offset in the SQL, in UTF-16 code units from 0. */
  readonly offset?: number;
};

/** The last sentence of a message: what became of the statements. */
export const consequences: Readonly<Record<Outcome, string>> = {
  not_executed: 'Nothing was executed.',
  failed: 'Nothing was changed.',
  rolled_back: 'Everything was undone.',
  partial: 'It may have been applied in part. Check the data before you repeat it.',
  unknown: 'It may or may not have been applied. Check the data before you repeat it.',
};

/** Whether nothing was applied, except to tables without transactions after `failed`. */
export const appliedNothing: Readonly<Record<Outcome, boolean>> = {
  not_executed: true,
  failed: true,
  rolled_back: true,
  partial: false,
  unknown: false,
};

/** A request that was refused before any SQL. */
export function refusal(code: FailureCode, message: string): Failure {
  return { status: failures[code].status, code, message, outcome: 'not_executed' };
}

/** The failure of a request that its client may not send. */
export function forbidden(missing: Permission): Failure {
  const message = `This client may not do that: it lacks the permission ${missing}.`;
  return { ...refusal('FORBIDDEN', message), missing };
}

/** The result of a step that ends its request: there is nothing to run. */
export type Refused = { readonly ok: false; readonly failure: Failure };

/** The same, of a request that was refused before any SQL. */
export function refuse(code: FailureCode, message: string): Refused {
  return { ok: false, failure: refusal(code, message) };
}

/** A failure of statements that the database may have received. @param reason the first sentences of its message */
export function failureOnceSent(code: FailureCode, reason: string, outcome: Outcome): Failure {
  const facts: { readonly status: number; readonly sentStatus?: number } = failures[code];
  const message = `${reason} ${consequences[outcome]}`;
  return { status: facts.sentStatus ?? facts.status, code, message, outcome };
}

/** The failure of a request during which the gateway threw an exception. */
export function internalFailure(outcome: Outcome): Failure {
  const reason =
    'An internal error of the gateway ended this request. The log of the gateway has the details.';
  return failureOnceSent('INTERNAL', reason, outcome);
}

/** A failure as bytes. */
export type RenderedFailure = { readonly contentType: string; readonly body: string };

/** How a format writes a failure. */
export type RenderFailure = (failure: Failure, requestId: string) => RenderedFailure;
