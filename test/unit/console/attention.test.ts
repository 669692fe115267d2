// The promise of "to look at": each trouble is told in words, and nothing else is.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Stats } from '../../../src/console/ask.ts';
import { findAttention, unreadyMeanings } from '../../../src/console/attention.ts';
import { unreadyCodes } from '../../../src/shared/failure-codes.ts';
import { makeUpAnswers } from '../../support/console-answers.ts';

const { stats: made } = makeUpAnswers();
const length = made.history.at.length;
const well: Stats = {
  ...made,
  workers: made.workers.slice(0, 1),
  backends: [{ ...made.backends[0], lag_seconds: 0.2, waiting: 0 } as Stats['backends'][number]],
  history: {
    ...made.history,
    outcomes: { ok: Array(length).fill(100), error: Array(length).fill(0.1), unknown: [] },
  },
};
const told = (stats: Stats, running: Parameters<typeof findAttention>[1] = []) =>
  findAttention(stats, running).map(({ severity, text }) => `${severity}: ${text}`);
const backend = (changed: Partial<Stats['backends'][number]>): Stats => ({
  ...well,
  backends: [{ ...well.backends[0], backend: 'db', ...changed } as Stats['backends'][number]],
});
const history = (changed: Partial<Stats['history']>): Stats => ({
  ...well,
  history: { ...well.history, ...changed },
});

test('is silent where all is well', () => assert.deepEqual(told(well), []));

test('says why nobody can be served', () => {
  const workers = well.workers.map((one) => ({ ...one, unready: 'DATABASE_SILENT' }));
  assert.deepEqual(told({ ...well, ready: false, workers }), [
    'bad: Clients cannot be served: DATABASE_SILENT: the database server did not answer in time.',
  ]);
});

test('has words for every reason not to be ready', () => {
  assert.deepEqual(Object.keys(unreadyMeanings).sort(), [...unreadyCodes].sort());
});

test('names a worker that hangs', () => {
  const workers = well.workers.map((one) => ({ ...one, state: 'silent' as const }));
  assert.match(told({ ...well, workers })[0] ?? '', /^bad: Worker 0 does not answer/);
});

test('names a server whose connections are all in use while requests wait', () => {
  const { connections } = well.backends[0] as Stats['backends'][number];
  assert.deepEqual(
    told(backend({ waiting: 3, connections: { ...connections, busy: 9, max: 10 } })),
    [],
  );
  assert.match(
    told(backend({ waiting: 3 }))[0] ?? '',
    /^warn: All 10 connections to db .* 3 requests wait/,
  );
});

test('names a replica that is behind, and a server that cannot be used', () => {
  assert.deepEqual(told(backend({ role: 'replica', lag_seconds: 12 })), [
    'warn: db is 12 s behind its primary.',
  ]);
  assert.deepEqual(told(backend({ role: 'unusable' })), ['bad: db cannot be used.']);
});

test('counts what ended unknown, and the share that failed', () => {
  const none = Array(length).fill(0);
  const outcomes = { ok: Array(length).fill(100), unknown: [...none.slice(1), 0.5] };
  assert.match(
    told(history({ outcomes }))[0] ?? '',
    /^bad: 1 of the last ten minutes' requests ended unknown/,
  );
  const failing = { ok: Array(length).fill(90), error: Array(length).fill(10) };
  assert.deepEqual(told(history({ outcomes: failing })), [
    "warn: 10 % of the last minute's requests failed.",
  ]);
});

test('tells since when requests take far longer than before', () => {
  const since = length - 40;
  const p99 = well.history.at.map((_, at) => (at < since ? 20 : 900));
  const [text] = told(history({ latency_ms: { ...well.history.latency_ms, p99 } }));
  const clock = new Date((well.history.at[since] ?? 0) * 1000).toTimeString().slice(0, 8);
  assert.equal(
    text,
    `warn: One request in a hundred takes 900 ms or more since ${clock}; before it was 20 ms.`,
  );
});

test('tells how long the oldest request is under way', () => {
  const [request] = makeUpAnswers().requests;
  assert.ok(request);
  assert.deepEqual(told(well, [{ ...request, age_ms: 45_000 }]), [
    'warn: A request is under way for 45 s.',
  ]);
});

test('names clients that do not read', () => {
  const [request] = makeUpAnswers().requests;
  assert.ok(request);
  const stalled = { ...request, phase: 'stalled', client: '10.0.0.9' };
  assert.deepEqual(told(well, [stalled]), [
    'warn: 1 reply is not read by 10.0.0.9; the oldest holds its connection for 12 s.',
  ]);
});
