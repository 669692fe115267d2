// Compares the replies to batches with keys with what the database holds afterwards; pure.

import { type Breach, findStrangers } from './judging.ts';
import type { KeyedBatch } from './keyed-batches.ts';
import { isFinal, requestIdPrefix, type Story } from './keyed-client.ts';
import type { Outage, Strike } from './keyed-faults.ts';
import { describe, isSuccess, type Reported } from './reported.ts';

/** The promises to clients that send a key. */
export const keyedPromises = {
  once: 'a batch that was answered with 200 is applied exactly once',
  most: 'any other batch is applied at most once, and not at all if every answer says so',
  whole: 'a batch, the counts that it changed and its key exist together, or none of them does',
  first:
    'every request with one key gets the first reply, byte for byte, and a repetition is marked',
  right: 'a reply of 200 reports what the statements did',
  known: 'no unknown while the database can be reached',
  explained: 'every answer is in the contract, and a killed worker explains every cut',
  reported: 'a client that asks until it learns the outcome learns it',
} as const;

/** The content of the tables in the end. */
export type Found = {
  /** Rows by number of the batch. */
  readonly entries: ReadonlyMap<number, number>;
  readonly marks: ReadonlyMap<number, number>;
  readonly totals: ReadonlyMap<number, number>;
  /** The replies that are kept with keys. */
  readonly kept: readonly string[];
};

/** Outcomes of a batch that was not executed, or was undone. The client may send it again. */
const nothingStands: ReadonlySet<string> = new Set(['not_executed', 'rolled_back']);
/** A conflict with others, after all the reruns. */
const conflicts: ReadonlySet<string> = new Set([
  'ER_LOCK_DEADLOCK',
  'ER_LOCK_WAIT_TIMEOUT',
  'ER_CHECKREAD',
]);

/** Every breach; none: all promises were kept. */
export function judgeStories(
  stories: readonly Story[],
  found: Found,
  outages: readonly Outage[],
): Breach[] {
  const keptOf = groupKept(found.kept);
  const breaches = stories.flatMap((story) => {
    const { number } = story.batch;
    const kept = keptOf.get(number) ?? [];
    const [rows, marks] = [found.entries.get(number) ?? 0, found.marks.get(number) ?? 0];
    return [
      ...judgeRows(story, rows),
      ...judgeWholeness(number, { rows, marks, keys: kept.length }),
      ...judgeReplies(story, kept[0]),
      ...story.reported.flatMap((reported) => judgeReported(story, reported, outages)),
      ...judgeEnd(story),
    ];
  });
  const asked = new Set(stories.map(({ batch }) => batch.number));
  const strangers = findStrangers(asked, found.entries.keys(), found.marks.keys(), keptOf.keys());
  return [
    ...breaches,
    ...judgeTotals(stories, found),
    ...strangers.map((example) => ({ promise: keyedPromises.most, example })),
  ];
}

type Reply = Extract<Reported, { kind: 'reply' }>;

function judgeRows({ batch, reported }: Story, rows: number): Breach[] {
  const { number, refusal } = batch;
  const isDone = reported.some(isSuccess);
  const saysNothing = reported.every(
    (one) => one.kind === 'reply' && nothingStands.has(one.outcome ?? ''),
  );
  const example = `${number}: ${rows} rows, reported ${reported.map(describe).join(', ')}`;
  if (isDone && rows !== 1) return [{ promise: keyedPromises.once, example }];
  const most = refusal !== null || saysNothing ? 0 : 1;
  return rows > most ? [{ promise: keyedPromises.most, example }] : [];
}

function judgeWholeness(number: number, there: Readonly<Record<string, number>>): Breach[] {
  if (new Set(Object.values(there)).size === 1) return [];
  return [{ promise: keyedPromises.whole, example: `${number}: ${JSON.stringify(there)}` }];
}

/** The kept reply is the first: earlier replies reported nothing that remained. */
function judgeReplies({ batch, reported }: Story, kept: string | undefined): Breach[] {
  const { first, right } = keyedPromises;
  const breach = (promise: string, what: string) => ({
    promise,
    example: `${batch.number}: ${what}`,
  });
  const successes = reported.filter(isSuccess);
  const fresh = successes.filter(({ isReplayed }) => !isReplayed);
  const others = successes.filter(({ text }) => text !== kept);
  const late = fresh.filter(({ fromMs }) => successes.some(({ toMs }) => toMs < fromMs));
  return [
    ...others.map(({ text }) => breach(first, `kept ${kept}, reported ${text}`)),
    ...(fresh.length > 1 ? [breach(first, `${fresh.length} replies without a mark`)] : []),
    ...late.map(() => breach(first, 'a repetition without a mark')),
    ...successes
      .slice(0, 1)
      .filter(({ text }) => !isRight(text, batch.results))
      .map(({ text }) => breach(right, text)),
  ];
}

type BatchReply = {
  readonly committed: boolean;
  readonly results: readonly ResultReply[];
};
type ResultReply = {
  readonly affected_rows?: number;
  readonly rows?: unknown;
  readonly results?: readonly ResultReply[];
};

function isRight(text: string, results: Story['batch']['results']): boolean {
  const reply = JSON.parse(text) as BatchReply;
  const said = reply.results.map(summarize);
  return reply.committed && JSON.stringify(said) === JSON.stringify(results);
}

/** A CALL's first result is what counts here: the rows that it read. */
function summarize(result: ResultReply): unknown {
  const [first = result] = result.results ?? [];
  return first.rows ?? first.affected_rows;
}

function judgeReported({ batch }: Story, reported: Reported, outages: readonly Outage[]): Breach[] {
  const wasDown = (what: Strike) =>
    outages.some(
      (outage) =>
        outage.what === what && outage.fromMs <= reported.toMs && reported.fromMs <= outage.toMs,
    );
  const { known, explained } = keyedPromises;
  const example = `${batch.number}: ${describe(reported)} after ${Math.round(reported.toMs - reported.fromMs)} ms`;
  if (reported.kind === 'left') return [];
  if (reported.kind === 'cut') return wasDown('kill') ? [] : [{ promise: explained, example }];
  if (reported.kind === 'silence') return [{ promise: explained, example }];
  if (reported.outcome === 'unknown') return wasDown('crash') ? [] : [{ promise: known, example }];
  return isInContract(batch, reported) ? [] : [{ promise: explained, example }];
}

function isInContract({ refusal, hasCall }: KeyedBatch, { status, code, outcome }: Reply): boolean {
  if (status === 200) return refusal === null;
  if (status === 503) return outcome === 'not_executed';
  const isConflict = status === 409 && conflicts.has(code ?? '');
  if (isConflict && hasCall && outcome === 'partial') return true;
  if (outcome !== 'rolled_back') return false;
  return status !== 409 || isConflict || code === refusal;
}

function judgeEnd({ batch, manner, reported }: Story): Breach[] {
  if (!manner.persists || reported.some((one) => isFinal(batch, one))) return [];
  const example = `${batch.number}: ${reported.length} requests, the last ${reported.slice(-3).map(describe)}`;
  return [{ promise: keyedPromises.reported, example }];
}

function judgeTotals(stories: readonly Story[], { totals, entries }: Found): Breach[] {
  const expected = new Map<number, number>();
  for (const { batch } of stories) {
    const rows = entries.get(batch.number) ?? 0;
    for (const id of batch.totals) expected.set(id, (expected.get(id) ?? 0) + rows);
  }
  return [...totals]
    .filter(([id, n]) => n !== (expected.get(id) ?? 0))
    .map(([id, n]) => {
      const example = `the count ${id} is ${n}, the batches that are there make ${expected.get(id)}`;
      return { promise: keyedPromises.whole, example };
    });
}

/** Groups kept replies by the request id in them. */
function groupKept(kept: readonly string[]): ReadonlyMap<number, readonly string[]> {
  const groups = new Map<number, string[]>();
  for (const text of kept) {
    const { request_id } = JSON.parse(text) as { request_id: string };
    const number = Number(request_id.split('-')[1]);
    if (!request_id.startsWith(requestIdPrefix(number)))
      throw new Error(`not of this history: ${text}`);
    groups.set(number, [...(groups.get(number) ?? []), text]);
  }
  return groups;
}
