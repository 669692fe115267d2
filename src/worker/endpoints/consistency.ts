// X-Consistency-Token on requests and replies of sections that have several servers.
// Must not know how a server is held against a token.
import type { Seen } from '../consistency/consistency.ts';
import { decodeToken, encodeToken, type Token } from '../consistency/token.ts';
import type { SeenHeaders } from '../http/exchange.ts';
import { type Failure, refusal } from '../reply/failure.ts';

/** How tokens are read and written. */
export type Tokens = {
  /** What a request has seen before; null: it does not say. */
  readonly decode: (headers: NodeJS.Dict<string | string[]>) => Token | Failure | null;
  readonly headers: SeenHeaders;
};

const malformed = refusal(
  'CONSISTENCY_TOKEN',
  'X-Consistency-Token is none that was given here: send it as it came, once.',
);

/** @param key null: tokens are not signed */
export function createTokens(key: Buffer | null): Tokens {
  return {
    decode: (headers) => {
      const text = headers['x-consistency-token'];
      if (text === undefined) return null;
      return (typeof text === 'string' ? decodeToken(text, key) : null) ?? malformed;
    },
    headers: (seen, after) => {
      const token = seen === null ? after : seen.token;
      const text = token === null ? null : encodeToken(token, key);
      const isUnverified = seen !== null && (!seen.isVerified || text === null);
      return [
        ...(text === null ? [] : ['X-Consistency-Token', text]),
        ...(isUnverified && !isLost(seen) ? ['X-Consistency', 'unverified'] : []),
      ];
    },
  };
}

function isLost(seen: Seen): boolean {
  return seen.isLost;
}

/** Where a section has one server, it shows what it showed. */
export const noTokens: Tokens = { decode: () => null, headers: () => [] };
