// Small drawings in the cells of tables: a bar for a share, and a line for the last ten minutes.
import { drawn, element, setText } from './elements.ts';
import { formatShare } from './format.ts';

/** Points of a line: ten minutes, one every ten seconds. */
const maxPoints = 60;

/** Shows a share as a bar with its number. @param share from 0 to 1 */
export function drawShare(share: number, cell: HTMLElement): void {
  let [bar, label] = [...cell.children] as HTMLElement[];
  if (bar === undefined || label === undefined) {
    bar = element('span', { class: 'bar' });
    label = element('span');
    cell.append(bar, label);
    cell.classList.add('share');
  }
  bar.style.inlineSize = `${Math.min(100, Math.max(0, share * 100))}%`;
  setText(label, formatShare(share));
}

/** Draws the last ten minutes as a line. @param max the value at the top; that of the line itself unless given */
export function drawTrend(
  trend: readonly number[],
  cell: HTMLElement,
  max: number = Math.max(...trend, 0),
): void {
  let line = cell.querySelector('polyline');
  if (line === null) {
    line = drawn('polyline');
    cell.classList.add('trend');
    const attributes = { viewBox: '0 0 60 16', preserveAspectRatio: 'none', 'aria-hidden': 'true' };
    cell.append(drawn('svg', attributes, line));
  }
  const start = maxPoints - trend.length;
  const top = Math.max(max, Number.MIN_VALUE);
  const places = trend.map((value, at) => `${start + at},${(15 - 14 * (value / top)).toFixed(1)}`);
  line.setAttribute('points', places.join(' '));
}
