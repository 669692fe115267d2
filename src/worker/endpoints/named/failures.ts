// Failures of named statements: why a call is refused, and what the application's own statuses and codes make of a failure.
import type { Refusal } from '../../../shared/named/call.ts';
import type { NamedStatement } from '../../../shared/named/statement.ts';
import { type AnyFailure, consequences, type Failure, refusal } from '../../failure/failure.ts';

/** The failure of a call of a statement that does not exist, or that its client may not call: no reply tells one from the other. */
export const noSuchStatement: Failure = refusal(
  'NOT_FOUND',
  'There is no named statement of this name for this client.',
);

/** The failure of a GET of a statement that only a POST may call. */
export const onlyPost: Failure = {
  ...refusal('METHOD_NOT_ALLOWED', 'This statement takes POST.'),
  allow: 'POST',
};

export const keyRequired: Failure = refusal(
  'KEY_REQUIRED',
  'This statement needs an Idempotency-Key, so that a repetition does not execute it again.',
);

export const callTooLarge: Failure = refusal(
  'STATEMENT_TOO_LARGE',
  'With these parameters the statement would be longer than the database takes.',
);

/** The failure of a call whose values were refused. */
export function refusedCall({ reason, parameter, message }: Refusal): Failure {
  const sentence = `${message}.`;
  switch (reason) {
    case 'parameter':
      return { ...refusal('PARAMETER', sentence), parameter };
    case 'claim missing':
      return refusal('CLAIM_MISSING', sentence);
    case 'claim invalid':
      return refusal('CLAIM_INVALID', sentence);
    case 'enum unknown':
      return { ...refusal('ENUM_UNKNOWN', sentence), retryAfterSeconds: 1 };
    default:
      return reason satisfies never;
  }
}

/** A statement of the database that a named statement consists of. */
export type NamedPart = { readonly statement: NamedStatement; readonly part: number };

/**
 * Gives a failure the status, code and text that its file has for it.
 * @param partOf the named statement that a statement of the request belongs to, by its number; null: to none
 */
export function withOwnCode<Shown extends AnyFailure>(
  failure: Shown,
  partOf: (statement: number) => NamedPart | null,
): Shown {
  const found = partOf(failure.place?.statement ?? 0);
  if (found === null) return failure;
  const { statement, part } = found;
  const { outcome } = failure;
  if (failure.code === null) {
    const { errno } = failure.error;
    const mapped = statement.errors.find((one) => one.errno === errno);
    if (mapped === undefined) return failure;
    const { status, code, text } = mapped;
    return { ...failure, status, shownCode: code, message: messageOf(text, outcome) };
  }
  const own = failure.code === 'EXPECTATION_FAILED' ? statement.parts[part]?.expect?.code : null;
  if (own === null || own === undefined) return failure;
  const mapped = statement.refusals.find(({ code }) => code === own);
  const { status, text } = mapped ?? { status: failure.status, text: '' };
  return { ...failure, status, shownCode: own, message: messageOf(text, outcome) };
}

function messageOf(text: string, outcome: AnyFailure['outcome']): string {
  return text === '' ? `The statement was refused. ${consequences[outcome]}` : text;
}
