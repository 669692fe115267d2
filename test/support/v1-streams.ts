// Long replies of /v1/query: requested in every format and coding, and read until they end or are cut.
import assert from 'node:assert/strict';
import { type IncomingMessage, request } from 'node:http';
import { createGunzip } from 'node:zlib';
import type { Database } from './database/mariadb.ts';
import { bytesBeyondBuffers } from './flat-memory.ts';

export const json = 'application/json';
export const ndjson = 'application/x-ndjson';
export const csv = 'text/csv';
/** All formats. */
export const types = [json, ndjson, csv];
/** All codings. */
export const codings = ['identity', 'gzip'];
/** All of both. */
export const ways = types.flatMap((type) => codings.map((coding) => ({ type, coding })));

/** The number of rows of the table `big`. DBHTTPD_TEST_BIG_ROWS gives it more. */
export const bigRows = Number(process.env.DBHTTPD_TEST_BIG_ROWS ?? 50_000);

/** Selects all of `big`: some 350 bytes a row. */
export const selectBig = 'select n, a, b from big';
/** A row of `selectDense` has more bytes in every format. */
export const denseBytes = 880;
/** The number of rows of `selectDense`. */
export const denseRows = bigRows * Math.ceil(bytesBeyondBuffers() / (denseBytes * bigRows));
/** Does not become small when it is compressed: MySQL waits for a reader that takes nothing, in every coding. */
export const selectDense = `select n, ${Array.from({ length: 7 }, (_, at) => `sha2(n + ${at} / 8, 512)`).join()}
  from big, digits v, digits w where 10 * v.d + w.d < ${denseRows / bigRows}`;

/** Column `a` of row `n`: a text with all that a format must escape. */
export const textOf = (n: number) => `say "${n % 10}",\r\n${'é'.repeat(10)}`;

/** Creates the tables `digits` and `big`, the latter with this many rows. */
export async function createBig(database: Database, rows = bigRows): Promise<void> {
  await database.query('create table digits (d int primary key)');
  await database.query('insert into digits values (0),(1),(2),(3),(4),(5),(6),(7),(8),(9)');
  await database.query('create table big (n int primary key, a varchar(60), b varchar(300))');
  await database.query(
    `insert into big select u.d*100000+v.d*10000+w.d*1000+x.d*100+y.d*10+z.d as n,
       concat('say "', z.d, '",\\r\\n', repeat('é', 10)), repeat(left(sha2(concat(w.d, x.d), 224), 32), 9)
     from digits u, digits v, digits w, digits x, digits y, digits z
     where u.d < ceil(? / 100000) having n < ?`,
    [rows, rows],
  );
}

/** A request, and the gateway that it goes to. */
export type Wish = {
  readonly sql: string;
  readonly type: string;
  readonly coding?: string;
  readonly rows?: string;
  readonly timeoutMs?: number;
  readonly requestId?: string;
  readonly to: { readonly port: number };
};

/** Sends the request, and resolves to the reply when its head has arrived. */
export function open(wish: Wish) {
  const {
    sql,
    type,
    coding = 'identity',
    rows = 'array',
    timeoutMs = 30_000,
    requestId,
    to,
  } = wish;
  const headers = {
    'Content-Type': 'application/json',
    Accept: type,
    'Accept-Encoding': coding,
    ...(requestId === undefined ? {} : { 'X-Request-ID': requestId }),
  };
  const options = { host: '127.0.0.1', port: to.port, path: '/v1/query', method: 'POST', headers };
  return new Promise<IncomingMessage>((resolve, reject) => {
    const outgoing = request({ ...options, agent: false }, resolve);
    outgoing.once('error', reject);
    outgoing.end(JSON.stringify({ sql, rows, timeout_ms: timeoutMs }));
  });
}

/** The content of a reply, chunk by chunk. Rejects if the reply is cut. */
export function contentOf(reply: IncomingMessage): AsyncIterable<Buffer> {
  if (reply.headers['content-encoding'] !== 'gzip') return reply;
  const gunzip = createGunzip();
  reply.once('error', (error) => gunzip.destroy(error));
  return reply.pipe(gunzip);
}

/** All of a reply; rejects when it is cut. */
export async function collect(reply: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of contentOf(reply)) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** Resolves to a reply: all of it, or the part before it was cut. */
export async function collectUntilCut(reply: IncomingMessage) {
  const chunks: Buffer[] = [];
  let isCut = false;
  try {
    for await (const chunk of contentOf(reply)) chunks.push(chunk);
  } catch {
    isCut = true;
  }
  return { isCut, body: Buffer.concat(chunks) };
}

/** Lines of JSON, the last one ended as well. */
export function linesOf(body: Buffer): unknown[] {
  const lines = body.toString().split('\n');
  assert.equal(lines.pop(), '');
  return lines.map((line) => JSON.parse(line) as unknown);
}
