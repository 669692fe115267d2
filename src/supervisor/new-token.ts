// --new-token: a random token, and the line by which a file of clients accepts it.
import { randomBytes } from 'node:crypto';
import { digestOf } from '../shared/config/clients-file.ts';

const tokenBits = 256;

/** Two lines: a new token of 256 bits in base64url without padding (RFC 4648, section 5), and its line of a file of clients. */
export function describeNewToken(): string {
  const token = randomBytes(tokenBits / 8).toString('base64url');
  return `${token}\ntoken_sha256 = ${digestOf(token)}\n`;
}
