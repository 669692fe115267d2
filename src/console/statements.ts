// Statements by their share of all time, with what became of each while the page was looked at.
// Must not know how statements are told apart.
import type { Statement } from './ask.ts';
import { button, drawn, element, setText } from './elements.ts';
import {
  formatCount,
  formatShare,
  formatShort,
  formatSpan,
  formatWhen,
  unknown,
} from './format.ts';
import { openPart, type Part } from './part.ts';
import { asLongText, asText, type Column, createTable } from './table.ts';

const fewest = 20;
/** Points of a sparkline: at a poll every four seconds, four minutes. */
const mostPoints = 60;

/** The part of statements. */
export type Statements = {
  readonly part: Part;
  readonly show: (statements: readonly Statement[]) => void;
};

type Sort = 'share' | 'count' | 'errors' | 'rows' | 'total_ms' | 'p50_ms' | 'p95_ms' | 'p99_ms';

/** Takes the part. */
export function openStatements(): Statements {
  const part = openPart('statements');
  const trends = new Trends();
  let statements: readonly Statement[] = [];
  let sort: Sort = 'share';
  let isWhole = false;
  let wanted = '';

  const columns = columnsOf(trends);
  const table = createTable(
    'Statements',
    columns.map(({ column }) => column),
    ({ digest }) => digest,
  );
  const more = button('', { class: 'more' }, () => {
    isWhole = !isWhole;
    render();
  });
  const filter = element('input', {
    type: 'search',
    placeholder: 'Filter',
    'aria-label': 'Show statements that contain',
  });
  const render = () => {
    const found = statements.filter(({ digest }) => digest.toLowerCase().includes(wanted));
    const sorted = [...found].sort((one, other) => rank(other, sort) - rank(one, sort));
    table.update(isWhole ? sorted : sorted.slice(0, fewest));
    more.hidden = sorted.length <= fewest;
    setText(more, isWhole ? `Show the first ${fewest}` : `Show all ${formatCount(sorted.length)}`);
    for (const [at, { sortBy }] of columns.entries()) {
      if (sortBy === undefined) continue;
      table.headers[at]?.setAttribute('aria-sort', sortBy === sort ? 'descending' : 'none');
    }
    if (statements.length === 0) part.empty('No statement has been run yet.');
    else part.shown(describe(found.length, statements.length));
  };
  for (const [at, { sortBy, column }] of columns.entries()) {
    const header = table.headers[at];
    if (sortBy === undefined || header === undefined) continue;
    header.replaceChildren(
      button(column.name, { class: 'sort' }, () => {
        sort = sortBy;
        render();
      }),
    );
  }
  filter.addEventListener('input', () => {
    wanted = filter.value.trim().toLowerCase();
    render();
  });
  part.section.querySelector('.controls')?.append(filter);
  part.body.append(table.frame, more);
  return {
    part,
    show: (next) => {
      statements = next;
      trends.note(next);
      render();
    },
  };
}

function describe(found: number, all: number): string {
  return found === all ? formatCount(all) : `${formatCount(found)} of ${formatCount(all)}`;
}

function countErrors({ errors }: Statement): number {
  if (typeof errors === 'number') return errors;
  return Object.values(errors).reduce((total, count) => total + count, 0);
}

/** What is not told apart stands last, as the gateway has it. */
function rank(statement: Statement, sort: Sort): number {
  if (statement.digest === 'other') return -1;
  return sort === 'errors' ? countErrors(statement) : (statement[sort] ?? 0);
}

type Sortable = { readonly column: Column<Statement>; readonly sortBy?: Sort };

function columnsOf(trends: Trends): readonly Sortable[] {
  const span = (sortBy: 'total_ms' | 'p50_ms' | 'p95_ms' | 'p99_ms', name: string): Sortable => ({
    column: { name, kind: 'number', show: asText((row) => formatSpan(row[sortBy])) },
    sortBy,
  });
  return [
    { column: { name: 'Share', kind: 'number', show: showShare }, sortBy: 'share' },
    {
      column: {
        name: 'Trend',
        title: 'Time spent in it, since this page was opened',
        show: (row, cell) => trends.draw(row, cell),
      },
    },
    { column: { name: 'Statement', kind: 'text', show: asLongText(({ digest }) => digest) } },
    {
      column: { name: 'Count', kind: 'number', show: asText(({ count }) => formatShort(count)) },
      sortBy: 'count',
    },
    { column: { name: 'Errors', kind: 'number', show: showErrors }, sortBy: 'errors' },
    {
      column: { name: 'Rows', kind: 'number', show: asText(({ rows }) => formatShort(rows)) },
      sortBy: 'rows',
    },
    span('total_ms', 'Total'),
    span('p50_ms', 'p50'),
    span('p95_ms', 'p95'),
    span('p99_ms', 'p99'),
    {
      column: {
        name: 'Last seen',
        show: asText(({ last_seen }) =>
          last_seen === null ? unknown : formatWhen(new Date(last_seen)),
        ),
      },
    },
    {
      column: {
        name: 'Example',
        title: 'The id of one of its requests, as logs have it',
        show: asText(({ example_id }) => example_id ?? unknown),
      },
    },
  ];
}

function showShare({ share }: Statement, cell: HTMLElement): void {
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

function showErrors(statement: Statement, cell: HTMLElement): void {
  const count = countErrors(statement);
  setText(cell, formatShort(count));
  cell.classList.toggle('marked', count > 0);
  if (typeof statement.errors === 'number') return;
  const classes = Object.entries(statement.errors).filter(([, number]) => number > 0);
  cell.title = classes.map(([name, number]) => `${name}: ${formatCount(number)}`).join(', ');
}

/** How much time each statement took between two answers. */
class Trends {
  readonly #points = new Map<string, number[]>();
  #totals = new Map<string, number>();
  #notedAt = 0;

  note(statements: readonly Statement[]): void {
    const now = performance.now();
    const passedMs = now - this.#notedAt;
    const isFirst = this.#notedAt === 0;
    for (const { digest, total_ms } of statements) {
      const points = this.#points.get(digest) ?? [];
      this.#points.set(digest, points);
      if (!isFirst) {
        // What was not among the answer before is new; what has become less was counted anew.
        const spent = total_ms - (this.#totals.get(digest) ?? 0);
        points.push(Math.max(0, spent) / passedMs);
      }
      if (points.length > mostPoints) points.shift();
    }
    this.#totals = new Map(statements.map(({ digest, total_ms }) => [digest, total_ms]));
    for (const digest of this.#points.keys()) {
      if (!this.#totals.has(digest)) this.#points.delete(digest);
    }
    this.#notedAt = now;
  }

  draw({ digest }: Statement, cell: HTMLElement): void {
    let line = cell.querySelector('polyline');
    if (line === null) {
      line = drawn('polyline');
      cell.classList.add('trend');
      const attributes = {
        viewBox: '0 0 60 16',
        preserveAspectRatio: 'none',
        'aria-hidden': 'true',
      };
      cell.append(drawn('svg', attributes, line));
    }
    const points = this.#points.get(digest) ?? [];
    const most = Math.max(...points, Number.MIN_VALUE);
    const start = mostPoints - points.length;
    const places = points.map(
      (value, at) => `${start + at},${(15 - 14 * (value / most)).toFixed(1)}`,
    );
    line.setAttribute('points', places.join(' '));
  }
}
