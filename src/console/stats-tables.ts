// The tables of what /v1/stats reports: workers, backends and the last errors.
import type { BackendStats, ListedError, Stats, WorkerStats } from '../shared/observe/stats.ts';
import { isBehind } from './attention.ts';
import { button, element, openPart, type Part, setText } from './elements.ts';
import { openFacts } from './facts.ts';
import {
  formatBytes,
  formatClock,
  formatCount,
  formatMoment,
  formatShare,
  formatSpan,
  formatWhen,
  unknown,
} from './format.ts';
import { describeCalled } from './running.ts';
import { asLongText, asText, type Column, createTable } from './table.ts';

/** A part that shows a piece of /v1/stats. */
export type StatsPart = { readonly part: Part; readonly show: (stats: Stats) => void };

/** Opens the part of the workers. */
export function openWorkers(): StatsPart {
  const part = openPart('workers');
  const usage = new ProcessorUse();
  const table = createTable('Workers', workerColumns(usage), ({ slot }) => String(slot));
  part.body.append(table.frame);
  return {
    part,
    show: ({ workers, now }) => {
      usage.note(workers, new Date(now).getTime());
      table.update(workers);
      const restarts = workers.reduce((total, one) => total + one.restarts, 0);
      if (workers.length === 0) part.empty('There are no workers.');
      else part.shown(`${formatCount(workers.length)}, ${describeRestarts(restarts)}`);
    },
  };
}

function describeRestarts(restarts: number): string {
  if (restarts === 0) return 'no restarts';
  return restarts === 1 ? 'one restart' : `${formatCount(restarts)} restarts`;
}

const workerTones = { serving: 'good', starting: 'warn', silent: 'bad', down: 'bad' } as const;

function workerColumns(usage: ProcessorUse): readonly Column<WorkerStats>[] {
  const count = (name: string, value: (worker: WorkerStats) => number): Column<WorkerStats> => ({
    name,
    kind: 'number',
    show: asText((worker) => formatCount(value(worker))),
  });
  return [
    { name: 'Slot', kind: 'number', show: asText(({ slot }) => String(slot)) },
    {
      name: 'State',
      show: ({ state, ready, unready, runs_other_code }, cell) => {
        const words = [
          state,
          ...(ready ? [] : [unready === null ? 'not ready' : `not ready: ${unready}`]),
          ...(runs_other_code ? ['other version'] : []),
        ];
        setText(cell, words.join(', '));
        cell.className = `tone ${state === 'serving' && !ready ? 'bad' : (workerTones[state] ?? 'warn')}`;
      },
    },
    {
      name: 'Pid',
      kind: 'number',
      show: asText(({ pid }) => (pid === null ? unknown : String(pid))),
    },
    count('In flight', ({ requests_in_flight }) => requests_in_flight),
    count('Clients', ({ client_connections }) => client_connections),
    { name: 'CPU', kind: 'number', show: asText((worker) => formatShare(usage.of(worker))) },
    {
      name: 'Memory',
      kind: 'number',
      show: asText(({ memory_bytes }) => formatBytes(memory_bytes)),
    },
    {
      name: 'Loop lag',
      kind: 'number',
      show: asText(({ event_loop_lag_ms: ms }) => (ms === null ? unknown : formatSpan(ms))),
    },
    count('Restarts', ({ restarts }) => restarts),
  ];
}

/** The share of one processor that each process used between two answers. */
class ProcessorUse {
  #before = new Map<number | null, { readonly seconds: number; readonly share: number | null }>();
  #notedAt = 0;

  note(workers: readonly WorkerStats[], now: number): void {
    const passed = (now - this.#notedAt) / 1000;
    if (passed <= 0) return;
    const noted = workers.map(({ pid, cpu_seconds: seconds }) => {
      const before = this.#before.get(pid);
      const share = before === undefined ? null : Math.max(0, seconds - before.seconds) / passed;
      return [pid, { seconds, share }] as const;
    });
    this.#before = new Map(noted);
    this.#notedAt = now;
  }

  of({ pid }: WorkerStats): number | null {
    return this.#before.get(pid)?.share ?? null;
  }
}

const roleTones: Readonly<Record<string, string>> = {
  primary: 'good',
  replica: 'good',
  unusable: 'bad',
};

/** Opens the part of the backends. */
export function openBackends(): StatsPart {
  const part = openPart('backends');
  const keyOf = ({ section, backend }: BackendStats) => `${section} ${backend}`;
  const table = createTable('Backends', backendColumns, keyOf);
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

const backendColumns: readonly Column<BackendStats>[] = [
  { name: 'Section', show: asText(({ section }) => section) },
  { name: 'Server', show: asText(({ backend }) => backend) },
  {
    name: 'Role',
    show: ({ role, reason }, cell) => {
      setText(cell, role ?? 'only server');
      cell.title = reason ?? '';
      cell.className = role === null ? 'plain' : `tone ${roleTones[role] ?? 'warn'}`;
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

/** Opens the part of the last errors. */
export function openErrors(): StatsPart {
  const part = openPart('errors');
  const table = createTable('Last errors', errorColumns, errorKey);
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

/** Two requests may have the same id, since clients choose it. */
function errorKey({ at, request_id, worker, code }: ListedError): string {
  return `${at} ${worker} ${request_id} ${code}`;
}

/** A refusal by the data is no fault of anything. */
function classOfOutcome({ outcome, by_data: isByData }: ListedError): string {
  if (isByData) return 'plain';
  return `tone ${outcome === 'unknown' || outcome === 'partial' ? 'bad' : 'warn'}`;
}

const errorColumns: readonly Column<ListedError>[] = [
  { name: 'At', show: asText(({ at }) => formatWhen(new Date(at))) },
  {
    name: 'Outcome',
    isRest: true,
    show: (error, cell) => {
      setText(cell, error.outcome.replaceAll('_', ' '));
      cell.className = `rest ${classOfOutcome(error)}`;
    },
  },
  { name: 'Status', isRest: true, kind: 'number', show: asText(({ status }) => String(status)) },
  {
    name: 'Code',
    show: asText(({ code, errno, error_name: name }) => {
      if (errno === null) return code ?? unknown;
      return name === null ? String(errno) : `${name} (${errno})`;
    }),
  },
  {
    name: 'Statement',
    kind: 'text',
    isRest: true,
    show: asLongText(({ shape }) => shape ?? unknown),
  },
  { name: 'Called', isRest: true, show: asText(describeCalled) },
  { name: 'Client', isRest: true, show: asText(({ client }) => client ?? unknown) },
  {
    name: 'Details',
    kind: 'action',
    show: (error, cell) => {
      // The row of an error is always the same error.
      if (cell.firstElementChild !== null) return;
      const label = `Details of the error of request ${error.request_id}`;
      cell.append(button('Details', { 'aria-label': label }, () => showError(error)));
    },
  },
];

function showError(error: ListedError): void {
  const { code, errno, error_name: name, shape } = error;
  openFacts('What failed', shape, [
    ['Meaning', error.meaning],
    ['Outcome', error.outcome.replaceAll('_', ' ')],
    ['Status', String(error.status)],
    ['Code', code],
    ["MySQL's error", errno === null ? null : `${name ?? ''} (${errno})`.trim()],
    ['At', formatMoment(new Date(error.at))],
    ['Request, for the log', error.request_id],
    ['Trace', error.trace_id],
    ['Client', error.client],
    ['User', error.user],
    ['Named statement', error.named],
    ["An agent's tool", error.tool],
    ['Section', error.section],
    ['Worker', String(error.worker)],
  ]);
}
