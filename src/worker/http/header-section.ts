// The header section of a request: its lines, checked to the letter, and the fields that the gateway reads (RFC 9110 section 5,
// RFC 9112 section 5). Pure.

/** The fields that the gateway reads. Others are checked, counted, and passed on to another worker. */
const readFields = [
  'accept',
  'accept-encoding',
  'access-control-request-method',
  'access-control-request-private-network',
  'authorization',
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'dbhttpd-claims',
  'expect',
  'host',
  'idempotency-key',
  'origin',
  'purpose',
  'referer',
  'sec-fetch-dest',
  'sec-fetch-mode',
  'sec-fetch-site',
  'sec-purpose',
  'traceparent',
  'transfer-encoding',
  'upgrade',
  'user-agent',
  'x-consistency-token',
  'x-dbhttpd-origin',
  'x-moz',
  'x-request-id',
] as const;

/** The name of such a field, in lower case. */
export type FieldName = (typeof readFields)[number];

/** Field values by their names. */
export type RequestHeaders = { readonly [Name in FieldName]?: string | undefined };

/** Fields with one value: of several lines the first counts. Others are lists, whose lines are joined (RFC 9110 section 5.3). */
const singleFields: ReadonlySet<FieldName> = new Set<FieldName>([
  'authorization',
  'content-length',
  'content-type',
  'host',
  'referer',
  'user-agent',
]);

/** A header section whose lines are well-formed. */
export type HeaderSection = {
  readonly headers: RequestHeaders;
  /** How many lines it has. */
  readonly count: number;
  /** Fields with one value that have several lines, each once. */
  readonly repeated: readonly FieldName[];
  /** Its lines with their ends, one character for each byte. */
  readonly text: string;
  /** The index behind the empty line. */
  readonly end: number;
};

/** Why a section is refused. */
export type HeaderFault = 'malformed' | 'bare line feed' | 'too long';

const [tab, lineFeed, carriageReturn, space, colon] = [0x09, 0x0a, 0x0d, 0x20, 0x3a];
const [tokenOctet, valueOctet] = [1, 2];

/** The classes of all octets: tchar (RFC 9110 section 5.6.2), and those of a field's value (section 5.5). */
const octets: Uint8Array = Uint8Array.from({ length: 256 }, (_, octet) => {
  const isToken = octet < 0x7f && /[!#$%&'*+\-.^_`|~0-9A-Za-z]/.test(String.fromCharCode(octet));
  const isValue = octet === tab || (octet >= space && octet !== 0x7f);
  return (isToken ? tokenOctet : 0) | (isValue ? valueOctet : 0);
});

/** Whether an octet may be part of a token. */
export function isTokenOctet(octet: number): boolean {
  return ((octets[octet] as number) & tokenOctet) !== 0;
}

/** The beginnings and ends of names and values in the section that is being read: four indexes for each line. */
const marks: number[] = [];
const marksPerLine = 4;

/**
 * Reads a section from `from` on. Null: its empty line has not come.
 * @param maxBytes a longer section is a fault
 */
export function readHeaderSection(
  bytes: Buffer,
  from: number,
  maxBytes: number,
): HeaderSection | HeaderFault | null {
  const limit = Math.min(bytes.length, from + maxBytes + 2);
  let at = from;
  let count = 0;
  while (at < limit && bytes[at] !== carriageReturn) {
    const next = markLine(bytes, at, limit, count);
    if (typeof next === 'string') return next;
    if (next === incomplete) return limit < bytes.length ? 'too long' : null;
    at = next;
    count += 1;
  }
  if (at + 1 >= limit) return limit < bytes.length ? 'too long' : null;
  if (bytes[at + 1] !== lineFeed) return 'malformed';
  const text = bytes.toString('latin1', from, at);
  return collectFields(text, from, count, at + 2);
}

const incomplete = -1;

/** Checks and marks one line. Returns the index behind it. */
function markLine(bytes: Buffer, from: number, limit: number, index: number): number | HeaderFault {
  let at = from;
  while (at < limit && ((octets[bytes[at] as number] as number) & tokenOctet) !== 0) at += 1;
  if (at === limit) return incomplete;
  if (at === from || bytes[at] !== colon) return faultAt(bytes, at);
  const mark = index * marksPerLine;
  marks[mark] = from;
  marks[mark + 1] = at;
  at += 1;
  while (at < limit && (bytes[at] === space || bytes[at] === tab)) at += 1;
  marks[mark + 2] = at;
  while (at < limit && ((octets[bytes[at] as number] as number) & valueOctet) !== 0) at += 1;
  if (at + 1 >= limit)
    return at < limit && bytes[at] !== carriageReturn ? faultAt(bytes, at) : incomplete;
  if (bytes[at] !== carriageReturn || bytes[at + 1] !== lineFeed) return faultAt(bytes, at);
  marks[mark + 3] = endOfValue(bytes, marks[mark + 2] as number, at);
  return at + 2;
}

function endOfValue(bytes: Buffer, from: number, lineEnd: number): number {
  let end = lineEnd;
  while (end > from && (bytes[end - 1] === space || bytes[end - 1] === tab)) end -= 1;
  return end;
}

function faultAt(bytes: Buffer, at: number): HeaderFault {
  return bytes[at] === lineFeed ? 'bare line feed' : 'malformed';
}

type WritableHeaders = { [Name in FieldName]: string | undefined };

/** All fields in one order: the objects that are copied from it have one hidden class. */
const noFields = Object.fromEntries(readFields.map((name) => [name, undefined])) as WritableHeaders;
const nothingRepeated: readonly FieldName[] = [];

function collectFields(text: string, offset: number, count: number, end: number): HeaderSection {
  const headers: WritableHeaders = { ...noFields };
  let repeated = nothingRepeated;
  for (let index = 0; index < count; index += 1) {
    const mark = index * marksPerLine;
    const at = (which: number) => (marks[mark + which] as number) - offset;
    const field = fieldOf(text.slice(at(0), at(1)));
    if (field === null) continue;
    const value = text.slice(at(2), at(3));
    const before = headers[field];
    if (before === undefined) headers[field] = value;
    else if (!singleFields.has(field)) headers[field] = `${before}, ${value}`;
    else if (!repeated.includes(field)) repeated = [...repeated, field];
  }
  return { headers, repeated, count, text, end };
}

/** Names as clients spell them. Null: the field is not read. */
const spellings = new Map<string, FieldName | null>();
/** A client with a new name for each request must not fill the memory. */
const maxSpellings = 512;
const byName: ReadonlyMap<string, FieldName> = new Map(readFields.map((name) => [name, name]));

function fieldOf(name: string): FieldName | null {
  const known = spellings.get(name);
  if (known !== undefined) return known;
  const field = byName.get(name.toLowerCase()) ?? null;
  if (spellings.size < maxSpellings) spellings.set(name, field);
  return field;
}

/** All fields of a section's text: name, value, name, value. */
export function listFields(text: string): readonly string[] {
  return text
    .split('\r\n')
    .slice(0, -1)
    .flatMap((line) => {
      const end = line.indexOf(':');
      return [line.slice(0, end), trimWhiteSpace(line, end + 1)];
    });
}

/** The text from `start` on without OWS at both ends (RFC 9110 section 5.6.3). String.prototype.trim also removes other octets. */
function trimWhiteSpace(text: string, start: number): string {
  let from = start;
  let end = text.length;
  while (from < end && isWhiteSpace(text.charCodeAt(from))) from += 1;
  while (end > from && isWhiteSpace(text.charCodeAt(end - 1))) end -= 1;
  return text.slice(from, end);
}

function isWhiteSpace(code: number): boolean {
  return code === space || code === tab;
}
