// The credentials of a request: a bearer token (RFC 6750), or the user and password of Basic authentication (RFC 7617).
import type { RequestHeaders } from '../http/request.ts';

/** The bearer token; '' if there is none. */
export function bearerToken({ authorization = '' }: RequestHeaders): string {
  return /^bearer +(\S+) *$/i.exec(authorization)?.[1] ?? '';
}

export type BasicCredentials = { readonly user: string; readonly password: string };

/** Null: the header is of another kind, or missing. Never throws. */
export function parseBasic(authorization: string | undefined): BasicCredentials | null {
  const encoded = /^basic +([A-Za-z0-9+/_-]+=*) *$/i.exec(authorization ?? '')?.[1];
  if (encoded === undefined) return null;
  const text = Buffer.from(encoded, 'base64').toString();
  const colon = text.indexOf(':');
  if (colon < 0) return null;
  return { user: text.slice(0, colon), password: withoutPercents(text.slice(colon + 1)) };
}

/** Clients that take the password from a URL send it percent-encoded; no token has a percent sign in it. */
function withoutPercents(password: string): string {
  if (!password.includes('%')) return password;
  try {
    return decodeURIComponent(password);
  } catch {
    return password;
  }
}
