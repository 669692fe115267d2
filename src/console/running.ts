// The requests that run now in all workers, and killing them.
import type { ListedRequest, RequestList } from '../shared/observe/stats.ts';
import { type Ask, AskError } from './ask.ts';
import { askToConfirm, element, openPart, type Part, setText } from './elements.ts';
import { formatCount, formatSpan, unknown } from './format.ts';
import { asLongText, asText, type Column, createTable } from './table.ts';

const killTimeoutMs = 5_000;

/** The part of running requests. */
export type Running = {
  readonly part: Part;
  readonly show: (reply: RequestList) => void;
};

/** Opens the part. @param onKilled called after an attempt to kill a request */
export function openRunning(ask: Ask, onKilled: () => void): Running {
  const part = openPart('running');
  const message = element('p', { class: 'notice', role: 'status' });
  const report = (text: string, isBad: boolean) => {
    setText(message, text);
    message.classList.toggle('bad', isBad);
  };
  const kill = async (request: ListedRequest) => {
    if (!(await confirmKill(request))) return;
    try {
      const signal = AbortSignal.timeout(killTimeoutMs);
      await ask(`/v1/requests/${encodeURIComponent(request.id)}`, { method: 'DELETE', signal });
      report(`Request ${request.request_id} was killed.`, false);
    } catch (error) {
      const isGone = error instanceof AskError && error.status === 404;
      if (isGone) report(`Request ${request.request_id} had already ended.`, false);
      else report(`It could not be killed. ${(error as Error).message}`, true);
    }
    onKilled();
  };
  const table = createTable('Running requests', columnsOf(kill), ({ id }) => id);
  part.section.append(message);
  part.body.append(table.frame);
  return {
    part,
    show: ({ requests, omitted, silent_workers: silent }) => {
      const oldestFirst = [...requests].sort((one, other) => other.age_ms - one.age_ms);
      table.update(oldestFirst);
      const gap = silent.length === 0 ? '' : `Worker ${silent.join(', ')} does not answer.`;
      const more = omitted === 0 ? '' : `, and ${formatCount(omitted)} more`;
      if (requests.length === 0) part.empty(`Nothing runs at the moment. ${gap}`);
      else part.shown(`${formatCount(requests.length)}, the oldest first${more}. ${gap}`);
    },
  };
}

function columnsOf(
  kill: (request: ListedRequest) => Promise<void>,
): readonly Column<ListedRequest>[] {
  return [
    {
      name: 'For',
      kind: 'number',
      show: ({ age_ms }, cell) => {
        setText(cell, formatSpan(age_ms));
        cell.classList.toggle('marked', age_ms >= 10_000);
      },
    },
    { name: 'Phase', show: asText(({ phase }) => phase.replaceAll('_', ' ')) },
    { name: 'Statement', kind: 'text', show: asLongText(({ shape }) => shape ?? unknown) },
    {
      name: 'Called',
      title: 'The named statement, and the tool of an agent',
      show: asText(describeCalled),
    },
    { name: 'Client', show: asText(describeCaller) },
    { name: 'Address', show: asText(({ address }) => address || unknown) },
    { name: 'Worker', kind: 'number', show: asText(({ worker }) => String(worker)) },
    {
      name: 'Backend',
      show: ({ section, backend }, cell) => {
        setText(cell, backend ?? unknown);
        cell.title = `section ${section}`;
      },
    },
    {
      name: 'Request',
      show: ({ request_id, trace_id }, cell) => {
        setText(cell, request_id);
        cell.title = trace_id === null ? '' : `trace ${trace_id}`;
      },
    },
    { name: 'End it', kind: 'action', show: (request, cell) => showKill(request, cell, kill) },
  ];
}

/** The latest state of each row's request, for the confirmation. */
const latest = new WeakMap<HTMLElement, ListedRequest>();

function showKill(
  request: ListedRequest,
  cell: HTMLElement,
  kill: (request: ListedRequest) => Promise<void>,
): void {
  latest.set(cell, request);
  if (cell.firstElementChild !== null) return;
  const label = `Kill request ${request.request_id}`;
  const created = element(
    'button',
    { type: 'button', class: 'danger', 'aria-label': label },
    'Kill',
  );
  created.addEventListener('click', () => void kill(latest.get(cell) ?? request));
  cell.append(created);
}

/** The named statement that a request calls, and the tool of an agent. */
export function describeCalled({ named, tool }: Pick<ListedRequest, 'named' | 'tool'>): string {
  if (tool === null) return named ?? unknown;
  return named === null ? `tool ${tool}` : `${named} (tool)`;
}

/** The client and, with a JSON Web Token, its user. */
function describeCaller({ client, user }: ListedRequest): string {
  return user === null ? client : `${client} (${user})`;
}

function confirmKill(request: ListedRequest): Promise<boolean> {
  const { request_id, age_ms, address, section, shape } = request;
  const from = address === null ? '' : ` at ${address}`;
  const about = `Request ${request_id} of ${describeCaller(request)}${from} to ${section}, under way for ${formatSpan(age_ms)}.`;
  return askToConfirm(
    'Kill this request?',
    [
      element('pre', { tabindex: 0, 'aria-label': 'Its statement' }, shape ?? unknown),
      element('p', {}, about),
      element(
        'p',
        {},
        'Its client gets a 504 (KILLED). A read has changed nothing. A write may or may not have been applied.',
      ),
    ],
    { yes: 'Kill it', no: 'Let it run' },
  );
}
