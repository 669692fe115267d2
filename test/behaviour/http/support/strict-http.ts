// Reads the requests of a connection's bytes as strictly as HTTP/1 allows: the reference for the gateway's parser.

/** One request that may be run. */
export type StrictRequest = {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly body: string;
  /** Index behind its last byte. */
  readonly end: number;
};

const requestLine = /^([A-Z]+) (\/[!-~]*) HTTP\/1\.([01])$/;
const fieldLine = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t -~\x80-\xff]*?)[ \t]*$/;
const hostSyntax = /^[A-Za-z0-9.-]+(?::\d{1,5})?$/;

/** The requests that `text`, one character a byte, begins with; the first that is none ends them, and so does an upgrade. */
export function readStrictly(text: string): readonly StrictRequest[] {
  const requests: StrictRequest[] = [];
  for (let at = 0; ; ) {
    const start = text.startsWith('\r\n', at) ? at + 2 : at;
    const headEnd = text.indexOf('\r\n\r\n', start);
    if (headEnd < 0) return requests;
    const [first = '', ...lines] = text.slice(start, headEnd).split('\r\n');
    const line = requestLine.exec(first);
    const fields = readFields(lines);
    if (line === null || fields === null || !hasOneHost(fields)) return requests;
    const body = readBody(text, headEnd + 4, fields);
    if (body === null) return requests;
    const [path = '', ...query] = (line[2] ?? '').split('?');
    requests.push({ method: line[1] ?? '', path, query: query.join('?'), ...body });
    if (fields.some(([name]) => name === 'upgrade')) return requests;
    at = body.end;
  }
}

type Fields = readonly (readonly [name: string, value: string])[];

function readFields(lines: readonly string[]): Fields | null {
  const fields = lines.map((line) => fieldLine.exec(line));
  if (lines.length > 100 || fields.includes(null)) return null;
  return fields.map((match) => [match?.[1]?.toLowerCase() ?? '', match?.[2] ?? '']);
}

const valuesOf = (fields: Fields, wanted: string) =>
  fields.filter(([name]) => name === wanted).map(([, value]) => value);

function hasOneHost(fields: Fields): boolean {
  const [host, ...others] = valuesOf(fields, 'host');
  return host !== undefined && others.length === 0 && hostSyntax.test(host);
}

function readBody(text: string, at: number, fields: Fields): { body: string; end: number } | null {
  const codings = valuesOf(fields, 'transfer-encoding');
  const lengths = valuesOf(fields, 'content-length');
  if (codings.length > 0) {
    const isPlain = codings.length === 1 && codings[0]?.toLowerCase() === 'chunked';
    return isPlain && lengths.length === 0 ? readChunks(text, at) : null;
  }
  if (lengths.length === 0) return { body: '', end: at };
  const length =
    lengths.length === 1 && /^\d{1,9}$/.test(lengths[0] ?? '') ? Number(lengths[0]) : -1;
  const end = at + length;
  return length < 0 || end > text.length ? null : { body: text.slice(at, end), end };
}

function readChunks(text: string, start: number): { body: string; end: number } | null {
  let body = '';
  for (let at = start; ; ) {
    const match = /^([0-9A-Fa-f]{1,8})(?:;[\t -~\x80-\xff]*)?\r\n/.exec(text.slice(at, at + 2000));
    if (match === null) return null;
    const [line, digits = ''] = match;
    const size = Number.parseInt(digits, 16);
    at += line.length;
    if (size === 0) return readTrailers(text, at, body);
    if (text.slice(at + size, at + size + 2) !== '\r\n') return null;
    body += text.slice(at, at + size);
    at += size + 2;
  }
}

function readTrailers(
  text: string,
  start: number,
  body: string,
): { body: string; end: number } | null {
  for (let at = start; ; ) {
    const end = text.indexOf('\r\n', at);
    if (end < 0) return null;
    if (end === at) return { body, end: end + 2 };
    if (!fieldLine.test(text.slice(at, end))) return null;
    at = end + 2;
  }
}
