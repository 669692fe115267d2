// The clients of an instance over the last ten minutes: how many connections each has held, and how many of its requests were refused.
import type { Sample, WorkerMetric } from '../../shared/observe/metrics.ts';
import {
  type ClientList,
  type ClientStats,
  maxListedClientHistories,
  maxListedClients,
} from '../../shared/observe/stats.ts';
import type { Reported } from './stats.ts';

/** The time between two points. */
export const clientIntervalMs = 10_000;
/** How many points there are, with the one that has not ended. */
const maxPoints = 60;
/** The points whose time a client's share is taken from: a minute. */
const recentPoints = 6;

/** The sums of one client over all workers, the ended ones included. */
type Sums = {
  heldSeconds: number;
  inFlight: number;
  waiting: number;
  requests: number;
  replyBytes: number;
  refused: number;
  readonly refusedBy: Record<string, number>;
};

/** The counts of all clients at one moment. */
type Moment = {
  readonly atMs: number;
  readonly heldSeconds: ReadonlyMap<string, number>;
  readonly refused: ReadonlyMap<string, number>;
};

/** The points of all clients. */
export class ClientHistory {
  readonly #moments: Moment[] = [];

  /** Ends a point and begins the next; to be called every `clientIntervalMs`. @param nowMs since 1970 */
  beginPoint(reported: Reported, nowMs: number): void {
    this.#moments.push(momentOf(sumUp(reported), nowMs));
    if (this.#moments.length > maxPoints) this.#moments.shift();
  }

  /** Lists the clients that workers have reported, those that have lately held connections for the longest time first. */
  list(reported: Reported, nowMs: number): ClientList {
    const sums = sumUp(reported);
    const moments = [...this.#moments, momentOf(sums, nowMs)];
    const recentSeconds = (name: string) =>
      increase(moments.at(-1 - recentPoints) ?? moments[0], moments.at(-1), 'heldSeconds', name);
    const all = [...sums].map(([name, own]) => ({ name, own, recent: recentSeconds(name) }));
    const whole = all.reduce((sum, { recent }) => sum + recent, 0);
    all.sort(
      (one, other) =>
        other.recent - one.recent ||
        other.own.waiting - one.own.waiting ||
        one.name.localeCompare(other.name),
    );
    return {
      history: {
        interval_seconds: clientIntervalMs / 1000,
        at: moments.slice(0, -1).map(({ atMs }) => Math.round(atMs / 1000)),
      },
      omitted: Math.max(0, all.length - maxListedClients),
      clients: all.slice(0, maxListedClients).map(
        ({ name, own, recent }, at): ClientStats => ({
          client: name,
          share: whole === 0 ? 0 : rounded(recent / whole),
          in_flight: own.inFlight,
          waiting: own.waiting,
          refused_recently: increase(moments[0], moments.at(-1), 'refused', name),
          requests: own.requests,
          refused: own.refused,
          refused_by: own.refusedBy,
          held_seconds: rounded(own.heldSeconds),
          reply_bytes: own.replyBytes,
          history: at < maxListedClientHistories ? pointsOf(moments, name) : null,
        }),
      ),
    };
  }
}

function momentOf(sums: ReadonlyMap<string, Sums>, atMs: number): Moment {
  const all = [...sums];
  return {
    atMs,
    heldSeconds: new Map(all.map(([name, { heldSeconds }]) => [name, heldSeconds])),
    refused: new Map(all.map(([name, { refused }]) => [name, refused])),
  };
}

/** The connections that a client held on average in each point, and its refusals. */
function pointsOf(moments: readonly Moment[], name: string): NonNullable<ClientStats['history']> {
  const pairs = moments.slice(1).map((end, at) => [moments[at], end] as const);
  return {
    connections: pairs.map(([begin, end]) => {
      const seconds = (end.atMs - (begin?.atMs ?? end.atMs)) / 1000;
      return seconds <= 0 ? 0 : rounded(increase(begin, end, 'heldSeconds', name) / seconds);
    }),
    refused: pairs.map(([begin, end]) => increase(begin, end, 'refused', name)),
  };
}

/** Never below 0: a client that was removed and is there again begins at 0. */
function increase(
  begin: Moment | undefined,
  end: Moment | undefined,
  of: 'heldSeconds' | 'refused',
  name: string,
): number {
  return Math.max(0, (end?.[of].get(name) ?? 0) - (begin?.[of].get(name) ?? 0));
}

function sumUp({ past, present }: Reported): ReadonlyMap<string, Sums> {
  const sums = new Map<string, Sums>();
  for (const { samples } of [...past, ...present.values()]) addAll(samples, sums);
  return sums;
}

function addAll(samples: readonly Sample[], sums: Map<string, Sums>): void {
  for (const sample of samples) {
    const { client } = sample.labels;
    if (client === undefined || !Object.hasOwn(adders, sample.metric)) continue;
    const own = sums.get(client) ?? emptySums();
    sums.set(client, own);
    adders[sample.metric as ClientMetric](own, sample);
  }
}

function emptySums(): Sums {
  return {
    heldSeconds: 0,
    inFlight: 0,
    waiting: 0,
    requests: 0,
    replyBytes: 0,
    refused: 0,
    refusedBy: {},
  };
}

type ClientMetric = keyof typeof adders;

/** The field that each metric of clients adds to. */
const adders = {
  dbhttpd_client_requests_total: (sums: Sums, { value }: Sample) => {
    sums.requests += value;
  },
  dbhttpd_client_refused_total: (sums: Sums, { value, labels: { code = '' } }: Sample) => {
    sums.refused += value;
    if (value > 0) sums.refusedBy[code] = (sums.refusedBy[code] ?? 0) + value;
  },
  dbhttpd_client_held_seconds_total: (sums: Sums, { value }: Sample) => {
    sums.heldSeconds += value;
  },
  dbhttpd_client_reply_bytes_total: (sums: Sums, { value }: Sample) => {
    sums.replyBytes += value;
  },
  dbhttpd_client_requests_in_flight: (sums: Sums, { value }: Sample) => {
    sums.inFlight += value;
  },
  dbhttpd_client_requests_waiting: (sums: Sums, { value }: Sample) => {
    sums.waiting += value;
  },
} as const satisfies Partial<Record<WorkerMetric, (sums: Sums, sample: Sample) => void>>;

function rounded(value: number): number {
  return Math.round(value * 10_000) / 10_000;
}
