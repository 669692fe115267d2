// What a request has shown itself by: the token of its Authorization header, however it was sent.
// Must not know whether it is a good one.
import type { RequestHeaders } from '../http/request.ts';
import { parseBasic } from './basic-credentials.ts';

/** The bearer token (RFC 6750); '' where there is none. */
export function bearerToken({ authorization = '' }: RequestHeaders): string {
  return /^bearer +(\S+) *$/i.exec(authorization)?.[1] ?? '';
}

/** The bearer token, or the password of Basic authentication (RFC 7617); '' where there is neither. */
export function credentialOf(headers: RequestHeaders): string {
  return bearerToken(headers) || (parseBasic(headers.authorization)?.password ?? '');
}
