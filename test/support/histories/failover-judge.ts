// The replies to writes during a failover, compared with what the new and the former primary hold in the end: every contradiction.
import type { Write } from './failover-writes.ts';
import { type Breach, findStrangers } from './judging.ts';
import { describe, isSuccess, type Reported, type Success } from './reported.ts';

/** The promises to clients that write during a failover. */
export const failoverPromises = {
  once: 'no write is applied twice',
  honest: 'a write that was reported as not executed, rolled back or failed is not there',
  kept: 'a write that was reported as written is there, or was lost with the former primary before another was promoted',
  whole: 'on the primary in use a key and its row exist together, or neither does',
  first: 'a repetition gets the first reply',
  reported: 'a client that repeats with a key learns the outcome in the end',
  excused: 'failures occur only around the failover, and only those in the contract',
  served: 'a write succeeds within 2 s of the promotion',
  alone: 'the former primary, back and writable, is not written to',
} as const;

/** When things happened, as performance.now() has it. */
export type Failover = {
  readonly struckMs: number;
  /** When a server could be written to again. */
  readonly promotedMs: number;
  /** The end of the writer's last change, if there are several: failures until then are excused. `promotedMs` by default. */
  readonly settledMs?: number;
  /** When the former primary could be written to again; null: it was not brought back. */
  readonly returnedMs: number | null;
  /**
   * Within this time after the promotion a write succeeds, and failures are excused: the promised 2 s by default, more on a busy machine.
   */
  readonly serviceMs?: number;
  /** Nothing may be lost with the former primary: it had stopped taking writes, or waited for a replica with each. */
  readonly isLossless: boolean;
};

/** The content of the servers in the end. */
export type FailoverFound = {
  /** Rows by id on the primary in use. */
  readonly rows: ReadonlyMap<number, number>;
  /** Rows by id on the former primary; null: it is the one in use. */
  readonly former: ReadonlyMap<number, number> | null;
  /** Ids of the replies that are kept with keys on the primary in use. */
  readonly keys: readonly number[];
  /** Statements, other than reads, that were sent to the former primary after it was back. */
  readonly sentToFormer: readonly string[];
};

/** The verdict of the judge. */
export type FailoverJudgement = {
  readonly breaches: readonly Breach[];
  /** Ids of writes that were reported as written and lost with the former primary, as asynchronous replication allows. */
  readonly lost: readonly number[];
  /** From the promotion to the first success on the primary in use; null: there was none. */
  readonly servedMs: number | null;
};

/** The promised longest wait of a client after the promotion. */
const promisedServiceMs = 2_000;

/** Judges a history. */
export function judgeFailover(
  writes: readonly Write[],
  failover: Failover,
  found: FailoverFound,
): FailoverJudgement {
  const lost = writes.filter((write) => isLost(write, failover, found)).map(({ id }) => id);
  const served = servedAfter(writes, failover, found);
  const { serviceMs = promisedServiceMs } = failover;
  const breaches = writes.flatMap((write) => [
    ...judgeCount(write, found),
    ...judgeLies(write, found),
    ...judgeKept(write, found, lost.includes(write.id) && !failover.isLossless),
    ...judgeKey(write, found),
    ...judgeRepetitions(write),
    ...write.reported.flatMap((reported) => judgeReported(write, reported, failover)),
    ...judgeReturn(write, failover, found),
  ]);
  const asked = new Set(writes.map(({ id }) => id));
  const isLate = served === null || served > serviceMs;
  return {
    breaches: [
      ...breaches,
      ...(isLate
        ? [breachOf('served', served === null ? 'none' : `after ${Math.round(served)} ms`)]
        : []),
      ...found.sentToFormer.map((text) => breachOf('alone', text)),
      ...findStrangers(asked, found.rows.keys(), found.keys).map((text) => breachOf('once', text)),
    ],
    lost,
    servedMs: served,
  };
}

function breachOf(promise: keyof typeof failoverPromises, example: string): Breach {
  return { promise: failoverPromises[promise], example };
}

function explain({ id, way, reported }: Write, what: string): string {
  const last = reported.slice(-3).map(describe).join(', ');
  return `${id} (${way}): ${what}; ${reported.length} requests, the last reported ${last}`;
}

const countOn = (rows: ReadonlyMap<number, number> | null, id: number) => rows?.get(id) ?? 0;

function judgeCount(write: Write, { rows, former }: FailoverFound): Breach[] {
  return [rows, former]
    .map((there) => countOn(there, write.id))
    .filter((count) => count > 1)
    .map((count) => breachOf('once', explain(write, `${count} rows`)));
}

/** A single row in a table with transactions: an error of the server's leaves nothing. */
const nothingStands: ReadonlySet<string | null> = new Set([
  'not_executed',
  'rolled_back',
  'failed',
  null,
]);

function isDenial(reported: Reported): boolean {
  return reported.kind === 'reply' && !isSuccess(reported) && nothingStands.has(reported.outcome);
}

function judgeLies(write: Write, { rows, former }: FailoverFound): Breach[] {
  if (!write.reported.every(isDenial)) return [];
  const places = [
    ...(countOn(rows, write.id) > 0 ? ['the primary in use'] : []),
    ...(countOn(former, write.id) > 0 ? ['the former primary'] : []),
  ];
  return places.map((place) => breachOf('honest', explain(write, `is on ${place}`)));
}

/**
 * A write that only the former primary has, from before the strike. Between strike and return it takes nothing, so everything reported by
 * then is from before, however late the answer is read.
 */
function isLost(
  write: Write,
  { promotedMs, returnedMs }: Failover,
  { rows, former }: FailoverFound,
): boolean {
  const last = write.reported.filter(isSuccess).at(-1);
  if (last === undefined || countOn(rows, write.id) > 0) return false;
  const isFromBefore =
    last.fromMs <= promotedMs && last.toMs <= (returnedMs ?? Number.POSITIVE_INFINITY);
  return isFromBefore && countOn(former, write.id) > 0;
}

function judgeKept(write: Write, { rows }: FailoverFound, isExcused: boolean): Breach[] {
  const isMissing = write.reported.some(isSuccess) && countOn(rows, write.id) === 0;
  return isMissing && !isExcused ? [breachOf('kept', explain(write, 'is not there'))] : [];
}

function judgeKey(write: Write, { rows, keys }: FailoverFound): Breach[] {
  if (write.way !== 'batch with key') return [];
  const kept = keys.filter((id) => id === write.id).length;
  const count = countOn(rows, write.id);
  return kept === count ? [] : [breachOf('whole', explain(write, `${count} rows, ${kept} keys`))];
}

/** If a reply was lost with the former primary, its client gets another one, without the mark. */
function judgeRepetitions(write: Write): Breach[] {
  const successes = write.reported.filter(isSuccess);
  const isNew = (one: Success, index: number) =>
    one.isReplayed && index > 0 && !successes.slice(0, index).some(({ text }) => text === one.text);
  const wrong = successes.filter(isNew).map(({ text }) => breachOf('first', explain(write, text)));
  const isReported = write.way !== 'batch with key' || successes.length > 0;
  return isReported ? wrong : [...wrong, breachOf('reported', explain(write, 'no success'))];
}

function judgeReported(write: Write, reported: Reported, failover: Failover): Breach[] {
  if (isSuccess(reported)) return [];
  const { struckMs, promotedMs, settledMs = promotedMs } = failover;
  const { serviceMs = promisedServiceMs } = failover;
  const isAround = reported.toMs >= struckMs && reported.fromMs <= settledMs + serviceMs;
  const isKnown =
    reported.kind === 'reply' && (isDenial(reported) || reported.outcome === 'unknown');
  if (isAround && isKnown) return [];
  const after = `${Math.round(reported.fromMs - promotedMs)} ms after the promotion: ${describe(reported)}`;
  return [breachOf('excused', explain(write, after))];
}

function judgeReturn(write: Write, { returnedMs }: Failover, { former }: FailoverFound): Breach[] {
  const [first] = write.reported;
  if (returnedMs === null || first === undefined || first.fromMs < returnedMs) return [];
  return countOn(former, write.id) > 0
    ? [breachOf('alone', explain(write, 'begun after its return, and there'))]
    : [];
}

function servedAfter(
  writes: readonly Write[],
  { promotedMs }: Failover,
  { rows, former }: FailoverFound,
): number | null {
  const ends = writes
    .filter(({ id }) => countOn(rows, id) > 0 && countOn(former, id) === 0)
    .flatMap(({ reported }) => reported.filter(isSuccess))
    .map(({ toMs }) => toMs - promotedMs)
    .filter((afterMs) => afterMs >= 0);
  return ends.length === 0 ? null : Math.min(...ends);
}
