// The console: which requests it sends, how often, and which part of the page shows the answers.
import type { StatementList } from '../shared/observe/statement-sums.ts';
import type { ListedRequest, RequestList, Stats } from '../shared/observe/stats.ts';
import { type AskError, asAskError, createAsk } from './ask.ts';
import { openCharts } from './charts.ts';
import { openClients } from './clients.ts';
import { find, type Part } from './elements.ts';
import { type CallableNamed, openNamed } from './named.ts';
import { openNamedForms } from './named-forms.ts';
import { type Polling, startPolling } from './poll.ts';
import { openQueryPane } from './query.ts';
import { openRunning } from './running.ts';
import { openState } from './state.ts';
import { openStatements } from './statements.ts';
import { openBackends, openErrors, openWorkers } from './stats-tables.ts';
import { openTables } from './tables.ts';
import { startKeys, startTheme, startToken } from './toolbar.ts';
import { openViews } from './views.ts';

const intervalMs = 2_000;
/** Statements change slowly, and there may be hundreds. */
const statementsIntervalMs = 4_000;
/** Files change more rarely still. */
const namedIntervalMs = 10_000;

let polls: readonly Polling[] = [];
const askAll = () => {
  for (const poll of polls) poll.now();
};
/** When /v1/stats was refused for lack of a permission. Each refusal counts as one of the client's requests, so the page rarely asks again. */
let refusedAt = Number.NEGATIVE_INFINITY;
const refusedPauseMs = 30_000;
/** Whether the client may list named statements. */
let mayCall = true;
const token = startToken(() => {
  mayCall = true;
  refusedAt = Number.NEGATIVE_INFINITY;
  askAll();
  forms.forget();
  query.forget();
  tables.forget();
  if (document.body.dataset.shown === 'sql') tables.load();
});
const ask = createAsk(token.read, token.wanted);

const state = openState();
const charts = openCharts();
const running = openRunning(ask, askAll);
const statements = openStatements();
const clients = openClients();
const [workers, backends, errors] = [openWorkers(), openBackends(), openErrors()];
const needsToken = () => token.read() !== null;
const query = openQueryPane(ask, needsToken, () => tables.load());
const tables = openTables(ask, query);
const named = openNamed(({ name }) => {
  window.location.hash = `named/${name}`;
});
let callable: readonly CallableNamed[] = [];
const forms = openNamedForms({ ask, needsToken, called: () => askAll() });
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

/**
 * One sentence explains what is hidden: `own`, what needs the permission `observe`; `none`, everything. The view of named statements
 * waits for the first answer to this.
 */
const showAccess = (access: 'all' | 'own' | 'none') => {
  const { access: before, shown } = document.body.dataset;
  document.body.dataset.access = access;
  if (access !== before && shown === 'named') askAll();
};

const askStats = async (signal: AbortSignal) => {
  if (performance.now() - refusedAt < refusedPauseMs) return;
  const parts = [charts, clients, workers, backends, errors];
  let stats: Stats;
  try {
    stats = await (await ask('/v1/stats', { signal })).json();
    state.show(stats, requests, statementsReply);
  } catch (cause) {
    const { status, problem } = asAskError(cause);
    const error = describe(cause);
    if (status === 401) showAccess('none');
    else if (problem.missing === undefined) state.failed(error);
    else {
      showAccess('own');
      refusedAt = performance.now();
      token.isNotEnough();
      state.refused();
    }
    for (const { part } of parts) part.failed(error);
    return;
  }
  showAccess('all');
  token.accepted();
  for (const part of parts) show(part, stats);
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
  if (document.body.dataset.access === 'own') return;
  try {
    const reply = (await (await ask('/v1/statements', { signal })).json()) as StatementList;
    statementsReply = reply;
    show(statements, reply);
    named.showCounts(reply);
  } catch (cause) {
    statementsReply = null;
    if (asAskError(cause).problem.missing !== undefined) named.showCounts(null);
    statements.part.failed(describe(cause));
  }
};

const askNamed = async (signal: AbortSignal) => {
  const { shown, access = 'none' } = document.body.dataset;
  if (shown !== 'named' || access === 'none' || !mayCall) return;
  try {
    const reply = await (await ask('/v1/named', { signal })).json();
    callable = (reply as { readonly statements: readonly CallableNamed[] }).statements;
  } catch (cause) {
    callable = [];
    mayCall = asAskError(cause).problem.missing === undefined;
    if (mayCall) {
      named.part.failed(describe(cause));
      return;
    }
  }
  // A client without the permission may still see which statements there are.
  named.showCallable(callable);
  openCall();
};

/** Opens the form of the statement that the hash names. */
const openCall = () => {
  const [part, name] = window.location.hash.split('/');
  const statement = callable.find((one) => part === '#named' && one.name === name);
  if (statement === undefined) forms.close();
  else forms.open(statement);
};
const views = openViews((view) => {
  if (view === 'sql') tables.load();
  if (view === 'named') askAll();
  openCall();
});

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
  startPolling(namedIntervalMs, askNamed),
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

// The hash of the link would lead to another view.
find('skip', HTMLAnchorElement).addEventListener('click', (event) => {
  event.preventDefault();
  find('content', HTMLElement).focus();
});

const goTo = (id: string) => () => {
  views.goTo(id);
  const part = find(id, HTMLElement);
  // If a part has nothing to show, its title gets the focus.
  const shown = [...part.querySelectorAll<HTMLElement>('.plot, .frame')];
  const title = part.querySelector<HTMLElement>('h2');
  if (title !== null) title.tabIndex = -1;
  (shown.find((one) => one.checkVisibility()) ?? title)?.focus({ preventScroll: true });
};
const goToSql = () => {
  views.goTo('query');
  query.focus();
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
    { key: 'o', meaning: 'overview', act: goTo('state') },
    { key: 'n', meaning: 'named statements', act: goTo('named') },
    { key: 'q', meaning: 'SQL: write a query', act: goToSql },
    { key: 'p', meaning: 'pause or resume', act: () => pause.click() },
    { key: 't', meaning: 'theme: system, light, dark', act: () => theme.click() },
  ],
  find('help', HTMLButtonElement),
);
