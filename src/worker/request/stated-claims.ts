// The header Dbhttpd-Claims: a trusted backend states claims of one of its users.
import { isUtf8 } from 'node:buffer';
import type { Caller } from '../../shared/clients/caller.ts';
import { parseJsonObject } from '../../shared/named/json-value.ts';
import { type Refused, refuse } from '../failure/failure.ts';

/** The header's name, as node has it. */
export const claimsHeader = 'dbhttpd-claims';

const malformed = refuse('CLAIMS', 'Dbhttpd-Claims must be one JSON object, in UTF-8.');

/** The caller with the claims that it states, or why it may not state them. @param header as it was sent, one character a byte */
export function stateClaims(
  caller: Caller,
  header: string,
): { readonly ok: true; readonly caller: Caller } | Refused {
  const { mayClaim } = caller.client;
  // First, so that nothing is parsed for a client that may state nothing.
  if (mayClaim.length === 0) {
    return refuse('CLAIM_FORBIDDEN', 'This client may not send Dbhttpd-Claims (may_claim).');
  }
  const bytes = Buffer.from(header, 'latin1');
  const stated = isUtf8(bytes) ? parseJsonObject(bytes.toString()) : null;
  if (stated === null) return malformed;
  for (const name of Object.keys(stated)) {
    if (!mayClaim.includes(name)) {
      return refuse(
        'CLAIM_FORBIDDEN',
        'may_claim of this client does not list all claims of Dbhttpd-Claims.',
      );
    }
    if (Object.hasOwn(caller.claims, name)) {
      return refuse(
        'CLAIM_FORBIDDEN',
        'The JSON Web Token has a claim that Dbhttpd-Claims states.',
      );
    }
  }
  return { ok: true, caller: { ...caller, claims: { ...caller.claims, ...stated } } };
}
