// The last requests that failed.
import type { LastError } from './ask.ts';
import { setText } from './elements.ts';
import { formatClock, formatCount, formatWhen, unknown } from './format.ts';
import { openPart } from './part.ts';
import { asLongText, asText, type Column, createTable } from './table.ts';
import type { StatsPart } from './workers.ts';

/** Takes the part of the last errors. */
export function openErrors(): StatsPart {
  const part = openPart('errors');
  const table = createTable('Last errors', columns, keyOf);
  part.body.append(table.frame);
  return {
    part,
    show: ({ errors }) => {
      table.update(errors);
      const [latest] = errors;
      if (latest === undefined) part.empty('No request has failed since the start.');
      else
        part.shown(
          `${formatCount(errors.length)}, the latest at ${formatClock(new Date(latest.at))}`,
        );
    },
  };
}

/** Two requests may have named themselves alike. */
function keyOf({ at, request_id, worker, code }: LastError): string {
  return `${at} ${worker} ${request_id} ${code}`;
}

const columns: readonly Column<LastError>[] = [
  { name: 'At', show: asText(({ at }) => formatWhen(new Date(at))) },
  {
    name: 'Outcome',
    show: ({ outcome }, cell) => {
      setText(cell, outcome.replaceAll('_', ' '));
      cell.className = `tone ${outcome === 'unknown' || outcome === 'partial' ? 'bad' : 'warn'}`;
    },
  },
  { name: 'Status', kind: 'number', show: asText(({ status }) => String(status)) },
  {
    name: 'Code',
    show: asText(
      ({ code, errno }) => [code, errno].filter((part) => part !== null).join(' ') || unknown,
    ),
  },
  { name: 'Statement', kind: 'text', show: asLongText(({ shape }) => shape ?? unknown) },
  { name: 'Section', show: asText(({ section }) => section ?? unknown) },
  {
    name: 'Worker',
    kind: 'number',
    show: asText(({ worker }) => String(worker)),
  },
  { name: 'Request', show: asText(({ request_id }) => request_id) },
];
