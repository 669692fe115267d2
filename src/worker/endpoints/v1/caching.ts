// The heads of replies that caches may keep (RFC 9111): all other replies say no-store.
import { headerLines, type ReplyHead } from '../../encode/head.ts';

/** The request headers on which such a reply depends. */
const vary = 'Authorization, Origin, Accept, Accept-Encoding';

/**
 * The same head for a reply that may be kept.
 * @param maxAgeS for so many seconds
 * @param isPublic whether it may be given to other clients
 */
export function cachedHead(head: ReplyHead, maxAgeS: number, isPublic: boolean): ReplyHead {
  const headers: string[] = [];
  for (let at = 0; at < head.headers.length; at += 2) {
    const [name = '', value = ''] = head.headers.slice(at, at + 2);
    if (name !== 'Cache-Control' && name !== 'Vary') headers.push(name, value);
  }
  const control = `${isPublic ? 'public' : 'private'}, max-age=${maxAgeS}`;
  headers.push('Cache-Control', control, 'Vary', vary);
  return { status: head.status, headers, lines: headerLines(headers), isCacheable: true };
}
