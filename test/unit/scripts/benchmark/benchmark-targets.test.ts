// Targets and the verdicts on them: two limits, errors, figures beside each other.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listCells } from '../../../../scripts/benchmark/cells.ts';
import { gauges } from '../../../../scripts/benchmark/gauges.ts';
import { judge, type Measured } from '../../../../scripts/benchmark/judge.ts';
import { isClient, isConstant, type Peer } from '../../../../scripts/benchmark/peers.ts';
import { renderTargets } from '../../../../scripts/benchmark/report.ts';
import type { Summary } from '../../../../scripts/benchmark/rounds.ts';
import { type Source, type Target, targets } from '../../../../scripts/benchmark/targets.ts';

const summary: Summary = {
  rounds: 5,
  errors: 0,
  perSecond: 100,
  p50Ms: 1,
  p99Ms: 2,
  cpuUs: 50,
  databaseCpuUs: 20,
  firstByteMs: null,
  mbPerCpuSecond: null,
  growthMb: 1,
  othersCores: 0,
};

const ratio: Source = {
  kind: 'ratio',
  cell: 'point/64',
  figure: 'perSecond',
  of: 'gateway',
  to: 'fastify',
};

const target: Target = {
  title: 'requests/s against fastify',
  source: ratio,
  compare: 'at least',
  good: 2.8,
  aim: 4,
  unit: '×',
  beside: { title: 'tuned', source: { ...ratio, to: 'fastify-tuned' } },
  ceiling: 'constant',
};

const measuredOf = (summaries: Partial<Record<Peer, Partial<Summary>>>): Measured => ({
  summary: (cell, peer) => {
    const own = summaries[peer];
    return cell === 'point/64' && own !== undefined ? { ...summary, ...own } : null;
  },
  gauges: [],
  cores: 2,
});

const wordOf = (wish: Target, perSecond: number) =>
  judge(wish, measuredOf({ gateway: { perSecond }, fastify: {} })).word;

test('a figure falls short, is good from its first limit on, reaches the aim at the second', () => {
  const figures = [279, 280, 399, 400];
  const words = figures.map((perSecond) => wordOf(target, perSecond));
  assert.deepEqual(words, ['falls short', 'good', 'good', 'reaches aim']);
});

test('an upper limit is met at the limit and below', () => {
  const upper: Target = { ...target, compare: 'at most', good: 2, aim: 1 };
  const words = [201, 200, 100, 99].map((perSecond) => wordOf(upper, perSecond));
  assert.deepEqual(words, ['falls short', 'good', 'reaches aim', 'reaches aim']);
});

test('with only one limit, the other decides nothing', () => {
  assert.equal(wordOf({ ...target, aim: null }, 9000), 'good');
  assert.equal(wordOf({ ...target, good: null }, 399), 'falls short');
  assert.equal(wordOf({ ...target, good: null }, 400), 'reaches aim');
});

test('the verdict counts the plain peer; the tuned one is shown beside it', () => {
  const measured = measuredOf({
    gateway: { perSecond: 500 },
    fastify: {},
    'fastify-tuned': { perSecond: 250 },
  });
  const verdict = judge(target, measured);
  assert.deepEqual([verdict.measured, verdict.beside, verdict.word], [5, 2, 'reaches aim']);
  assert.match(
    renderTargets([verdict]),
    /5\.00 × +≥ 2\.80 × +≥ 4\.00 × +- {2}reaches aim +tuned: 2\.00 ×/,
  );
});

test('a figure with errors of the gateway, or without a measurement, has no verdict', () => {
  const shaky = measuredOf({ gateway: { perSecond: 500, errors: 1 }, fastify: {} });
  assert.deepEqual([judge(target, shaky).measured, judge(target, shaky).word], [null, null]);
  assert.equal(judge(target, measuredOf({ gateway: {} })).word, null);
  const failed = measuredOf({ gateway: { perSecond: Number.NaN }, fastify: {} });
  assert.equal(judge(target, failed).word, null);
  assert.match(renderTargets([judge(target, failed)]), /not measured/);
});

test('errors of a peer do not hide its good samples', () => {
  const measured = measuredOf({ gateway: {}, fastify: { errors: 3 } });
  assert.equal(judge(target, measured).word, 'falls short');
});

test('a difference is a difference, and a single figure has no comparison', () => {
  const measured = measuredOf({ gateway: { cpuUs: 51.2 }, 'gateway-unlogged': { cpuUs: 50 } });
  const source: Source = { ...ratio, kind: 'difference', figure: 'cpuUs', to: 'gateway-unlogged' };
  assert.ok(Math.abs((judge({ ...target, source }, measured).measured ?? 0) - 1.2) < 1e-9);
  const alone: Source = { ...ratio, kind: 'figure', figure: 'cpuUs', to: null };
  assert.equal(judge({ ...target, source: alone }, measured).measured, 51.2);
});

test('a verdict on a machine that others used reports it', () => {
  const busy = measuredOf({ gateway: { perSecond: 500 }, fastify: { othersCores: 0.9 } });
  const verdict = judge(target, busy);
  assert.deepEqual([verdict.word, verdict.disturbed], ['reaches aim', true]);
  assert.match(renderTargets([verdict]), /reaches aim \*.*\n {2}\* in most rounds others used/);
  const quiet = measuredOf({ gateway: { perSecond: 500 }, fastify: { othersCores: 0.1 } });
  assert.ok(!judge(target, quiet).disturbed);
});

test('a gauge is judged by the middle of its readings', () => {
  const gauge = gauges.find(({ id }) => id === 'idle') ?? assert.fail();
  const readings = [9, 7, 8].map((value) => ({ value, errors: 0, note: '' }));
  const idle = targets.find(({ source }) => source.kind === 'gauge' && source.gauge === 'idle');
  const verdict = judge(idle ?? assert.fail(), {
    summary: () => null,
    gauges: [{ gauge, readings }],
    cores: 2,
  });
  assert.deepEqual([verdict.measured, verdict.word], [8, 'reaches aim']);
});

test('every target has a limit, and an aim is never the easier of two', () => {
  for (const { title, compare, good, aim } of targets) {
    assert.ok(good !== null || aim !== null, title);
    if (good === null || aim === null) continue;
    assert.ok(compare === 'at least' ? aim > good : aim < good, title);
  }
});

test('the ceiling is the share of the machine that a constant leaves, as a ratio to the same peer', () => {
  const measured = measuredOf({
    gateway: { perSecond: 500, databaseCpuUs: 600 },
    fastify: { perSecond: 250 },
    constant: { perSecond: 2_000, databaseCpuUs: 0 },
  });
  // 500 µs of both cores a request, and 600 µs of one: 800 µs, 1,250 requests a second.
  assert.equal(judge(target, measured).ceiling, 5);
  assert.equal(judge({ ...target, ceiling: null }, measured).ceiling, null);
  assert.equal(judge(target, measuredOf({ gateway: {}, fastify: {} })).ceiling, null);
});

test('every ratio of requests to a constant or a C client has a ceiling, from a constant that runs beside it', () => {
  for (const { source, ceiling, title } of targets) {
    if (source.kind !== 'ratio' || source.figure !== 'perSecond') continue;
    const { to } = source;
    if (to === null || !(isClient(to) || isConstant(to))) continue;
    assert.notEqual(ceiling, null, title);
    const cell = listCells().find(({ id }) => id === source.cell);
    assert.ok(cell?.peers.includes(ceiling as Peer), title);
  }
});
