// The user name and password of Basic authentication (RFC 7617), out of the header.
// Must not know which password is right.

export type BasicCredentials = { readonly user: string; readonly password: string };

/** Null: the header is none of that kind. Never throws. */
export function parseBasic(authorization: string | undefined): BasicCredentials | null {
  const encoded = /^basic +([A-Za-z0-9+/_-]+=*) *$/i.exec(authorization ?? '')?.[1];
  if (encoded === undefined) return null;
  const text = Buffer.from(encoded, 'base64').toString();
  const colon = text.indexOf(':');
  if (colon < 0) return null;
  return { user: text.slice(0, colon), password: withoutPercents(text.slice(colon + 1)) };
}

/** A client that takes the password out of a URL sends it as it stands there; no token has a percent sign in it. */
function withoutPercents(password: string): string {
  if (!password.includes('%')) return password;
  try {
    return decodeURIComponent(password);
  } catch {
    return password;
  }
}
