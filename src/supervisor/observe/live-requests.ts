// The requests in flight in all workers, with ids that are unique in the instance.
import type { ListedRequest, LiveRequests, RequestList } from '../../shared/observe/stats.ts';

/** A worker's answer; `live` is null if it did not come in time. */
export type WorkerAnswer = {
  readonly slot: number;
  readonly pid: number;
  readonly live: LiveRequests | null;
};

/** A request by the parts of its id. */
export type RequestName = { readonly slot: number; readonly pid: number; readonly id: number };

/** Joins the answers to one list, the oldest request first. */
export function joinRequests(answers: readonly WorkerAnswer[]): RequestList {
  const requests = answers.flatMap(({ slot, pid, live }) =>
    (live?.requests ?? []).map(
      (one): ListedRequest => ({
        ...one,
        id: `${slot}-${pid}-${one.id}`,
        worker: slot,
      }),
    ),
  );
  return {
    requests: requests.sort((left, right) => right.age_ms - left.age_ms),
    omitted: answers.reduce((sum, { live }) => sum + (live?.omitted ?? 0), 0),
    silent_workers: answers.filter(({ live }) => live === null).map(({ slot }) => slot),
  };
}

/** Parses an id; null: it is malformed. */
export function parseRequestName(text: string): RequestName | null {
  const [, slot, pid, id] = /^(\d{1,5})-(\d{1,10})-(\d{1,15})$/.exec(text) ?? [];
  if (slot === undefined || pid === undefined || id === undefined) return null;
  return { slot: Number(slot), pid: Number(pid), id: Number(id) };
}
