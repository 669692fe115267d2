// The part of a reply's head that its format decides: status, content type, and the headers that every reply has.

/** Headers (name, value, name, value) as lines with their ends, unchecked. */
export function headerLines(headers: readonly string[]): string {
  let lines = '';
  for (let index = 0; index < headers.length; index += 2) {
    lines += `${headers[index]}: ${headers[index + 1]}\r\n`;
  }
  return lines;
}

/** Headers (name, value, name, value) without those of some names. */
export function withoutHeaders(headers: readonly string[], names: ReadonlySet<string>): string[] {
  const kept: string[] = [];
  for (let at = 0; at < headers.length; at += 2) {
    const name = headers[at] as string;
    if (!names.has(name.toLowerCase())) kept.push(name, headers[at + 1] as string);
  }
  return kept;
}

/** The status and headers that a format chooses. */
export type ReplyHead = {
  readonly status: number;
  /** Name, value, name, value. */
  readonly headers: readonly string[];
  /** The same as lines. */
  readonly lines: string;
  /** Whether caches may keep the reply. It has one line Vary then: some caches read the last one alone. */
  readonly isCacheable?: boolean;
};

/** Creates a head; create each only once. @param more headers beside the usual ones */
export function createReplyHead(
  status: number,
  contentType: string,
  more: readonly string[] = [],
): ReplyHead {
  const headers = [...typedHeaders(contentType), ...more];
  return { status, headers, lines: headerLines(headers) };
}

/** The same head with more headers. */
export function withHeaders(head: ReplyHead, more: readonly string[]): ReplyHead {
  const headers = [...head.headers, ...more];
  return { ...head, headers, lines: headerLines(headers) };
}

/** The headers of a reply with a body of this type, except its length. */
export function typedHeaders(contentType: string): readonly string[] {
  return [
    'Content-Type',
    contentType,
    'X-Content-Type-Options',
    'nosniff',
    'Cache-Control',
    'no-store',
    // No page of another origin can load a reply as an image, a script or anything else that needs no permission (Fetch, section 3.7).
    'Cross-Origin-Resource-Policy',
    'same-origin',
  ];
}

/** RFC 8259 has no charset parameter; DBSlayer's clients look for it. */
export const jsonType = 'application/json; charset=utf-8';

/** Lines of JSON in UTF-8 (https://github.com/ndjson/ndjson-spec). */
export const ndjsonType = 'application/x-ndjson';

/** RFC 4180 section 3. */
export const csvType = 'text/csv; charset=utf-8; header=present';

/** For replies that depend on these request headers, so that caches know. */
export const varyByAccept = ['Vary', 'Accept, Accept-Encoding'] as const;
