// Named statements: who may call them, how often they were called and failed, and which of them this client may try.
import type {
  ListedNamed,
  ListedStatement,
  StatementList,
} from '../shared/observe/statement-sums.ts';
import { button, openPart, type Part, setText } from './elements.ts';
import type { FieldSchema } from './fields.ts';
import { formatCount, formatShort, formatSpan, unknown } from './format.ts';
import { asText, type Column, createTable } from './table.ts';

/** A statement that this client may call, as /v1/named lists it. */
export type CallableNamed = {
  readonly name: string;
  readonly kind: ListedNamed['kind'];
  readonly description: string;
  readonly read_only: boolean;
  readonly key_required: boolean;
  readonly parameters: {
    readonly properties: Readonly<Record<string, FieldSchema>>;
    readonly required?: readonly string[];
  };
};

type Row = {
  readonly name: string;
  readonly kind: string;
  /** Null: this client may not see it. */
  readonly counted: ListedNamed | null;
  readonly callable: CallableNamed | null;
  /** Its entries among the statements, one for each client. */
  readonly entries: readonly ListedStatement[];
};

/** The part of named statements. */
export type Named = {
  readonly part: Part;
  /** Null: this client may see no statistics. */
  readonly showCounts: (list: StatementList | null) => void;
  readonly showCallable: (statements: readonly CallableNamed[]) => void;
};

/** @param attempt called with a statement that the reader wants to try */
export function openNamed(attempt: (statement: CallableNamed) => void): Named {
  const part = openPart('named');
  const table = createTable('Named statements', columnsOf(attempt), ({ name }: Row) => name);
  part.body.append(table.frame);
  let list: StatementList | null = null;
  let callable: readonly CallableNamed[] = [];
  const render = () => {
    const counts = new Map(list?.named.map((one) => [one.name, one]));
    const own = new Map(callable.map((one) => [one.name, one]));
    const names = [...new Set([...counts.keys(), ...own.keys()])].sort();
    table.update(
      names.map((name): Row => {
        const [counted, mine] = [counts.get(name) ?? null, own.get(name) ?? null];
        const entries = list?.statements.filter((one) => one.name === name) ?? [];
        return { name, kind: (counted ?? mine)?.kind ?? '', counted, callable: mine, entries };
      }),
    );
    if (names.length === 0) part.empty('There are no named statements for this client.');
    else {
      const mine = own.size === names.length ? '' : `, ${formatCount(own.size)} for this client`;
      part.shown(`${formatCount(names.length)}${mine}`);
    }
  };
  return {
    part,
    showCounts: (counted) => {
      list = counted;
      render();
    },
    showCallable: (statements) => {
      callable = statements;
      render();
    },
  };
}

function columnsOf(attempt: (statement: CallableNamed) => void): readonly Column<Row>[] {
  const longest = (row: Row) => {
    const known = row.entries.flatMap(({ p95_ms }) => p95_ms ?? []);
    return known.length === 0 ? null : Math.max(...known);
  };
  return [
    {
      name: 'Name',
      show: ({ name, callable }, cell) => {
        setText(cell, name);
        cell.classList.add('name');
        cell.title = callable?.description ?? '';
      },
    },
    { name: 'Kind', show: asText(({ kind }) => kind) },
    { name: 'For', kind: 'text', show: asText(({ counted }) => describeClients(counted)) },
    {
      name: 'Calls',
      kind: 'number',
      show: asText(({ counted }) => formatShort(counted?.calls)),
    },
    {
      name: 'Failed',
      kind: 'number',
      title: 'Calls without a result; point at a number to see why',
      show: ({ counted, entries }, cell) => {
        setText(cell, formatShort(counted?.failed));
        cell.classList.toggle('marked', (counted?.failed ?? 0) > 0);
        cell.title = describeErrors(entries);
      },
    },
    {
      name: 'Mean',
      kind: 'number',
      title: 'The time of the database for one call',
      show: asText(({ counted }) =>
        formatSpan(
          counted === null || counted.calls === 0 ? null : counted.total_ms / counted.calls,
        ),
      ),
    },
    { name: 'p95', kind: 'number', show: asText((row) => formatSpan(longest(row))) },
    {
      name: 'Time',
      kind: 'number',
      title: 'The time of the database for all calls since the start',
      show: asText(({ counted }) =>
        counted === null || counted.calls === 0 ? unknown : formatSpan(counted.total_ms),
      ),
    },
    { name: 'Try it', kind: 'action', show: (row, cell) => showAttempt(row, cell, attempt) },
  ];
}

function showAttempt(
  { name, callable }: Row,
  cell: HTMLElement,
  attempt: (statement: CallableNamed) => void,
): void {
  if (callable === null) {
    setText(cell, unknown);
    cell.title = 'not for this client';
    return;
  }
  if (cell.firstElementChild !== null) return;
  cell.title = '';
  cell.replaceChildren(button('Try', { 'aria-label': `Try ${name}` }, () => attempt(callable)));
}

function describeClients(counted: ListedNamed | null): string {
  if (counted === null) return unknown;
  return counted.for.includes('*') ? 'every client with named' : counted.for.join(', ');
}

function describeErrors(entries: readonly ListedStatement[]): string {
  const sums = new Map<string, number>();
  for (const [name, count] of entries.flatMap(({ errors_by }) => Object.entries(errors_by))) {
    sums.set(name, (sums.get(name) ?? 0) + count);
  }
  return [...sums].map(([name, count]) => `${name}: ${formatCount(count)}`).join(', ');
}
