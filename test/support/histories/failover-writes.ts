// Writes with unique ids in each way that the gateway offers, and the reply to each; with a key they are repeated until the outcome is known.
import type { Ask } from '../ask.ts';
import { pick } from '../random.ts';
import { askUntilKnown, isSuccess, listen, type Reported } from './reported.ts';
import { composeWrite, type WritingWay } from './statement-ways.ts';

/** No index is unique on an id: what is executed twice leaves two rows. */
export const writtenTable = 'create table written (id int, index (id)) engine = innodb';

/** The ways to send a write. */
export type Way = Exclude<WritingWay, 'batch'>;

const ways: readonly Way[] = ['/db', '/v1/query', 'batch with key'];

/** One row to write, and all replies to its client, in order. */
export type Write = {
  readonly id: number;
  readonly way: Way;
  readonly reported: readonly Reported[];
};

/** Draws the way of a write. */
export function drawWay(random: () => number): Way {
  return pick(random, ways);
}

/** Writes the row of this id. With a key, it sends the request until a reply says that the row is written. */
export async function writeRow(ask: Ask, id: number, way: Way): Promise<Write> {
  let write = await repeat(ask, { id, way, reported: [] });
  const isReported = () => way !== 'batch with key' || write.reported.some(isSuccess);
  if (isReported()) return write;
  await askUntilKnown(async () => {
    write = await repeat(ask, write);
    return isReported();
  });
  return write;
}

/** Asks once more for the same: only with a key is that safe. */
export async function repeat(ask: Ask, { id, way, reported }: Write): Promise<Write> {
  return { id, way, reported: [...reported, await askFor(ask, id, way, reported.length)] };
}

const requestId = /^failover-(\d+)-\d+$/;

/** The write that a reply belongs to, by its request id. Throws for an unknown id. */
export function idOf(replyText: string): number {
  const { request_id } = JSON.parse(replyText) as { request_id: string };
  const [, id] = requestId.exec(request_id) ?? [];
  if (id === undefined) throw new Error(`not of this history: ${replyText}`);
  return Number(id);
}

function askFor(ask: Ask, id: number, way: Way, serial: number): Promise<Reported> {
  const { path, body, headers } = composeWrite(way, insertion(id), `write-${id}`);
  const wanted = { ...headers, 'X-Request-ID': `failover-${id}-${serial}` };
  return listen((timeoutMs) => ask.post(path, body, { headers: wanted, timeoutMs }));
}

function insertion(id: number): string {
  return `insert into written (id) values (${id})`;
}
