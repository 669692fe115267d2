// Requests whose text is long: the worker handles them in pieces, so that its other requests run in between.
// Must not know requests.
import { performance } from 'node:perf_hooks';
import { longFrom, type Pieces } from '../../shared/pieces.ts';
import type { Escapes } from '../../shared/sql/lexer.ts';
import { whyNotInPieces, whyNotInTransaction } from '../../shared/sql/transaction-safe.ts';
import { endWithFault, type OutgoingReply } from '../http/reply.ts';
import type { Observe, RequestRecord } from '../observe/observation.ts';
import type { LongWork } from '../request/long-work.ts';

/** What does the work, and what receives the errors that it throws. */
export type Work = { readonly longWork: LongWork; readonly observe: Observe };

/** Whose request it is. */
export type Asker = { readonly response: OutgoingReply; readonly record: RequestRecord };

/** Has work done, and hands on its result, unless the client has left meanwhile. Nothing was executed then. */
export function workThen<Result>(
  { longWork, observe }: Work,
  { response, record }: Asker,
  work: Pieces<Result>,
  use: (result: Result) => void,
): void {
  const { requestId, traceId } = record;
  const from = performance.now();
  longWork
    .do(work)
    .then((result) => {
      record.workedMs += performance.now() - from;
      if (!response.destroyed) use(result);
    })
    .catch((cause: unknown) => {
      observe({ kind: 'exception', cause, requestId, traceId });
      endWithFault(response, requestId, 'not_executed');
    });
}

/** What is asked of a statement that is to stand in a transaction: see `whyNotInTransaction`. */
export type Question = {
  readonly sql: string;
  readonly readings: readonly Escapes[] | null;
  readonly isReadOnly: boolean;
};

/** Finds out why a statement may not stand in a transaction, at once or, where it is long, in pieces. */
export function whyNotThen(
  work: Work,
  asker: Asker,
  { sql, readings, isReadOnly }: Question,
  use: (reason: string | null) => void,
): void {
  if (sql.length <= longFrom) use(whyNotInTransaction(sql, readings, isReadOnly));
  else workThen(work, asker, whyNotInPieces(sql, readings, isReadOnly), use);
}
