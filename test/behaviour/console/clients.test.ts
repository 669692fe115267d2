// The console where clients are configured: which one is loud, and what a client sees that may not look at the instance.
import assert from 'node:assert/strict';
import test, { after, afterEach, before } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { openBrowser } from '../../support/browser.ts';
import { bearing, createClientsFile, tokenOf } from '../../support/clients-file.ts';
import { askNow, findBarriers, openConsole } from '../../support/console-page.ts';
import { closeGate, createGate, type Gate } from '../../support/database/gate.ts';
import { useGateway } from '../../support/use-gateway.ts';

const file = createClientsFile({
  report: { allow: 'sql', max_in_flight: '2', queue: '1' },
  web: { allow: 'sql' },
  watcher: { allow: 'observe' },
  anonymous: { allow: 'metrics' },
});
const { gateway, database } = useGateway(
  { workers: 1, pool: 4, max_wait: '1m', statement_timeout: '5m', clients: file.path },
  { prepare: createGate },
);
let browser: Browser;
let gate: Gate | null = null;
before(async () => {
  browser = await openBrowser();
});
afterEach(async () => {
  await gate?.open();
  gate = null;
});
after(async () => {
  await browser?.close();
  file.remove();
});

async function withConsole(look: (page: Page) => Promise<void>): Promise<void> {
  const opened = await openConsole(browser, gateway.url, null);
  try {
    await look(opened.page);
    opened.assertQuiet();
  } finally {
    await opened.close();
  }
}

async function giveToken(page: Page, token: string): Promise<void> {
  await page.getByLabel('Token', { exact: true }).fill(token);
  await page.keyboard.press('Enter');
}

/** A request that runs until the gate is opened. */
function stand(name: string, closed: Gate, id: string) {
  const headers = { ...bearing(tokenOf(name)), 'X-Request-ID': id };
  const asked = { sql: `select ${closed.zero}` };
  const reply = gateway.post('/v1/query', asked, { headers, timeoutMs: 300_000 });
  reply.catch(() => undefined);
  return reply;
}

test('shows which client holds the connections, waits and is refused', async () => {
  gate = await closeGate(database);
  const closed = gate;
  await withConsole(async (page) => {
    await giveToken(page, tokenOf('watcher'));
    const rows = page.locator('#clients tbody tr');
    await rows.first().waitFor();
    assert.equal(await rows.count(), 4);
    const replies = ['one', 'two', 'three'].map((id) => stand('report', closed, id));
    const row = rows.filter({ hasText: 'report' });
    const shows = (at: number, number: number) =>
      row
        .locator('td')
        .nth(at)
        .filter({ hasText: new RegExp(`^${number}$`) })
        .waitFor();
    const [running, waiting, refusals] = [3, 4, 5];
    await shows(running, 2);
    await shows(waiting, 1);
    const refused = await stand('report', closed, 'four');
    assert.equal(refused.status, 429);
    await shows(refusals, 1);
    assert.match(
      (await row.locator('td').nth(refusals).getAttribute('title')) ?? '',
      /CLIENT_BUSY: 1/,
    );
    // It alone holds connections, so it comes first with nearly all of the time.
    await rows
      .first()
      .filter({ hasText: /report\s*(100|9\d(\.\d)?) %/ })
      .waitFor();
    await page.locator('#attention').getByText('1 request of report was refused').waitFor();
    await page.locator('#running tbody tr').filter({ hasText: 'report' }).first().waitFor();
    await page.locator('main').focus();
    await page.keyboard.press('l');
    await page.locator('#clients').locator(':focus').waitFor();
    assert.deepEqual(await findBarriers(page), []);
    await closed.open();
    for (const reply of await Promise.all(replies)) assert.equal(reply.status, 200);
  });
});

test('says what a client without the permission may see, shows its own requests, and takes a better token', async () => {
  gate = await closeGate(database);
  const replies = [stand('web', gate, 'own'), stand('report', gate, 'of-others')];
  await withConsole(async (page) => {
    // Requests without a token are those of `anonymous`.
    await page.getByText('Only a client with the permission observe').waitFor();
    await giveToken(page, 'wrong');
    await page.getByText('This token was not accepted.').waitFor();
    await giveToken(page, tokenOf('web'));
    await page.getByText('The client of this token lacks the permission observe, so').waitFor();
    // One sentence, and only the parts that the client may use.
    assert.deepEqual(await page.locator('main h2:visible').allTextContents(), ['Running now']);
    assert.equal(await page.locator('#banner').isVisible(), false);
    const running = page.locator('#running tbody tr');
    await running.filter({ hasText: 'own' }).waitFor();
    assert.equal(await running.count(), 1);
    assert.deepEqual(await findBarriers(page), []);
    // The token remains, also when the page asks again.
    await askNow(page);
    await page.getByRole('link', { name: 'SQL' }).click();
    await page.fill('#sql', 'select 40 + 2');
    await page.press('#sql', 'Control+Enter');
    await page
      .locator('#query-notice')
      .getByText(/^1 row · /)
      .waitFor();
    const tables = page.locator('#tables');
    await tables.locator('button.table').first().waitFor();
    // Requests without the token are those of a client that may see no table.
    await page.getByRole('button', { name: 'Forget token' }).click();
    await tables.getByText('Not for this client: it lacks the permission').waitFor();
    assert.equal(await tables.locator('button.table').first().isVisible(), false);
    await page.getByRole('link', { name: 'Overview' }).click();
    await giveToken(page, tokenOf('watcher'));
    await page
      .locator('#verdict')
      .getByText(/^Ready/)
      .waitFor();
    assert.equal(await page.locator('#token').isVisible(), false);
    await running.filter({ hasText: 'of-others' }).waitFor();
    await page.getByRole('button', { name: 'Kill request of-others' }).click();
    await page.getByRole('button', { name: 'Kill it' }).click();
    await page.getByText('It could not be killed.').getByText('permission kill').waitFor();
  });
  await gate.open();
  for (const reply of await Promise.all(replies)) assert.equal(reply.status, 200);
});
