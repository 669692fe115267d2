// Statements by their share of all time, with the last ten minutes of each.
import type { ListedStatement, StatementList } from '../shared/observe/statement-sums.ts';
import { drawShare, drawTrend } from './drawings.ts';
import { button, element, openPart, type Part, setText } from './elements.ts';
import { openFacts } from './facts.ts';
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
    ({ section, client, name, digest }) => `${section} ${client} ${name} ${digest}`,
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
    const found = statements.filter(({ digest, client = '', name = '' }) =>
      `${digest} ${client} ${name}`.toLowerCase().includes(wanted),
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
    column: {
      name,
      kind: 'number',
      isRest: true,
      show: asText((row) => formatSpan(row[sortBy])),
    },
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
        isRest: true,
        title: 'Time spent in it, in the last ten minutes',
        show: (row, cell) => drawTrend(latelyOf(row)?.trend ?? [], cell),
      },
    },
    {
      column: {
        name: 'Now',
        isRest: true,
        kind: 'number',
        title: 'Its share of the time of all statements in the last seconds',
        show: asText((row) => formatShare(latelyOf(row)?.share ?? 0)),
      },
    },
    {
      column: {
        name: 'Mean now',
        isRest: true,
        kind: 'number',
        title: 'Its mean time in the last seconds; red: much longer than before',
        show: (row, cell) => {
          const found = latelyOf(row);
          setText(cell, formatSpan(found?.meanMs));
          cell.classList.toggle('marked', (found?.rise ?? null) !== null);
        },
      },
    },
    {
      column: {
        name: 'Statement',
        kind: 'text',
        show: asLongText(({ name, digest }) =>
          name === undefined ? digest : `${name}: ${digest}`,
        ),
      },
    },
    { column: { name: 'Client', isRest: true, show: asText(({ client }) => client ?? unknown) } },
    {
      column: {
        name: 'Count',
        isRest: true,
        kind: 'number',
        show: asText(({ count }) => formatShort(count)),
      },
      sortBy: 'count',
    },
    {
      column: { name: 'Errors', isRest: true, kind: 'number', show: showErrors },
      sortBy: 'errors',
    },
    {
      column: {
        name: 'Rows',
        isRest: true,
        kind: 'number',
        show: asText(({ rows }) => formatShort(rows)),
      },
      sortBy: 'rows',
    },
    span('total_ms', 'Total'),
    span('p50_ms', 'p50'),
    span('p95_ms', 'p95'),
    span('p99_ms', 'p99'),
    {
      column: {
        name: 'Details',
        kind: 'action',
        show: (statement, cell) => {
          latest.set(cell, statement);
          if (cell.firstElementChild !== null) return;
          const label = `Details of ${statement.name ?? statement.digest}`;
          cell.append(
            button('Details', { 'aria-label': label }, () =>
              showStatement(latest.get(cell) ?? statement),
            ),
          );
        },
      },
    },
  ];
}

/** The latest state of each row's statement. */
const latest = new WeakMap<HTMLElement, ListedStatement>();

function showStatement(statement: ListedStatement): void {
  const { last_seen: seen } = statement;
  openFacts('Statement', statement.digest, [
    ['Named statement', statement.name ?? null],
    ['Client', statement.client ?? null],
    ['Section', statement.section ?? null],
    ['Executed', formatCount(statement.count)],
    ['Rows', formatCount(statement.rows)],
    ['Errors', statement.errors === 0 ? null : listErrors(statement)],
    ['Time in all', `${formatSpan(statement.total_ms)}, ${formatShare(statement.share)} of all`],
    ['p50', formatSpan(statement.p50_ms)],
    ['p95', formatSpan(statement.p95_ms)],
    ['p99', formatSpan(statement.p99_ms)],
    ['Last seen', seen === null ? null : formatWhen(new Date(seen))],
    ['An example, for the log', statement.example_id],
  ]);
}

function listErrors({ errors_by: by }: ListedStatement): string {
  const classes = Object.entries(by).filter(([, number]) => number > 0);
  return classes.map(([name, number]) => `${name}: ${formatCount(number)}`).join(', ');
}

function showErrors(statement: ListedStatement, cell: HTMLElement): void {
  const { errors } = statement;
  setText(cell, formatShort(errors));
  cell.classList.toggle('marked', errors > 0);
  cell.title = listErrors(statement);
}
