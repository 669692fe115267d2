// All that is told of requests, as one union: metrics, access log and log each interpret it, and nothing is controlled
// through it. Must not know who tells it, nor who listens.
import type { Refused } from './access-lines.ts';
import type { ExchangeSummary } from './exchange-summary.ts';
import type { Endpoint, RequestRecord } from './request-record.ts';

/** What has happened. */
export type Observation =
  /** A reply was handed to the system in full. */
  | { readonly kind: 'reply complete'; readonly endpoint: Endpoint; readonly status: number }
  /** Nothing of a request goes on any more, answered or not. */
  | { readonly kind: 'request over'; readonly record: RequestRecord }
  /** What was no request was answered all the same. */
  | { readonly kind: 'no request'; readonly refused: Refused }
  /** A request's statements are over, whether or not its client could be told. */
  | { readonly kind: 'statements over'; readonly summary: ExchangeSummary }
  /** An exception was one request's own, and has ended it. */
  | {
      readonly kind: 'exception';
      readonly cause: unknown;
      readonly requestId: string;
      readonly traceId: string | null;
    };

/** Takes note of what has happened; never throws. */
export type Observe = (observation: Observation) => void;
