// A real Prometheus scrapes the real daemon while workers are killed and hung: what it has stored is whole.
// Waits 25 s: the supervisor ends a worker that hangs after ten pings, and Prometheus scrapes every few seconds.
// DBHTTPD_TEST_SCRAPED_SECONDS=600 goes on for longer.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { after, before, test } from 'node:test';
import {
  type Definition,
  supervisorMetrics,
  workerMetrics,
} from '../../../src/shared/observe/metrics.ts';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import {
  alertsPath,
  findNamings,
  readAlerts,
  readDashboardExpressions,
  settingsPath,
} from '../../support/deployed-watching.ts';
import { eventually } from '../../support/eventually.ts';
import { parseExposition } from '../../support/exposition.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { gone, isAlive, signal } from '../../support/processes.ts';
import {
  hasPrometheus,
  type Prometheus,
  promtool,
  startPrometheus,
} from '../../support/prometheus.ts';
import { getReport } from '../../support/reports.ts';
import { createWorkspace, type Workspace } from '../../support/workspace.ts';

const isHere = hasPrometheus();
const longerMs = 1000 * Number(process.env.DBHTTPD_TEST_SCRAPED_SECONDS ?? 0);
const token = 'what-prometheus-knows';
const bearer = { authorization: `Bearer ${token}` };
/** Four times the second within which the gateway answers a scrape, since this machine may be busy. A scrape may take the whole interval. */
const intervalSeconds = 4;

let database: Database;
let gateway: Gateway;
let prometheus: Prometheus;
let workspace: Workspace;
/** The gateway's exposition before its first event. */
let firstExposition: string;

before(async () => {
  if (!isHere) return;
  workspace = createWorkspace('scraped', () => {});
  const tokenFile = join(workspace.path, 'token');
  writeFileSync(tokenFile, `${token}\n`, { mode: 0o600 });
  database = await startDatabase();
  gateway = await startGateway({
    database,
    settings: { workers: 3, pool: 4, token_file: tokenFile },
  });
  firstExposition = (await getReport(gateway, '/metrics', { headers: bearer })).text;
  prometheus = await startPrometheus(settingsFor(gateway, tokenFile));
});
after(async () => {
  await prometheus?.stop();
  await gateway?.stop();
  await database?.stop();
  workspace?.remove();
});

/** The settings of deploy/, for this gateway and for the haste of a test. */
function settingsFor({ port }: Gateway, tokenFile: string): string {
  const text = readFileSync(settingsPath, 'utf8')
    .replace('/etc/prometheus/dbhttpd-alerts.yml', resolve(alertsPath))
    .replace('/etc/prometheus/dbhttpd-token', tokenFile)
    .replace('127.0.0.1:9090', `127.0.0.1:${port}`)
    .replace('scrape_interval: 15s', `scrape_interval: ${intervalSeconds}s`)
    .replace('scrape_timeout: 5s', `scrape_timeout: ${intervalSeconds}s`);
  return `global:\n  evaluation_interval: 1s\n${text}`;
}

/** The value of an expression in Prometheus now, as one number; null: none. */
async function read(expression: string, at?: number): Promise<number | null> {
  const [first] = await prometheus.query(expression, at);
  return first?.value ?? null;
}

/** Waits until Prometheus sees something; every question costs it some of the processor. */
async function sees(what: string, look: () => Promise<boolean | number | null>): Promise<void> {
  await eventually(`Prometheus sees ${what}`, look, { everyMs: 500 });
}

/** The next scrape has just been stored: a worker that is killed now was not answering one. */
async function scrapeIsOver(): Promise<void> {
  const last = await read('timestamp(up{job="dbhttpd"})');
  await sees('a further scrape', async () => {
    const next = await read('timestamp(up{job="dbhttpd"})');
    return next !== null && next !== last;
  });
}

/** Reads until `isOver`, at most ten times a second, whatever the replies are: some meet a worker that dies. */
async function ask(isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    await gateway
      .db({ SQL: 'select sleep(0.1)' }, { headers: bearer, timeoutMs: 2000 })
      .catch(() => undefined);
  }
}

/** The number of workers that were ended so far. */
let strikes = 0;

/** Both from one scrape: a slot whose worker has just died looks healthy before it. */
async function allUp(): Promise<void> {
  await sees('all workers, and the deaths of those before them', async () => {
    const all = 'sum(dbhttpd_worker_up) == 3 and sum(dbhttpd_worker_restarts_total)';
    return (await read(`sum(dbhttpd_worker_restarts_total) and ${all}`)) === strikes;
  });
}

/** One worker hangs, and another one dies meanwhile: the third answers. The supervisor ends the first after ten pings. */
async function hangAndKill(): Promise<void> {
  const [killed = 0, hung = 0] = gateway.workers();
  await scrapeIsOver();
  signal(hung, 'SIGSTOP');
  await sees('that a worker is silent', async () => {
    return (await read('dbhttpd_workers_silent')) === 1;
  });
  signal(killed, 'SIGKILL');
  await gone(killed);
  strikes += 1;
  await allUp();
  await eventually('the worker that hangs is ended', () => !isAlive(hung));
  strikes += 1;
  await allUp();
}

/** Metrics of what this gateway does not have (several servers, certificates, agents, …), and of events that do not happen here, may be empty. */
const mayBeEmpty =
  /dbhttpd_(backend|two_primaries|certificate|client_expiry|tool_calls|named)\w*|> 0$/;

/** The names of all series that only grow. */
const growing = Object.entries<Definition>({ ...workerMetrics, ...supervisorMetrics }).flatMap(
  ([name, { type }]) => {
    if (type === 'counter') return [name];
    return type === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [];
  },
);

test('counters neither fall nor miss a scrape while workers are killed and hung, and no series appears twice', async (t) => {
  if (!isHere) return t.skip('prometheus is not here: scripts/test unpacks it');
  await allUp();
  let isOver = false;
  const asking = ask(() => isOver);
  const until = performance.now() + longerMs;
  try {
    do {
      await hangAndKill();
    } while (performance.now() < until);
  } finally {
    isOver = true;
    await asking;
  }
  // All queries are for one moment, because scrapes go on meanwhile.
  const at = Date.now() / 1000;
  const scrapes = await read('count_over_time(up{job="dbhttpd"}[1d])', at);
  const longest = await read('max_over_time(scrape_duration_seconds[1d])', at);
  t.diagnostic(`${scrapes} scrapes of ${longest} s at most, ${strikes} strikes`);
  assert.equal(await read('min_over_time(up{job="dbhttpd"}[1d])', at), 1, 'all were answered');
  for (const name of growing) {
    assert.deepEqual(await prometheus.query(`resets(${name}[1d]) > 0`, at), [], `${name} fell`);
    const counts = await prometheus.query(`count_over_time(${name}[1d])`, at);
    assert.ok(counts.length > 0 || mayBeEmpty.test(name), name);
    const others = counts.filter(({ value }) => value !== scrapes);
    assert.deepEqual(others, [], `${name} was not in each of ${scrapes} scrapes`);
  }
  assert.equal(await read('sum(dbhttpd_worker_restarts_total)'), strikes);
  assert.doesNotMatch(prometheus.log(), /level=(warn|error)|[Dd]uplicate|out-of-order/);
  const { text } = await getReport(gateway, '/metrics', { headers: bearer });
  const names = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  assert.equal(parseExposition(text).size, names.length);
});

test('every alert is understood, and the deaths of the workers have alarmed', async (t) => {
  if (!isHere) return t.skip('prometheus is not here: scripts/test unpacks it');
  await sees('that the alert of restarts fires', async () => {
    return await read('ALERTS{alertname="DbhttpdWorkerRestarts",alertstate="firing"}');
  });
  const { groups } = (await prometheus.ask('rules')) as {
    groups: { rules: { name: string; health: string; lastError?: string }[] }[];
  };
  const rules = groups.flatMap((group) => group.rules);
  assert.deepEqual(
    rules.map(({ name }) => name),
    readAlerts().map(({ name }) => name),
  );
  assert.deepEqual(
    rules.filter(({ health }) => health !== 'ok'),
    [],
  );
});

test('each panel of the dashboard shows something', async (t) => {
  if (!isHere) return t.skip('prometheus is not here: scripts/test unpacks it');
  for (const expression of readDashboardExpressions('20s')) {
    const found = await prometheus.query(expression);
    assert.ok(found.length > 0 || mayBeEmpty.test(expression), expression);
  }
});

test('the series of an alert exist before its first event, and promtool finds no fault', (t) => {
  if (!isHere) return t.skip('prometheus is not here: scripts/test unpacks it');
  const { ok, said } = promtool(['check', 'metrics'], firstExposition);
  assert.ok(ok && said === '', said);
  const there = new Set(
    [...parseExposition(firstExposition).keys()].map((key) => key.split('{')[0]),
  );
  const wanted = readAlerts()
    .flatMap(({ expression }) => findNamings(expression))
    .map(({ name }) => name)
    .filter((name) => !mayBeEmpty.test(name));
  assert.deepEqual(
    wanted.filter((name) => !there.has(name)),
    [],
  );
});
