// A history of writes with unique ids, judged against what the database holds afterwards.
import type { Reply } from '../ask.ts';
import type { Document } from '../db-results.ts';

/** The client's knowledge about one write. */
export type Told = 'applied' | 'refused' | 'not_executed' | 'unknown';

/** The meaning of a reply to a single INSERT. Throws for anything but the contract's answers. */
export function toldBy(reply: Pick<Reply, 'status' | 'text' | 'json'>): Told {
  const { MYSQL_ERRNO, OUTCOME } = reply.json<Document>();
  if (reply.status === 200) return MYSQL_ERRNO === undefined ? 'applied' : 'refused';
  if (reply.status === 503 && OUTCOME === 'not_executed') return OUTCOME;
  if ((reply.status === 502 || reply.status === 504) && OUTCOME === 'unknown') return OUTCOME;
  throw new Error(`not in the contract: ${reply.status} ${reply.text}`);
}

const allowed: Readonly<Record<Told, readonly number[]>> = {
  applied: [1],
  refused: [0],
  not_executed: [0],
  unknown: [0, 1],
};

/** Every write whose rows contradict its reply, as text. `rows` counts them by id. */
export function contradictions(
  history: ReadonlyMap<number, Told>,
  rows: ReadonlyMap<number, number>,
): string[] {
  const found = [...history].flatMap(([id, told]) => {
    const count = rows.get(id) ?? 0;
    return allowed[told].includes(count) ? [] : [`${id}: told ${told}, ${count} rows`];
  });
  const strangers = [...rows.keys()].filter((id) => !history.has(id));
  return [...found, ...strangers.map((id) => `${id}: never asked for`)];
}

/** The number of replies of each kind. */
export function summary(history: ReadonlyMap<number, Told>): Record<Told, number> {
  const counts: Record<Told, number> = { applied: 0, refused: 0, not_executed: 0, unknown: 0 };
  for (const told of history.values()) counts[told] += 1;
  return counts;
}
