// What goes wrong in a history of batches with keys: the line to the database at random, workers and the server by plan.
// Must not know the clients, and of the gateway only how a batch with a key is sent: its key first, its reply last, COMMIT by itself.

import type { Fault, FaultProxy } from '../database/fault-proxy.ts';
import type { Database } from '../database/mariadb.ts';
import { eventually } from '../eventually.ts';
import type { Gateway } from '../gateway.ts';
import { isAlive } from '../processes.ts';
import { pick } from '../random.ts';
import { readMetric } from '../scrape.ts';

/** Where faults meet a batch, and how many of a hundred. */
const places = {
  'the taking of a key': { matches: /INSERT INTO .*request_keys/, percent: 8 },
  'the keeping of a reply': { matches: /UPDATE .*request_keys/, percent: 8 },
  COMMIT: { matches: /^COMMIT$/, percent: 24 },
  'the look at a key': { matches: /SELECT .*FROM .*request_keys/, percent: 10 },
  'the end of who was lost': { matches: /^KILL \d+$/, percent: 10 },
} as const;

const how = ['fin', 'reset'] as const;
const kinds: readonly ((random: () => number) => Fault)[] = [
  (random) => ({ kind: 'cut-request', how: pick(random, how) }),
  (random) => ({
    kind: 'cut-request',
    afterBytes: Math.floor(random() * 300),
    how: pick(random, how),
  }),
  (random) => ({ kind: 'cut-after-request', how: pick(random, how) }),
  () => ({ kind: 'abandon' }),
  (random) => ({
    kind: 'cut-reply',
    afterBytes: Math.floor(random() * 14),
    how: pick(random, how),
  }),
  () => ({ kind: 'stall' }),
];

/** A stalled reply is held back this long at most. */
const stallMs = 200;
const commitsPerDrop = 150;

/** Faults that are in force. */
export type LaidFaults = {
  /** How many there have been, by place. */
  readonly hits: () => ReadonlyMap<string, number>;
  readonly remove: () => void;
};

/** Has statements and replies of batches cut, held and lost. @param drops so many answers to COMMIT at most are never given */
export function layFaults(proxy: FaultProxy, random: () => number, drops: number): LaidFaults {
  const laid: { place: string; rule: ReturnType<FaultProxy['on']> }[] = [];
  const lay = (place: string, matches: RegExp, share: number, fault: Fault, times?: number) => {
    const isMet = (statement: string) => matches.test(statement) && random() < share;
    laid.push({ place, rule: proxy.on(isMet, fault, times === undefined ? {} : { times }) });
  };
  // Waited for until half of the time is over: few, or the history would be one of waiting.
  const dropped = 'COMMIT, its answer dropped';
  lay(dropped, places.COMMIT.matches, 1 / commitsPerDrop, { kind: 'drop-reply' }, drops);
  // A rule has one fault: of each kind there are some, so that bytes and ends differ.
  const variants = 4;
  for (const [place, { matches, percent }] of Object.entries(places)) {
    const each = percent / 100 / (variants * kinds.length);
    for (let variant = 0; variant < variants; variant += 1) {
      for (const create of kinds) lay(place, matches, each, create(random));
    }
  }
  const timer = setInterval(() => proxy.release(), stallMs);
  return {
    hits: () => {
      const counts = new Map<string, number>();
      for (const { place, rule } of laid) counts.set(place, (counts.get(place) ?? 0) + rule.hits());
      return counts;
    },
    remove: () => {
      clearInterval(timer);
      proxy.release();
      for (const { rule } of laid) rule.remove();
    },
  };
}

/** A worker is killed; all connections to the database are cut; the database crashes and is started again. */
export type Strike = 'kill' | 'cut' | 'crash';

/** When something was down; performance.now()'s times. */
export type Outage = { readonly what: Strike; readonly fromMs: number; readonly toMs: number };

/** What is struck. */
export type Victims = {
  readonly gateway: Gateway;
  readonly database: Database;
  readonly proxy: FaultProxy;
  readonly workers: number;
};

/** Strikes, and resolves when all serves as before. */
export async function strike(
  what: Strike,
  { gateway, database, proxy, workers }: Victims,
  random: () => number,
): Promise<Outage> {
  const fromMs = performance.now();
  switch (what) {
    case 'kill': {
      const victim = pick(random, gateway.workers());
      process.kill(victim, 'SIGKILL');
      await eventually('the worker is gone', () => !isAlive(victim));
      const toMs = performance.now();
      const isWhole = async () => (await readMetric(gateway, 'dbhttpd_worker_up')) === workers;
      await eventually('it is replaced', isWhole, { everyMs: 50 });
      return { what, fromMs, toMs };
    }
    case 'cut':
      proxy.cutAll(pick(random, how));
      return { what, fromMs, toMs: performance.now() };
    case 'crash': {
      await database.halt('SIGKILL');
      await database.resume();
      const isReady = async () => (await gateway.get('/readyz')).status === 200;
      await eventually('the database is back', isReady, { everyMs: 50 });
      return { what, fromMs, toMs: performance.now() };
    }
    default:
      throw new Error(`no such strike: ${what satisfies never}`);
  }
}
