// A client with an idempotency key: it sends, repeats, sends in several places at once, gives up or leaves, and records the replies.
import type { Ask } from '../ask.ts';
import type { Actor } from './crew.ts';
import type { KeyedBatch } from './keyed-batches.ts';
import { askUntilTold, describe, listen, type Told } from './told.ts';

/** The behaviour of a client. */
export type Manner = {
  /** The number of simultaneous requests, each time that it sends. */
  readonly copies: number;
  /** The first time it does not wait for longer than this for a reply; null: it does. */
  readonly leavesAfterMs: number | null;
  /** Asks until it learns how the batch ended; otherwise once. */
  readonly persists: boolean;
  /** The number of times that it sends again although it knows the outcome. */
  readonly repeats: number;
};

/** Draws a manner: most clients want to know. */
export function drawManner(random: () => number): Manner {
  const leaves = random() < 0.15;
  return {
    copies: random() < 0.2 ? 2 + Math.floor(random() * 2) : 1,
    leavesAfterMs: leaves ? 1 + random() * 60 : null,
    persists: random() < (leaves ? 0.5 : 0.85),
    repeats: random() < 0.3 ? 1 + Math.floor(random() * 2) : 0,
  };
}

/** All replies to the client of one batch, in the order of its requests. */
export type Story = {
  readonly batch: KeyedBatch;
  readonly manner: Manner;
  readonly told: readonly Told[];
};

/** Tells whether this reply settles how the batch ended. */
export function isFinal({ refusal }: KeyedBatch, told: Told): boolean {
  if (told.kind !== 'reply') return false;
  return told.status === 200 || (refusal !== null && told.code === refusal);
}

/** The beginning of the request ids of one batch's client. A reply shows by it which client it belongs to. */
export function requestIdPrefix(number: number): string {
  return `history-${number}-`;
}

/** Behaves like that, to its end. */
export async function tellStory(
  ask: Ask,
  batch: KeyedBatch,
  manner: Manner,
  note: Actor['note'],
): Promise<Story> {
  const told: Told[] = [];
  const askOnce = async (leavesAfterMs: number | null) => {
    const last = told.slice(-1).map(describe).join();
    note(`batch ${batch.number}, after ${told.length} requests, the last told ${last || 'none'}`);
    const asked = Array.from({ length: manner.copies }, (_, copy) =>
      askFor(ask, batch, told.length + copy, leavesAfterMs),
    );
    told.push(...(await Promise.all(asked)));
    return told.some((one) => isFinal(batch, one));
  };
  let isTold = await askOnce(manner.leavesAfterMs);
  if (manner.persists && !isTold) isTold = await askUntilTold(() => askOnce(null));
  for (let repeats = 0; isTold && repeats < manner.repeats; repeats += 1) await askOnce(null);
  return { batch, manner, told };
}

function askFor(
  { post }: Ask,
  { number, body }: KeyedBatch,
  serial: number,
  leavesAfterMs: number | null,
): Promise<Told> {
  const headers = {
    'Idempotency-Key': `key-${number}`,
    'X-Request-ID': `${requestIdPrefix(number)}${serial}`,
  };
  return listen((timeoutMs) => post('/v1/batch', body, { headers, timeoutMs }), leavesAfterMs);
}
