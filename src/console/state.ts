// The state of the instance: a verdict, a few figures, what needs attention, and whether this is still current.
import type { StatementList } from '../shared/observe/statement-sums.ts';
import type { ListedRequest, Stats } from '../shared/observe/stats.ts';
import { type Attention, explainUnready, findAttention } from './attention.ts';
import { element, find, setText } from './elements.ts';
import {
  formatClock,
  formatCount,
  formatMoment,
  formatRate,
  formatShare,
  formatSpan,
} from './format.ts';

/** After this time without an answer, the page is marked as stale. */
const staleMs = 5_000;

/** The top of the page. */
export type State = {
  readonly show: (
    stats: Stats,
    running: readonly ListedRequest[],
    statements: StatementList | null,
  ) => void;
  /** The gateway answers, but the client of this page may not look at the instance. */
  readonly refused: () => void;
  /** There was no answer. */
  readonly failed: (reason: string) => void;
  /** Updates the age of the last answer. */
  readonly tick: () => void;
};

/** Opens the top of the page. */
export function openState(): State {
  const section = find('state', HTMLElement);
  const verdict = find('verdict', HTMLElement);
  const facts = find('facts', HTMLElement);
  const attention = find('attention', HTMLElement);
  const instance = find('instance', HTMLElement);
  const setFigures = openFigures(find('figures', HTMLElement));
  const openedAt = Date.now();
  let answeredAt: number | null = null;
  let reason = '';

  const enter = (state: keyof typeof colours, word: string, title: string) => {
    section.dataset.state = state;
    setText(verdict, word);
    const name = instance.textContent === '' ? 'dbhttpd' : `${instance.textContent} · dbhttpd`;
    document.title = `${title} · ${name}`;
    setIcon(state);
  };
  const tick = () => {
    const silentMs = Date.now() - (answeredAt ?? openedAt);
    const isStale = reason !== '' && silentMs >= staleMs;
    document.body.classList.toggle('stale', isStale);
    find('banner', HTMLElement).hidden = !isStale;
    if (!isStale) return;
    const last = answeredAt === null ? null : formatClock(new Date(answeredAt));
    const since =
      last === null
        ? 'There has been no answer yet.'
        : `This page shows the last answer, of ${last}.`;
    setText(find('banner-text', HTMLElement), `Disconnected. ${since} ${reason}`);
    setText(
      find('banner-age', HTMLElement),
      `${formatSpan(1000 * Math.round(silentMs / 1000))} ago; the page keeps asking`,
    );
    enter('unknown', 'Disconnected', 'Disconnected');
  };
  return {
    tick,
    refused: () => {
      reason = '';
      answeredAt = Date.now();
      tick();
      enter('unknown', 'Not for this client', 'Not for this client');
      setText(facts, 'It sees its own requests, and may run what its permissions allow.');
      showAttention(attention, []);
    },
    failed: (why) => {
      reason = why;
      tick();
    },
    show: (stats, running, statements) => {
      reason = '';
      answeredAt = Date.now();
      tick();
      setText(instance, stats.section);
      const { rate } = readFigures(stats);
      const why = explainUnready(stats);
      const found = findAttention(stats, running, statements);
      if (stats.ready) {
        const word = found.length === 1 ? '1 thing' : `${found.length} things`;
        const more = found.length === 0 ? '' : `, ${word} to look at`;
        enter(found.length === 0 ? 'ready' : 'attention', `Ready${more}`, `${formatRate(rate)}/s`);
      } else enter('unready', why === null ? 'Not ready' : `Not ready: ${why}`, 'Not ready');
      setText(facts, describe(stats));
      setFigures(stats);
      showAttention(attention, found);
    },
  };
}

function describe({ workers, started_at, now, version, node }: Stats): string {
  const serving = workers.filter(({ state }) => state === 'serving').length;
  const startedAt = new Date(started_at);
  const upMs = new Date(now).getTime() - startedAt.getTime();
  const word = workers.length === 1 ? 'worker serves' : 'workers serve';
  return [
    `${serving} of ${workers.length} ${word}`,
    `up ${formatSpan(upMs)}, since ${formatMoment(startedAt)}`,
    `version ${version}`,
    `node ${node}`,
  ].join(' · ');
}

const sum = (values: readonly (number | null | undefined)[]) =>
  values.reduce<number>((total, value) => total + (value ?? 0), 0);

/** The last known value of the latest five: the newest may be missing. */
function lastOf(series: readonly (number | null)[]): number | null {
  return series.slice(-5).findLast((value) => value !== null) ?? null;
}

function readFigures({ history, backends, workers }: Stats) {
  const rates = Object.entries(history.outcomes).map(
    ([name, series]) => [name, lastOf(series)] as const,
  );
  const rate = rates.some(([, value]) => value !== null)
    ? sum(rates.map(([, value]) => value))
    : null;
  const failing = sum(rates.map(([name, value]) => (name === 'ok' ? 0 : value)));
  return {
    rate,
    failing: rate === null ? null : rate === 0 ? 0 : failing / rate,
    p50: lastOf(history.latency_ms.p50),
    p99: lastOf(history.latency_ms.p99),
    busy: sum(backends.map(({ connections }) => connections.busy)),
    max: sum(backends.map(({ connections }) => connections.max)),
    waiting: sum(backends.map(({ waiting }) => waiting)),
    inFlight: sum(workers.map(({ requests_in_flight }) => requests_in_flight)),
  };
}

/** Creates the figures and returns what sets them. */
function openFigures(list: HTMLElement): (stats: Stats) => void {
  const names = [
    'Requests a second',
    'Failing',
    'Latency p50',
    'Latency p99',
    'Connections in use',
    'Waiting',
    'Requests in flight',
  ];
  const values = names.map((name) => {
    const value = element('dd', {}, '–');
    list.append(element('div', {}, element('dt', {}, name), value));
    return value;
  });
  return (stats) => {
    const { rate, failing, p50, p99, busy, max, waiting, inFlight } = readFigures(stats);
    const texts = [
      formatRate(rate),
      formatShare(failing),
      formatSpan(p50),
      formatSpan(p99),
      `${formatCount(busy)} of ${formatCount(max)}`,
      formatCount(waiting),
      formatCount(inFlight),
    ];
    const marks = [
      false,
      (failing ?? 0) >= 0.01,
      false,
      false,
      busy >= max && waiting > 0,
      waiting > 0,
      false,
    ];
    for (const [at, value] of values.entries()) {
      setText(value, texts[at] as string);
      value.classList.toggle('marked', marks[at] === true);
    }
  };
}

/** Unchanged items stay as they are, so that only news is announced. */
function showAttention(list: HTMLElement, found: readonly Attention[]): void {
  const items = [...list.children] as HTMLElement[];
  for (const [at, { severity, text, part }] of found.entries()) {
    const item = items[at] ?? list.appendChild(element('li', {}, element('a')));
    item.className = severity;
    const link = item.firstElementChild as HTMLAnchorElement;
    link.setAttribute('href', `#${part}`);
    setText(link, text);
  }
  for (const item of items.slice(found.length)) item.remove();
}

const colours = { ready: '2f9e5b', attention: 'd9962b', unready: 'd64545', unknown: '8a94a3' };

/** The icon distinguishes tabs. */
function setIcon(state: keyof typeof colours): void {
  const drawing = `<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'><circle cx='8' cy='8' r='6' fill='#${colours[state]}'/></svg>`;
  const address = `data:image/svg+xml,${encodeURIComponent(drawing)}`;
  const link = document.querySelector('link[rel=icon]');
  if (link?.getAttribute('href') !== address) link?.setAttribute('href', address);
}
