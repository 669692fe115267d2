// The figures of the benchmark: medians, percentiles, verdicts on targets, and how they are shown.
// Must not know how samples are taken.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { composeJson } from '../../scripts/benchmark/json.ts';
import { formatFigure } from '../../scripts/benchmark/report.ts';
import { rotate, type Summary, summarise } from '../../scripts/benchmark/rounds.ts';
import { median, percentile } from '../../scripts/benchmark/statistics.ts';
import { judge, type Target } from '../../scripts/benchmark/targets.ts';
import { listCells } from '../../scripts/benchmark/workloads.ts';

const sample = {
  requests: 100,
  seconds: 1,
  perSecond: 100,
  p50Ms: 1,
  p99Ms: 2,
  errors: 0,
  cpuUs: 50,
  databaseCpuUs: 20,
  firstByteMs: null,
  growthBytes: 1e6,
};

const target: Target = {
  title: 'requests/s against fastify',
  cell: 'point/64',
  figure: 'perSecond',
  against: 'fastify',
  compare: 'at least',
  limit: 1.8,
  unit: '×',
};

const lookupOf = (own: Summary, other: Summary) => (_cell: string, peer: string) =>
  peer === 'gateway' ? own : peer === 'fastify' ? other : null;

test('the median is the middle, or the mean of the two in the middle', () => {
  assert.equal(median([9, 1, 5]), 5);
  assert.equal(median([1, 2, 10, 4]), 3);
  assert.ok(Number.isNaN(median([])));
});

test('a percentile is one of the numbers', () => {
  const hundred = Array.from({ length: 100 }, (_, index) => index + 1);
  assert.equal(percentile(hundred, 0.99), 99);
  assert.equal(percentile(hundred, 1), 100);
  assert.equal(percentile([3], 0.5), 3);
});

test('a sample with errors is counted and not used', () => {
  const broken = { ...sample, perSecond: 9000, errors: 7 };
  const summary = summarise([sample, broken, { ...sample, perSecond: 110 }]);
  assert.equal(summary.perSecond, 105);
  assert.equal(summary.errors, 7);
  assert.equal(summary.rounds, 2);
});

test('memory growth is the highest of the rounds', () => {
  const summary = summarise([sample, { ...sample, growthBytes: 21e6 }, sample]);
  assert.equal(summary.growthMb, 21);
});

test('a target compares the gateway with a peer', () => {
  const peer = summarise([sample]);
  const fast = summarise([{ ...sample, perSecond: 250 }]);
  assert.deepEqual(judge(target, lookupOf(fast, peer)), { target, measured: 2.5, pass: true });
  assert.equal(judge(target, lookupOf(peer, peer)).pass, false);
});

test('a target where the gateway gave errors is not measured', () => {
  const shaky = summarise([sample, { ...sample, errors: 1 }]);
  assert.equal(judge(target, lookupOf(shaky, summarise([sample]))).pass, null);
  assert.equal(judge(target, lookupOf(summarise([sample]), shaky)).pass, false);
});

test('a target without a good sample is not measured', () => {
  const broken = summarise([{ ...sample, errors: 1 }]);
  assert.deepEqual(judge(target, lookupOf(broken, summarise([sample]))), {
    target,
    measured: null,
    pass: null,
  });
  assert.equal(judge(target, () => null).pass, null);
});

test('an upper limit passes at the limit', () => {
  const growth: Target = {
    ...target,
    figure: 'growthMb',
    against: null,
    compare: 'at most',
    limit: 1,
  };
  assert.equal(judge(growth, lookupOf(summarise([sample]), summarise([]))).pass, true);
});

test('figures show three digits that matter', () => {
  assert.equal(formatFigure(12_345.6), '12,346');
  assert.equal(formatFigure(42.35), '42.4');
  assert.equal(formatFigure(0.512), '0.51');
  assert.equal(formatFigure(null), '-');
  assert.equal(formatFigure(Number.NaN), '-');
});

test('the record is JSON with conditions, verdicts, medians and every sample', () => {
  const cell = listCells().find(({ id }) => id === target.cell) ?? assert.fail();
  const samples = new Map([['gateway' as const, [sample, { ...sample, p50Ms: 1 / 3 }]]]);
  const verdict = { target, measured: 2.5, pass: true };
  const record = JSON.parse(composeJson({ rounds: 2 }, [{ cell, samples }], [verdict]));
  assert.equal(record.rounds, 2);
  assert.equal(record.targets[0].measured, 2.5);
  assert.equal(record.cells[0].cell, 'point/64');
  assert.equal(record.cells[0].median.perSecond, 100);
  assert.equal(record.cells[0].samples[1].p50Ms, 0.333333);
});

test('every peer comes first in its turn', () => {
  const firsts = [0, 1, 2, 3].map((turns) => rotate(['a', 'b', 'c'], turns));
  assert.deepEqual(
    firsts.map((list) => list.join('')),
    ['abc', 'bca', 'cab', 'abc'],
  );
  assert.deepEqual(rotate([], 5), []);
});
