// Rows one by one out of a reply in lines of JSON, however many there are; a reply that was cut is an error, never an end.
import { DbhttpdError } from './error.ts';
import { type Column, createRowDecoder, type Layout } from './results.ts';
import { type BegunReply, interrupted, noReplyOfOurs, problemOf, type Sent } from './transport.ts';

/** What is known of the whole at its end. */
export type StreamEnd = { readonly rowCount: number; readonly truncated: boolean };

/** A line that is no row: what comes first, or what comes last. */
type Marker = {
  readonly columns?: readonly Column[];
  readonly end?: { readonly row_count: number; readonly truncated: boolean };
  readonly error?: object & { readonly status?: number };
};

/** Whether a reply is in lines. */
export function isInLines({ response }: BegunReply): boolean {
  return response.headers.get('content-type')?.startsWith('application/x-ndjson') === true;
}

/** The rows; resolves to their end. Who leaves early ends the statement. Throws a DbhttpdError where the last line is missing. */
export async function* readRows<Row>(
  begun: BegunReply,
  sent: Sent,
  layout: Layout,
): AsyncGenerator<Row, StreamEnd, void> {
  const told = { status: begun.response.status, requestId: begun.requestId };
  const cut = (cause: unknown) =>
    interrupted(sent, 'REPLY_CUT', 'The reply was cut before its last line', told, cause);
  let decode: ((cells: readonly unknown[]) => Row) | null = null;
  for await (const lines of readLines(begun.response, cut)) {
    for (const line of lines) {
      const parsed = parseLine(line, begun, sent);
      if (Array.isArray(parsed)) {
        if (decode === null) throw noReplyOfOurs(begun.response, sent);
        yield decode(parsed);
        continue;
      }
      const { columns, end, error } = parsed as Marker;
      if (columns !== undefined) decode = createRowDecoder<Row>(columns, layout);
      else if (end !== undefined) return { rowCount: end.row_count, truncated: end.truncated };
      else throw failureOf(error, begun, sent);
    }
  }
  throw cut(null);
}

function parseLine(line: string, begun: BegunReply, sent: Sent): object {
  try {
    return JSON.parse(line) as object;
  } catch {
    throw noReplyOfOurs(begun.response, sent);
  }
}

function failureOf(error: Marker['error'], begun: BegunReply, sent: Sent): DbhttpdError {
  const facts = error === undefined ? null : problemOf(error);
  if (facts === null) return noReplyOfOurs(begun.response, sent);
  const { message, ...rest } = facts;
  return new DbhttpdError(message, { ...rest, status: error?.status ?? null });
}

/** The lines of a body as they come, several at once. One without its end is none. */
async function* readLines(
  { body }: Response,
  cut: (cause: unknown) => DbhttpdError,
): AsyncGenerator<readonly string[], void, void> {
  if (body === null) throw cut(null);
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  try {
    for (;;) {
      const read = await reader.read().catch((cause: unknown) => {
        throw cut(cause);
      });
      if (read.done) return;
      // Only what is new is searched: a row may come in thousands of pieces.
      const [first = '', ...others] = decoder.decode(read.value, { stream: true }).split('\n');
      rest += first;
      if (others.length === 0) continue;
      const lines = [rest, ...others];
      rest = lines.pop() ?? '';
      yield lines;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
