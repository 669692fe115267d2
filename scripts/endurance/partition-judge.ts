// Compares the replies during partitions and failovers with the rows of three servers, and finds every contradiction. Pure.
import type { Write } from '../../test/support/histories/failover-writes.ts';
import type { Breach } from '../../test/support/histories/judging.ts';
import { describe, isSuccess, type Reported } from '../../test/support/histories/reported.ts';

/** The promises that a gateway keeps while links are cut, servers change their roles, and workers are killed. */
export const partitionPromises = {
  kept: 'a write that was acknowledged is on the primary at the end',
  once: 'no write is applied twice',
  whole: 'a key and its row exist together, or neither does',
  honest: 'a write that was reported as not executed or rolled back is on no server',
  alone: 'only the primary of that moment was written to',
  reported: 'a client that repeats with a key gets a final reply',
  known: 'every reply is in the contract',
  quiet: 'nothing fails while all links and servers are as they should be',
  served: 'writes succeed between strikes',
} as const;

/** A time in which a server was the primary, in milliseconds since 1970; `toMs` is null while it lasts. */
export type Reign = {
  readonly serverId: number;
  readonly fromMs: number;
  readonly toMs: number | null;
};

/** One row: the server that was written to, and when, by that server's clock. */
export type WrittenRow = { readonly id: number; readonly serverId: number; readonly atMs: number };

/** A time in which nothing is wrong, as performance.now() has it. */
export type Quiet = { readonly fromMs: number; readonly toMs: number };

/** The findings of a run. */
export type PartitionFound = {
  readonly writes: readonly Write[];
  readonly reigns: readonly Reign[];
  readonly quiets: readonly Quiet[];
  /** Rows on the primary at the end. */
  readonly rows: readonly WrittenRow[];
  /** Rows that another server alone held when the operator looked at it. */
  readonly strays: readonly WrittenRow[];
  /** Ids of the replies that are kept with keys on the primary at the end. */
  readonly keys: readonly number[];
};

/** The rows that a server wrote while it was not the primary. */
export function findErrant(
  rows: readonly WrittenRow[],
  reigns: readonly Reign[],
): readonly WrittenRow[] {
  return rows.filter(
    ({ serverId, atMs }) =>
      !reigns.some(
        (reign) =>
          reign.serverId === serverId &&
          atMs >= reign.fromMs &&
          atMs <= (reign.toMs ?? Number.POSITIVE_INFINITY),
      ),
  );
}

/** Judges a run. */
export function judgePartitions(found: PartitionFound): Breach[] {
  const { writes, reigns, rows, strays } = found;
  const counts = countIds(rows.map(({ id }) => id));
  const keys = countIds(found.keys);
  const strayIds = new Set(strays.map(({ id }) => id));
  const errantStrays = new Set(findErrant(strays, reigns).map(({ id }) => id));
  const errant = findErrant([...rows, ...strays], reigns).map(({ id, serverId, atMs }) =>
    breachOf('alone', `${id} on db${serverId} at ${new Date(atMs).toISOString()}`),
  );
  const perWrite = writes.flatMap((write) =>
    judgeWrite(write, {
      count: counts.get(write.id) ?? 0,
      kept: keys.get(write.id) ?? 0,
      isStray: strayIds.has(write.id),
      isErrant: errantStrays.has(write.id),
    }),
  );
  return [...errant, ...perWrite, ...writes.flatMap((write) => judgeQuiet(write, found.quiets))];
}

type There = {
  readonly count: number;
  readonly kept: number;
  readonly isStray: boolean;
  /** Whether a server that was not the primary when it wrote the row also has it. */
  readonly isErrant: boolean;
};

function judgeWrite(write: Write, { count, kept, isStray, isErrant }: There): Breach[] {
  const { way, reported } = write;
  const isReported = reported.some(isSuccess);
  const isKeyed = way === 'batch with key';
  const isDenied = reported.every(isDenial);
  const wrong = (isWrong: boolean, promise: keyof typeof partitionPromises, what: string) =>
    isWrong ? [breachOf(promise, explain(write, what))] : [];
  return [
    ...wrong(isReported && count === 0, 'kept', 'is not there'),
    ...wrong(count > 1, 'once', `${count} rows`),
    ...wrong(count > 0 && isErrant, 'once', 'is on two servers'),
    ...wrong(isKeyed && kept !== count, 'whole', `${count} rows, ${kept} keys`),
    ...wrong(isDenied && (count > 0 || isStray), 'honest', isStray ? 'is a stray' : 'is there'),
    ...wrong(isKeyed && !isReported, 'reported', 'no success'),
    ...wrong(!reported.every(isKnown), 'known', 'ends with no known outcome'),
  ];
}

function judgeQuiet(write: Write, quiets: readonly Quiet[]): Breach[] {
  const isIn = ({ fromMs, toMs }: Reported) =>
    quiets.some((quiet) => fromMs >= quiet.fromMs && toMs <= quiet.toMs);
  return write.reported
    .filter((reported) => !isSuccess(reported) && isIn(reported))
    .map((reported) => breachOf('quiet', explain(write, describe(reported))));
}

/** An insert of one row: an error of the server's leaves nothing. */
const nothingStands: ReadonlySet<string | null> = new Set([
  'not_executed',
  'rolled_back',
  'failed',
  null,
]);

function isDenial(reported: Reported): boolean {
  return reported.kind === 'reply' && !isSuccess(reported) && nothingStands.has(reported.outcome);
}

/** Connections end without a reply when a worker is killed. */
function isKnown(reported: Reported): boolean {
  if (reported.kind !== 'reply') return reported.kind === 'cut';
  return isSuccess(reported) || isDenial(reported) || reported.outcome === 'unknown';
}

function countIds(ids: readonly number[]): ReadonlyMap<number, number> {
  const counts = new Map<number, number>();
  for (const id of ids) counts.set(id, (counts.get(id) ?? 0) + 1);
  return counts;
}

function explain({ id, way, reported }: Write, what: string): string {
  const last = reported.slice(-3).map(describe).join(', ');
  return `${id} (${way}): ${what}; ${reported.length} requests, the last replies ${last}`;
}

function breachOf(promise: keyof typeof partitionPromises, example: string): Breach {
  return { promise: partitionPromises[promise], example };
}
