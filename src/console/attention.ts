// What somebody who looks at the instance should see first, in words, with the part of the page that tells more.
// Pure. Must not know the page.
import type { BackendStats, History, RunningRequest, Stats } from './ask.ts';
import { formatClock, formatCount, formatShare, formatSpan } from './format.ts';

/** One thing to look at. */
export type Attention = {
  readonly severity: 'bad' | 'warn';
  readonly text: string;
  /** The id of the part to look at. */
  readonly part: 'charts' | 'running' | 'workers' | 'backends' | 'errors';
};

/** Why a worker is not ready; the words of docs/errors.md in short. */
export const unreadyMeanings: Readonly<Record<string, string>> = {
  STARTING: 'the worker has not asked the database yet',
  STOPPING: 'the gateway is stopping',
  DATABASE_UNREACHABLE: 'the database server cannot be reached',
  DATABASE_REFUSES: 'the database server refuses the account, the connection or a session setting',
  DATABASE_UNUSABLE: 'the database server breaks the protocol or does not get its password',
  DATABASE_TLS: 'TLS towards the database server failed',
  DATABASE_SILENT: 'the database server did not answer in time',
  NO_SERVER: 'none of the database servers can serve',
  GALERA_NOT_READY: 'the Galera node takes no statements at the moment',
};

/** Replicas are usually behind by less; how much is too much for reads is `max_lag`, which the instance minds by itself. */
const lagSeconds = 5;
const longMs = 10_000;
const minute = 60;
const worthMs = 100;
const jump = 5;
const failingShare = 0.01;

/** Finds it in what the instance tells of itself; the worst first, nothing where all is well. */
export function findAttention(
  stats: Stats,
  running: readonly RunningRequest[],
): readonly Attention[] {
  const found = [
    ...lookAtReadiness(stats),
    ...lookAtWorkers(stats),
    ...stats.backends.flatMap(lookAtBackend),
    ...lookAtOutcomes(stats.history),
    ...lookAtLatency(stats.history),
    ...lookAtRunning(running),
  ];
  return found.sort(
    (one, other) => Number(other.severity === 'bad') - Number(one.severity === 'bad'),
  );
}

/** Why the instance is not ready, as its workers tell; null where none of them says. */
export function explainUnready({ workers }: Pick<Stats, 'workers'>): string | null {
  const codes = [...new Set(workers.flatMap(({ unready }) => unready ?? []))];
  if (codes.length === 0) return null;
  return codes
    .map((code) => {
      const meaning = unreadyMeanings[code];
      return meaning === undefined ? code : `${code}: ${meaning}`;
    })
    .join('; ');
}

function lookAtReadiness(stats: Stats): readonly Attention[] {
  if (stats.ready) return [];
  const why = explainUnready(stats);
  const text = why === null ? 'No worker can serve.' : `Clients cannot be served: ${why}.`;
  return [{ severity: 'bad', text, part: 'workers' }];
}

function lookAtWorkers({ workers }: Stats): readonly Attention[] {
  const troubles: readonly [string, string][] = workers.flatMap(
    ({ slot, state, runs_other_code }) => {
      const name = `Worker ${slot}`;
      const told: [string, string][] = [];
      if (state === 'silent')
        told.push(['bad', `${name} does not answer: it hangs, and is replaced after ten seconds.`]);
      if (state === 'down') told.push(['bad', `${name} is down.`]);
      if (state === 'starting') told.push(['warn', `${name} is starting.`]);
      if (runs_other_code)
        told.push([
          'warn',
          `${name} runs another version than the supervisor: restart the instance.`,
        ]);
      return told;
    },
  );
  return troubles.map(([severity, text]) => ({
    severity: severity === 'bad' ? 'bad' : 'warn',
    text,
    part: 'workers',
  }));
}

function lookAtBackend({
  backend,
  role,
  lag_seconds,
  connections,
  waiting,
}: BackendStats): readonly Attention[] {
  const found: Attention[] = [];
  const { busy, max } = connections;
  if (role === 'unusable') {
    found.push({ severity: 'bad', text: `${backend} cannot be used.`, part: 'backends' });
  }
  if ((lag_seconds ?? 0) >= lagSeconds) {
    const text = `${backend} is ${formatSpan((lag_seconds ?? 0) * 1000)} behind its primary.`;
    found.push({ severity: 'warn', text, part: 'backends' });
  }
  if (waiting > 0 && busy >= max) {
    const text = `All ${max} connections to ${backend} are in use, and ${formatCount(waiting)} requests wait. Statements take long, or the pool is too small.`;
    found.push({ severity: 'warn', text, part: 'backends' });
  }
  return found;
}

const sum = (values: readonly (number | null)[]) =>
  values.reduce<number>((total, value) => total + (value ?? 0), 0);

function lookAtOutcomes({ outcomes, interval_seconds: seconds }: History): readonly Attention[] {
  const found: Attention[] = [];
  const unknown = Math.round(sum(outcomes.unknown ?? []) * seconds);
  if (unknown > 0) {
    const text = `${formatCount(unknown)} of the last ten minutes' requests ended unknown: whether they were applied must be looked up.`;
    found.push({ severity: 'bad', text, part: 'errors' });
  }
  const last = Math.round(minute / seconds);
  const of = ([name, series]: [string, readonly (number | null)[]]) =>
    [name, sum(series.slice(-last))] as const;
  const lately = Object.entries(outcomes).map(of);
  const all = lately.reduce((total, [, rate]) => total + rate, 0);
  const failing = lately.reduce((total, [name, rate]) => total + (name === 'ok' ? 0 : rate), 0);
  if (all > 0 && failing / all >= failingShare) {
    const text = `${formatShare(failing / all)} of the last minute's requests failed.`;
    found.push({ severity: 'warn', text, part: 'errors' });
  }
  return found;
}

/** Compares the last quarter of a minute with the time before, and tells since when it is so. */
function lookAtLatency({
  latency_ms: { p99 },
  at,
  interval_seconds: seconds,
}: History): readonly Attention[] {
  const recent = Math.ceil(minute / 4 / seconds);
  const now = medianOf(p99.slice(-recent));
  const before = medianOf(p99.slice(0, -recent));
  if (now === null || before === null || now < worthMs || now < jump * before) return [];
  let since = p99.length - 1;
  while (since > 0 && (p99[since - 1] ?? Number.POSITIVE_INFINITY) >= jump * before) since -= 1;
  const clock = formatClock(new Date((at[since] ?? 0) * 1000));
  const text = `One request in a hundred takes ${formatSpan(now)} or more since ${clock}; before it was ${formatSpan(before)}.`;
  return [{ severity: 'warn', text, part: 'charts' }];
}

function medianOf(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null).sort((one, other) => one - other);
  return known[Math.floor(known.length / 2)] ?? null;
}

function lookAtRunning(running: readonly RunningRequest[]): readonly Attention[] {
  const stalled = running.filter(({ phase }) => phase === 'stalled');
  const long = running.filter(({ phase, age_ms }) => phase !== 'stalled' && age_ms >= longMs);
  const oldestOf = (requests: readonly RunningRequest[]) =>
    formatSpan(Math.max(...requests.map(({ age_ms }) => age_ms)));
  const found: string[] = [];
  if (stalled.length > 0) {
    const clients = [...new Set(stalled.map(({ client }) => client ?? 'a client'))].slice(0, 3);
    const word = stalled.length === 1 ? '1 reply is' : `${formatCount(stalled.length)} replies are`;
    found.push(
      `${word} not read by ${clients.join(', ')}; the oldest holds its connection for ${oldestOf(stalled)}.`,
    );
  }
  if (long.length === 1) found.push(`A request is under way for ${oldestOf(long)}.`);
  if (long.length > 1) {
    found.push(
      `${formatCount(long.length)} requests are under way for more than ten seconds, the oldest for ${oldestOf(long)}.`,
    );
  }
  return found.map((text) => ({ severity: 'warn', text, part: 'running' }));
}
