// The sections that the console offers: those that the client may use, whether or not it may see the state of the instance.
import assert from 'node:assert/strict';
import test, { after, before } from 'node:test';
import type { Browser } from 'playwright-core';
import { openBrowser } from '../../support/browser.ts';
import { createClientsFile, tokenOf } from '../../support/clients-file.ts';
import { openConsole } from '../../support/console-page.ts';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';

const file = createClientsFile({
  all: { allow: 'sql, observe' },
  unseeing: { allow: 'sql' },
  shopping: { allow: 'sql, observe', sections: 'shop' },
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

/** The sections that a client is offered, and the tables and the schema of the one that is chosen. */
async function look(client: string, choice?: string) {
  const opened = await openConsole(browser, gateway.url, null, {
    part: 'query',
    token: tokenOf(client),
  });
  const { page } = opened;
  try {
    const tables = page.locator('#tables button.table');
    await tables.first().waitFor();
    const offered = await page.locator('#query-section option').allTextContents();
    if (choice !== undefined) {
      await page.selectOption('#query-section', choice);
      await page.locator('#tables button.table', { hasText: 'orders' }).waitFor();
    }
    await page.fill('#sql', 'select database()');
    await page.click('#run');
    await page
      .locator('#query-notice')
      .getByText(/^1 row · /)
      .waitFor();
    const schema = await page.locator('#query-result tbody td:visible').first().textContent();
    opened.assertQuiet();
    return { offered, tables: await tables.allTextContents(), schema };
  } finally {
    await opened.close();
  }
}

test('a statement of the history is run in its section, and another client sees neither', async () => {
  const opened = await openConsole(browser, gateway.url, null, {
    part: 'query',
    token: tokenOf('all'),
  });
  const { page } = opened;
  try {
    const table = (name: string) => page.locator('#tables button.table', { hasText: name });
    await table('cities').waitFor();
    await page.fill('#sql', 'select 1 from cities');
    await page.click('#run');
    await page
      .locator('#query-notice')
      .getByText(/^0 rows · /)
      .waitFor();
    await page.selectOption('#query-section', 'shop');
    await table('orders').waitFor();
    await page.click('#history summary');
    await page.locator('#history-list button').click();
    await table('cities').waitFor();
    assert.equal(await page.inputValue('#query-section'), 'world');
    await page.getByRole('button', { name: 'Forget token' }).click();
    await page.locator('#token').waitFor();
    for (const left of ['#history-list button', '#tables button.table', '#query-result table']) {
      assert.equal(await page.locator(left).count(), 0, left);
    }
    assert.equal(await page.textContent('#query-notice'), '');
  } finally {
    await opened.close();
  }
});

test('a client is offered the sections that it may use, and each runs its own queries', async () => {
  const [world, shop] = databases.map(({ name }) => name);
  const both = ['world', 'shop'];
  const ofShop = { tables: ['orders'], schema: shop };
  assert.deepEqual(await look('all'), { offered: both, tables: ['cities'], schema: world });
  assert.deepEqual(await look('shopping'), { offered: ['shop'], ...ofShop });
  assert.deepEqual(await look('unseeing', 'shop'), { offered: both, ...ofShop });
});
