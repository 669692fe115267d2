// The console: which requests it sends, how often, and which part of the page shows the answers.
import type { StatementList } from '../shared/observe/statement-sums.ts';
import type { ListedRequest, RequestList, Stats } from '../shared/observe/stats.ts';
import { type AskError, asAskError, createAsk } from './ask.ts';
import { openCharts } from './charts.ts';
import { openClients } from './clients.ts';
import { find, type Part } from './elements.ts';
import { type Polling, startPolling } from './poll.ts';
import { openQueryPane } from './query.ts';
import { openRunning } from './running.ts';
import { openState } from './state.ts';
import { openStatements } from './statements.ts';
import { openBackends, openErrors, openWorkers } from './stats-tables.ts';
import { startKeys, startTheme, startToken } from './toolbar.ts';

const intervalMs = 2_000;
/** Statements change slowly, and there may be hundreds. */
const statementsIntervalMs = 4_000;

let polls: readonly Polling[] = [];
const askAll = () => {
  for (const poll of polls) poll.now();
};
const token = startToken(askAll);
const ask = createAsk(token.read, token.wanted);

const state = openState();
const charts = openCharts();
const running = openRunning(ask, askAll);
const statements = openStatements();
const clients = openClients();
const [workers, backends, errors] = [openWorkers(), openBackends(), openErrors()];
const query = openQueryPane(ask, () => token.read() !== null);
let requests: readonly ListedRequest[] = [];
let statementsReply: StatementList | null = null;

/** Shows an answer in a part. An exception affects this part only. */
const show = <Reply>(
  { part, show }: { readonly part: Part; readonly show: (reply: Reply) => void },
  reply: Reply,
) => {
  try {
    show(reply);
  } catch (error) {
    part.failed(`This cannot be shown: ${(error as Error).message}`);
  }
};

const askStats = async (signal: AbortSignal) => {
  const parts = [charts, clients, workers, backends, errors];
  let stats: Stats;
  try {
    stats = await (await ask('/v1/stats', { signal })).json();
    state.show(stats, requests, statementsReply);
  } catch (cause) {
    const error = describe(cause);
    if (asAskError(cause).problem.missing === undefined) state.failed(error);
    else {
      token.isNotEnough();
      state.refused(token.read() !== null);
    }
    for (const { part } of parts) part.failed(error);
    return;
  }
  token.accepted();
  for (const part of parts) show(part, stats);
  query.show(stats);
};

const askRequests = async (signal: AbortSignal) => {
  try {
    const reply = (await (await ask('/v1/requests', { signal })).json()) as RequestList;
    requests = reply.requests;
    show(running, reply);
  } catch (cause) {
    requests = [];
    running.part.failed(describe(cause));
  }
};

const askStatements = async (signal: AbortSignal) => {
  try {
    const reply = (await (await ask('/v1/statements', { signal })).json()) as StatementList;
    statementsReply = reply;
    show(statements, reply);
  } catch (cause) {
    statementsReply = null;
    statements.part.failed(describe(cause));
  }
};

function describe(cause: unknown): string {
  const { status, message, problem }: AskError = asAskError(cause);
  if (status === 401) return 'A token is needed.';
  if (problem.missing !== undefined) {
    return `Not for this client: it lacks the permission ${problem.missing}.`;
  }
  return status === 0 ? message : `Not available (${status}): ${message}`;
}

polls = [
  startPolling(intervalMs, askStats),
  startPolling(intervalMs, askRequests),
  startPolling(statementsIntervalMs, askStatements),
];
window.setInterval(state.tick, 1_000);

const pause = find('pause', HTMLButtonElement);
pause.addEventListener('click', () => {
  const isPaused = pause.getAttribute('aria-pressed') !== 'true';
  pause.setAttribute('aria-pressed', String(isPaused));
  for (const poll of polls) poll.pause(isPaused);
});

const theme = find('theme', HTMLButtonElement);
startTheme(theme, charts.redraw);

const goTo = (id: string) => () => {
  const part = find(id, HTMLElement);
  part.scrollIntoView({ block: 'start' });
  // If a part has nothing to show, its title gets the focus.
  const shown = [...part.querySelectorAll<HTMLElement>('.plot, .frame')];
  const title = part.querySelector<HTMLElement>('h2');
  if (title !== null) title.tabIndex = -1;
  (shown.find((one) => one.checkVisibility()) ?? title)?.focus({ preventScroll: true });
};
startKeys(
  [
    { key: 'c', meaning: 'charts', act: goTo('charts') },
    { key: 'l', meaning: 'clients: which one is loud', act: goTo('clients') },
    { key: 'r', meaning: 'running requests', act: goTo('running') },
    { key: 's', meaning: 'statements', act: goTo('statements') },
    { key: 'w', meaning: 'workers', act: goTo('workers') },
    { key: 'b', meaning: 'backends', act: goTo('backends') },
    { key: 'e', meaning: 'last errors', act: goTo('errors') },
    { key: 'q', meaning: 'write a query', act: query.focus },
    { key: 'p', meaning: 'pause or resume', act: () => pause.click() },
    { key: 't', meaning: 'theme: system, light, dark', act: () => theme.click() },
  ],
  find('help', HTMLButtonElement),
);
