// The request of a cell as text: `/db` by GET or POST, `/v1` by POST, with marks where each one differs from the last.
import type { Cell } from './cells.ts';
import type { Server } from './servers.ts';

/** The parts of a request that differ: a number, and a key that comes once in a run. */
const marks = { id: '{id}', key: '{key}' } as const;

/** The length of a key. */
export const keyLength = 16;

/** A request with marks, and between which numbers `{id}` is. */
export type Request = { readonly text: string; readonly least: number; readonly most: number };

/** The address and protocol of a server. */
type Place = Pick<Server, 'port' | 'path' | 'speaks'>;

/** Composes the request of a cell. */
export function composeRequest(cell: Cell, server: Place): Request {
  const isBatch = cell.workload.kind === 'batch';
  return isBatch || server.speaks !== 'db' ? composePost(cell, server) : composeGet(cell, server);
}

/** The same with a number of that many, and a key, in the place of the marks. */
export function fillIn({ text }: Request, id: number): string {
  const key = 'probe'.padEnd(keyLength, '0');
  return text.replaceAll(marks.id, String(id)).replaceAll(marks.key, key);
}

function composeHead({ load }: Cell, { port }: Place): string[] {
  return [`Host: 127.0.0.1:${port}`, ...(load.close ? ['Connection: close'] : [])];
}

function composeGet(cell: Cell, server: Place): Request {
  const { name, statement, span } = cell.workload;
  // JSON and URL encoding of each part by itself: neither depends on neighbouring characters.
  const encode = (part: string): string => encodeURIComponent(JSON.stringify(part).slice(1, -1));
  const sql = statement.split(marks.id).map(encode).join(marks.id);
  const query = `${encodeURIComponent('{"SQL":"')}${sql}${encodeURIComponent('"}')}`;
  const head = composeHead(cell, server).join('\r\n');
  const text = `GET ${server.path(name)}?${query} HTTP/1.1\r\n${head}\r\n\r\n`;
  return { text, least: 1, most: span };
}

/** The path and the body of a POST. */
function contentOf({ workload }: Cell, { speaks }: Place): readonly [string, string] {
  const { kind, name, statement } = workload;
  if (kind === 'batch') return ['/v1/batch', `{"statements":${statement}}`];
  if (speaks === 'db-post') return ['/db', JSON.stringify({ SQL: statement })];
  if (speaks === 'v1-named') return [`/v1/named/${name}`, `{"params":{"id":${marks.id}}}`];
  return ['/v1/query', JSON.stringify({ sql: statement })];
}

/** Content-Length is the same for every number: all have as many digits. */
function composePost(cell: Cell, server: Place): Request {
  const { span } = cell.workload;
  const digits = String(Math.max(1, span - 1)).length;
  const [path, body] = contentOf(cell, server);
  const length = Buffer.byteLength(body.replaceAll(marks.id, '0'.repeat(digits)));
  const head = [
    ...composeHead(cell, server),
    'Content-Type: application/json',
    ...(server.speaks === 'v1-keys' ? [`Idempotency-Key: ${marks.key}`] : []),
    `Content-Length: ${length}`,
  ];
  const text = `POST ${path} HTTP/1.1\r\n${head.join('\r\n')}\r\n\r\n${body}`;
  return { text, least: 10 ** (digits - 1), most: Math.min(span, 10 ** digits - 1) };
}
