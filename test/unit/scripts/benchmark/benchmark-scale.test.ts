// Curves of scale: their requests, the fit that judges them, their pictures and labels.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { drawChart, listTicks } from '../../../../scripts/benchmark/scale/chart.ts';
import { curves } from '../../../../scripts/benchmark/scale/curves.ts';
import { fitSlope, judgeGrowth } from '../../../../scripts/benchmark/scale/fit.ts';
import {
  formatCount,
  formatMicros,
  formatSize,
} from '../../../../scripts/benchmark/scale/labels.ts';
import { composeText, type PointSample } from '../../../../scripts/benchmark/scale/point.ts';
import {
  composeScaleJson,
  renderScale,
  summariseCurve,
} from '../../../../scripts/benchmark/scale/report.ts';

const decades = [1, 10, 100, 1e3, 1e4, 1e5, 1e6];
const curveOf = (cost: (x: number) => number) => decades.map((x) => ({ x, y: cost(x) }));

test('the exponent of a power is found', () => {
  assert.ok(Math.abs(fitSlope(curveOf((x) => 7 * x ** 1.5)) - 1.5) < 1e-9);
  assert.ok(Math.abs(fitSlope(curveOf(() => 42))) < 1e-9);
  assert.ok(Number.isNaN(fitSlope([{ x: 1, y: 1 }])));
});

test('growth is judged by the last two decades, whatever is constant before', () => {
  const linear = judgeGrowth(curveOf((x) => 60 + x / 10));
  assert.equal(linear.points, 3);
  assert.ok(linear.slope > 0.95 && linear.slope < 1.01, `${linear.slope}`);
  assert.ok(linear.isLinear);
});

test('a square that begins late is caught; n log n passes', () => {
  assert.ok(!judgeGrowth(curveOf((x) => 60 + x + x ** 2 / 1e5)).isLinear);
  assert.ok(judgeGrowth(curveOf((x) => 60 + x * Math.log(x))).isLinear);
});

test('a curve with an unmeasured point is not linear', () => {
  assert.ok(!judgeGrowth(curveOf((x) => (x === 1e6 ? Number.NaN : x))).isLinear);
});

test('ticks enclose the numbers, and a power is its own tick', () => {
  assert.deepEqual(listTicks([1, 1e3], 10), [1, 10, 100, 1000]);
  assert.deepEqual(listTicks([30, 2000], 10), [10, 100, 1000, 10_000]);
  assert.deepEqual(listTicks([5, 5], 10), [1, 10]);
  assert.deepEqual(listTicks([1, 16 ** 6], 16).length, 7);
});

const chart = {
  title: 'Rows & <columns>',
  subtitle: 'linear',
  axis: 'rows',
  scale: 'count',
  series: [
    { name: 'CPU', mark: 'circle', points: curveOf((x) => 60 + x / 10) },
    { name: 'p50', mark: 'square', points: curveOf((x) => 100 + x / 5) },
  ],
} as const;

test('a picture has a title, titled axes, labels, a mark for every point, colours for light and dark', () => {
  const svg = drawChart(chart);
  assert.match(svg, /^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg" viewBox=/);
  for (const text of [
    'Rows &amp; &lt;columns&gt;',
    '>rows<',
    '>time of a request<',
    '>100k<',
    '>1 ms<',
  ]) {
    assert.ok(svg.includes(text), text);
  }
  assert.match(svg, /prefers-color-scheme: dark/);
  // One more of each is the mark of the legend.
  assert.equal(svg.match(/<circle /g)?.length, decades.length + 1);
  assert.equal(svg.match(/<rect /g)?.length, decades.length + 2);
});

test('nothing of a picture lies outside of it', () => {
  const svg = drawChart(chart);
  assert.ok(!/NaN|Infinity|undefined/.test(svg));
  const numbers = (pattern: RegExp) => [...svg.matchAll(pattern)].map(([, text]) => Number(text));
  for (const x of numbers(/ c?x="([-\d.]+)"/g)) assert.ok(x >= 0 && x <= 720, `x ${x}`);
  for (const y of numbers(/ c?y="([-\d.]+)"/g)) assert.ok(y >= 0 && y <= 440, `y ${y}`);
});

test('more is further right and higher', () => {
  const svg = drawChart(chart);
  const marks = [...svg.matchAll(/<circle cx="([\d.]+)" cy="([\d.]+)" r="4"><title>/g)];
  const places = marks.map(([, x, y]) => [Number(x), Number(y)] as const);
  for (const [index, [x, y]] of places.entries()) {
    const [lastX, lastY] = places[index - 1] ?? [0, 440];
    assert.ok(x > lastX && y <= lastY);
  }
});

test('labels are short', () => {
  assert.deepEqual([3, 300, 1e4, 1e6].map(formatCount), ['3', '300', '10k', '1M']);
  assert.deepEqual([1, 4096, 16 * 1024 ** 2].map(formatSize), ['1 B', '4 KiB', '16 MiB']);
  assert.deepEqual([52.3, 1300, 2e6].map(formatMicros), ['52.3 µs', '1.3 ms', '2 s']);
});

test('a statement has the length of its point, and its body the length in its head', () => {
  const curve = curves.find(({ name }) => name === 'statement') ?? assert.fail();
  for (const point of curve.points) {
    const [head = '', body = ''] = composeText(curve.probe(point)).split('\r\n\r\n');
    assert.equal(Number(/Content-Length: (\d+)/.exec(head)?.[1]), body.length);
    assert.equal((JSON.parse(body) as { SQL: string }).SQL.length, point);
  }
});

test('every curve spans at least two decades, which are judged', () => {
  for (const { name, points } of curves) {
    assert.deepEqual(
      points,
      points.toSorted((left, right) => left - right),
      name,
    );
    assert.ok(judgeGrowth(points.map((x) => ({ x, y: x }))).points >= 3, name);
  }
});

const sampleOf = (cpuUs: number, errors = 0): PointSample => ({
  requests: 10,
  cpuUs,
  wallUs: 2 * cpuUs,
  errors,
  othersCores: 0,
});

test('a point is the middle of its good samples; table and record show it with the verdict', () => {
  const curve = curves[0] ?? assert.fail();
  const points = curve.points.map((x) => ({
    x,
    samples: [sampleOf(50 + x), sampleOf(52 + x), sampleOf(9e9, 4), sampleOf(54 + x)],
  }));
  const result = summariseCurve({ curve, points });
  assert.equal(result.points[0]?.cpuUs, 53);
  assert.ok(result.fit.isLinear);
  assert.match(renderScale([result]), /linear or better: exponent 1\.00/);
  assert.match(renderScale([result]), /4 errors/);
  const record = JSON.parse(composeScaleJson({ rounds: 4 }, [result]));
  assert.equal(record.rounds, 4);
  assert.equal(record.curves[0].fit.isLinear, true);
  assert.equal(record.curves[0].points[0].samples.length, 4);
});
