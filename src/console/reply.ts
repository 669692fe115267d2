// The reply of /v1/query, read while it arrives: lines of JSON for rows, one object for anything else.
import { AskError, describeProblem, type Problem } from './ask.ts';
import { Digits, type Exact, parseExact, writeExact } from './exact-json.ts';
import type { Result, ResultColumn } from './result.ts';

/** A result, and what a table of it is called; missing: it has no name. */
export type ShownResult = Result & { readonly isTruncated: boolean; readonly name?: string };

/** The results of a statement; only a CALL and a batch have several. */
export type Reply = {
  readonly results: readonly ShownResult[];
  /** The effects of results without rows, in words. */
  readonly effects: readonly string[];
  /** The text of the reply; missing: it is not kept. */
  readonly text?: string;
};

/** Called while rows arrive. */
export type ReplyEvents = {
  readonly columns: (result: Result) => void;
  readonly rows: () => void;
};

/** Reads a reply to its end. Rejects with an AskError if it fails or is cut off. */
export async function readReply(response: Response, events: ReplyEvents): Promise<Reply> {
  const type = response.headers.get('Content-Type') ?? '';
  if (type.startsWith('application/x-ndjson')) return await readLines(response, events);
  return readObject(parseExact(await response.text()));
}

async function readLines(response: Response, events: ReplyEvents): Promise<Reply> {
  let result: { columns: readonly ResultColumn[]; lines: string[] } | null = null;
  let end: string | null = null;
  const take = (line: string) => {
    if (result === null) {
      const first = JSON.parse(line) as { readonly columns?: readonly ResultColumn[] };
      if (first.columns === undefined) {
        end = line;
        return;
      }
      result = { columns: first.columns, lines: [] };
      events.columns(result);
    } else if (line.startsWith('{')) {
      // Rows are arrays.
      end = line;
    } else {
      result.lines.push(line);
    }
  };
  for await (const lines of linesOf(response)) {
    for (const line of lines) take(line);
    events.rows();
  }
  const last = JSON.parse(end ?? '{}') as {
    readonly end?: { readonly truncated: boolean };
    readonly error?: Problem & { readonly status: number };
  };
  if (last.error !== undefined) {
    throw new AskError(last.error.status, describeProblem(last.error, 'It failed.'), last.error);
  }
  if (result === null || last.end === undefined) {
    throw new AskError(0, 'The reply was cut off before its end.');
  }
  return { results: [{ ...(result as Result), isTruncated: last.end.truncated }], effects: [] };
}

/** Yields the lines of a body as they arrive, several at once. A line without a line break does not count. */
async function* linesOf({ body }: Response): AsyncGenerator<readonly string[]> {
  if (body === null) return;
  let parts: string[] = [];
  for await (const text of textOf(body)) {
    const end = text.lastIndexOf('\n');
    parts.push(end < 0 ? text : text.slice(0, end));
    if (end < 0) continue;
    yield parts.join('').split('\n');
    parts = [text.slice(end + 1)];
  }
}

async function* textOf(body: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<string> {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel();
  }
}

function readObject(reply: Exact): Reply {
  if (!(reply instanceof Map)) throw new AskError(0, 'The reply is not an object.');
  const several = reply.get('results');
  const all = Array.isArray(several) ? several : [reply];
  const read = all.filter((one): one is ReadonlyMap<string, Exact> => one instanceof Map);
  return {
    results: read.flatMap((one) => (one.has('columns') ? [readResult(one)] : [])),
    effects: read.flatMap((one) => (one.has('columns') ? [] : [describeEffect(one)])),
  };
}

/** @param columns those that rows without a description have */
function readResult(
  result: ReadonlyMap<string, Exact>,
  columns: readonly ResultColumn[] = [],
): ShownResult {
  const rows = result.get('rows');
  const described = result.get('columns');
  return {
    columns: described === undefined ? columns : JSON.parse(writeExact(described)),
    lines: Array.isArray(rows) ? rows.map(writeRow) : [],
    isTruncated: result.get('truncated') === true,
  };
}

/** Values of an object are in the order of the columns. */
function writeRow(row: Exact): string {
  return writeExact(row instanceof Map ? [...row.values()] : row);
}

function columnsOf(row: Exact | undefined): readonly ResultColumn[] {
  const names = row instanceof Map ? [...row.keys()] : [];
  return names.map((name) => ({ name: String(name), type: '' }));
}

/** Reads the reply of a named statement. Rejects with an AskError if it is none. @param kind that of the statement */
export async function readNamedReply(response: Response, kind: string): Promise<Reply> {
  const text = await response.text();
  const reply = parseExact(text);
  if (!(reply instanceof Map)) throw new AskError(0, 'The reply is not an object.');
  if (kind === 'one') {
    const result = { columns: columnsOf(reply), lines: [writeRow(reply)], isTruncated: false };
    return { results: [{ ...result, isObject: true }], effects: [], text };
  }
  if (kind !== 'batch') return { ...readObject(reply), text };
  const steps = reply.get('steps');
  const rows = reply.get('rows');
  const named = steps instanceof Map ? [...(steps as ReadonlyMap<string, Exact>)] : [];
  const all: [string, Exact][] = [
    ...named,
    ...(rows === undefined ? [] : [['Answer', reply] as [string, Exact]]),
  ];
  const effects: string[] = ['committed'];
  const results = all.flatMap(([name, one]) => {
    if (!(one instanceof Map)) return [];
    const found = one.get('rows');
    if (Array.isArray(found)) return [{ ...readResult(one, columnsOf(found[0])), name }];
    effects.push(`${name}: ${describeEffect(one)}`);
    return [];
  });
  return { results, effects, text };
}

function describeEffect(result: ReadonlyMap<string, Exact>): string {
  const text = (name: string) => {
    const value = result.get(name);
    return value instanceof Digits ? value.text : typeof value === 'string' ? value : null;
  };
  const [affected, id, warnings] = [text('affected_rows'), text('insert_id'), text('warnings')];
  const parts = [
    affected === '1' ? '1 row affected' : `${affected ?? '0'} rows affected`,
    ...(id === null ? [] : [`insert id ${id}`]),
    ...(warnings === null || warnings === '0' ? [] : [`${warnings} warnings`]),
  ];
  return parts.join(', ');
}
