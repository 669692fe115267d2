// The promises of the console with a running instance: it shows the truth, even while a worker hangs. What it ends, ends. It requests a
// token if one is needed, and forgets it with its tab.
import assert from 'node:assert/strict';
import test, { after, before } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { openBrowser } from '../../support/browser.ts';
import { askNow, type ConsolePage, openConsole } from '../../support/console-page.ts';
import { closeGate, createGate } from '../../support/database/gate.ts';
import { eventually } from '../../support/eventually.ts';
import { signal } from '../../support/processes.ts';
import { useGateway } from '../../support/use-gateway.ts';

const token = 'a-token-of-the-tests';
const known = { headers: { Authorization: `Bearer ${token}` } };
/** Requests that wait at a gate last until the page has been looked at. */
const longMs = 300_000;
const { gateway, database } = useGateway(
  { workers: 2, pool: 4, statement_timeout: '5m', token },
  { prepare: createGate },
);
let browser: Browser;
before(async () => {
  browser = await openBrowser();
});
after(() => browser?.close());

async function withConsole(look: (page: Page, opened: ConsolePage) => Promise<void>) {
  const opened = await openConsole(browser, gateway.url, null);
  try {
    await look(opened.page, opened);
    opened.assertQuiet();
  } finally {
    await opened.close();
  }
}

async function giveToken(page: Page, given: string): Promise<void> {
  await page.getByLabel('Token', { exact: true }).fill(given);
  await page.keyboard.press('Enter');
}

const isReady = (page: Page) =>
  page
    .locator('#verdict')
    .getByText(/^Ready/)
    .waitFor();

test('requests the token, and keeps it for the life of its tab', async () => {
  await withConsole(async (page) => {
    await page.getByText('This instance needs a token.').waitFor();
    // One sentence for all, and nothing that does not work without it.
    assert.equal(await page.locator('main :is(section, h2):visible').count(), 0);
    assert.equal(await page.locator(':focus').getAttribute('id'), 'token-field');
    await giveToken(page, 'another');
    await page.getByText('This token was not accepted.').waitFor();
    await giveToken(page, token);
    await isReady(page);
    assert.equal(await page.locator('#token').isVisible(), false);
    await page.reload();
    await isReady(page);
    assert.equal(await page.evaluate('JSON.stringify(localStorage)'), '{}');

    const other = await page.context().newPage();
    await other.goto(`${gateway.url}/console`);
    await other.getByText('This instance needs a token.').waitFor();
    await other.close();
    await page.bringToFront();

    await page.click('#forget');
    await page.getByText('This instance needs a token.').waitFor();
    assert.equal(await page.evaluate('JSON.stringify(sessionStorage)'), '{}');
  });
});

test('shows the real instance, and runs a statement on it', async () => {
  await withConsole(async (page) => {
    await giveToken(page, token);
    await isReady(page);
    assert.match((await page.textContent('#facts')) ?? '', /^2 of 2 workers serve · up /);
    const pids = await page.locator('#workers tbody td:nth-child(3)').allTextContents();
    assert.deepEqual(pids.map(Number).sort(), gateway.workers().sort());
    assert.match((await page.textContent('#backends tbody')) ?? '', /only server/);
    await page.getByRole('link', { name: 'SQL' }).click();
    await page.fill('#sql', 'select 1 + 1');
    await page.press('#sql', 'Control+Enter');
    await page
      .locator('#query-notice')
      .getByText(/^1 row · /)
      .waitFor();
    await page.fill('#sql', 'select * from nothing_of_this_name');
    await page.press('#sql', 'Control+Enter');
    await page.locator('#query-notice').getByText('ER_NO_SUCH_TABLE').waitFor();
    await page.getByRole('link', { name: 'Overview' }).click();
    await page.locator('#errors tbody tr').getByText('ER_NO_SUCH_TABLE (1146)').waitFor();
    await page
      .locator('#errors tbody tr')
      .getByText('select * from nothing_of_this_name')
      .waitFor();
    await page.locator('#charts canvas').first().waitFor();
  });
});

test('ends one request, and no other', async () => {
  const gate = await closeGate(database);
  try {
    const asked = ['one', 'other'].map((name) =>
      gateway.post(
        '/v1/query',
        { sql: `select ${gate.zero} as ${name}` },
        { headers: { ...known.headers, 'X-Request-ID': name }, timeoutMs: longMs },
      ),
    );
    await withConsole(async (page) => {
      await giveToken(page, token);
      await page.getByRole('button', { name: 'Kill request other' }).waitFor();
      await page.getByRole('button', { name: 'Kill request one' }).click();
      await page.getByRole('button', { name: 'Kill it' }).click();
      await page.getByText('Request one was killed.').waitFor();
      const killed = await asked[0];
      assert.equal(killed?.status, 504);
      assert.equal(killed?.json<{ code: string }>().code, 'KILLED');
      await page.getByRole('button', { name: 'Kill request one' }).waitFor({ state: 'detached' });
      await page.getByRole('button', { name: 'Kill request other' }).waitFor();
    });
    await gate.open();
    assert.equal((await asked[1])?.status, 200);
  } finally {
    await gate.open().catch(() => undefined);
  }
});

test('goes on while a worker hangs, and names the worker', async () => {
  await withConsole(async (page) => {
    await giveToken(page, token);
    await isReady(page);
    const [hung] = gateway.workers();
    assert.ok(hung);
    signal(hung, 'SIGSTOP');
    try {
      await page.locator('#workers').getByText('silent').waitFor();
      await page
        .locator('#attention')
        .getByText(/^Worker \d does not answer/)
        .waitFor();
      await page.keyboard.press('?');
      await page.getByRole('dialog', { name: 'Keys' }).waitFor();
      await page.keyboard.press('Escape');
      for (let more = 0; more < 2; more += 1) {
        const answered = page.waitForResponse(
          (response) => response.url().endsWith('/v1/stats') && response.ok(),
        );
        await Promise.all([answered, askNow(page)]);
      }
    } finally {
      signal(hung, 'SIGCONT');
    }
    await page.locator('#workers').getByText('silent').waitFor({ state: 'detached' });
  });
});

test('is opened by a link of another site, which can do nothing else with it', async () => {
  const gate = await closeGate(database);
  const asked = gateway.post(
    '/v1/query',
    { sql: `select ${gate.zero}` },
    { headers: { ...known.headers, 'X-Request-ID': 'untouched' }, timeoutMs: longMs },
  );
  const page = await browser.newPage();
  try {
    // Another site than 127.0.0.1, which browsers trust as much, so that they report everything about it.
    const elsewhere = 'http://localhost:9999/';
    await page.route(elsewhere, (route) =>
      route.fulfill({
        contentType: 'text/html',
        body: `<a href="${gateway.url}/console">console</a><iframe src="${gateway.url}/console"></iframe>`,
      }),
    );
    await page.goto(elsewhere);
    assert.equal(await page.frameLocator('iframe').locator('#verdict').count(), 0);
    const running = await eventually('it is listed', async () => {
      const list = await gateway.get('/v1/requests', known);
      const { requests } = list.json<{ requests: { id: string; request_id: string }[] }>();
      return requests.find(({ request_id }) => request_id === 'untouched');
    });
    const outcome = await page.evaluate(
      ([url, authorization]) =>
        fetch(url as string, {
          method: 'DELETE',
          headers: { Authorization: authorization as string },
        }).then(
          ({ status }) => `status ${status}`,
          () => 'refused by the browser',
        ),
      [`${gateway.url}/v1/requests/${running.id}`, known.headers.Authorization],
    );
    assert.equal(outcome, 'refused by the browser');
    await page.getByRole('link').click();
    await page.getByText('This instance needs a token.').waitFor();
    await gate.open();
    assert.equal((await asked).status, 200);
  } finally {
    await gate.open().catch(() => undefined);
    await page.close();
  }
});
