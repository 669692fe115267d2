// X-Consistency-Token on requests and replies of sections that have several servers.
import { type Refused, refuse } from '../failure/failure.ts';
import type { TokenResult } from '../servers/consistency/consistency.ts';
import { decodeToken, encodeToken, type Token } from '../servers/consistency/token.ts';

/** How one section reads and writes tokens. */
export type Tokens = {
  /** Decodes a request's token; null: it has none. */
  readonly decode: (headers: NodeJS.Dict<string | string[]>) => DecodedToken | Refused;
  /** The headers of a reply: what the client has seen now, and had seen before. */
  readonly headers: (seen: TokenResult | null, after: Token | null) => readonly string[];
};

type DecodedToken = { readonly ok: true; readonly token: Token | null };

/** The value for a request without a token. */
export const noToken: DecodedToken = { ok: true, token: null };

const malformed = refuse(
  'CONSISTENCY_TOKEN',
  'X-Consistency-Token is not a token of this gateway: send the latest one unchanged, in one header.',
);

/** @param key null: tokens are not signed */
export function createTokens(key: Buffer | null): Tokens {
  return {
    decode: (headers) => {
      const text = headers['x-consistency-token'];
      if (text === undefined) return noToken;
      const token = typeof text === 'string' ? decodeToken(text, key) : null;
      return token === null ? malformed : { ok: true, token };
    },
    headers: (seen, after) => {
      // If it is not known what was seen now, what had been seen before still was.
      const known = seen?.token ?? null;
      const encoded = known === null ? null : encodeToken(known, key);
      const text = encoded ?? (after === null ? null : encodeToken(after, key));
      const isUnverified = seen !== null && (!seen.isVerified || encoded === null);
      return [
        ...(text === null ? [] : ['X-Consistency-Token', text]),
        ...(isUnverified ? ['X-Consistency', 'unverified'] : []),
      ];
    },
  };
}
