// The console's named statements: who may call them and what they cost, and a form that calls one as an application would.
import assert from 'node:assert/strict';
import test, { after, before } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import {
  describeCreation,
  parseIdempotencyTable,
} from '../../../src/shared/database/idempotency-table.ts';
import { openBrowser } from '../../support/browser.ts';
import { createClientsFile, tokenOf } from '../../support/clients-file.ts';
import { findBarriers, openConsole } from '../../support/console-page.ts';
import { closeGate, createGate } from '../../support/database/gate.ts';
import { eventually } from '../../support/eventually.ts';
import { useGateway } from '../../support/use-gateway.ts';
import { createNamedDirectory } from '../named/support/named-directory.ts';

const directory = createNamedDirectory(`
-- name: orders :many
-- Orders, filtered.
-- for: operator, web
-- param customer: int(1..)
-- param status: enum(open, paid) = null
-- param sort: choice(newest: id desc | oldest: id) = newest
-- param since: date = null
-- param at: datetime = null
-- param code: text(/[A-Z]{2}/, 9) = null
-- param ids: list(int; 3)
select id, status, total, note from orders
 where customer = :customer and (:status is null or status = :status) and (:since is null or :at is null or :code is null or true)
   and id in (:ids) order by :sort;

-- name: order :one
-- for: *
-- param id: int
select id, status, total, note from orders where id = :id;

-- name: place :batch
-- for: operator
-- key: required
-- param items: records(product: int, n: int(1..9); 5)
-- step: added
insert into parts (product, n)
  select product, n from json_table(:items, '$[*]' columns(product int path '$.product', n int path '$.n')) i;
select count(*) as n from parts;

-- name: slow :one
-- for: operator
select count(*) + sleep(0) as n from gate;

-- name: odd :one
-- for: web
-- param ratio: float
-- param mood: enum(open, null) = null
-- param ids: list(int; 9)
select :ratio + 0 as ratio, :mood as mood, 1 in (:ids) as has_one;

-- name: private :many
-- for: web
select 1 as one;
`);
const file = createClientsFile({
  operator: { allow: 'all' },
  web: { allow: 'named' },
});
const { gateway, database } = useGateway(
  {
    workers: 1,
    pool: 4,
    named: directory.path,
    clients: file.path,
    idempotency_table: 'request_keys',
  },
  {
    prepare: async (own) => {
      await own.query(`
        create table orders (id int primary key, customer int, status varchar(9), total decimal(20,2), note text);
        insert into orders values (1, 7, 'open', 12.50, null), (2, 7, 'paid', 90071992547409.93, '<b>'), (3, 8, 'open', 1, 'x');
        create table parts (product int, n int)`);
      await createGate(own);
      await own.query(describeCreation(parseIdempotencyTable('request_keys', own.name)));
    },
  },
);
let browser: Browser;
before(async () => {
  browser = await openBrowser();
});
after(async () => {
  await browser?.close();
  directory.remove();
  file.remove();
});

async function withConsole(
  client: string,
  part: string,
  look: (page: Page) => Promise<void>,
): Promise<void> {
  const opened = await openConsole(browser, gateway.url, null, { part, token: tokenOf(client) });
  try {
    await look(opened.page);
    opened.assertQuiet();
  } finally {
    await opened.close();
  }
}

const said = (page: Page, text: string | RegExp) =>
  page.locator('#call-notice').getByText(text).waitFor();
const rowOf = (page: Page, name: string) =>
  page.locator('#named tbody tr').filter({ has: page.getByText(name, { exact: true }) });

test('shows who may call each statement, how often it was called and failed, and what may be tried', async () => {
  await withConsole('operator', 'named', async (page) => {
    await page.getByRole('button', { name: 'Try order', exact: true }).click();
    await page.getByLabel('id', { exact: true }).fill('99');
    await page.keyboard.press('Enter');
    await said(page, /^There is no such row.*NO_ROW/);
    const cells = (name: string) => rowOf(page, name).locator('td').allTextContents();
    await rowOf(page, 'order').locator('.marked').waitFor();
    assert.deepEqual((await cells('order')).slice(0, 5), [
      'order',
      'one',
      'every client with named',
      '1',
      '1',
    ]);
    assert.match(
      (await rowOf(page, 'order').locator('.marked').getAttribute('title')) ?? '',
      /NO_ROW: 1/,
    );
    assert.deepEqual((await cells('private')).slice(0, 4), ['private', 'many', 'web', '0']);
    assert.equal(await page.getByRole('button', { name: 'Try private' }).count(), 0);
    assert.deepEqual(await findBarriers(page), []);
  });
  await withConsole('web', 'named', async (page) => {
    // It sees what it may call, and no counts.
    await page.getByRole('button', { name: 'Try private' }).waitFor();
    assert.deepEqual(await page.locator('#named td.name').allTextContents(), [
      'odd',
      'order',
      'orders',
      'private',
    ]);
  });
});

test('has a field of the right kind for each parameter, and shows the rows as a table', async () => {
  await withConsole('operator', 'named/orders', async (page) => {
    const field = (name: string) => page.locator(`#param-${name}`);
    await field('customer').waitFor();
    const kinds = await page
      .locator('#call-fields :is(input, select)')
      .evaluateAll((all) => all.map((one) => one.getAttribute('type') ?? one.tagName));
    assert.deepEqual(kinds, [
      'number',
      'SELECT',
      'SELECT',
      'date',
      'datetime-local',
      'text',
      'number',
    ]);
    assert.deepEqual(await field('status').locator('option').allTextContents(), [
      'NULL',
      'open',
      'paid',
    ]);
    assert.deepEqual(await field('sort').locator('option').allTextContents(), ['newest', 'oldest']);
    assert.equal(await field('customer').getAttribute('min'), '1');
    await field('customer').fill('7');
    await field('since').fill('2026-01-02');
    await field('at').fill('2026-01-02T03:04:05');
    await field('ids').locator('input').first().fill('1');
    await page.getByRole('button', { name: 'Add to ids' }).click();
    await field('ids').locator('input').last().fill('2');
    await page.click('#call-run');
    await said(page, /^2 rows · /);
    const shown = page.locator('#call-result tbody td:visible');
    assert.deepEqual(await shown.allTextContents(), [
      '2',
      'paid',
      '90071992547409.93',
      '<b>',
      '1',
      'open',
      '12.50',
      'NULL',
    ]);
    await field('sort').selectOption('oldest');
    await page.click('#call-run');
    await eventually(
      'it is sorted the other way',
      async () => (await shown.first().textContent()) === '1',
    );
    assert.deepEqual(await findBarriers(page), []);
  });
});

test('a link to a statement shows its form as soon as the page knows what the client may see', async () => {
  for (const client of ['operator', 'web']) {
    await withConsole(client, 'named/order', async (page) => {
      await page.locator('#param-id').waitFor();
      const asked = await page.evaluate(() =>
        performance
          .getEntriesByType('resource')
          .sort((a, b) => a.startTime - b.startTime)
          .map(({ name }) => new URL(name).pathname),
      );
      const before_ = asked.slice(0, asked.indexOf('/v1/named'));
      assert.equal(before_.filter((path) => path === '/v1/stats').length, 1, asked.join(' '));
    });
  }
});

test('each form keeps its result, its values and its key, also while another one is shown and a call runs', async () => {
  const attempt = (page: Page, name: string) =>
    page.getByRole('button', { name: `Try ${name}`, exact: true }).click();
  const gate = await closeGate(database);
  try {
    await withConsole('operator', 'named/slow', async (page) => {
      await page.click('#call-run');
      await said(page, /^Running for /);
      await attempt(page, 'order');
      await page.locator('#param-id').fill('2');
      const answered = page.waitForResponse('**/v1/named/slow');
      await gate.open();
      await answered;
      await attempt(page, 'place');
      const key = await page.inputValue('#call-key');
      await attempt(page, 'slow');
      await said(page, /^1 row · /);
      await attempt(page, 'order');
      await page.locator('#param-id').waitFor();
      assert.equal(await page.textContent('#call-notice'), '');
      await page.click('#call-run');
      await said(page, /^1 row · /);
      assert.equal(await page.locator('#call-result dd').first().textContent(), '2');
      await page.getByRole('link', { name: 'SQL' }).click();
      await page.locator('#sql').waitFor();
      await page.goBack();
      assert.equal(await page.inputValue('#param-id'), '2');
      await attempt(page, 'place');
      assert.equal(await page.inputValue('#call-key'), key);
      // Another client must not see them.
      await page.getByRole('button', { name: 'Forget token' }).click();
      await page.locator('#call').waitFor({ state: 'detached' });
    });
  } finally {
    await gate.open();
  }
});

test('shows one row as an object, and the reply as JSON', async () => {
  await withConsole('web', 'named/order', async (page) => {
    await page.locator('#param-id').fill('2');
    await page.click('#call-run');
    await said(page, /^1 row · /);
    const shown = page.locator('#call-result dl');
    assert.deepEqual(await shown.locator('dd').allTextContents(), [
      '2',
      'paid',
      '90071992547409.93',
      '<b>',
    ]);
    await page.click('#call-raw');
    const raw = (await page.textContent('#call-result pre')) ?? '';
    assert.deepEqual(JSON.parse(raw), {
      id: 2,
      status: 'paid',
      total: '90071992547409.93',
      note: '<b>',
    });
  });
});

test('takes numbers as browsers do, tells the word null from NULL, and gives each item its own name', async () => {
  await withConsole('web', 'named/odd', async (page) => {
    await page.locator('#param-ratio').fill('-.5');
    await page.selectOption('#param-mood', 'null');
    const press = (name: string) => page.getByRole('button', { name, exact: true }).click();
    await press('Add to ids');
    await press('Remove ids 1');
    await press('Add to ids');
    const names = await page
      .locator('#param-ids input')
      .evaluateAll((all) => all.map((one) => one.getAttribute('aria-label')));
    assert.deepEqual(names, ['ids 2', 'ids 3']);
    await page.locator('#param-ids input').first().fill('1');
    await page.locator('#param-ids input').last().fill('2');
    await page.click('#call-run');
    await said(page, /^1 row · /);
    const shown = await page.locator('#call-result dd').allTextContents();
    assert.deepEqual([Number(shown[0]), ...shown.slice(1)], [-0.5, 'null', '1']);
  });
});

test('a paused page takes a token, and shows what may be called', async () => {
  await withConsole('web', 'state', async (page) => {
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByRole('link', { name: 'Named' }).click();
    await page.getByRole('button', { name: 'Try private' }).waitFor();
    await page.getByRole('button', { name: 'Forget token' }).click();
    await page.locator('#token').waitFor();
    const give = async (token: string) => {
      await page.fill('#token-field', token);
      await page.press('#token-field', 'Enter');
    };
    await give(`${tokenOf('operator')}\u200b`);
    await page.getByText('This is no token: ').waitFor();
    await give(tokenOf('operator'));
    await page.getByRole('button', { name: 'Try place' }).waitFor();
  });
});

test('shows a refusal at its parameter', async () => {
  await withConsole('operator', 'named/orders', async (page) => {
    await page.locator('#param-customer').fill('7');
    await page.locator('#param-code').fill('lower');
    await page.locator('#param-ids input').fill('1');
    await page.click('#call-run');
    const field = page.locator('#param-code[aria-invalid="true"]:focus');
    await field.waitFor();
    assert.match((await page.locator('#param-code-about .fault').textContent()) ?? '', /code/);
    await said(page, /PARAMETER · status 400 · outcome: not executed/);
    assert.deepEqual(await findBarriers(page), []);
    await page.locator('#param-code').fill('DE');
    await page.click('#call-run');
    await said(page, /^1 row · /);
    assert.equal(await page.locator('[aria-invalid]').count(), 0);
  });
});

test('calls a write after it was confirmed, once for each key', async () => {
  const count = async () => Number((await database.query('select count(*) as n from parts'))[0]?.n);
  await withConsole('operator', 'named/place', async (page) => {
    const inputs = page.locator('#param-items input');
    await inputs.first().fill('5');
    await inputs.last().fill('2');
    await page.getByRole('button', { name: 'Add to items' }).click();
    await inputs.nth(2).fill('6');
    await inputs.nth(3).fill('1');
    const dialog = page.getByRole('dialog', { name: 'Call place?' });
    await page.click('#call-run');
    // The careful answer has the keyboard.
    await dialog
      .getByText('{"params":{"items":[{"product":5,"n":2},{"product":6,"n":1}]}}')
      .waitFor();
    await page.keyboard.press('Enter');
    await dialog.waitFor({ state: 'detached' });
    assert.equal(await count(), 0);
    const call = async () => {
      await page.click('#call-run');
      await dialog.getByRole('button', { name: 'Call it' }).click();
    };
    await call();
    await said(page, /^1 row · committed · added: 2 rows affected/);
    assert.equal(await count(), 2);
    const key = await page.inputValue('#call-key');
    await call();
    await said(page, /nothing was executed again/);
    assert.equal(await page.inputValue('#call-key'), key);
    assert.equal(await count(), 2);
    await inputs.first().fill('7');
    await call();
    await said(page, /^1 row · committed · added: 2 rows affected · \d/);
    const next = await page.inputValue('#call-key');
    assert.notEqual(next, key);
    assert.equal(await count(), 4);
    await page.getByRole('button', { name: 'Remove items 2' }).click();
    await call();
    await said(page, /^1 row · committed · added: 1 row affected · \d/);
    assert.notEqual(await page.inputValue('#call-key'), next);
    assert.equal(await count(), 5);
    await page.locator('#call-key').fill('ключ');
    await page.click('#call-run');
    await page.locator('#call-key:invalid:focus').waitFor();
  });
});
