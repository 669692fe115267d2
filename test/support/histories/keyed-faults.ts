// The faults in a history of batches with keys: the line to the database at random, workers and the server by plan.
import type { Fault, FaultProxy } from '../database/fault-proxy.ts';
import type { Database } from '../database/mariadb.ts';
import { eventually } from '../eventually.ts';
import type { Gateway } from '../gateway.ts';
import { isAlive } from '../processes.ts';
import { pick } from '../random.ts';
import { readMetric } from '../scrape.ts';
import { createActorRandom } from './crew.ts';
import { boundStalls, drawEnd, layFaults } from './line-faults.ts';

/** The places where faults meet a batch, and how many of a hundred. */
const places = {
  'the taking of a key': { matches: /INSERT INTO .*request_keys/, percent: 8 },
  'the keeping of a reply': { matches: /UPDATE .*request_keys/, percent: 8 },
  COMMIT: { matches: /^COMMIT$/, percent: 24 },
  'the look at a key': { matches: /SELECT .*FROM .*request_keys/, percent: 10 },
  'the end of who was lost': { matches: /^KILL \d+$/, percent: 10 },
} as const;

/** The COMMITs that lose their connection, and their answer: the first ones of a history, so that no chance can leave them out. */
const commits = { cut: 1, firstDrop: 4 } as const;

/** Faults that are in force. */
export type LaidKeyedFaults = {
  /** The number of faults by place. */
  readonly hits: () => ReadonlyMap<string, number>;
  readonly remove: () => void;
};

/**
 * Cuts, delays and loses statements and replies of batches. After a lost answer to COMMIT the gateway waits until half of the time is over,
 * so there are few of them, or the history would consist of waiting.
 * @param wish the number of lost answers to COMMIT, and the number of COMMITs between two of them
 */
export function layKeyedFaults(
  proxy: FaultProxy,
  seed: number,
  { drops, between }: { readonly drops: number; readonly between: number },
): LaidKeyedFaults {
  const dropped = Array.from({ length: drops }, (_, index): [number, Fault] => [
    commits.firstDrop + index * between,
    { kind: 'drop-reply' },
  ]);
  const atCommit = new Map<number, Fault>([
    [commits.cut, { kind: 'cut-after-request', how: 'reset' }],
    ...dropped,
  ]);
  const laid = Object.entries(places).map(([place, { matches, percent }]) => {
    const scripted = place === 'COMMIT' ? atCommit : new Map<number, Fault>();
    const random = createActorRandom(seed, place);
    const isThere = (statement: string) => matches.test(statement);
    return [place, layFaults(proxy, { matches: isThere, percent, scripted }, random)] as const;
  });
  const unbound = boundStalls(proxy);
  return {
    hits: () => new Map(laid.map(([place, faults]) => [place, faults.hits()])),
    remove: () => {
      unbound();
      for (const [, faults] of laid) faults.remove();
    },
  };
}

/** A worker is killed; all connections to the database are cut; the database crashes and is started again. */
export type Strike = 'kill' | 'cut' | 'crash';

/** When something was down; performance.now()'s times. */
export type Outage = { readonly what: Strike; readonly fromMs: number; readonly toMs: number };

/** The targets of strikes. */
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
      await eventually('it is replaced', isWhole);
      return { what, fromMs, toMs };
    }
    case 'cut':
      proxy.cutAll(drawEnd(random));
      return { what, fromMs, toMs: performance.now() };
    case 'crash': {
      await database.halt('SIGKILL');
      await database.resume();
      const isReady = async () => (await gateway.get('/readyz')).status === 200;
      await eventually('the database is back', isReady);
      return { what, fromMs, toMs: performance.now() };
    }
    default:
      throw new Error(`no such strike: ${what satisfies never}`);
  }
}
