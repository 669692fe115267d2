// The rules that `compat = dbslayer` relaxes for clients written for DBSlayer.
import type { Config } from '../../shared/config/config.ts';
import type { OutgoingReply } from '../http/reply.ts';
import type { IncomingRequest } from '../http/request.ts';

/** The permissions. A real client needed each of them (docs/guides/from-dbslayer.md). */
export type Rules = {
  /** Heads as DBSlayer's parser took them (slayer_http_parse.c): lines that end with LF alone, several spaces in the request line. */
  readonly looseHeads: boolean;
  /** HTTP/1.1 without Host, or with an empty one: node 0.2 sends none. Every browser sends it, so that there is no page to guard against. */
  readonly hostMayBeMissing: boolean;
  /** Replies of /db end with their connection, and are never chunked: see `endWithConnection`. */
  readonly repliesEndConnection: boolean;
  /** Keys as loosely typed languages write them: see `plainKeys`. */
  readonly looseKeys: boolean;
  /** Tabs and line ends inside the strings of a URL's JSON: see `escapeControls`. */
  readonly rawControls: boolean;
  /** A POST whose URL holds the object; its body is read and ignored, as DBSlayer did without reading it. */
  readonly objectInPostUrl: boolean;
  /** GET /health, as /readyz in other words. */
  readonly hasHealth: boolean;
};

const allOf = (isAllowed: boolean): Rules =>
  Object.freeze({
    looseHeads: isAllowed,
    hostMayBeMissing: isAllowed,
    repliesEndConnection: isAllowed,
    looseKeys: isAllowed,
    rawControls: isAllowed,
    objectInPostUrl: isAllowed,
    hasHealth: isAllowed,
  });

/** The rules of a section. */
export const rulesOf: Readonly<Record<Config['compat'], Rules>> = {
  off: allOf(false),
  dbslayer: allOf(true),
};

/**
 * Has a reply close its connection unless the client asked for keep-alive by name, and a long one end with it instead of
 * being chunked: many clients read to the end, or take chunk sizes for JSON.
 */
export function endWithConnection(request: IncomingRequest, response: OutgoingReply): void {
  response.mayUseChunks = false;
  if (!/(?:^|[\s,])keep-alive(?:$|[\s,])/i.test(request.headers.connection ?? '')) {
    response.shouldKeepAlive = false;
  }
}

/** A flag in other words: what it means, or itself if that is unclear. */
function plainFlag(value: unknown): unknown {
  if (value === 1 || value === 'true') return true;
  return value === 0 || value === 'false' ? false : value;
}

/** The same object with null as absent, and 1, 0, "true" and "false" in `flags` as booleans. */
export function plainKeys(
  object: Readonly<Record<string, unknown>>,
  flags: ReadonlySet<string>,
): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(object)
      .filter(([, value]) => value !== null)
      .map(([key, value]) => [key, flags.has(key) ? plainFlag(value) : value]),
  );
}

/**
 * JSON text whose strings hold control characters as they are, with the escapes that RFC 8259 section 7 asks for. One
 * after a backslash stays: it has no meaning, and the parser refuses it.
 */
export function escapeControls(text: string): string {
  let escaped = '';
  let from = 0;
  let isInString = false;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 0x22) isInString = !isInString;
    else if (code === 0x5c) at += 1;
    else if (isInString && code < 0x20) {
      escaped += `${text.slice(from, at)}\\u${code.toString(16).padStart(4, '0')}`;
      from = at + 1;
    }
  }
  return from === 0 ? text : escaped + text.slice(from);
}
