// The head of a reply as far as its format says it: status, content type, and what every reply carries beside them.

/** Headers (name, value, name, value) as lines with their ends. They are not checked. */
export function headerLines(headers: readonly string[]): string {
  let lines = '';
  for (let index = 0; index < headers.length; index += 2) {
    lines += `${headers[index]}: ${headers[index + 1]}\r\n`;
  }
  return lines;
}

/** What a format says before its first byte leaves. */
export type ReplyHead = {
  readonly status: number;
  /** Name, value, name, value. */
  readonly headers: readonly string[];
  /** The same as lines. */
  readonly lines: string;
};

/** To be created once for each status and content type. @param more headers beside the usual ones */
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
  return { status: head.status, headers, lines: headerLines(headers) };
}

/** The headers of a reply that has a body of this type, but for its length. */
export function typedHeaders(contentType: string): readonly string[] {
  return [
    'Content-Type',
    contentType,
    'X-Content-Type-Options',
    'nosniff',
    'Cache-Control',
    'no-store',
  ];
}

/** RFC 8259 has no charset parameter; DBSlayer's clients look for it. */
export const jsonType = 'application/json; charset=utf-8';

/** A line each of JSON (https://github.com/ndjson/ndjson-spec), which is UTF-8. */
export const ndjsonType = 'application/x-ndjson';

/** RFC 4180 section 3. */
export const csvType = 'text/csv; charset=utf-8; header=present';

/** Where a client chooses what it gets: caches must know by which headers. */
export const varyByAccept = ['Vary', 'Accept, Accept-Encoding'] as const;
