// The requests that are being answered now, over all workers, under numbers that are unique in the instance.
// Must not know how workers are asked.
import type { ListedRequest, LiveRequests, RequestList } from '../../shared/observe/stats.ts';

/** What a worker has told; null: it has not answered in time. */
export type WorkerAnswer = {
  readonly slot: number;
  readonly pid: number;
  readonly told: LiveRequests | null;
};

/** Whose request it is, by the number that people know. */
export type RequestName = { readonly slot: number; readonly pid: number; readonly id: number };

/** One list of all, the oldest first. */
export function joinRequests(answers: readonly WorkerAnswer[]): RequestList {
  const requests = answers.flatMap(({ slot, pid, told }) =>
    (told?.requests ?? []).map(
      (one): ListedRequest => ({
        ...one,
        id: `${slot}-${pid}-${one.id}`,
        worker: slot,
      }),
    ),
  );
  return {
    requests: requests.sort((left, right) => right.age_ms - left.age_ms),
    omitted: answers.reduce((sum, { told }) => sum + (told?.omitted ?? 0), 0),
    silent_workers: answers.filter(({ told }) => told === null).map(({ slot }) => slot),
  };
}

/** Takes such a number apart; null: it is none. */
export function parseRequestName(text: string): RequestName | null {
  const [, slot, pid, id] = /^(\d{1,5})-(\d{1,10})-(\d{1,15})$/.exec(text) ?? [];
  if (slot === undefined || pid === undefined || id === undefined) return null;
  return { slot: Number(slot), pid: Number(pid), id: Number(id) };
}
