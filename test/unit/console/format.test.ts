// The promise of the console's numbers: short, in the unit that suits them, and never nothing for something.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  formatBytes,
  formatCount,
  formatMoment,
  formatRate,
  formatShare,
  formatSpan,
  formatWhen,
} from '../../../src/console/format.ts';

test('shows spans in the unit that suits them', () => {
  const spans = [0, 0.42, 3.24, 120.4, 1240, 61_000, 3_600_000 * 3, 86_400_000 * 3 + 3_600_000];
  assert.deepEqual(spans.map(formatSpan), [
    '0 ms',
    '0.42 ms',
    '3.2 ms',
    '120 ms',
    '1.24 s',
    '1 min 1 s',
    '3 h 0 min',
    '3 d 1 h',
  ]);
});

test('distinguishes unknown from nothing', () => {
  for (const format of [formatSpan, formatCount, formatRate, formatShare, formatBytes]) {
    assert.equal(format(null), '–');
    assert.notEqual(format(0), '–');
  }
  assert.equal(formatShare(0.00001), '<0.1 %');
  assert.equal(formatShare(0.123), '12 %');
  assert.equal(formatMoment(new Date('no date')), '–');
});

test('shows the date of moments before today', () => {
  const now = new Date(2026, 10, 22, 12, 0, 0);
  assert.equal(formatWhen(new Date(2026, 10, 22, 3, 4, 5), now), '03:04:05');
  assert.equal(formatWhen(new Date(2026, 10, 21, 3, 4, 5), now), '2026-11-21 03:04:05');
});
