// What is answered where the handling of a request threw: that request ends, and nothing else.
// Must not know what was thrown; the log is told where.

import { type Failure, refusal } from '../encode/failure.ts';
import type { Outcome } from '../execution/outcome.ts';
import type { OutgoingReply } from '../http/outgoing-reply.ts';
import { resetConnection } from '../http/reset.ts';
import { sendFailure } from './failure.ts';

const consequence: Readonly<Record<Outcome, string>> = {
  not_executed: 'Nothing was executed.',
  failed: 'Reading has changed nothing.',
  partial: 'It may have been applied in part: look before you repeat it.',
  rolled_back: 'What had been done was undone.',
  unknown: 'It may or may not have been applied: look before you repeat it.',
};

/** The failure of a request that was handled wrongly. */
export function internalFailure(outcome: Outcome): Failure {
  const message = `The gateway made a mistake with this request, and its log says where. ${consequence[outcome]}`;
  return { ...refusal('INTERNAL', message), outcome };
}

/** Ends a reply that was given up: by that failure where nothing has left, else so that nobody takes it for whole. */
export function endWithFault(response: OutgoingReply, requestId: string, outcome: Outcome): void {
  if (response.destroyed || response.writableEnded) return;
  response.failureCode = 'INTERNAL';
  if (response.headersSent) resetConnection(response.socket);
  else sendFailure(response, internalFailure(outcome), requestId);
}
