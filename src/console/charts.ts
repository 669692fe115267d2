// Three charts over the same ten minutes: rate by outcome, latency, connections. The cursor shows the same moment in all of them.
import type { HistoryStats, Stats } from '../shared/observe/stats.ts';
import { element, find, openPart, type Part, setText } from './elements.ts';
import { formatClock, formatCount, formatRate, formatSpan, unknown } from './format.ts';
import { readColour } from './toolbar.ts';
import uPlot from './uplot.js';

const spanSeconds = 600;
const height = 168;

/** One line of a chart. */
type Line = {
  readonly name: string;
  /** A colour of the style sheet. */
  readonly colour: string;
  readonly values: (history: HistoryStats) => readonly (number | null)[];
  readonly format: (value: number | null | undefined) => string;
  readonly isFilled?: boolean;
  readonly isDashed?: boolean;
  /** Shown only above 0, so that a few failures are visible beside thousands of successes. */
  readonly isRare?: boolean;
};

type Chart = {
  readonly title: string;
  readonly lines: readonly Line[];
  readonly scale: uPlot.Scale;
  readonly axis: (value: number) => string;
};

const outcomeColours = {
  ok: 'line-ok',
  error: 'line-error',
  failed: 'line-failed',
  not_executed: 'line-refused',
  rolled_back: 'line-undone',
  partial: 'line-partial',
  unknown: 'line-unknown',
} as const;

/** Shorter times do not matter to people. */
const minWaitMs = 5;
const dropShort = (ms: number | null) => (ms !== null && ms < minWaitMs ? 0 : ms);

const charts: readonly Chart[] = [
  {
    title: 'Requests a second, by outcome',
    lines: Object.entries(outcomeColours).map(([name, colour]) => ({
      name: name.replace('_', ' '),
      colour,
      values: ({ outcomes }) => outcomes[name] ?? [],
      format: formatRate,
      ...(name === 'ok' ? { isFilled: true } : { isRare: true }),
    })),
    scale: { range: (_plot, _min, max) => [0, Math.max(1, max * 1.1)] },
    axis: formatRate,
  },
  {
    title: 'Latency, on a log scale',
    lines: [
      ...(['p99', 'p95', 'p50'] as const).map((name) => ({
        name,
        colour: `line-${name}`,
        values: ({ latency_ms }: HistoryStats) => latency_ms[name],
        format: formatSpan,
      })),
      {
        name: 'waiting',
        colour: 'line-unknown',
        isRare: true,
        values: ({ phases_p95_ms }) => phases_p95_ms.waiting.map(dropShort),
        format: formatSpan,
      },
    ],
    scale: {
      distr: 3,
      log: 10,
      range: (_plot, min, max) => [Math.min(0.1, min || 0.1), Math.max(100, (max || 1) * 1.2)],
    },
    axis: formatSpan,
  },
  {
    title: 'Connections in use, and waiting',
    lines: [
      {
        name: 'in use',
        colour: 'line-ok',
        isFilled: true,
        values: ({ connections }) => connections.busy,
        format: formatCount,
      },
      {
        name: 'limit',
        colour: 'line-limit',
        isDashed: true,
        values: ({ connections }) => connections.max,
        format: formatCount,
      },
      {
        name: 'waiting',
        colour: 'line-unknown',
        isRare: true,
        values: ({ waiting }) => waiting,
        format: formatCount,
      },
    ],
    scale: { range: (_plot, _min, max) => [0, Math.max(4, max * 1.15)] },
    axis: formatCount,
  },
];

/** The part of the charts. */
export type Charts = {
  readonly part: Part;
  readonly show: (stats: Stats) => void;
  /** Draws again, with the colours of the theme. */
  readonly redraw: () => void;
};

/** Opens the part of the charts. */
export function openCharts(): Charts {
  const part = openPart('charts');
  const readout = find('charts-readout', HTMLElement);
  let history: HistoryStats | null = null;
  const sync = uPlot.sync('moment');
  const panels = charts.map((chart) => openPanel(chart, sync.key));
  part.body.append(...panels.map(({ figure }) => figure));

  const move = (step: number) => {
    const length = history?.at.length ?? 0;
    if (length === 0) return;
    const from = panels[0]?.cursor() ?? length;
    const at = Math.min(length - 1, Math.max(0, from + step));
    for (const { look } of panels) look(at);
    const clock = formatClock(new Date((history?.at[at] ?? 0) * 1000));
    setText(readout, [clock, ...panels.map(({ tell }) => tell(at))].join('; '));
  };
  part.body.addEventListener('keydown', (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -15, PageDown: 15 }[event.key];
    if (event.key === 'Escape') for (const { look } of panels) look(null);
    if (step === undefined) return;
    event.preventDefault();
    move(step);
  });
  return {
    part,
    show: ({ history: next }) => {
      history = next;
      if (next.at.length === 0) {
        part.empty('Nothing has been counted yet.');
        return;
      }
      part.shown(`one point every ${next.interval_seconds} s`);
      for (const { show } of panels) show(next);
    },
    redraw: () => {
      for (const { redraw } of panels) redraw();
    },
  };
}

function openPanel({ title, lines, scale, axis }: Chart, syncKey: string) {
  const values = lines.map(() => element('span', { class: 'value' }, unknown));
  const entries = lines.map(({ name, colour, isDashed }, at) =>
    element(
      'li',
      { class: `key ${colour}${isDashed === true ? ' dashed' : ''}` },
      `${name} `,
      values[at] as HTMLElement,
    ),
  );
  const moment = element('span', { class: 'moment' });
  const plotted = element('div', { class: 'plot', tabindex: 0, role: 'img', 'aria-label': title });
  const figure = element(
    'figure',
    {},
    element('figcaption', {}, title, moment),
    plotted,
    element('ul', { class: 'keys' }, ...entries),
  );
  let history: HistoryStats | null = null;
  let plot: uPlot | null = null;

  const valueAt = (line: Line, at: number) => (history === null ? null : line.values(history)[at]);
  const showMoment = (at: number | null) => {
    const length = history?.at.length ?? 0;
    const shown = at ?? lastKnown(lines, history) ?? length - 1;
    const clock = formatClock(new Date((history?.at[shown] ?? Number.NaN) * 1000));
    setText(moment, at === null ? '' : clock);
    for (const [index, line] of lines.entries()) {
      setText(values[index] as HTMLElement, line.format(valueAt(line, shown)));
      const isAbsent =
        line.isRare === true &&
        !line.values(history as HistoryStats).some((value) => (value ?? 0) > 0);
      (entries[index] as HTMLElement).hidden = isAbsent;
    }
  };
  const tell = (at: number) =>
    lines
      .filter((line) => line.isRare !== true || (valueAt(line, at) ?? 0) > 0)
      .map((line) => `${line.name} ${line.format(valueAt(line, at))}`)
      .join(', ');
  const draw = () => {
    plot?.destroy();
    const options = plotOptions(lines, scale, axis, syncKey, plotted.clientWidth, showMoment);
    plot = new uPlot(options, pointsOf(lines, history), plotted);
  };
  new ResizeObserver(() => plot?.setSize({ width: plotted.clientWidth, height })).observe(plotted);
  return {
    figure,
    tell,
    cursor: () => plot?.cursor.idx ?? null,
    look: (at: number | null) => {
      const time = at === null ? undefined : history?.at[at];
      const left = plot === null || time === undefined ? -10 : plot.valToPos(time, 'x');
      plot?.setCursor({ left, top: at === null ? -10 : 1 });
    },
    show: (next: HistoryStats) => {
      history = next;
      if (plot === null) draw();
      else plot.setData(pointsOf(lines, next));
      const at = plot?.cursor.idx ?? null;
      showMoment(at);
      const latest = lastKnown(lines, next);
      const now = latest === null ? 'nothing is known' : tell(latest);
      plotted.setAttribute('aria-label', `${title}. Now: ${now}`);
    },
    redraw: () => {
      if (plot !== null) draw();
    },
  };
}

/** The newest complete moment: the last one may be incomplete. */
function lastKnown(lines: readonly Line[], history: HistoryStats | null): number | null {
  if (history === null) return null;
  const [first] = lines;
  const at = first?.values(history).findLastIndex((value) => value !== null) ?? -1;
  return at < 0 ? null : at;
}

function pointsOf(lines: readonly Line[], history: HistoryStats | null): uPlot.AlignedData {
  if (history === null) return [[], ...lines.map(() => [])];
  const length = history.at.length;
  const series = lines.map(({ values, isRare, format }) => {
    const known = values(history);
    const hasNoNothing = isRare === true || format === formatSpan;
    return Array.from({ length }, (_, at) => {
      const value = known[at] ?? null;
      return hasNoNothing && value !== null && value <= 0 ? null : value;
    });
  });
  return [[...history.at], ...series];
}

const font = '11px system-ui, sans-serif';

function plotOptions(
  lines: readonly Line[],
  scale: uPlot.Scale,
  axis: (value: number) => string,
  syncKey: string,
  width: number,
  showMoment: (at: number | null) => void,
): uPlot.Options {
  const stroke = readColour('muted');
  const grid = { stroke: readColour('grid'), width: 1 };
  return {
    width,
    height,
    legend: { show: false },
    padding: [8, 8, 0, 0],
    cursor: {
      sync: { key: syncKey, setSeries: false },
      drag: { x: false, y: false },
      y: false,
      points: { size: 6 },
    },
    scales: {
      x: {
        time: true,
        range: (_plot, _min, max) => [max - spanSeconds, max],
      },
      y: scale,
    },
    axes: [
      {
        stroke,
        grid,
        ticks: { show: false },
        font,
        size: 24,
        space: 64,
        values: (_plot, times) => times.map(formatTick),
      },
      {
        stroke,
        grid: scale.distr === 3 ? { ...grid, filter: onlyPowersOfTen } : grid,
        ticks: { show: false },
        font,
        size: 52,
        gap: 4,
        space: 28,
        values: (_plot, splits) => splits.map((value) => (value === null ? '' : axis(value))),
      },
    ],
    series: [{}, ...lines.map(seriesOf)],
    hooks: { setCursor: [({ cursor }) => showMoment(cursor.idx ?? null)] },
  };
}

function seriesOf({ name, colour, isFilled, isDashed, isRare }: Line): uPlot.Series {
  const stroke = readColour(colour);
  return {
    label: name,
    stroke,
    width: isRare === true ? 2 : 1.5,
    points: { show: isRare === true, size: 4, fill: stroke },
    ...(isFilled === true && { fill: readColour('fill') }),
    ...(isDashed === true && { dash: [5, 4] }),
  };
}

/** On a log scale, the lines between would crowd the chart. */
function onlyPowersOfTen(_plot: uPlot, splits: readonly number[]): (number | null)[] {
  return splits.map((value) => (Number.isInteger(Math.log10(value)) ? value : null));
}

function formatTick(time: number): string {
  return formatClock(new Date(time * 1000)).slice(0, 5);
}
