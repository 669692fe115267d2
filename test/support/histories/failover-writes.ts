// Writes with unique ids by each way that the gateway has for them, and what each was told; with a key they are repeated until it is known.
// Must not know when servers fail, nor what became of a write.
import { setTimeout as pause } from 'node:timers/promises';
import type { Ask, Reply } from '../ask.ts';
import { pick } from '../random.ts';
import { isSuccess, listen, type Told } from './told.ts';

/** No index is unique on an id: what is executed twice leaves two rows. */
export const writtenTable = 'create table written (id int, index (id)) engine = innodb';

const ways = ['/db', '/v1/query', 'batch with key'] as const;

/** How a write is sent. */
export type Way = (typeof ways)[number];

/** One row to be written, and all that its client was told, in order. */
export type Write = { readonly id: number; readonly way: Way; readonly told: readonly Told[] };

/** Who is not told asks again after this. */
const restMs = 100;
/** Who still is not told gives up: that is a fault of the gateway's. */
const mostAskings = 300;

/** Draws the way of a write. */
export function drawWay(random: () => number): Way {
  return pick(random, ways);
}

/** Writes the row of this id; with a key, asks until it is told that it is written. */
export async function writeRow(ask: Ask, id: number, way: Way): Promise<Write> {
  let write: Write = { id, way, told: [await askFor(ask, id, way, 0)] };
  while (
    way === 'batch with key' &&
    !write.told.some(isSuccess) &&
    write.told.length < mostAskings
  ) {
    await pause(restMs);
    write = await repeat(ask, write);
  }
  return write;
}

/** Asks once more for the same: only with a key is that safe. */
export async function repeat(ask: Ask, { id, way, told }: Write): Promise<Write> {
  return { id, way, told: [...told, await askFor(ask, id, way, told.length)] };
}

const requestId = /^failover-(\d+)-\d+$/;

/** Whose reply it is, by the request id that stands in it. Throws for one of nobody's. */
export function idOf(replyText: string): number {
  const { request_id } = JSON.parse(replyText) as { request_id: string };
  const [, id] = requestId.exec(request_id) ?? [];
  if (id === undefined) throw new Error(`not of this history: ${replyText}`);
  return Number(id);
}

function askFor(ask: Ask, id: number, way: Way, serial: number): Promise<Told> {
  const headers = { 'X-Request-ID': `failover-${id}-${serial}` };
  return listen((timeoutMs) => send(ask, id, way, { headers, timeoutMs }));
}

function send(
  { dbPost, post }: Ask,
  id: number,
  way: Way,
  options: { readonly headers: Readonly<Record<string, string>>; readonly timeoutMs: number },
): Promise<Reply> {
  const statement = { sql: 'insert into written (id) values (?)', params: [id] };
  switch (way) {
    case '/db':
      return dbPost({ SQL: `insert into written (id) values (${id})` }, options);
    case '/v1/query':
      return post('/v1/query', statement, options);
    case 'batch with key': {
      const headers = { ...options.headers, 'Idempotency-Key': `write-${id}` };
      return post('/v1/batch', { statements: [statement] }, { ...options, headers });
    }
    default:
      throw new Error(`no such way: ${way satisfies never}`);
  }
}
