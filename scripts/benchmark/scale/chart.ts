// A curve as a picture: SVG with two logarithmic axes, readable in light and dark, without any library.

import type { Point } from './fit.ts';
import { formatCount, formatMicros, formatSize } from './labels.ts';

/** A line of the picture. */
export type Series = {
  readonly name: string;
  readonly mark: 'circle' | 'square';
  readonly points: readonly Point[];
};

/** The content of a picture; y is in µs. */
export type Chart = {
  readonly title: string;
  readonly subtitle: string;
  readonly axis: string;
  readonly scale: 'count' | 'bytes';
  readonly series: readonly Series[];
};

const width = 720;
const height = 440;
const plot = { left: 76, right: 688, top: 86, bottom: 376 };

// An <img> follows the reader's colour scheme without a script.
const style = `
.paper{fill:#fff}.ink{fill:#1f2328}.faint{fill:#59636e}.grid{stroke:#d1d9e0}.guide{stroke:#59636e}
.s0{stroke:#0969da;fill:#0969da}.s1{stroke:#bc4c00;fill:#bc4c00}
@media (prefers-color-scheme: dark){.paper{fill:#0d1117}.ink{fill:#f0f6fc}.faint{fill:#9198a1}.grid{stroke:#3d444d}
.guide{stroke:#9198a1}.s0{stroke:#4493f8;fill:#4493f8}.s1{stroke:#f0883e;fill:#f0883e}}
text{font:13px system-ui,sans-serif}.title{font-size:16px;font-weight:600}.line{fill:none;stroke-width:2}`;

const escapes: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' };

function escapeText(text: string): string {
  return text.replace(/[&<>]/g, (character) => escapes[character] ?? character);
}

/** Powers of the base from the one below the least number to the one above the largest. */
export function listTicks(numbers: readonly number[], base: number): number[] {
  const exponent = (value: number) => Math.log(value) / Math.log(base);
  // A power of the base is its own tick, whatever its logarithm rounds to.
  const from = Math.floor(exponent(Math.min(...numbers)) + 1e-9);
  const to = Math.max(from + 1, Math.ceil(exponent(Math.max(...numbers)) - 1e-9));
  return Array.from({ length: to - from + 1 }, (_, index) => base ** (from + index));
}

/** Places a number between two ends of an axis, by its logarithm. */
function createAxis(ticks: readonly number[], start: number, end: number) {
  const [low, high] = [Math.log(ticks[0] ?? 1), Math.log(ticks.at(-1) ?? 10)];
  return (value: number) =>
    Math.round((start + ((Math.log(value) - low) / (high - low)) * (end - start)) * 10) / 10;
}

/** Draws the picture: a complete SVG document. */
export function drawChart({ title, subtitle, axis, scale, series }: Chart): string {
  const all = series.flatMap(({ points }) => points);
  const xTicks = listTicks(
    all.map(({ x }) => x),
    scale === 'count' ? 10 : 16,
  );
  const yTicks = listTicks(
    all.map(({ y }) => y),
    10,
  );
  const placeX = createAxis(xTicks, plot.left, plot.right);
  const placeY = createAxis(yTicks, plot.bottom, plot.top);
  const name = scale === 'count' ? formatCount : formatSize;

  const columns = xTicks.map((tick) => {
    const x = placeX(tick);
    return `<path class="grid" d="M${x} ${plot.top}V${plot.bottom}"/><text class="faint" x="${x}" y="${plot.bottom + 20}" text-anchor="middle">${name(tick)}</text>`;
  });
  const lines = yTicks.map((tick) => {
    const y = placeY(tick);
    return `<path class="grid" d="M${plot.left} ${y}H${plot.right}"/><text class="faint" x="${plot.left - 8}" y="${y + 4}" text-anchor="end">${formatMicros(tick)}</text>`;
  });
  const drawn = series.map((each, index) => drawSeries(each, index, placeX, placeY, name));
  const label = `${title}: ${subtitle}`;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escapeText(label).replaceAll('"', '&quot;')}">
<style>${style}
</style>
<rect class="paper" width="${width}" height="${height}"/>
<text class="ink title" x="16" y="28">${escapeText(title)}</text>
<text class="faint" x="16" y="48">${escapeText(subtitle)}</text>
${columns.join('\n')}
${lines.join('\n')}
${drawGuide(series[0]?.points ?? [], placeX, placeY, yTicks[0] ?? 1)}
${drawn.join('\n')}
<text class="ink" x="${(plot.left + plot.right) / 2}" y="${height - 16}" text-anchor="middle">${escapeText(axis)}</text>
<text class="ink" transform="translate(18 ${(plot.top + plot.bottom) / 2}) rotate(-90)" text-anchor="middle">time of a request</text>
</svg>
`;
}

type Place = (value: number) => number;

function drawSeries(
  { name, mark, points }: Series,
  index: number,
  placeX: Place,
  placeY: Place,
  nameX: (value: number) => string,
): string {
  const path = points.map(({ x, y }) => `${placeX(x)} ${placeY(y)}`).join('L');
  const marks = points.map(({ x, y }) => {
    const [left, top] = [placeX(x), placeY(y)];
    const tip = `<title>${nameX(x)}: ${formatMicros(y)}</title>`;
    return mark === 'circle'
      ? `<circle cx="${left}" cy="${top}" r="4">${tip}</circle>`
      : `<rect x="${left - 3.5}" y="${top - 3.5}" width="7" height="7">${tip}</rect>`;
  });
  const left = plot.left + index * 230;
  const key =
    mark === 'circle'
      ? `<circle cx="${left + 6}" cy="68" r="4"/>`
      : `<rect x="${left + 2.5}" y="64.5" width="7" height="7"/>`;
  return `<g class="s${index}"><path class="line" d="M${path}"/>${marks.join('')}${key}</g><text class="ink" x="${left + 16}" y="72">${escapeText(name)}</text>`;
}

/** A dashed line through the last point, as steep as linear growth is: a curve that is flatter grows less than its size. */
function drawGuide(points: readonly Point[], placeX: Place, placeY: Place, floor: number): string {
  const [first, last] = [points[0], points.at(-1)];
  if (first === undefined || last === undefined) return '';
  const from = Math.max(first.x, (last.x * floor) / last.y);
  const y = (last.y * from) / last.x;
  const left = plot.left + 460;
  return `<path class="guide" stroke-dasharray="5 4" d="M${placeX(from)} ${placeY(y)}L${placeX(last.x)} ${placeY(last.y)}M${left} 68h24"/><text class="ink" x="${left + 30}" y="72">linear</text>`;
}
