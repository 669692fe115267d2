// The console shows an operator at night whether the gateway, the database or a client is at fault, which worker, server and statement, and
// since when. Real faults, real load, a real browser; and the page itself under full load.
// Waits 20 s: a statement is slow beside earlier points of its history, which are ten seconds long.
import assert from 'node:assert/strict';
import test, { after, before } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { openBrowser } from '../../support/browser.ts';
import { replicationHere, startReplication } from '../../support/clusters/replication.ts';
import { startBefore } from '../../support/clusters/several-servers.ts';
import { openConsole } from '../../support/console-page.ts';
import { closeGate, createGate } from '../../support/database/gate.ts';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import { createNumbers } from '../../support/database/numbers.ts';
import { eventually } from '../../support/eventually.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { signal } from '../../support/processes.ts';
import { open } from '../../support/v1-streams.ts';
import { type SteadyLoad, startSteadyLoad } from './support/steady-load.ts';

/** It takes 20 ms: what a busy machine adds is little beside that, and no rise. */
const orders = 'select sum(total) from open_orders where customer = ?';
/** Long enough that a busy machine does not double it. */
const held = 'select sleep(0.2)';
let database: Database;
let browser: Browser;
/** A statement is slow only in comparison with its past. These two have a past when their tests begin. */
let slowing: Gateway;
let narrow: Gateway;
const loads: SteadyLoad[] = [];

before(async () => {
  [database, browser] = await Promise.all([startDatabase(), openBrowser()]);
  await createNumbers(database);
  await createGate(database);
  await database.query(`
    create table orders (id int primary key auto_increment, customer int, total int, key by_customer (customer));
    insert into orders (customer, total) select seq, seq from numbers where seq <= 1000;
    create view open_orders as select * from orders where total > 0 and sleep(0.02) = 0;
    create table city (id int primary key, name varchar(20));
    insert into city select seq, concat('city ', seq) from numbers where seq <= 1000`);
  [slowing, narrow] = (await Promise.all(
    [4, 2].map((pool) => startGateway({ database, settings: { workers: 1, pool } })),
  )) as [Gateway, Gateway];
  loads.push(
    startSteadyLoad(slowing, 1, (n) =>
      n % 2 === 0
        ? { sql: orders, params: [1 + (n % 1000)] }
        : { sql: 'select name from city where id = ? and sleep(0.1) = 0', params: [n % 1000] },
    ),
    startSteadyLoad(narrow, 1, () => ({ sql: held })),
  );
});
after(async () => {
  await browser?.close();
  await Promise.all(loads.map((load) => load.stop()));
  await Promise.all([slowing?.stop(), narrow?.stop()]);
  await database?.stop();
});

async function withConsole(gateway: Gateway, look: (page: Page) => Promise<void>): Promise<void> {
  const opened = await openConsole(browser, gateway.url, null);
  opened.page.setDefaultTimeout(60_000);
  try {
    await look(opened.page);
    opened.assertQuiet();
  } finally {
    await opened.close();
  }
}

/** The line of "To look at" with this text. */
async function toLookAt(page: Page, what: RegExp): Promise<{ text: string; part: string }> {
  const line = page.getByRole('list', { name: 'To look at' }).getByRole('link', { name: what });
  try {
    await line.waitFor();
  } catch (cause) {
    throw new Error(`the page says: ${await page.locator('#state').textContent()}`, { cause });
  }
  return {
    text: (await line.textContent()) ?? '',
    part: (await line.getAttribute('href')) ?? '',
  };
}

/** The latest moment at which a clock showed the time after this word. */
function momentOf(text: string, word = 'since'): Date {
  const [, ...clock] = new RegExp(`${word} (\\d\\d):(\\d\\d):(\\d\\d)`).exec(text) ?? [];
  assert.equal(clock.length, 3, text);
  const [hours = 0, minutes = 0, seconds = 0] = clock.map(Number);
  const moment = new Date();
  moment.setHours(hours, minutes, seconds, 0);
  // The history has moments in rounded seconds.
  if (moment.getTime() > Date.now() + 1000) moment.setDate(moment.getDate() - 1);
  return moment;
}

/** It has not begun before the fault, except for one point of the history. */
function assertSince(text: string, faultAt: number, pointMs: number): void {
  const since = momentOf(text).getTime();
  assert.ok(since > faultAt - pointMs - 2000, `${text}, which began at ${new Date(faultAt)}`);
}

test('names the client that does not read, its statement and its worker', async () => {
  const sql = 'select repeat(a.seq, 100) from numbers a, numbers b where b.seq < 30';
  const reply = await open({ sql, type: 'application/json', requestId: 'export', to: narrow });
  reply.pause();
  const cut = new Promise((resolve) => reply.once('error', resolve));
  try {
    await withConsole(narrow, async (page) => {
      const { text, part } = await toLookAt(page, /does not read its reply/);
      assert.match(
        text,
        /^127\.0\.0\.1 does not read its reply: “select repeat.*” \(worker 0\) holds a connection for .* The client is slow, not the database/,
      );
      assert.equal(part, '#running');
      await page.locator('#running tbody tr').filter({ hasText: 'stalled' }).waitFor();
      await page.getByRole('button', { name: 'Kill request export' }).click();
      await page.getByRole('button', { name: 'Kill it' }).click();
      await page.getByText('Request export was killed.').waitFor();
      await page.getByRole('link', { name: /does not read/ }).waitFor({ state: 'detached' });
    });
    reply.resume();
    await cut;
  } finally {
    reply.destroy();
  }
});

test('names the replica that is behind, since when, and that it gets no reads', async (t) => {
  if (!replicationHere(t)) return;
  const set = await startReplication({ replicas: 1 });
  const [primary, replica] = set.servers;
  assert.ok(primary !== undefined && replica !== undefined);
  await primary.query('create table events (id int primary key auto_increment)');
  const gateway = await startBefore(set, { reads: 'replicas', max_lag: '1s' });
  // Without a pause it would use a processor alone, which the page and the servers need.
  const load = startSteadyLoad(gateway, 1, () => ({
    sql: 'insert into events select null from (select sleep(0.05)) pause',
  }));
  try {
    const faultAt = Date.now();
    await set.lag(replica, 'stopped');
    await withConsole(gateway, async (page) => {
      const { text, part } = await toLookAt(page, /it gets no reads/);
      const name = `${replica.host}:${replica.port}`;
      assert.ok(text.startsWith(`${name} is `), text);
      assert.match(text, / s behind its primary: .* That is more than max_lag \(1 s\)/);
      assertSince(text, faultAt, 1000);
      assert.equal(part, '#backends');
      const row = page.getByRole('region', { name: 'Backends' }).getByRole('row', { name });
      assert.match((await row.textContent()) ?? '', /replica/);
      assert.equal(await row.locator('.marked').count(), 1);
      assert.equal(await page.locator('#backends .marked').count(), 1);
      await set.lag(replica, null);
      await page.getByRole('link', { name: /behind its primary/ }).waitFor({ state: 'detached' });
    });
  } finally {
    await load.stop();
    await gateway.stop();
    await set.stop();
  }
});

test('shows the state, moves on and kills under full load, while a worker hangs too', async () => {
  // The statement to be killed must not end by itself, even on a busy machine.
  const settings = { workers: 2, pool: 4, statement_timeout: '5m' };
  const gateway = await startGateway({ database, settings });
  const gate = await closeGate(database);
  // All connections are in use and as many requests again wait, while the processor is left to the page.
  const load = startSteadyLoad(gateway, 32, (n) => ({
    sql: 'select name from city where id = ? and sleep(0.1) = 0',
    params: [1 + (n % 1000)],
  }));
  try {
    const asked = gateway.post(
      '/v1/query',
      { sql: `select ${gate.zero}` },
      { headers: { 'X-Request-ID': 'stuck' }, timeoutMs: 300_000 },
    );
    asked.catch(() => undefined);
    await withConsole(gateway, async (page) => {
      const kill = page.getByRole('button', { name: 'Kill request stuck' });
      await kill.waitFor();
      const row = page.locator('#running tbody tr').filter({ has: kill });
      const names = await page.locator('#running thead th').allTextContents();
      const owner = Number(await row.locator('td').nth(names.indexOf('Worker')).textContent());
      const slots = page.locator('#workers tbody tr');
      await slots.nth(1).waitFor();
      const pids = (await slots.locator('td:nth-child(3)').allTextContents()).map(Number);
      const hung = pids[1 - owner];
      assert.ok(hung);
      for (const isHung of [false, true]) {
        if (isHung) {
          signal(hung, 'SIGSTOP');
          // The supervisor replaces the worker after ten seconds, so a page that loads later may show its successor.
          await page.locator('#workers').getByText('silent').waitFor();
          await page.reload();
        }
        await page
          .locator('#verdict')
          .getByText(/^Ready/)
          .waitFor();
        const moment = await latestMoment(page);
        const moved = async () => (await latestMoment(page)) !== moment;
        await eventually('the charts move on', moved, { everyMs: 200 });
        const before = load.replies()[200] ?? 0;
        await eventually('the load goes on', () => (load.replies()[200] ?? 0) > before);
      }
      await kill.click();
      await page.getByRole('button', { name: 'Kill it' }).click();
      await page.getByText('Request stuck was killed.').waitFor();
      assert.equal((await asked).status, 504);
      signal(hung, 'SIGCONT');
    });
  } finally {
    for (const pid of gateway.workers()) signal(pid, 'SIGCONT');
    await load.stop();
    await gate.open();
    await gateway.stop();
  }
});

/** The last moment of the charts, as screen readers announce it. */
async function latestMoment(page: Page): Promise<string> {
  await page.locator('#charts .plot').first().press('Escape');
  await page.locator('#charts .plot').first().press('ArrowLeft');
  return ((await page.textContent('#charts-readout')) ?? '').slice(0, 8);
}

type Reported = { readonly statements: readonly { digest: string; history: History | null }[] };
type History = { readonly count: readonly number[] };

test('names the statement that has become slow, its earlier time, and since when', async () => {
  const hasPast = async () => {
    const { statements } = (await slowing.get('/v1/statements')).json<Reported>();
    const counts = statements.find(({ digest }) => digest === orders)?.history?.count ?? [];
    return counts.slice(0, -1).reduce((sum, count) => sum + count, 0) > 20;
  };
  // It takes up to twenty seconds, and each question costs the gateway and the test some of the processor.
  await eventually('it has a past', hasPast, { everyMs: 500 });
  const faultAt = Date.now();
  // A new version of the application, which reads each order for a long time.
  await database.query(
    'create or replace view open_orders as select * from orders where total > 0 and sleep(1) = 0',
  );
  await withConsole(slowing, async (page) => {
    const { text, part } = await toLookAt(page, /^The database takes/);
    assert.ok(text.includes(` for “${orders}” since `), text);
    assert.match(text, /; before it was .*\. That is .* % of all its time now\.$/);
    assertSince(text, faultAt, 10_000);
    assert.equal(part, '#statements');
    const rows = page.getByRole('region', { name: 'Statements' }).getByRole('row');
    await rows.filter({ hasText: orders }).locator('.marked').waitFor();
    assert.equal(await rows.filter({ hasText: 'from city' }).locator('.marked').count(), 0);
  });
});

test('reports that the pool is too small, and not that the database is slow', async () => {
  type Points = { readonly history: { readonly at: number[]; readonly waiting: number[] } };
  // The test before this one has made requests wait.
  const quietAt = await eventually('no request has waited lately', async () => {
    const { history } = (await narrow.get('/v1/stats')).json<Points>();
    return history.waiting.at(-1) === 0 && history.at.at(-1);
  });
  const crowd = startSteadyLoad(narrow, 12, () => ({ sql: held }));
  try {
    await withConsole(narrow, async (page) => {
      const { text, part } = await toLookAt(page, /since .*, for up to .*the pool is too small/);
      const server = `${database.host}:${database.port}`;
      assert.ok(text.startsWith(`All 2 connections to ${server} are in use, and `), text);
      assert.match(
        text,
        / requests wait, since .*, for up to .*\. The database is as fast as before/,
      );
      assert.ok(momentOf(text).getTime() > quietAt * 1000, `${text}, and not at ${quietAt}`);
      assert.equal(part, '#backends');
      await page.locator('#figures').getByText('2 of 2').waitFor();
    });
  } finally {
    await crowd.stop();
  }
});
