// The client's knowledge about one request: a reply, or how the connection ended, with the times of both.
import { setTimeout as pause } from 'node:timers/promises';
import type { Reply } from '../ask.ts';

/** How one request ended. Times are those of performance.now(). */
export type Reported = { readonly fromMs: number; readonly toMs: number } & (
  | {
      readonly kind: 'reply';
      readonly status: number;
      readonly text: string;
      readonly isReplayed: boolean;
      /** Null where all went well; for an error of MySQL's on `/db` its number. */
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

/** Far more than the statement_timeout of every history, after which the gateway answers. */
const maxPatienceMs = 40_000;
/** The pause of a client that does not know the outcome yet, before it sends again. */
const restMs = 100;
/** A client that still does not know gives up: the judge calls that a fault of the gateway's. */
const maxAskingMs = 90_000;

/** Sends a request and waits for its end, or no longer than `leavesAfterMs`. */
export async function listen(
  send: (timeoutMs: number) => Promise<Reply>,
  leavesAfterMs: number | null = null,
): Promise<Reported> {
  const fromMs = performance.now();
  try {
    const reply = await send(Math.ceil(leavesAfterMs ?? maxPatienceMs));
    return { fromMs, toMs: performance.now(), ...read(reply) };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const times = { fromMs, toMs: performance.now() };
    if (code !== 'ABORT_ERR') return { ...times, kind: 'cut', detail: code ?? message };
    return { ...times, kind: leavesAfterMs === null ? 'silence' : 'left' };
  }
}

/** Asks again and again, with a rest in between, until `askOnce` says that the client knows; resolves to whether it does. */
export async function askUntilKnown(askOnce: () => Promise<boolean>): Promise<boolean> {
  const untilMs = performance.now() + maxAskingMs;
  while (performance.now() < untilMs) {
    if (await askOnce()) return true;
    await pause(restMs);
  }
  return false;
}

/** The fields of a failure on `/v1` and `/db`. */
type Said = {
  readonly code?: string;
  readonly outcome?: string;
  readonly MYSQL_ERRNO?: number;
  readonly CODE?: string;
  readonly OUTCOME?: string;
};

function read({ status, text, headers, json }: Reply) {
  const { code, outcome, MYSQL_ERRNO, CODE, OUTCOME } = json<Said>();
  return {
    kind: 'reply',
    status,
    text,
    isReplayed: headers['idempotency-replayed'] === 'true',
    code: code ?? CODE ?? MYSQL_ERRNO?.toString() ?? null,
    outcome: outcome ?? OUTCOME ?? null,
  } as const;
}

/** A reply that the work is done. */
export type Success = Extract<Reported, { kind: 'reply' }> & {
  readonly status: 200;
  readonly code: null;
};

/** Tells whether a reply reports success. */
export function isSuccess(reported: Reported): reported is Success {
  return reported.kind === 'reply' && reported.status === 200 && reported.code === null;
}

/** Describes in a few words how a request ended. */
export function describe(reported: Reported): string {
  if (reported.kind !== 'reply') return reported.kind;
  const { status, code, outcome, isReplayed } = reported;
  if (isSuccess(reported)) return isReplayed ? '200 replayed' : '200';
  return `${status} ${code} ${outcome}`;
}
