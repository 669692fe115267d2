// X-Consistency-Token on requests and replies of sections that have several servers.
// Must not know how a server is held against a token.

import { type Failure, refusal } from '../failure/failure.ts';
import type { SeenHeaders } from '../request/exchange.ts';
import { decodeToken, encodeToken, type Token } from '../servers/consistency/token.ts';

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
      // Where it cannot be told what was seen now, what had been seen before still was.
      const known = seen?.token ?? null;
      const told = known === null ? null : encodeToken(known, key);
      const text = told ?? (after === null ? null : encodeToken(after, key));
      const isUnverified = seen !== null && (!seen.isVerified || told === null);
      return [
        ...(text === null ? [] : ['X-Consistency-Token', text]),
        ...(isUnverified ? ['X-Consistency', 'unverified'] : []),
      ];
    },
  };
}

/** Where a section has one server, it shows what it showed. */
export const noTokens: Tokens = { decode: () => null, headers: () => [] };
