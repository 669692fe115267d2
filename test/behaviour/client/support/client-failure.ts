// The error of a request of dbhttpd/client that must fail.
import assert from 'node:assert/strict';
import { DbhttpdError } from '../../../../src/client/client.ts';

/** Resolves to the DbhttpdError. Fails if there is none. */
export async function failureOf(asked: Promise<unknown>): Promise<DbhttpdError> {
  const error: unknown = await asked.then(
    () => assert.fail('the request did not fail'),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof DbhttpdError, String(error));
  return error;
}
