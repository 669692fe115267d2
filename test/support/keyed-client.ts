// A client with an idempotency key: it asks, repeats, asks in several places at once, gives up or leaves, and writes down what it is told.
// Must not know what became of its batch, nor which faults there are.
import { setTimeout as pause } from 'node:timers/promises';
import type { Ask, Reply } from './ask.ts';
import type { KeyedBatch } from './keyed-batches.ts';

/** How a client behaves. */
export type Manner = {
  /** So many requests at once, each time that it asks. */
  readonly copies: number;
  /** The first time it does not wait for longer than this for a reply; null: it does. */
  readonly leavesAfterMs: number | null;
  /** Asks until it is told how the batch ended; else it asks once. */
  readonly persists: boolean;
  /** Asks so many times again though it has been told. */
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

/** How one request ended; times are performance.now()'s. */
export type Told = { readonly fromMs: number; readonly toMs: number } & (
  | {
      readonly kind: 'reply';
      readonly status: number;
      readonly text: string;
      readonly isReplayed: boolean;
      readonly code: string | null;
      readonly outcome: string | null;
    }
  /** The connection ended. */
  | { readonly kind: 'cut'; readonly detail: string }
  /** The client did not wait for a reply. */
  | { readonly kind: 'left' }
  /** It waited, and none came. */
  | { readonly kind: 'silence' }
);

/** All that the client of one batch was told, in the order in which it asked. */
export type Story = {
  readonly batch: KeyedBatch;
  readonly manner: Manner;
  readonly told: readonly Told[];
};

const mostPatienceMs = 60_000;
/** Who is not told asks again after this. */
const restMs = 100;
/** Who persists gives up in the end: that is a fault of the gateway's. */
const mostAskings = 300;

/** Whether this tells how the batch ended, once and for all. */
export function isFinal({ refusal }: KeyedBatch, told: Told): boolean {
  if (told.kind !== 'reply') return false;
  return told.status === 200 || (refusal !== null && told.code === refusal);
}

/** The request ids of the client of one batch begin with this: its reply tells by it whose it is. */
export function requestIdPrefix(number: number): string {
  return `history-${number}-`;
}

/** Behaves like that, to its end. */
export async function tellStory(ask: Ask, batch: KeyedBatch, manner: Manner): Promise<Story> {
  const told: Told[] = [];
  const askOnce = async (leavesAfterMs: number | null) => {
    const asked = Array.from({ length: manner.copies }, (_, copy) =>
      askFor(ask, batch, told.length + copy, leavesAfterMs),
    );
    told.push(...(await Promise.all(asked)));
    return told.some((one) => isFinal(batch, one));
  };
  let isTold = await askOnce(manner.leavesAfterMs);
  for (let askings = 1; manner.persists && !isTold && askings < mostAskings; askings += 1) {
    await pause(restMs);
    isTold = await askOnce(null);
  }
  for (let repeats = 0; isTold && repeats < manner.repeats; repeats += 1) await askOnce(null);
  return { batch, manner, told };
}

async function askFor(
  { post }: Ask,
  { number, body }: KeyedBatch,
  serial: number,
  leavesAfterMs: number | null,
): Promise<Told> {
  const headers = {
    'Idempotency-Key': `key-${number}`,
    'X-Request-ID': `${requestIdPrefix(number)}${serial}`,
  };
  const timeoutMs = leavesAfterMs ?? mostPatienceMs;
  const fromMs = performance.now();
  try {
    const reply = await post('/v1/batch', body, { headers, timeoutMs: Math.ceil(timeoutMs) });
    return { fromMs, toMs: performance.now(), ...read(reply) };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const times = { fromMs, toMs: performance.now() };
    if (code !== 'ABORT_ERR') return { ...times, kind: 'cut', detail: code ?? message };
    return { ...times, kind: leavesAfterMs === null ? 'silence' : 'left' };
  }
}

function read({ status, text, headers, json }: Reply) {
  const { code = null, outcome = null } = json<{ code?: string; outcome?: string }>();
  const isReplayed = headers['idempotency-replayed'] === 'true';
  return { kind: 'reply', status, text, isReplayed, code, outcome } as const;
}
