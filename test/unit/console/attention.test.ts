// The promise of "to look at": each problem is described in words, and nothing else is.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findAttention, unreadyMeanings } from '../../../src/console/attention.ts';
import { unreadyCodes } from '../../../src/shared/failure-codes.ts';
import type { StatementList } from '../../../src/shared/observe/statement-sums.ts';
import type { Stats } from '../../../src/shared/observe/stats.ts';
import { makeUpAnswers } from '../../support/console-answers.ts';

const { stats: made } = makeUpAnswers();
const length = made.history.at.length;
const well: Stats = {
  ...made,
  workers: made.workers.slice(0, 1),
  backends: [{ ...made.backends[0], lag_seconds: 0.2, waiting: 0 } as Stats['backends'][number]],
  clients: { ...made.clients, clients: [] },
  history: {
    ...made.history,
    outcomes: { ok: Array(length).fill(100), error: Array(length).fill(0.1), unknown: [] },
    data_refusals: Array(length).fill(0),
  },
};
const reported = (
  stats: Stats,
  running: Parameters<typeof findAttention>[1] = [],
  statements: StatementList | null = null,
) => findAttention(stats, running, statements).map(({ severity, text }) => `${severity}: ${text}`);
const backend = (changed: Partial<Stats['backends'][number]>): Stats => ({
  ...well,
  backends: [{ ...well.backends[0], backend: 'db', ...changed } as Stats['backends'][number]],
});
const history = (changed: Partial<Stats['history']>): Stats => ({
  ...well,
  history: { ...well.history, ...changed },
});

test('is silent where all is well', () => assert.deepEqual(reported(well), []));

type Client = Stats['clients']['clients'][number];
const clients = (...all: readonly Partial<Client>[]): Stats => {
  const [usual] = made.clients.clients;
  const quiet = { waiting: 0, refused_recently: 0, share: 0 };
  return {
    ...well,
    clients: {
      ...made.clients,
      clients: all.map((one) => ({ ...usual, ...quiet, ...one }) as Client),
    },
  };
};

test('names the client that is loud while others wait, and only then', () => {
  const loud = { client: 'report', share: 0.9, waiting: 40 };
  assert.deepEqual(
    reported(clients(loud, { client: 'web', waiting: 2 }, { client: 'shop', waiting: 1 })),
    ["warn: report is loud: it took 90 % of the last minute's time, and web, shop must wait."],
  );
  assert.deepEqual(reported(clients(loud, { client: 'web' })), []);
  assert.deepEqual(reported(clients({ ...loud, waiting: 0 }, { client: 'web', waiting: 2 })), []);
  assert.deepEqual(reported(clients({ ...loud, share: 0.3 }, { client: 'web', waiting: 2 })), []);
});

test('names clients that were refused', () => {
  const refused = ['a', 'b', 'c', 'd', 'e'].map((client) => ({ client, refused_recently: 3 }));
  assert.deepEqual(reported(clients(...refused)), [
    'warn: 15 requests of a, b, c, 2 more were refused in the last ten minutes: the table of clients says why.',
  ]);
  assert.deepEqual(reported(clients({ client: 'web', refused_recently: 1 })), [
    'warn: 1 request of web was refused in the last ten minutes: the table of clients says why.',
  ]);
  // Without a clients file the charts and the last errors show it. Anyone may be `anonymous`.
  for (const client of ['default', 'anonymous']) {
    assert.deepEqual(reported(clients({ client, refused_recently: 1 })), []);
  }
});

test('explains why no request can be served', () => {
  const workers = well.workers.map((one) => ({ ...one, unready: 'DATABASE_SILENT' }));
  assert.deepEqual(reported({ ...well, ready: false, workers }), [
    'bad: Clients cannot be served: DATABASE_SILENT: the database server did not answer in time.',
  ]);
});

test('has words for every reason not to be ready', () => {
  assert.deepEqual(Object.keys(unreadyMeanings).sort(), [...unreadyCodes].sort());
});

test('names a server that refuses new connections, with its number, though others still serve', () => {
  assert.deepEqual(reported(backend({ connect_errno: 1045 })), [
    'bad: db refuses new connections of the gateway with errno 1045: the log and the runbook say what it means.',
  ]);
});

test('names a worker that hangs', () => {
  const workers = well.workers.map((one) => ({ ...one, state: 'silent' as const }));
  assert.match(reported({ ...well, workers })[0] ?? '', /^bad: Worker 0 does not answer/);
});

test('names a file that cannot be used, once, with its first fault', () => {
  const fault = (key: string, at: string | null) => ({ section: 's', key, at, problem: 'is bad' });
  const file_faults = [fault('clients', '/c.ini: [web] (line 3)'), fault('clients', null)];
  const stays = 'cannot be used, and what it held before stays in use';
  assert.deepEqual(
    reported({ ...well, file_faults: [...file_faults, fault('token_file', null)] }),
    [
      `warn: The file of clients ${stays}: /c.ini: [web] (line 3): is bad.`,
      `warn: The file of token_file ${stays}: is bad.`,
    ],
  );
});

test('names a server whose connections are all in use while requests wait', () => {
  const { connections } = well.backends[0] as Stats['backends'][number];
  assert.deepEqual(
    reported(backend({ waiting: 3, connections: { ...connections, busy: 9, max: 10 } })),
    [],
  );
});

/** The time as people read it. */
const clockOf = (seconds = 0) => new Date(seconds * 1000).toTimeString().slice(0, 8);
const flat = (value: number) => made.history.at.map(() => value);
/** Other values in the last twenty points. */
const changed = (before: number, now: number) =>
  made.history.at.map((_, at) => (at < length - 20 ? before : now));
const full = (firstRow: readonly number[], more: Partial<Stats['history']> = {}): Stats => ({
  ...backend({ waiting: 3 }),
  history: {
    ...well.history,
    waiting: changed(0, 3),
    phases_p95_ms: { waiting: changed(0.4, 230), first_row: firstRow },
    ...more,
  },
});

test('reports a full pool: since when, how long requests wait, and whether the database is to blame', () => {
  const since = `since ${clockOf(made.history.at[length - 20])}, for up to 230 ms`;
  const all = `warn: All 10 connections to db are in use, and 3 requests wait, ${since}.`;
  assert.deepEqual(reported(full(flat(20))), [
    `${all} The database is as fast as before (20 ms): the pool is too small for so many requests.`,
  ]);
  assert.deepEqual(reported(full(changed(20, 90))), [
    `${all} The database has become slow: it takes 90 ms; before it was 20 ms.`,
  ]);
  const [request] = makeUpAnswers().requests;
  assert.ok(request);
  const stalled = { ...request, phase: 'stalled' as const, backend: 'db' };
  const small =
    'The database is as fast as before (20 ms): the pool is too small for so many requests.';
  const unread = '1 is held by replies that no client reads.';
  assert.equal(reported(full(flat(20)), [stalled])[0], `${all} ${unread} ${small}`);
  const five = [stalled, stalled, stalled, stalled, stalled];
  assert.equal(
    reported(full(flat(20)), five)[0],
    `${all} 5 are held by replies that no client reads.`,
  );
  const [server] = full(flat(20)).backends;
  assert.ok(server);
  const held = { ...full(flat(20)), backends: [{ ...server, transactions_held: 4 }] };
  const open = '4 are held by transactions that clients have open.';
  assert.equal(reported(held)[0], `${all} ${open} ${small}`);
  assert.equal(reported(held, [stalled])[0], `${all} ${unread} ${open}`);
  const ever = full(flat(20), { waiting: flat(3) });
  assert.match(reported(ever)[0] ?? '', / since before \d\d:\d\d:\d\d, /);
});

test('names a replica that is behind, and a server that cannot be used', () => {
  const replica = { role: 'replica', lag_seconds: 12 };
  const behind = `warn: db is 12 s behind its primary: it shows nothing that was written since ${clockOf(Date.parse(well.now) / 1000 - 12)}.`;
  assert.deepEqual(reported(backend({ ...replica, max_lag_seconds: 10 })), [
    `${behind} That is more than max_lag (10 s): it gets no reads.`,
  ]);
  assert.deepEqual(reported(backend({ ...replica, max_lag_seconds: 60 })), [
    `${behind} It still gets reads, up to max_lag (1 min 0 s).`,
  ]);
  assert.deepEqual(reported(backend({ ...replica, max_lag_seconds: null })), [behind]);
  assert.deepEqual(reported(backend({ role: 'replica', lag_seconds: 2, max_lag_seconds: 10 })), []);
  const unusable = { role: 'unusable', reason: 'it lacks the last writes' };
  assert.deepEqual(reported(backend(unusable)), [
    'bad: db cannot be used: it lacks the last writes.',
  ]);
  assert.deepEqual(reported(backend({ ...unusable, reason: null })), ['bad: db cannot be used.']);
});

test('counts unknown outcomes, and the share of failures', () => {
  const none = Array(length).fill(0);
  const outcomes = { ok: Array(length).fill(100), unknown: [...none.slice(1), 0.5] };
  assert.match(
    reported(history({ outcomes }))[0] ?? '',
    /^bad: 1 of the last ten minutes' requests ended unknown/,
  );
  const failing = { ok: Array(length).fill(90), error: Array(length).fill(10) };
  assert.deepEqual(reported(history({ outcomes: failing })), [
    "warn: 10 % of the last minute's requests failed.",
  ]);
  const refusals = Array(length).fill(9.5);
  assert.deepEqual(reported(history({ outcomes: failing, data_refusals: refusals })), []);
});

test('reports since when requests take far longer than before', () => {
  const since = length - 40;
  const p99 = well.history.at.map((_, at) => (at < since ? 20 : 900));
  const [text] = reported(history({ latency_ms: { ...well.history.latency_ms, p99 } }));
  const clock = clockOf(well.history.at[since]);
  assert.equal(
    text,
    `warn: One request in a hundred takes 900 ms or more since ${clock}; before it was 20 ms. Most of that is waiting for a connection.`,
  );
});

test('reports how long the oldest request has been in flight', () => {
  const [request] = makeUpAnswers().requests;
  assert.ok(request);
  assert.deepEqual(
    reported(well, [{ ...request, age_ms: 45_000, phase: 'running', backend: 'db' }]),
    [
      'warn: A request is under way for 45 s: “select * from t where id = ?”, running on db, worker 0.',
    ],
  );
});

test('names clients that do not read', () => {
  const [request] = makeUpAnswers().requests;
  assert.ok(request);
  const of = (client: string, address: string | null) =>
    reported(well, [{ ...request, phase: 'stalled', client, address }]);
  const rest =
    'does not read its reply: “select * from t where id = ?” (worker 0) holds a connection for 12 s. The client is slow, not the database. A reply without progress for 30 s is reset.';
  assert.deepEqual(of('default', '10.0.0.9'), [`warn: 10.0.0.9 ${rest}`]);
  assert.deepEqual(of('web', '10.0.0.9'), [`warn: web (10.0.0.9) ${rest}`]);
  assert.deepEqual(of('default', null), [`warn: a client ${rest}`]);
  assert.deepEqual(of('web', null), [`warn: web ${rest}`]);
});

const at = Array.from({ length: 60 }, (_, point) => 1_000_000 + 10 * point);
/** A statement with these average times, point by point, a hundred executions each; before that as `earlierMs` says. */
function statement(digest: string, meansMs: readonly number[], earlierMs = 0) {
  const [first] = makeUpAnswers().statements.statements;
  assert.ok(first);
  const total_ms = meansMs.map((ms) => 100 * ms);
  const all = total_ms.reduce((sum, ms) => sum + ms, 100 * earlierMs);
  const count = 100 * meansMs.length + (earlierMs > 0 ? 100 : 0);
  const history = { count: meansMs.map(() => 100), total_ms };
  return { ...first, digest, count, total_ms: all, history };
}
const of = (...statements: readonly StatementList['statements'][number][]): StatementList => ({
  history: { interval_seconds: 10, at },
  statements,
  named: [],
});
const since = (point: number, before: number, now: number) =>
  at.map((_, place) => (place < point ? before : now));

test('names a statement that has become slow, its earlier time, and since when', () => {
  const told_ = reported(
    well,
    [],
    of(statement('select a', since(50, 2, 80)), statement('b', since(0, 9, 20))),
  );
  assert.deepEqual(told_, [
    `warn: The database takes 80 ms for “select a” since ${clockOf(at[50])}; before it was 2 ms. That is 80 % of all its time now.`,
  ]);
});

test('names it too when it has been slow for all of the ten minutes', () => {
  assert.deepEqual(reported(well, [], of(statement('select a', since(0, 0, 80), 2))), [
    `warn: The database takes 80 ms for “select a” since before ${clockOf(at[0])}; before it was 2 ms. That is 100 % of all its time now.`,
  ]);
});

test('is silent of statements that were always slow, that are rare, or that do not matter', () => {
  const slow = statement('select a', since(0, 0, 500), 400);
  const cheap = statement('select b', since(50, 0.1, 3));
  const rare = { ...statement('select c', since(58, 1, 80)) };
  const history = { count: at.map(() => 1), total_ms: since(59, 1, 80) };
  assert.deepEqual(
    reported(well, [], of(slow, cheap, { ...rare, count: 60, total_ms: 139, history })),
    [],
  );
});

test('blames the server if many statements have become slow', () => {
  const many = Array.from({ length: 5 }, (_, n) => statement(`select ${n}`, since(50, 2, 80)));
  const lines = reported(well, [], of(...many));
  assert.equal(lines.length, 4);
  assert.equal(lines[3], 'warn: 2 more statements are slow: the database server is.');
});

test('does not report the effects of a cause beside the cause', () => {
  const p99 = changed(20, 900);
  const latency_ms = { ...well.history.latency_ms, p99 };
  const lines = reported(history({ latency_ms }), [], of(statement('a', since(50, 2, 80))));
  assert.equal(lines.length, 1);
});
