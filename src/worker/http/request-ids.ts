// The ids of requests that bring none.
import { randomBytes } from 'node:crypto';

/** Creates a generator of request ids: a random prefix for this process, and a counter. */
export function createRequestIds(): () => string {
  const prefix = randomBytes(6).toString('hex');
  let count = 0;
  return () => `${prefix}-${(count++).toString(36)}`;
}
