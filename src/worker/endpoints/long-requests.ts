// Requests whose text is long: the worker handles them in pieces, so that its other requests run in between.
// Must not know requests.
import { performance } from 'node:perf_hooks';
import type { Pieces } from '../../shared/pieces.ts';
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
