// Faults of the line to the database, drawn by a script: which of the statements at a place meets which fault depends on the seed and on how many
// came before it there.
import type { Fault, FaultProxy } from '../database/fault-proxy.ts';
import { pick } from '../random.ts';

const how = ['fin', 'reset'] as const;
/** No answer that is cut is longer: its first packet says that all went well. */
const answerBytes = 14;

const kinds: readonly ((random: () => number) => Fault)[] = [
  (random) => ({ kind: 'cut-request', how: pick(random, how) }),
  (random) => ({
    kind: 'cut-request',
    afterBytes: Math.floor(random() * 300),
    how: pick(random, how),
  }),
  (random) => ({ kind: 'cut-after-request', how: pick(random, how) }),
  (random) => ({
    kind: 'cut-reply',
    afterBytes: Math.floor(random() * answerBytes),
    how: pick(random, how),
  }),
  () => ({ kind: 'abandon' }),
  () => ({ kind: 'stall' }),
];

/** Draws a fault. */
export function drawFault(random: () => number): Fault {
  return pick(random, kinds)(random);
}

/** Draws how a connection ends. */
export function drawEnd(random: () => number): 'fin' | 'reset' {
  return pick(random, how);
}

/** A place where faults meet statements. */
export type Place = {
  readonly matches: (statement: string) => boolean;
  /** This many of a hundred statements meet a random fault. */
  readonly percent: number;
  /** Faults that must occur: by the number of the statement at this place, from 1. */
  readonly scripted?: ReadonlyMap<number, Fault>;
};

/** Faults that are in force. */
export type LaidFaults = {
  /** The number of faults so far. */
  readonly hits: () => number;
  readonly remove: () => void;
};

/** A stalled reply is held back this long at most. */
const stallMs = 200;

/** From now on no stall is long. Call the result to end that. */
export function boundStalls(proxy: FaultProxy): () => void {
  const timer = setInterval(() => proxy.release(), stallMs);
  return () => {
    clearInterval(timer);
    proxy.release();
  };
}

/** The number of different random faults, so that bytes and ends differ. */
const variety = 24;

/** Makes faults meet the statements at a place until they are removed. */
export function layFaults(
  proxy: Pick<FaultProxy, 'on'>,
  { matches, percent, scripted = new Map() }: Place,
  random: () => number,
): LaidFaults {
  const drawn = Array.from({ length: variety }, () => drawFault(random));
  const faults = [...drawn, ...scripted.values()];
  let count = 0;
  let chosen: Fault | null = null;
  const choose = (statement: string) => {
    if (!matches(statement)) return null;
    count += 1;
    // Both are drawn for each statement, so that the script does not shift what follows.
    const [chance, one] = [random() * 100, pick(random, drawn)];
    return scripted.get(count) ?? (chance < percent ? one : null);
  };
  // The proxy tries the rules of a place in their order: the first one decides for all of them.
  const rules = faults.map((fault, at) =>
    proxy.on((statement) => {
      if (at === 0) chosen = choose(statement);
      return chosen === fault;
    }, fault),
  );
  return {
    hits: () => rules.reduce((sum, rule) => sum + rule.hits(), 0),
    remove: () => {
      for (const rule of rules) rule.remove();
    },
  };
}
