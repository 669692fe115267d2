// A history of writes with unique ids, judged against what the database holds afterwards.
import type { Reply } from '../ask.ts';
import type { Document } from '../db-results.ts';

/** The client's knowledge about one write. */
export type Reported = 'applied' | 'refused' | 'not_executed' | 'unknown';

/** The meaning of a reply to a single INSERT. Throws for anything but the contract's answers. */
export function reportedBy(reply: Pick<Reply, 'status' | 'text' | 'json'>): Reported {
  const { MYSQL_ERRNO, OUTCOME } = reply.json<Document>();
  if (reply.status === 200) return MYSQL_ERRNO === undefined ? 'applied' : 'refused';
  if (reply.status === 503 && OUTCOME === 'not_executed') return OUTCOME;
  if ((reply.status === 502 || reply.status === 504) && OUTCOME === 'unknown') return OUTCOME;
  throw new Error(`not in the contract: ${reply.status} ${reply.text}`);
}

const allowed: Readonly<Record<Reported, readonly number[]>> = {
  applied: [1],
  refused: [0],
  not_executed: [0],
  unknown: [0, 1],
};

/** Every write whose rows contradict its reply, as text. `rows` counts them by id. */
export function contradictions(
  history: ReadonlyMap<number, Reported>,
  rows: ReadonlyMap<number, number>,
): string[] {
  const found = [...history].flatMap(([id, reported]) => {
    const count = rows.get(id) ?? 0;
    return allowed[reported].includes(count) ? [] : [`${id}: reported ${reported}, ${count} rows`];
  });
  const strangers = [...rows.keys()].filter((id) => !history.has(id));
  return [...found, ...strangers.map((id) => `${id}: never asked for`)];
}

/** The number of replies of each kind. */
export function summary(history: ReadonlyMap<number, Reported>): Record<Reported, number> {
  const counts: Record<Reported, number> = { applied: 0, refused: 0, not_executed: 0, unknown: 0 };
  for (const reported of history.values()) counts[reported] += 1;
  return counts;
}
