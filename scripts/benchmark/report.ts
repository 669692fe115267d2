// The tables for people: figures by cell and peer, then the targets.
// Must not know how figures are taken.
import type { Summary } from './rounds.ts';
import type { Verdict } from './targets.ts';
import { type Cell, describeLoad, type Peer } from './workloads.ts';

/** A cell with its summaries, in the order of the peers. */
export type Row = { readonly cell: Cell; readonly summaries: ReadonlyMap<Peer, Summary> };

const peerTitles: Readonly<Record<Peer, string>> = {
  gateway: 'dbhttpd',
  fastify: 'fastify + mysql2',
  constant: 'node:http constant',
  'constant-none': 'the same, SCHED_NONE',
  client: 'C client on MariaDB',
};

const columns: readonly (readonly [string, (summary: Summary) => number | null])[] = [
  ['req/s', ({ perSecond }) => perSecond],
  ['p50 ms', ({ p50Ms }) => p50Ms],
  ['p99 ms', ({ p99Ms }) => p99Ms],
  ['first ms', ({ firstByteMs }) => firstByteMs],
  ['CPU µs', ({ cpuUs }) => cpuUs],
  ['DB µs', ({ databaseCpuUs }) => databaseCpuUs],
  ['+MB', ({ growthMb }) => growthMb],
];

/** Three significant digits, no exponent; a dash for what was not measured. */
export function formatFigure(value: number | null): string {
  if (value === null || !Number.isFinite(value)) return '-';
  if (value >= 100) return Math.round(value).toLocaleString('en-US');
  return value.toFixed(value >= 10 ? 1 : 2);
}

const nameWidth = 24;
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

/** The table of targets with pass, falls short, or not measured. */
export function renderTargets(verdicts: readonly Verdict[]): string {
  const lines = verdicts.map(({ target, measured, pass }) => {
    const sign = target.compare === 'at least' ? '≥' : '≤';
    const wanted = `${sign} ${target.limit} ${target.unit}`;
    const found = measured === null ? '-' : `${formatFigure(measured)} ${target.unit}`;
    const word = pass === null ? 'not measured' : pass ? 'pass' : 'falls short';
    return `  ${target.title.padEnd(68)}${found.padStart(12)}${wanted.padStart(12)}  ${word}`;
  });
  return ['\ntargets', ...lines].join('\n');
}
