// The console as a workbench: views that have addresses, tables with their columns, plans, a history that leaves no trace, the details
// of errors, and a page that fits its screen.
import assert from 'node:assert/strict';
import test, { after, before } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { openBrowser } from '../../support/browser.ts';
import { makeUpAnswers } from '../../support/console-answers.ts';
import { findBarriers, type Look, openConsole } from '../../support/console-page.ts';
import { eventually } from '../../support/eventually.ts';
import { useGateway } from '../../support/use-gateway.ts';

const { gateway, database } = useGateway(
  { workers: 1, pool: 4 },
  {
    prepare: (own) =>
      own
        .query(
          `create table shops (id int primary key, \`odd \`\`name\` varchar(9) comment '<b>as written</b>');
           insert into shops values (1, 'one'), (2, 'two');
           create table sales (id int primary key, shop int not null default 3, key by_shop (shop), foreign key (shop) references shops (id));
           create view v_shops as select id from shops`,
        )
        .then(() => {}),
  },
);
let browser: Browser;
before(async () => {
  browser = await openBrowser();
});
after(() => browser?.close());

async function withConsole(
  part: string,
  look: (page: Page) => Promise<void>,
  as: Look & { readonly isMadeUp?: true } = {},
): Promise<void> {
  const answers = as.isMadeUp ? makeUpAnswers('world') : null;
  const opened = await openConsole(browser, gateway.url, answers, { ...as, part });
  const { page } = opened;
  try {
    await look(page);
    opened.assertQuiet();
  } finally {
    await opened.close();
  }
}

const said = (page: Page, text: string | RegExp) =>
  page.locator('#query-notice').getByText(text).waitFor();

test('has an address for each view, which links, keys and the way back lead to', async () => {
  await withConsole('query', async (page) => {
    await page.locator('#sql').waitFor();
    assert.equal(await page.locator('#charts').isVisible(), false);
    assert.equal(await page.locator('.views [aria-current]').textContent(), 'SQL');
    await page.locator('main').focus();
    await page.keyboard.press('s');
    await page.locator('#statements').waitFor();
    assert.equal(new URL(page.url()).hash, '#statements');
    assert.equal(await page.locator('#sql').isVisible(), false);
    await page.keyboard.press('n');
    await page.locator('#named').waitFor();
    await page.goBack();
    await page.locator('#statements').waitFor();
    await page.getByRole('link', { name: 'SQL' }).click();
    await page.locator('#sql').waitFor();
    await page.keyboard.press('o');
    await page.locator('#verdict').waitFor();
    await page.keyboard.press('q');
    await page.locator('#sql:focus').waitFor();
    await page.locator('#skip').focus();
    await page.keyboard.press('Enter');
    await page.locator('main:focus').waitFor();
    assert.equal(new URL(page.url()).hash, '#query');
    assert.deepEqual(await findBarriers(page), []);
  });
});

test('shows the tables with their columns, and writes names and first rows into the query', async () => {
  await withConsole('query', async (page) => {
    const tables = page.locator('#tables');
    const names = tables.locator('button.table');
    await names.first().waitFor();
    assert.deepEqual(await names.allTextContents(), ['sales', 'shops', 'v_shops']);
    await page.getByLabel('Show tables whose names contain').fill('SALE');
    assert.deepEqual(await names.allTextContents(), ['sales']);
    await names.first().click();
    await tables.getByText('not null, default 3, → shops.id').waitFor();
    await tables.getByText(/index \(shop\)/).waitFor();
    await page.getByLabel('Show tables whose names contain').fill('');
    await names.nth(1).click();
    await tables.getByText('“<b>as written</b>”').waitFor();
    await page.fill('#sql', 'select ');
    await tables.getByRole('button', { name: 'odd `name' }).click();
    assert.equal(await page.inputValue('#sql'), 'select `odd ``name`');
    assert.deepEqual(await findBarriers(page), []);
    await tables.getByRole('button', { name: 'First rows' }).click();
    await said(page, /^2 rows · /);
    // One at a time, and what runs is what is shown.
    await page.fill('#sql', 'select sleep(60)');
    await page.click('#run');
    await said(page, /^Running for /);
    await tables.getByRole('button', { name: 'First rows' }).click();
    assert.equal(await page.inputValue('#sql'), 'select sleep(60)');
    await page.locator('#stop:focus').click();
    await said(page, 'Stopped.');
    // The history has the text that was in the pane before.
    await page.click('#history summary');
    await page.locator('#history-list button').getByText('select `odd').waitFor();
  });
});

test('explains what is in the pane, and executes nothing', async () => {
  await withConsole('query', async (page) => {
    await page.fill('#sql', 'delete from sales where shop = 1');
    await page.click('#explain');
    await said(page, /^1 row · /);
    const heads = await page.locator('#query-result thead .name').allTextContents();
    // MySQL 9 shows a tree.
    assert.ok(heads.includes('possible_keys') || heads.includes('EXPLAIN'), heads.join());
    await page.fill('#sql', 'select * from shops');
    await page.press('#sql', 'Control+Shift+Enter');
    await page.locator('#query-result').getByText('shops').waitFor();
    await page.fill('#sql', 'explain select 1');
    await page.click('#explain');
    await said(page, /^1 row · /);
    assert.equal((await database.query('select * from shops')).length, 2);
  });
});

test('keeps the history in the page alone', async () => {
  await withConsole('query', async (page) => {
    await page.evaluate("localStorage.setItem('dbhttpd.history', '[]')");
    await page.reload();
    for (const sql of ['select 1', 'select 2', 'select 1']) {
      await page.fill('#sql', sql);
      await page.press('#sql', 'Control+Enter');
      await said(page, /^1 row · /);
    }
    await page.click('#history summary');
    const kept = page.locator('#history-list button');
    assert.deepEqual(await kept.allTextContents(), ['select 1', 'select 2']);
    await kept.last().click();
    assert.equal(await page.inputValue('#sql'), 'select 2');
    const stored = await page.evaluate('JSON.stringify([localStorage, sessionStorage])');
    assert.doesNotMatch(String(stored), /select|history/);
    await page.reload();
    await page.click('#history summary');
    await page.getByText('Nothing has been run yet.').waitFor();
  });
});

test('opens the details of an error and of a statement', async () => {
  const look = async (page: Page) => {
    await page
      .locator('#errors')
      .getByRole('button', { name: /^Details/ })
      .first()
      .click();
    const dialog = page.getByRole('dialog', { name: 'What failed' });
    for (const name of ['Meaning', 'Request, for the log', "An agent's tool", 'Client']) {
      await dialog.getByText(name, { exact: true }).waitFor();
    }
    assert.deepEqual(await findBarriers(page), []);
    await page.keyboard.press('Escape');
    await page
      .locator('#statements')
      .getByRole('button', { name: /^Details/ })
      .first()
      .click();
    await page.getByRole('dialog', { name: 'Statement' }).getByText('p99').waitFor();
  };
  await withConsole('errors', look, { isMadeUp: true });
});

/** The names of what is wider than its place. */
const findWide = `[document.documentElement, ...document.querySelectorAll('.frame, nav')]
  .filter((one) => one.checkVisibility() && one.scrollWidth > one.clientWidth)
  .map((one) => one.getAttribute('aria-label'))`;

test('fits 1,280 pixels, and every table with it', async () => {
  const { statements } = makeUpAnswers('world');
  const long = { count: 51_200_000, errors: 123_000, rows: 51_200_000, total_ms: 41_400_000 };
  const busy = {
    ...long,
    p50_ms: 1234,
    p95_ms: 23_400,
    p99_ms: 59_900,
    digest: 'select ?'.repeat(99),
  };
  const json = {
    ...statements,
    statements: statements.statements.map((one) => ({ ...one, ...busy })),
  };
  const look = async (page: Page) => {
    await page.route('**/v1/statements', (route) => route.fulfill({ json }));
    await page.reload();
    await page.locator('#statements').getByText('51.2M').first().waitFor();
    for (const view of ['state', 'named', 'query']) {
      await page.evaluate(`location.hash = '${view}'`);
      await page.locator(`#${view}`).waitFor();
      assert.deepEqual(await page.evaluate(findWide), [], view);
    }
  };
  await withConsole('state', look, { isMadeUp: true });
});

test('keeps the views in reach on a phone, and fits it', async () => {
  const look = async (page: Page) => {
    for (const [name, id] of [
      ['Named', 'named'],
      ['SQL', 'query'],
      ['Overview', 'state'],
    ] as const) {
      await page.evaluate('scrollTo(0, document.body.scrollHeight)');
      await page.getByRole('link', { name, exact: true }).click();
      await page.locator(`#${id}`).waitFor();
      const box = await page.getByRole('link', { name, exact: true }).boundingBox();
      assert.ok(box !== null && box.y + box.height <= 844 && box.y > 700 && box.height >= 40);
      assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 390);
    }
    await page.locator('#statements[data-state="shown"]').waitFor();
    assert.deepEqual(await findBarriers(page), []);
  };
  await withConsole('state', look, { isMadeUp: true, size: { width: 390, height: 844 } });
});

test('sends nothing for views that are not shown', async () => {
  await withConsole('state', async (page) => {
    const asked: string[] = [];
    page.on('request', (request) => asked.push(new URL(request.url()).pathname));
    await page.reload();
    await page
      .locator('#statements[data-state="shown"], #statements[data-state="empty"]')
      .waitFor();
    await eventually('statistics were asked for', () => asked.includes('/v1/stats'));
    assert.deepEqual(
      asked.filter((path) => path.startsWith('/v1/named') || path.startsWith('/v1/tables')),
      [],
    );
  });
});
