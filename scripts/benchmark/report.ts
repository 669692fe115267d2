// The tables for people: figures by cell and peer, the gauges, then the targets.
import { type Cell, describeLoad } from './cells.ts';
import { type GaugeResult, middle } from './gauges.ts';
import type { Verdict } from './judge.ts';
import { type Peer, peerTitles } from './peers.ts';
import type { Summary } from './rounds.ts';

/** A cell with its summaries, in the order of the peers. */
export type Row = { readonly cell: Cell; readonly summaries: ReadonlyMap<Peer, Summary> };

const columns: readonly (readonly [string, (summary: Summary) => number | null])[] = [
  ['req/s', ({ perSecond }) => perSecond],
  ['p50 ms', ({ p50Ms }) => p50Ms],
  ['p99 ms', ({ p99Ms }) => p99Ms],
  ['first ms', ({ firstByteMs }) => firstByteMs],
  ['CPU µs', ({ cpuUs }) => cpuUs],
  ['DB µs', ({ databaseCpuUs }) => databaseCpuUs],
  ['+MB', ({ growthMb }) => growthMb],
];

/** Three digits that matter, no exponent; a dash for what was not measured. */
export function formatFigure(value: number | null): string {
  if (value === null || !Number.isFinite(value)) return '-';
  const size = Math.abs(value);
  if (size >= 100) return Math.round(value).toLocaleString('en-US');
  if (size >= 10) return value.toFixed(1);
  return value.toFixed(size >= 0.2 || size === 0 ? 2 : 3);
}

const nameWidth = 26;
const figureWidth = 10;

function renderHead(cell: Cell): string {
  const title = `${cell.workload.title}, ${describeLoad(cell.load)}`;
  return `\n${title}\n${' '.repeat(nameWidth)}${[...columns.map(([name]) => name), 'dbhttpd ÷']
    .map((name) => name.padStart(figureWidth))
    .join('')}`;
}

function renderLine(peer: Peer, summary: Summary, own: Summary | undefined): string {
  const figures = columns.map(([, read]) => formatFigure(read(summary)));
  const ratio = formatFigure((own?.perSecond ?? Number.NaN) / summary.perSecond);
  const cells = [...figures, peer === 'gateway' || ratio === '-' ? '' : `${ratio} ×`];
  const mark = summary.errors === 0 ? '' : `  ${summary.errors} errors`;
  const line = cells.map((cell) => cell.padStart(figureWidth)).join('');
  return `  ${peerTitles[peer].padEnd(nameWidth - 2)}${line}${mark}`.trimEnd();
}

/** The table of figures. CPU: of the peer's processes, per request; +MB: memory at its highest, above the start. */
export function renderFigures(rows: readonly Row[]): string {
  return rows
    .map(({ cell, summaries }) => {
      const own = summaries.get('gateway');
      const lines = [...summaries].map(([peer, summary]) => renderLine(peer, summary, own));
      return [renderHead(cell), ...lines].join('\n');
    })
    .join('\n');
}

/** Renders a line for each gauge. */
export function renderGauges(results: readonly GaugeResult[]): string {
  const lines = results.map((result) => {
    const { title, unit } = result.gauge;
    const errors = result.readings.reduce((sum, reading) => sum + reading.errors, 0);
    const notes = [
      result.readings.at(-1)?.note ?? '',
      ...(errors === 0 ? [] : [`${errors} errors`]),
    ];
    return `  ${title}: ${formatFigure(middle(result))} ${unit} (${notes.join(', ')})`;
  });
  return ['', ...lines].join('\n');
}

const titleWidth = 70;
const limitWidth = 13;

function renderTarget({ target, measured, beside, ceiling, word, disturbed }: Verdict): string {
  const { compare, unit } = target;
  const figure = (value: number | null): string =>
    value === null ? '-' : `${formatFigure(value)} ${unit}`;
  const limit = (value: number | null): string =>
    value === null ? '-' : `${compare === 'at least' ? '≥' : '≤'} ${figure(value)}`;
  const figures = [figure(measured), limit(target.good), limit(target.aim), figure(ceiling)]
    .map((text) => text.padStart(limitWidth))
    .join('');
  const verdict = word === null ? 'not measured' : `${word}${disturbed ? ' *' : ''}`;
  const second = target.beside === null ? '' : `${target.beside.title}: ${figure(beside)}`;
  return `  ${target.title.padEnd(titleWidth)}${figures}  ${verdict.padEnd(13)}  ${second}`.trimEnd();
}

/** The table of targets: the measured value, the limit from which it is good, the aim, the ceiling, the verdict, and further figures. */
export function renderTargets(verdicts: readonly Verdict[]): string {
  const names = ['measured', 'good', 'aim', 'ceiling']
    .map((name) => name.padStart(limitWidth))
    .join('');
  const head = `  ${''.padEnd(titleWidth)}${names}  verdict`;
  const note = verdicts.some(({ word, disturbed }) => word !== null && disturbed)
    ? ['  * in most rounds others used the machine: measure again when it is quiet']
    : [];
  return ['\ntargets', head, ...verdicts.map(renderTarget), ...note].join('\n');
}
