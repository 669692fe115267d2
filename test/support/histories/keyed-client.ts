// A client with an idempotency key: it sends, repeats, sends in several places at once, gives up or leaves, and records the replies.
import type { Ask } from '../ask.ts';
import type { Actor } from './crew.ts';
import type { KeyedBatch } from './keyed-batches.ts';
import { askUntilKnown, describe, listen, type Reported } from './reported.ts';

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
  readonly reported: readonly Reported[];
};

/** Tells whether this reply settles how the batch ended. */
export function isFinal({ refusal }: KeyedBatch, reported: Reported): boolean {
  if (reported.kind !== 'reply') return false;
  return reported.status === 200 || (refusal !== null && reported.code === refusal);
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
  const reported: Reported[] = [];
  const askOnce = async (leavesAfterMs: number | null) => {
    const last = reported.slice(-1).map(describe).join();
    note(
      `batch ${batch.number}, after ${reported.length} requests, the last reported ${last || 'none'}`,
    );
    const asked = Array.from({ length: manner.copies }, (_, copy) =>
      askFor(ask, batch, reported.length + copy, leavesAfterMs),
    );
    reported.push(...(await Promise.all(asked)));
    return reported.some((one) => isFinal(batch, one));
  };
  let isReported = await askOnce(manner.leavesAfterMs);
  if (manner.persists && !isReported) isReported = await askUntilKnown(() => askOnce(null));
  for (let repeats = 0; isReported && repeats < manner.repeats; repeats += 1) await askOnce(null);
  return { batch, manner, reported };
}

function askFor(
  { post }: Ask,
  { number, body }: KeyedBatch,
  serial: number,
  leavesAfterMs: number | null,
): Promise<Reported> {
  const headers = {
    'Idempotency-Key': `key-${number}`,
    'X-Request-ID': `${requestIdPrefix(number)}${serial}`,
  };
  return listen((timeoutMs) => post('/v1/batch', body, { headers, timeoutMs }), leavesAfterMs);
}
