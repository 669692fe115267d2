// What requests are called that bring no name of their own.
// Must not know who asks for one.
import { randomBytes } from 'node:crypto';

/** Creates what makes ids that are unique to this process and request: a random prefix and a counter. */
export function createRequestIds(): () => string {
  const prefix = randomBytes(6).toString('hex');
  let count = 0;
  return () => `${prefix}-${(count++).toString(36)}`;
}
