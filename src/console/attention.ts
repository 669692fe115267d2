// The warnings at the top of the page, each with the part of the page that shows more. Pure.
import type { StatementList } from '../shared/observe/statement-sums.ts';
import type {
  BackendStats,
  HistoryStats,
  ListedRequest,
  Series,
  Stats,
} from '../shared/observe/stats.ts';
import { formatClock, formatCount, formatShare, formatSpan } from './format.ts';
import { findRise, lookLately, quantileOf } from './rise.ts';

/** One thing to look at. */
export type Attention = {
  readonly severity: 'bad' | 'warn';
  readonly text: string;
  /** The id of the part to look at. */
  readonly part:
    | 'charts'
    | 'clients'
    | 'running'
    | 'statements'
    | 'workers'
    | 'backends'
    | 'errors';
};

/** Why a worker is not ready: docs/reference/errors.md in short. */
export const unreadyMeanings: Readonly<Record<string, string>> = {
  STARTING: 'the worker has not asked the database yet',
  STOPPING: 'the gateway is stopping',
  DATABASE_UNREACHABLE: 'the database server cannot be reached',
  DATABASE_UNRESOLVED: "the database server's name cannot be resolved",
  DATABASE_REFUSED: "the database server refuses the gateway's login or a session setting",
  DATABASE_UNAVAILABLE: 'the database server accepts no connection now',
  DATABASE_UNUSABLE:
    'the database server breaks the protocol, or asks for the password in a way that the gateway refuses',
  DATABASE_TLS: 'TLS towards the database server failed',
  DATABASE_SILENT: 'the database server did not answer in time',
  NO_SERVER: 'none of the database servers can serve',
  GALERA_NOT_READY: 'the Galera node takes no statements at the moment',
};

/** More than the usual lag of replicas. If `max_lag` is less, that counts instead. */
const lagSeconds = 5;
const longMs = 10_000;
const minute = 60;
const worthMs = 100;
const failingShare = 0.01;
/** A latency this many times as long as before is reported. */
const slowerFactor = 5;
/** The same for a database that may explain a full pool. */
const fullFactor = 2;
/** The statements that have a line each. If more are slow, the server is, and one further line says so. */
const maxSlow = 3;
const shapeLength = 120;
/** A client with at least this share of the time is loud if others wait. */
const loudShare = 0.5;
const maxNamed = 3;
/** Refusals of these are no fault of a client that an operator has set up: a page without a token is `anonymous`. */
const withoutFile: ReadonlySet<string> = new Set(['default', 'anonymous']);

/** Finds what needs attention, the worst first; nothing if all is well. */
export function findAttention(
  stats: Stats,
  running: readonly ListedRequest[],
  statements: StatementList | null,
): readonly Attention[] {
  const causes = [
    ...checkStatements(statements),
    ...stats.backends.flatMap((backend) => checkPool(backend, stats.history, running)),
  ];
  const found = [
    ...checkReadiness(stats),
    ...checkWorkers(stats),
    ...checkFiles(stats),
    ...stats.backends.flatMap((backend) => checkRole(backend, new Date(stats.now))),
    ...checkClients(stats.clients),
    ...causes,
    ...checkOutcomes(stats.history),
    // Their consequences need no line of their own.
    ...(causes.length === 0 ? checkLatency(stats.history) : []),
    ...checkStalled(running),
    ...checkLong(running),
  ];
  return found.sort(
    (one, other) => Number(other.severity === 'bad') - Number(one.severity === 'bad'),
  );
}

/** Why the instance is not ready, as its workers report it; null: they report nothing. */
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

function checkReadiness(stats: Stats): readonly Attention[] {
  if (stats.ready) return [];
  const why = explainUnready(stats);
  const text = why === null ? 'No worker can serve.' : `Clients cannot be served: ${why}.`;
  return [{ severity: 'bad', text, part: 'workers' }];
}

function checkWorkers({ workers }: Stats): readonly Attention[] {
  const troubles: readonly [string, string][] = workers.flatMap(
    ({ slot, state, runs_other_code }) => {
      const name = `Worker ${slot}`;
      const found: [string, string][] = [];
      if (state === 'silent')
        found.push([
          'bad',
          `${name} does not answer: it hangs, and is replaced after ten seconds.`,
        ]);
      if (state === 'down') found.push(['bad', `${name} is down.`]);
      if (state === 'starting') found.push(['warn', `${name} is starting.`]);
      if (runs_other_code)
        found.push([
          'warn',
          `${name} runs another version than the supervisor: restart the instance.`,
        ]);
      return found;
    },
  );
  return troubles.map(([severity, text]) => ({
    severity: severity === 'bad' ? 'bad' : 'warn',
    text,
    part: 'workers',
  }));
}

/** One line for each file, with its first fault. */
function checkFiles({ file_faults: faults }: Stats): readonly Attention[] {
  return faults.flatMap(({ key, at, problem }, index) => {
    if (faults.findIndex((fault) => fault.key === key) < index) return [];
    const place = at === null ? '' : `${at}: `;
    const text = `The file of ${key} cannot be used, and what it held before stays in use: ${place}${problem}.`;
    return [{ severity: 'warn' as const, text, part: 'workers' as const }];
  });
}

/** Whether a replica's lag needs attention. */
export function isBehind({ lag_seconds, max_lag_seconds }: BackendStats): boolean {
  return lag_seconds !== null && lag_seconds >= Math.min(lagSeconds, max_lag_seconds ?? lagSeconds);
}

function checkRole(server: BackendStats, now: Date): readonly Attention[] {
  const { backend, role, reason, connect_errno: errno } = server;
  const found: Attention[] = [];
  if (errno !== null) {
    const text = `${backend} refuses new connections of the gateway with errno ${errno}: the log and the runbook say what it means.`;
    found.push({ severity: 'bad', text, part: 'backends' });
  }
  if (role === 'unusable') {
    const text = `${backend} cannot be used${reason === null ? '' : `: ${reason}`}.`;
    found.push({ severity: 'bad', text, part: 'backends' });
  }
  if (isBehind(server)) {
    const [lag, most] = [server.lag_seconds ?? 0, server.max_lag_seconds];
    const since = formatClock(new Date(now.getTime() - 1000 * lag));
    const limit = formatSpan(1000 * (most ?? 0));
    const [beyond, within] = [
      `That is more than max_lag (${limit}): it gets no reads.`,
      `It still gets reads, up to max_lag (${limit}).`,
    ];
    const reads = most === null ? '' : ` ${lag > most ? beyond : within}`;
    const text = `${backend} is ${formatSpan(1000 * lag)} behind its primary: it shows nothing that was written since ${since}.${reads}`;
    found.push({ severity: 'warn', text, part: 'backends' });
  }
  return found;
}

function checkPool(
  { backend, connections: { busy, max }, transactions_held, waiting }: BackendStats,
  history: HistoryStats,
  running: readonly ListedRequest[],
): readonly Attention[] {
  if (waiting === 0 || busy < max) return [];
  const began = 1 + history.waiting.lastIndexOf(0);
  // The history does not cover what has just begun.
  const isKnown = began < history.at.length;
  const from = Math.max(began, history.at.length - recentPoints(history));
  const waits = quantileOf(history.phases_p95_ms.waiting.slice(from), 0.5);
  const requests = waiting === 1 ? '1 request waits' : `${formatCount(waiting)} requests wait`;
  const details = [
    ...(isKnown ? [`since ${clockAt(history, began === 0 ? null : began)}`] : []),
    ...(isKnown && waits !== null ? [`for up to ${formatSpan(waits)}`] : []),
  ];
  const stalled = running.filter((one) => one.phase === 'stalled' && one.backend === backend);
  const text = [
    `All ${max} connections to ${backend} are in use, and ${requests}`,
    details.length === 0 ? '. ' : `, ${details.join(', ')}. `,
    [
      ...explainHeld(stalled.length, transactions_held),
      // Together, they may hold half of the connections. If they do, requests wait because of them, and the database explains nothing.
      ...(2 * (stalled.length + transactions_held) >= max ? [] : [explainFull(history)]),
    ].join(' '),
  ].join('');
  return [{ severity: 'warn', text, part: 'backends' }];
}

/** Whether clients hold the connections; nothing if they hold none. */
function explainHeld(stalled: number, transactions: number): readonly string[] {
  const explain = (held: number, what: string) =>
    held === 0 ? [] : [`${formatCount(held)} ${held === 1 ? 'is' : 'are'} held by ${what}.`];
  return [
    ...explain(stalled, 'replies that no client reads'),
    ...explain(transactions, 'transactions that clients have open'),
  ];
}

/** Whether the database is slow, or the pool too small. */
function explainFull(history: HistoryStats): string {
  const firstRow = history.phases_p95_ms.first_row;
  const recent = recentPoints(history);
  const slower = findRise(firstRow, recent, fullFactor);
  const isCompared = quantileOf(firstRow.slice(0, -recent), 0.5) !== null;
  const now = formatSpan(quantileOf(firstRow.slice(-recent), 0.5));
  if (slower !== null) {
    return `The database has become slow: it takes ${now}; before it was ${formatSpan(slower.before)}.`;
  }
  if (!isCompared) return `The database takes ${now}; how long it took before is not known.`;
  return `The database is as fast as before (${now}): the pool is too small for so many requests.`;
}

function checkStatements(reply: StatementList | null): readonly Attention[] {
  if (reply === null) return [];
  const slow = lookLately(reply)
    .flatMap(({ statement, share, rise }) =>
      rise === null ? [] : [{ digest: statement.digest, share, rise }],
    )
    .sort((one, other) => other.share - one.share);
  const texts = slow.slice(0, maxSlow).map(({ digest, share, rise }) => {
    const since = clockAt(reply.history, rise.since);
    return `The database takes ${formatSpan(rise.now)} for ${quote(digest)} since ${since}; before it was ${formatSpan(rise.before)}. That is ${formatShare(share)} of all its time now.`;
  });
  const more = slow.length - texts.length;
  if (more > 0)
    texts.push(`${formatCount(more)} more statements are slow: the database server is.`);
  return texts.map((text) => ({ severity: 'warn', text, part: 'statements' }));
}

/** The client that takes most of the time while others wait, and the clients that are refused. */
function checkClients({ clients }: Stats['clients']): readonly Attention[] {
  const [loudest] = clients;
  const waiting = clients.filter((one) => one !== loudest && one.waiting > 0);
  const found: Attention[] = [];
  const isLoud = loudest !== undefined && loudest.share >= loudShare && loudest.waiting > 0;
  if (isLoud && waiting.length > 0) {
    const text = `${loudest.client} is loud: it took ${formatShare(loudest.share)} of the last minute's time, and ${listNames(waiting)} must wait.`;
    found.push({ severity: 'warn', text, part: 'clients' });
  }
  const refused = clients.filter(
    ({ client, refused_recently }) => refused_recently > 0 && !withoutFile.has(client),
  );
  if (refused.length > 0) {
    const count = sum(refused.map(({ refused_recently }) => refused_recently));
    const requests = count === 1 ? '1 request' : `${formatCount(count)} requests`;
    const text = `${requests} of ${listNames(refused)} ${count === 1 ? 'was' : 'were'} refused in the last ten minutes: the table of clients says why.`;
    found.push({ severity: 'warn', text, part: 'clients' });
  }
  return found;
}

function listNames(clients: readonly { readonly client: string }[]): string {
  const names = clients.slice(0, maxNamed).map(({ client }) => client);
  const more = clients.length - names.length;
  return [...names, ...(more > 0 ? [`${formatCount(more)} more`] : [])].join(', ');
}

const sum = (values: readonly (number | null)[]) =>
  values.reduce<number>((total, value) => total + (value ?? 0), 0);

function checkOutcomes(history: HistoryStats): readonly Attention[] {
  const { outcomes, data_refusals: refusals, interval_seconds: seconds } = history;
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
  const notOk = lately.reduce((total, [name, rate]) => total + (name === 'ok' ? 0 : rate), 0);
  // A duplicate key is an answer that programs expect.
  const failing = notOk - sum(refusals.slice(-last));
  if (all > 0 && failing / all >= failingShare) {
    const text = `${formatShare(failing / all)} of the last minute's requests failed.`;
    found.push({ severity: 'warn', text, part: 'errors' });
  }
  return found;
}

function checkLatency(history: HistoryStats): readonly Attention[] {
  const { p99 } = history.latency_ms;
  const rise = findRise(p99, recentPoints(history), slowerFactor);
  if (rise === null || rise.now < worthMs) return [];
  const text = `One request in a hundred takes ${formatSpan(rise.now)} or more since ${clockAt(history, rise.since)}; before it was ${formatSpan(rise.before)}. ${blame(history)}`;
  return [{ severity: 'warn', text, part: 'charts' }];
}

/** Whether the gateway or the database takes the time. */
function blame({ latency_ms, phases_p95_ms, interval_seconds }: HistoryStats): string {
  const now = (series: Series) =>
    quantileOf(series.slice(-recentPoints({ interval_seconds })), 0.5) ?? 0;
  const [whole, waiting, firstRow] = [
    now(latency_ms.p95),
    now(phases_p95_ms.waiting),
    now(phases_p95_ms.first_row),
  ];
  if (firstRow >= whole / 2) return 'Most of that is the database.';
  if (waiting >= whole / 2) return 'Most of that is waiting for a connection.';
  return 'Most of that is neither waiting for a connection nor for the first row.';
}

/** A quarter of a minute. */
function recentPoints({ interval_seconds }: Pick<HistoryStats, 'interval_seconds'>): number {
  return Math.ceil(minute / 4 / interval_seconds);
}

/** @param point null: before the first point */
function clockAt({ at }: { readonly at: readonly number[] }, point: number | null): string {
  const clock = formatClock(new Date((at[point ?? 0] ?? Number.NaN) * 1000));
  return point === null ? `before ${clock}` : clock;
}

function quote(shape: string | null): string {
  if (shape === null) return 'a statement';
  const characters = [...shape];
  return characters.length <= shapeLength
    ? `“${shape}”`
    : `“${characters.slice(0, shapeLength).join('')}…”`;
}

function findOldest(requests: readonly ListedRequest[]): ListedRequest | undefined {
  return requests.toSorted((one, other) => other.age_ms - one.age_ms)[0];
}

function checkStalled(running: readonly ListedRequest[]): readonly Attention[] {
  const stalled = running.filter(({ phase }) => phase === 'stalled');
  const oldest = findOldest(stalled);
  if (oldest === undefined) return [];
  const clients = [...new Set(stalled.map(nameClient))].slice(0, 3);
  const about = `${quote(oldest.shape)} (worker ${oldest.worker})`;
  const [who, what] =
    stalled.length === 1
      ? [`${clients[0]} does not read its reply`, about]
      : [
          `${formatCount(stalled.length)} replies are not read by ${clients.join(', ')}`,
          `the oldest ${about}`,
        ];
  const text = `${who}: ${what} holds a connection for ${formatSpan(oldest.age_ms)}. The client is slow, not the database. A reply without progress for 30 s is reset.`;
  return [{ severity: 'warn', text, part: 'running' }];
}

/** Its name and address, as far as they say something. */
function nameClient({ client, address }: ListedRequest): string {
  if (client === 'default') return address ?? 'a client';
  return address === null ? client : `${client} (${address})`;
}

function checkLong(running: readonly ListedRequest[]): readonly Attention[] {
  const long = running.filter(({ phase, age_ms }) => phase !== 'stalled' && age_ms >= longMs);
  const oldest = findOldest(long);
  if (oldest === undefined) return [];
  const { shape, worker, backend, phase } = oldest;
  const where = backend === null ? '' : ` on ${backend}`;
  const about = `${quote(shape)}, ${phase}${where}, worker ${worker}`;
  const span = formatSpan(oldest.age_ms);
  const text =
    long.length === 1
      ? `A request is under way for ${span}: ${about}.`
      : `${formatCount(long.length)} requests are under way for more than ten seconds, the oldest for ${span}: ${about}.`;
  return [{ severity: 'warn', text, part: 'running' }];
}
