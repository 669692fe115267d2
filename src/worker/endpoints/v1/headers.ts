// What the headers of a request to /v1 ask for, whatever its body may be.
// Must not know what its body asks for.
import { type Failure, refusal } from '../../failure/failure.ts';
import { chooseMediaType, mediaTypes } from './accept.ts';
import { checkKey } from './idempotency.ts';

const notAcceptable = refusal('NOT_ACCEPTABLE', `The reply is one of ${mediaTypes.join(', ')}.`);

/**
 * What is wrong with a request's headers, whatever its body may be; null: nothing.
 * @param takesKeys whether any section does
 */
export function checkHeaders(
  headers: NodeJS.Dict<string | string[]>,
  takesKeys: boolean,
): Failure | null {
  const refused = checkKey(keyHeader(headers), takesKeys);
  if (refused !== null) return refused;
  return chooseMediaType(headers.accept as string | undefined) === null ? notAcceptable : null;
}

/** Its Idempotency-Key, as it stands. */
export function keyHeader(headers: NodeJS.Dict<string | string[]>): string | undefined {
  return headers['idempotency-key'] as string | undefined;
}
