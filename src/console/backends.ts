// The servers of every section: their part, how far behind they are, their connections.
import type { BackendStats } from './ask.ts';
import { isBehind } from './attention.ts';
import { element, setText } from './elements.ts';
import { formatCount, formatSpan, unknown } from './format.ts';
import { openPart } from './part.ts';
import { asText, type Column, createTable } from './table.ts';
import type { StatsPart } from './workers.ts';

const tones: Readonly<Record<string, string>> = {
  primary: 'good',
  replica: 'good',
  unusable: 'bad',
};

/** Takes the part of the backends. */
export function openBackends(): StatsPart {
  const part = openPart('backends');
  const keyOf = ({ section, backend }: BackendStats) => `${section} ${backend}`;
  const table = createTable('Backends', columns, keyOf);
  part.body.append(table.frame);
  return {
    part,
    show: ({ backends }) => {
      table.update(backends);
      if (backends.length === 0) part.empty('There are no backends.');
      else part.shown(formatCount(backends.length));
    },
  };
}

const columns: readonly Column<BackendStats>[] = [
  { name: 'Section', show: asText(({ section }) => section) },
  { name: 'Server', show: asText(({ backend }) => backend) },
  {
    name: 'Role',
    show: ({ role, reason }, cell) => {
      setText(cell, role ?? 'only server');
      cell.title = reason ?? '';
      cell.className = role === null ? 'plain' : `tone ${tones[role] ?? 'warn'}`;
    },
  },
  {
    name: 'Lag',
    kind: 'number',
    show: (backend, cell) => {
      const { lag_seconds: lag } = backend;
      setText(cell, lag === null ? unknown : formatSpan(lag * 1000));
      cell.classList.toggle('marked', isBehind(backend));
    },
  },
  { name: 'In use', show: showUse },
  {
    name: 'Waiting',
    kind: 'number',
    show: ({ waiting }, cell) => {
      setText(cell, formatCount(waiting));
      cell.classList.toggle('marked', waiting > 0);
    },
  },
  {
    name: 'Idle',
    kind: 'number',
    show: asText(({ connections }) => formatCount(connections.idle)),
  },
];

function showUse({ connections }: BackendStats, cell: HTMLElement): void {
  const { busy, max, connecting } = connections;
  let [meter, label] = [...cell.children] as HTMLElement[];
  if (meter === undefined || label === undefined) {
    meter = element('span', { class: 'meter', 'aria-hidden': 'true' }, element('span'));
    label = element('span');
    cell.append(meter, label);
    cell.classList.add('use');
  }
  const share = max > 0 ? Math.min(1, busy / max) : 0;
  (meter.firstElementChild as HTMLElement).style.inlineSize = `${share * 100}%`;
  meter.classList.toggle('full', max > 0 && busy >= max);
  const opening = connecting === 0 ? '' : `, ${formatCount(connecting)} opening`;
  setText(label, `${formatCount(busy)} of ${formatCount(max)}${opening}`);
}
