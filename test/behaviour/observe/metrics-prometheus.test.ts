// A real Prometheus scrapes the real daemon while workers are killed and hung: what it has stored is whole.
// DBHTTPD_TEST_SCRAPED_SECONDS=600 goes on for longer than the half minute that it takes.
// Runs alone: a scrape has a bound of time.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import {
  type Definition,
  supervisorMetrics,
  workerMetrics,
} from '../../../src/shared/process/metrics.ts';
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
import { createWorkspace, type Workspace } from '../../support/workspace.ts';

const isHere = hasPrometheus();
const longerMs = 1000 * Number(process.env.DBHTTPD_TEST_SCRAPED_SECONDS ?? 0);
const token = 'what-prometheus-knows';
const bearer = { authorization: `Bearer ${token}` };
/** Twice the second that a scrape may take: what is judged is what was scraped. */
const intervalSeconds = 2;

let database: Database;
let gateway: Gateway;
let prometheus: Prometheus;
let workspace: Workspace;

before(async () => {
  if (!isHere) return;
  workspace = createWorkspace('scraped', () => {});
  const tokenFile = join(workspace.path, 'token');
  writeFileSync(tokenFile, `${token}\n`, { mode: 0o600 });
  database = await startDatabase();
  gateway = await startGateway({
    database,
    settings: { workers: 2, pool: 4, token_file: tokenFile },
  });
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

/** What Prometheus finds at this moment, as one number; null: nothing. */
async function read(expression: string, at?: number): Promise<number | null> {
  const [first] = await prometheus.query(expression, at);
  return first?.value ?? null;
}

/** The next scrape has just been stored: whoever is killed now was not answering one. */
async function scrapeIsOver(): Promise<void> {
  const last = await read('timestamp(up{job="dbhttpd"})');
  await eventually('a further scrape', async () => {
    const next = await read('timestamp(up{job="dbhttpd"})');
    return next !== null && next !== last;
  });
}

/** Reads and writes until `isOver`, whatever becomes of them: some meet a worker that dies. */
async function ask(isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    await gateway
      .db({ SQL: 'select 1' }, { headers: bearer, timeoutMs: 2000 })
      .catch(() => undefined);
    await pause(20);
  }
}

/** How many workers have been ended so far. */
let strikes = 0;

/** Both from one scrape: a slot whose worker has just died looks well before it. */
async function allUp(): Promise<void> {
  await eventually(
    'Prometheus sees both workers, and the deaths of those before them',
    async () => {
      const both = 'sum(dbhttpd_worker_up) == 2 and sum(dbhttpd_worker_restarts_total)';
      return (await read(`sum(dbhttpd_worker_restarts_total) and ${both}`)) === strikes;
    },
  );
}

async function kill(): Promise<void> {
  const [worker = 0] = gateway.workers();
  await scrapeIsOver();
  signal(worker, 'SIGKILL');
  await gone(worker);
  strikes += 1;
  await allUp();
}

/** The supervisor ends it after ten pings; until then scrapes go on without it. */
async function hang(): Promise<void> {
  const [, worker = 0] = gateway.workers();
  await scrapeIsOver();
  signal(worker, 'SIGSTOP');
  await eventually('Prometheus sees that a worker is silent', async () => {
    return (await read('dbhttpd_workers_silent')) === 1;
  });
  await eventually('the worker is ended', () => !isAlive(worker));
  strikes += 1;
  await allUp();
}

/** Of several servers, and of what has not happened: there is nothing to be seen of them here. */
const mayBeEmpty = /dbhttpd_(backend_\w+|two_primaries)|> 0$/;

/** The names of all series that only grow. */
const growing = Object.entries<Definition>({ ...workerMetrics, ...supervisorMetrics }).flatMap(
  ([name, { type }]) => {
    if (type === 'counter') return [name];
    return type === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [];
  },
);

test('counters neither fall nor miss a scrape while workers are killed and hung, and no series is there twice', async (t) => {
  if (!isHere) return t.skip('prometheus is not here: scripts/test unpacks it');
  await allUp();
  let isOver = false;
  const asking = ask(() => isOver);
  const until = performance.now() + longerMs;
  try {
    do {
      await kill();
      await hang();
    } while (performance.now() < until);
    await scrapeIsOver();
  } finally {
    isOver = true;
    await asking;
  }
  // All is asked as of one moment: further scrapes go on meanwhile.
  const at = Date.now() / 1000;
  const scrapes = await read('count_over_time(up{job="dbhttpd"}[1d])', at);
  t.diagnostic(`${scrapes} scrapes, ${strikes} strikes`);
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
  const text = (await gateway.get('/metrics', { headers: bearer })).text;
  const names = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  assert.equal(parseExposition(text).size, names.length);
});

test('every alert is understood, and the deaths of the workers have alarmed', async (t) => {
  if (!isHere) return t.skip('prometheus is not here: scripts/test unpacks it');
  await eventually('the alert of restarts fires', async () => {
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
  for (const expression of readDashboardExpressions('10s')) {
    const found = await prometheus.query(expression);
    assert.ok(found.length > 0 || mayBeEmpty.test(expression), expression);
  }
});

test('what an alert is about stands there before its first event, and promtool has nothing to say of it', async (t) => {
  if (!isHere) return t.skip('prometheus is not here: scripts/test unpacks it');
  const fresh = await startGateway({ database, settings: { workers: 1 } });
  try {
    const { text } = await fresh.get('/metrics');
    const { ok, said } = promtool(['check', 'metrics'], text);
    assert.ok(ok && said === '', said);
    const there = new Set([...parseExposition(text).keys()].map((key) => key.split('{')[0]));
    const wanted = readAlerts()
      .flatMap(({ expression }) => findNamings(expression))
      .map(({ name }) => name)
      .filter((name) => !mayBeEmpty.test(name));
    assert.deepEqual(
      wanted.filter((name) => !there.has(name)),
      [],
    );
  } finally {
    await fresh.stop();
  }
});
