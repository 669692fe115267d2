// Statements whose reply an endpoint does not send as it is: it gets the whole of it, and makes its own reply of that.
import type { Failure, Refused } from '../failure/failure.ts';
import { type RunDecision, startExchange } from '../request/exchange.ts';
import type { Call } from './endpoint.ts';

/** A reply as JSON, or why there is none. */
export type Rendered = { readonly ok: true; readonly json: string } | Refused;

/** Statements to run. */
export type HandedRun = {
  readonly ok: true;
  readonly kind: 'run';
  readonly run: Omit<RunDecision, 'receiver'>;
  /** Makes the reply of the body of the statements' own reply; missing: the body is the reply. */
  readonly render?: (body: string) => Rendered;
};

/** The decision on a request: a JSON text is its reply, statements run, or it fails. */
export type HandedDecision =
  | Refused
  | { readonly ok: true; readonly kind: 'reply'; readonly json: string }
  | HandedRun;

/** The reply of an exchange, or why there is none. */
export type HandedReply =
  | { readonly kind: 'replied'; readonly status: number; readonly body: string }
  | { readonly kind: 'failed'; readonly failure: Failure };

/** Runs statements in an exchange as those of any request. Resolves when it is over, whether or not its client is still there. */
export function runHandedOver({ run }: HandedRun, call: Call): Promise<HandedReply> {
  return new Promise((resolve) => {
    const receiver = {
      reply: (status: number, body: Buffer) =>
        resolve({ kind: 'replied', status, body: body.toString() }),
      failed: (failure: Failure) => resolve({ kind: 'failed', failure }),
    };
    startExchange({ ...run, receiver }, call.response, call.record);
  });
}
