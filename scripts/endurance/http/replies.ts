// The replies in the bytes of a connection that has ended.

/** One reply. */
export type Reply = {
  readonly status: number;
  readonly body: string;
  readonly header: (name: string) => string | undefined;
  /** Whether the connection ends with it. */
  readonly closes: boolean;
};

const start = /^HTTP\/1\.[01] (\d{3})[^\r\n]*\r\n/;

/**
 * Reads replies in their order, without interim ones. Which of them answer a HEAD is not known: a reply whose body would begin like
 * another reply, or is missing at the end, has none. Null: the bytes are not whole replies.
 */
export function readReplies(text: string): readonly Reply[] | null {
  const replies: Reply[] = [];
  for (let at = 0; at < text.length; ) {
    const headEnd = text.indexOf('\r\n\r\n', at);
    const head = text.slice(at, headEnd + 2);
    const status = Number(start.exec(head)?.[1]);
    if (headEnd < 0 || Number.isNaN(status)) return null;
    at = headEnd + 4;
    if (status < 200) continue;
    const header = (name: string) => findHeader(head, name);
    const body = readBody(text, at, header);
    if (body === null) return null;
    const connection = header('connection')?.toLowerCase();
    replies.push({ status, body: body.text, header, closes: connection === 'close' });
    at = body.end;
  }
  return replies;
}

function findHeader(head: string, name: string): string | undefined {
  return new RegExp(`\r\n${name}:[ \t]*([^\r]*?)[ \t]*\r\n`, 'i').exec(head)?.[1];
}

function readBody(
  text: string,
  at: number,
  header: Reply['header'],
): { readonly text: string; readonly end: number } | null {
  if (at === text.length || text.startsWith('HTTP/1.', at)) return { text: '', end: at };
  const length = header('content-length');
  if (length !== undefined) {
    const end = at + Number(length);
    return end > text.length ? null : { text: text.slice(at, end), end };
  }
  if (header('transfer-encoding') === undefined) return { text: text.slice(at), end: text.length };
  let body = '';
  for (let from = at; ; ) {
    const lineEnd = text.indexOf('\r\n', from);
    const size = Number.parseInt(text.slice(from, lineEnd), 16);
    if (lineEnd < 0 || Number.isNaN(size)) return null;
    if (size === 0) return { text: body, end: lineEnd + 4 };
    body += text.slice(lineEnd + 2, lineEnd + 2 + size);
    from = lineEnd + 2 + size + 2;
  }
}
