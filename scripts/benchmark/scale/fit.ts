// The growth of a cost: the slope of its curve on paper with two logarithmic axes.

/** A point of a curve. */
export type Point = { readonly x: number; readonly y: number };

/** The part of a curve that is judged: its last two decades, where what is constant no longer hides what grows. */
const judgedDecades = 2;
/** A slope of 1 is linear; this much more is the noise of a measurement. */
export const steepest = 1.1;

/** The verdict on a curve. `points`: how many were fitted. */
export type Fit = { readonly slope: number; readonly points: number; readonly isLinear: boolean };

/** Least squares through (ln x, ln y): the exponent k of y = c · x^k; NaN for fewer than two different x. */
export function fitSlope(points: readonly Point[]): number {
  const logs = points.map(({ x, y }) => ({ x: Math.log(x), y: Math.log(y) }));
  const mean = (read: (point: Point) => number) =>
    logs.reduce((sum, point) => sum + read(point), 0) / logs.length;
  const [meanX, meanY] = [mean(({ x }) => x), mean(({ y }) => y)];
  const sum = (read: (x: number, y: number) => number) =>
    logs.reduce((total, { x, y }) => total + read(x - meanX, y - meanY), 0);
  return sum((x, y) => x * y) / sum((x) => x * x);
}

/** Fits the last two decades: linear or better when the exponent is at most 1.1. */
export function judgeGrowth(points: readonly Point[]): Fit {
  const largest = Math.max(...points.map(({ x }) => x));
  // A hair of tolerance: 3 · 10² and the like are not exact after a division.
  const judged = points.filter(({ x }) => x >= (largest / 10 ** judgedDecades) * 0.999);
  const slope = fitSlope(judged);
  return { slope, points: judged.length, isLinear: slope <= steepest };
}
