// The figures of the benchmark: medians, percentiles, and how they are shown and kept.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listCells } from '../../../../scripts/benchmark/cells.ts';
import { gauges, middle } from '../../../../scripts/benchmark/gauges.ts';
import { composeJson } from '../../../../scripts/benchmark/json.ts';
import { formatFigure } from '../../../../scripts/benchmark/report.ts';
import { rotate, summarise } from '../../../../scripts/benchmark/rounds.ts';
import { targets } from '../../../../scripts/benchmark/targets.ts';
import { median, percentile } from '../../../../scripts/support/statistics.ts';

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
  bytes: 5e4,
  mbPerCpuSecond: 10,
  othersCores: 0,
  growthBytes: 1e6,
};

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

test('figures show three digits that matter', () => {
  assert.equal(formatFigure(12_345.6), '12,346');
  assert.equal(formatFigure(42.35), '42.4');
  assert.equal(formatFigure(0.512), '0.51');
  assert.equal(formatFigure(1 / 14), '0.071');
  assert.equal(formatFigure(-0.3), '-0.30');
  assert.equal(formatFigure(0), '0.00');
  assert.equal(formatFigure(null), '-');
  assert.equal(formatFigure(Number.NaN), '-');
});

test('a gauge with an error in any reading has no figure', () => {
  const [gauge = assert.fail()] = gauges;
  const reading = (value: number, errors = 0) => ({ value, errors, note: '' });
  assert.equal(middle({ gauge, readings: [reading(9), reading(1), reading(5)] }), 5);
  assert.ok(Number.isNaN(middle({ gauge, readings: [reading(9), reading(1, 3)] })));
});

test('the record is JSON with conditions, verdicts, medians and every sample', () => {
  const cell = listCells().find(({ id }) => id === 'point/64') ?? assert.fail();
  const [gauge = assert.fail()] = gauges;
  const [target = assert.fail()] = targets;
  const samples = new Map([['gateway' as const, [sample, { ...sample, p50Ms: 1 / 3 }]]]);
  const readings = [{ value: 8, errors: 0, note: '' }];
  const results = { cells: [{ cell, samples }], gauges: [{ gauge, readings }] };
  const verdict = {
    target,
    measured: 2.5,
    beside: null,
    ceiling: null,
    word: 'good',
    disturbed: false,
  } as const;
  const record = JSON.parse(composeJson({ rounds: 2 }, results, [verdict]));
  assert.equal(record.rounds, 2);
  assert.equal(record.targets[0].measured, 2.5);
  assert.equal(record.targets[0].verdict, 'good');
  assert.equal(record.cells[0].cell, 'point/64');
  assert.equal(record.cells[0].median.perSecond, 100);
  assert.equal(record.cells[0].samples[1].p50Ms, 0.333333);
  assert.equal(record.cells[1].gauge, gauge.id);
  assert.equal(record.cells[1].median, 8);
});

test('every peer comes first in its turn', () => {
  const firsts = [0, 1, 2, 3].map((turns) => rotate(['a', 'b', 'c'], turns));
  assert.deepEqual(
    firsts.map((list) => list.join('')),
    ['abc', 'bca', 'cab', 'abc'],
  );
  assert.deepEqual(rotate([], 5), []);
});
