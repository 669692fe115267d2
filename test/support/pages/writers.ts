// Clients that insert numbered rows through a gateway all the time, and keep count of the replies.
import { setTimeout as pause } from 'node:timers/promises';
import { eventually } from '../eventually.ts';
import type { Gateway } from '../gateway.ts';

/** The table that they write to. */
export const writesTable =
  'create table writes (id bigint auto_increment primary key, n bigint not null) engine=innodb';

/** The outcomes of all writes. */
export type Written = {
  /** The numbers that were answered with 200. */
  readonly accepted: readonly number[];
  /** Those that were answered with `not_executed` or `failed`. */
  readonly refused: readonly number[];
  /** Those whose outcome is unknown. */
  readonly unknown: readonly number[];
  /** How often each failure was the answer, by status and code. */
  readonly failures: Readonly<Record<string, number>>;
  /** The longest time that a client waited for an answer of 200. */
  readonly longestMs: number;
};

export type Writers = {
  /** Lets no client begin a write, and waits for those that run. */
  readonly rest: () => Promise<void>;
  readonly resume: () => void;
  /** Resolves when a write that begins now has been answered with 200. */
  readonly succeed: () => Promise<void>;
  /** Ends all clients. Later calls return the same. */
  readonly stop: () => Promise<Written>;
};

const clients = 4;
/** Between two writes of a client. */
const pauseMs = 20;
let lastNumber = 0;

type Reported = { readonly n: number; readonly ms: number; readonly atMs: number } & (
  | { readonly kind: 'accepted' }
  | { readonly kind: 'refused' | 'unknown'; readonly code: string }
);

/** Starts the clients; resolves once a write succeeded. Its caller stops them. */
export async function startWriters(gateway: Gateway): Promise<Writers> {
  const reported: Reported[] = [];
  let phase: 'writing' | 'resting' | 'over' = 'writing';
  let running = 0;
  const write = async () => {
    lastNumber += 1;
    const [n, atMs] = [lastNumber, performance.now()];
    running += 1;
    const found = await send(gateway, n);
    running -= 1;
    reported.push({ n, atMs, ms: performance.now() - atMs, ...found });
  };
  const loops = Array.from({ length: clients }, async () => {
    while (phase !== 'over') {
      if (phase === 'writing') await write();
      await pause(pauseMs);
    }
  });
  const succeed = async () => {
    const from = performance.now();
    await eventually(
      'a write succeeds',
      () => reported.some(({ kind, atMs }) => kind === 'accepted' && atMs >= from),
      { timeoutMs: 60_000 },
    );
  };
  const stop = async () => {
    phase = 'over';
    await Promise.all(loops);
    return summarise(reported);
  };
  try {
    await succeed();
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    rest: async () => {
      phase = 'resting';
      await eventually('no write runs', () => running === 0);
    },
    resume: () => {
      phase = 'writing';
    },
    succeed,
    stop,
  };
}

async function send(gateway: Gateway, n: number) {
  const body = { sql: 'insert into writes (n) values (?)', params: [n] };
  try {
    const reply = await gateway.post('/v1/query', body, { timeoutMs: 120_000 });
    if (reply.status === 200) return { kind: 'accepted' } as const;
    const problem = reply.json<{ code?: string; outcome?: string }>();
    const code = `${reply.status} ${problem.code} ${problem.outcome}`;
    const isRefused = problem.outcome === 'not_executed' || problem.outcome === 'failed';
    return { kind: isRefused ? 'refused' : 'unknown', code } as const;
  } catch (error) {
    return { kind: 'unknown', code: String((error as NodeJS.ErrnoException).code) } as const;
  }
}

function summarise(reported: readonly Reported[]): Written {
  const of = (kind: Reported['kind']) =>
    reported.filter((one) => one.kind === kind).map(({ n }) => n);
  const failures: Record<string, number> = {};
  for (const one of reported)
    if (one.kind !== 'accepted') failures[one.code] = (failures[one.code] ?? 0) + 1;
  const accepted = reported.filter(({ kind }) => kind === 'accepted');
  return {
    accepted: of('accepted'),
    refused: of('refused'),
    unknown: of('unknown'),
    failures,
    longestMs: Math.max(0, ...accepted.map(({ ms }) => ms)),
  };
}
