// Statements by their share of all time, with the last ten minutes of each.
import type { ListedStatement, StatementList } from '../shared/observe/statement-sums.ts';
import { drawShare, drawTrend } from './drawings.ts';
import { button, element, openPart, type Part, setText } from './elements.ts';
import {
  formatCount,
  formatShare,
  formatShort,
  formatSpan,
  formatWhen,
  unknown,
} from './format.ts';
import { type Lately, lookLately } from './rise.ts';
import { asLongText, asText, type Column, createTable } from './table.ts';

const fewest = 20;

/** The part of statements. */
export type Statements = {
  readonly part: Part;
  readonly show: (reply: StatementList) => void;
};

type Sort = 'share' | 'count' | 'errors' | 'rows' | 'total_ms' | 'p50_ms' | 'p95_ms' | 'p99_ms';

/** Opens the part. */
export function openStatements(): Statements {
  const part = openPart('statements');
  let lately: ReadonlyMap<ListedStatement, Lately> = new Map();
  let statements: readonly ListedStatement[] = [];
  let sort: Sort = 'share';
  let isWhole = false;
  let wanted = '';

  const columns = columnsOf((statement) => lately.get(statement));
  const table = createTable(
    'Statements',
    columns.map(({ column }) => column),
    ({ section, client, digest }) => `${section} ${client} ${digest}`,
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
    const found = statements.filter(({ digest, client = '' }) =>
      `${digest} ${client}`.toLowerCase().includes(wanted),
    );
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
    show: (reply) => {
      statements = reply.statements;
      lately = new Map(lookLately(reply).map((one) => [one.statement, one]));
      render();
    },
  };
}

function describe(found: number, all: number): string {
  return found === all ? formatCount(all) : `${formatCount(found)} of ${formatCount(all)}`;
}

/** The entry for all other statements is last, as in the gateway's reply. */
function rank(statement: ListedStatement, sort: Sort): number {
  if (statement.digest === 'other') return -1;
  return statement[sort] ?? 0;
}

type Sortable = { readonly column: Column<ListedStatement>; readonly sortBy?: Sort };

function columnsOf(
  latelyOf: (statement: ListedStatement) => Lately | undefined,
): readonly Sortable[] {
  const span = (sortBy: 'total_ms' | 'p50_ms' | 'p95_ms' | 'p99_ms', name: string): Sortable => ({
    column: { name, kind: 'number', show: asText((row) => formatSpan(row[sortBy])) },
    sortBy,
  });
  return [
    {
      column: { name: 'Share', kind: 'number', show: ({ share }, cell) => drawShare(share, cell) },
      sortBy: 'share',
    },
    {
      column: {
        name: 'Trend',
        title: 'Time spent in it, in the last ten minutes',
        show: (row, cell) => drawTrend(latelyOf(row)?.trend ?? [], cell),
      },
    },
    {
      column: {
        name: 'Now',
        kind: 'number',
        title: 'Its share of the time of all statements in the last seconds',
        show: asText((row) => formatShare(latelyOf(row)?.share ?? 0)),
      },
    },
    {
      column: {
        name: 'Mean now',
        kind: 'number',
        title: 'Its mean time in the last seconds; red: much longer than before',
        show: (row, cell) => {
          const found = latelyOf(row);
          setText(cell, formatSpan(found?.meanMs));
          cell.classList.toggle('marked', (found?.rise ?? null) !== null);
        },
      },
    },
    { column: { name: 'Statement', kind: 'text', show: asLongText(({ digest }) => digest) } },
    { column: { name: 'Client', show: asText(({ client }) => client ?? unknown) } },
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
        title: 'The id of one of its requests in the logs',
        show: asText(({ example_id }) => example_id ?? unknown),
      },
    },
  ];
}

function showErrors(statement: ListedStatement, cell: HTMLElement): void {
  const { errors, errors_by } = statement;
  setText(cell, formatShort(errors));
  cell.classList.toggle('marked', errors > 0);
  const classes = Object.entries(errors_by).filter(([, number]) => number > 0);
  cell.title = classes.map(([name, number]) => `${name}: ${formatCount(number)}`).join(', ');
}
