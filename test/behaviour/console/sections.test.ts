// The sections that the console offers: those that the client may use, whether or not it may see the state of the instance.
import assert from 'node:assert/strict';
import test, { after, before } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { openBrowser } from '../../support/browser.ts';
import { createClientsFile, tokenOf } from '../../support/clients-file.ts';
import { openConsole } from '../../support/console-page.ts';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';

const file = createClientsFile({
  all: { allow: 'sql, observe' },
  unseeing: { allow: 'sql' },
  shopping: { allow: 'sql, observe', sections: 'shop' },
  limited: { allow: 'sql', max_rows: '2' },
});
let browser: Browser;
let databases: Database[] = [];
let gateway: Gateway;
before(async () => {
  databases = [await startDatabase(), await startDatabase()];
  const [world, shop] = databases as [Database, Database];
  await world.query('create table cities (id int)');
  await shop.query('create table orders (id int)');
  gateway = await startGateway({
    database: world,
    settings: { workers: 1, pool: 2, clients: file.path },
    beside: { shop: { database: shop, settings: { pool: 2 } } },
  });
  browser = await openBrowser();
});
after(async () => {
  await browser?.close();
  await gateway?.stop();
  for (const database of databases) await database.stop();
  file.remove();
});

async function withConsole<Seen>(
  client: string,
  look: (page: Page) => Promise<Seen>,
): Promise<Seen> {
  const as = { part: 'query', token: tokenOf(client) };
  const opened = await openConsole(browser, gateway.url, null, as);
  try {
    const seen = await look(opened.page);
    opened.assertQuiet();
    return seen;
  } finally {
    await opened.close();
  }
}

const tableOf = (page: Page, name: string) =>
  page.locator('#tables button.table', { hasText: name });
const said = (page: Page, text: string | RegExp) =>
  page.locator('#query-notice').getByText(text).waitFor();

async function run(page: Page, sql: string): Promise<void> {
  await page.fill('#sql', sql);
  await page.click('#run');
}

/** The sections that a client is offered, and the tables and the schema of the one that is chosen. */
const offersTo = (client: string, choice?: string) =>
  withConsole(client, async (page) => {
    const tables = page.locator('#tables button.table');
    await tables.first().waitFor();
    const offered = await page.locator('#query-section option').allTextContents();
    if (choice !== undefined) {
      await page.selectOption('#query-section', choice);
      await tableOf(page, 'orders').waitFor();
    }
    await run(page, 'select database()');
    await said(page, /^1 row · /);
    const schema = await page.locator('#query-result tbody td:visible').first().textContent();
    return { offered, tables: await tables.allTextContents(), schema };
  });

test('a statement of the history is run in its section, and another client sees neither', async () => {
  await withConsole('all', async (page) => {
    await tableOf(page, 'cities').waitFor();
    await run(page, 'select 1 from cities');
    await said(page, /^0 rows · /);
    await page.selectOption('#query-section', 'shop');
    await tableOf(page, 'orders').waitFor();
    await page.click('#history summary');
    await page.locator('#history-list button').click();
    await tableOf(page, 'cities').waitFor();
    assert.equal(await page.inputValue('#query-section'), 'world');
    // Its answer must not come later either.
    await run(page, 'select sleep(60)');
    await said(page, /^Running for /);
    await page.getByRole('button', { name: 'Forget token' }).click();
    await page.locator('#token').waitFor();
    await page.locator('#query-notice').getByText('Stopped.').waitFor({ state: 'attached' });
    for (const left of ['#history-list button', '#tables button.table', '#query-result table']) {
      assert.equal(await page.locator(left).count(), 0, left);
    }
  });
});

test('a client is offered the sections that it may use, and each runs its own queries', async () => {
  const [world, shop] = databases.map(({ name }) => name);
  const both = ['world', 'shop'];
  const ofShop = { tables: ['orders'], schema: shop };
  assert.deepEqual(await offersTo('all'), { offered: both, tables: ['cities'], schema: world });
  assert.deepEqual(await offersTo('shopping'), { offered: ['shop'], ...ofShop });
  assert.deepEqual(await offersTo('unseeing', 'shop'), { offered: both, ...ofShop });
});

test('a CSV file says that it is cut when a limit of the client has cut it', async () => {
  await withConsole('limited', async (page) => {
    const save = async (sql: string) => {
      await page.fill('#sql', sql);
      await Promise.all([page.waitForEvent('download'), page.click('#query-csv')]);
    };
    await save('select 1 union all select 2 union all select 3');
    await said(page, / saved as CSV: 2 rows, cut: there are more\.$/);
    await save('select 1 union all select 2');
    await said(page, / saved as CSV: 2 rows\.$/);
  });
});
