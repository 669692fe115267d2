// Curves for people and programs: medians with their verdict, as a table, as pictures, as JSON.

import { median } from '../../support/statistics.ts';
import { roundNumbers } from '../json.ts';
import { formatFigure } from '../report.ts';
import type { Chart } from './chart.ts';
import type { Curve } from './curves.ts';
import { type Fit, judgeGrowth, steepest } from './fit.ts';
import { formatCount, formatMicros, formatSize } from './labels.ts';
import type { PointSample } from './point.ts';

type Measured = {
  readonly curve: Curve;
  readonly points: readonly { readonly x: number; readonly samples: PointSample[] }[];
};

/** A point's medians; NaN if every sample had errors. */
type PointResult = {
  readonly x: number;
  readonly cpuUs: number;
  readonly wallUs: number;
  readonly errors: number;
  readonly samples: readonly PointSample[];
};

/** A curve with its verdict. */
export type CurveResult = {
  readonly curve: Curve;
  readonly points: readonly PointResult[];
  readonly fit: Fit;
};

/** Takes the middle of each point's good samples, and judges the growth of the CPU time. */
export function summariseCurve({ curve, points }: Measured): CurveResult {
  const results = points.map(({ x, samples }) => {
    const good = samples.filter(({ errors }) => errors === 0);
    return {
      x,
      cpuUs: median(good.map(({ cpuUs }) => cpuUs)),
      wallUs: median(good.map(({ wallUs }) => wallUs)),
      errors: samples.reduce((sum, { errors }) => sum + errors, 0),
      samples,
    };
  });
  return { curve, points: results, fit: judgeGrowth(results.map(({ x, cpuUs: y }) => ({ x, y }))) };
}

/** `linear or better`, with the exponent that says so. */
function describeFit({ slope, isLinear }: Fit): string {
  const word = Number.isNaN(slope) ? 'not measured' : isLinear ? 'linear or better' : 'steeper';
  return `${word}: exponent ${slope.toFixed(2)} over the last two decades`;
}

/** The table: every point, the cost of one unit more, and the verdict on each curve. */
export function renderScale(results: readonly CurveResult[]): string {
  const blocks = results.map(({ curve, points, fit }) => {
    const name = curve.scale === 'count' ? formatCount : formatSize;
    const lines = points.map(({ x, cpuUs, wallUs, errors }) => {
      const cells = [name(x), formatMicros(cpuUs), formatMicros(wallUs)];
      const mark = errors === 0 ? '' : `  ${errors} errors`;
      return `  ${cells.map((cell) => cell.padStart(12)).join('')}${mark}`;
    });
    const head = ['', 'CPU', 'p50'].map((cell) => cell.padStart(12)).join('');
    return [`\n${curve.title}: ${curve.axis}`, `  ${head}`, ...lines, `  ${describeFit(fit)}`].join(
      '\n',
    );
  });
  const method = `least squares on logarithmic axes, medians of the rounds; linear is an exponent of 1, up to ${formatFigure(steepest)} passes`;
  return `${blocks.join('\n')}\n\n${method}`;
}

/** The picture of a curve, from the points without errors. */
export function composeChart({ curve, points, fit }: CurveResult): Chart {
  const good = points.filter(({ cpuUs, wallUs }) => cpuUs > 0 && wallUs > 0);
  return {
    title: curve.title,
    subtitle: describeFit(fit),
    axis: curve.axis,
    scale: curve.scale,
    series: [
      {
        name: 'CPU of the gateway',
        mark: 'circle',
        points: good.map(({ x, cpuUs: y }) => ({ x, y })),
      },
      {
        name: 'until the reply has come (p50)',
        mark: 'square',
        points: good.map(({ x, wallUs: y }) => ({ x, y })),
      },
    ],
  };
}

/** The record: conditions, and a line for each point with all of its samples. */
export function composeScaleJson(
  conditions: Readonly<Record<string, unknown>>,
  results: readonly CurveResult[],
): string {
  const write = (value: unknown) => JSON.stringify(value, roundNumbers);
  const curves = results.map(({ curve: { name, title, axis }, points, fit }) => {
    const lines = points.map((point) => `   ${write(point)}`);
    return `  {"curve": ${write(name)}, "title": ${write(title)}, "axis": ${write(axis)}, "fit": ${write(fit)}, "points": [
${lines.join(',\n')}
  ]}`;
  });
  const head = JSON.stringify({ at: new Date().toISOString(), ...conditions }, roundNumbers, 1);
  return `${head.slice(0, -2)},
 "curves": [
${curves.join(',\n')}
 ]
}
`;
}
