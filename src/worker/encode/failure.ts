// What is told where there is no result: status, code, what became of the statements, what to do.
// Must not know why a request failed, nor how the reply leaves.
import { type FailureCode, failures } from '../../shared/failure-codes.ts';
import type { Outcome } from '../execution/outcome.ts';
import { jsonType } from './head.ts';

/** A reply that is no result. `message` is for people: no host, no user, no SQL. */
export type Failure = {
  readonly status: number;
  readonly code: FailureCode;
  readonly message: string;
  readonly outcome: Outcome;
  /** Seconds after which it makes sense to come again. */
  readonly retryAfterSeconds?: number;
  /** The request may be repeated, whatever became of it. Missing: its code and outcome say. */
  readonly mayRepeat?: true;
  /** What a 405 allows. */
  readonly allow?: string;
  /** Where in the request it is, for a format that tells it. */
  readonly place?: Place;
};

/** What of a request a failure is about. */
export type Place = {
  /** The number of its statement, from 0. */
  readonly statement?: number;
  /** Where in the SQL, in UTF-16 code units from 0. */
  readonly offset?: number;
};

/** A request that was refused before any SQL. */
export function refusal(code: FailureCode, message: string): Failure {
  return { status: failures[code].status, code, message, outcome: 'not_executed' };
}

/** A failure as bytes. */
export type RenderedFailure = { readonly contentType: string; readonly body: string };

/** How a format tells a failure. */
export type RenderFailure = (failure: Failure, requestId: string) => RenderedFailure;

/** The object of contract 3: wherever a path has no format of its own. */
export const renderPlainFailure: RenderFailure = ({ message, code, outcome }) => ({
  contentType: jsonType,
  body: JSON.stringify({ ERROR: message, CODE: code, OUTCOME: outcome }),
});
