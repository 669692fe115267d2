// /.well-known/oauth-protected-resource: where a client that has no token gets one (RFC 9728).
import { sendText } from '../http/failure-reply.ts';
import type { Handler } from './endpoint.ts';

/** The prefix of all such paths (RFC 8615). They need no credentials, whether or not there is something at them. */
export const wellKnownPrefix = '/.well-known/';

const documentPath = `${wellKnownPrefix}oauth-protected-resource`;

/** A document, and where it is. */
export type ResourceDocument = { readonly path: string; readonly json: string };

/** The facts for clients of one path that have no credentials. */
export type ProtectedResource = {
  /** The document about the gateway, and the one about the path (RFC 9728, section 3.1). */
  readonly documents: readonly ResourceDocument[];
  /** The WWW-Authenticate of a 401 at the path (RFC 9728, section 5.1). */
  readonly challenge: string;
};

/**
 * Describes a path that needs a token of this issuer; null: tokens are static, and there is nothing to say.
 * @param url the gateway's origin, as clients write it; null: it is not known
 * @param issuer of JSON Web Tokens; null, or no URL: there is none that a client could ask
 */
export function describeResource(
  url: string | null,
  issuer: string | null,
  path: string,
): ProtectedResource | null {
  if (url === null || issuer === null || !URL.canParse(issuer)) return null;
  const origin = new URL(url).origin;
  const describe = (resource: string) =>
    JSON.stringify({
      resource,
      authorization_servers: [issuer],
      bearer_methods_supported: ['header'],
      resource_name: 'dbhttpd',
    });
  return {
    documents: [
      { path: documentPath, json: describe(origin) },
      { path: `${documentPath}${path}`, json: describe(`${origin}${path}`) },
    ],
    challenge: `Bearer resource_metadata="${origin}${documentPath}${path}"`,
  };
}

/** Answers with a document. */
export function createDocument({ json }: ResourceDocument): Handler {
  return (_request, response, _head, { requestId }) => {
    response.addHeaders(['X-Request-ID', requestId]);
    sendText(response, json, 'application/json');
  };
}
