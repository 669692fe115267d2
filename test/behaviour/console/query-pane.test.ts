// The promises of the console's query pane: it shows what ran, where and how; it shows values as they are; a hundred thousand rows are as
// easy to read as ten.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import test, { after, before } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { openBrowser } from '../../support/browser.ts';
import { makeUpAnswers } from '../../support/console-answers.ts';
import { type ConsolePage, findBarriers, openConsole } from '../../support/console-page.ts';
import { createNumbers } from '../../support/database/numbers.ts';
import { eventually } from '../../support/eventually.ts';
import { useSharedGateway } from '../../support/use-gateway.ts';

const { gateway, database } = useSharedGateway({
  prepare: async (prepared) => {
    await createNumbers(prepared);
    await prepared.query(`
      create table note (id int auto_increment primary key, text text);
      create table kinds (a bigint unsigned, b decimal(30, 10), c double, d float, e bit(9), f year, g date, h datetime(6),
        i time(3), j varchar(40), k varbinary(9), l json, m point, n tinyint(1), o enum('x', 'y'), p char(3));
      insert into kinds values
        (18446744073709551615, '12345678901234567890.0123456789', 1e300, 0.1, b'101', 0, '2026-01-31', '2026-01-31 23:59:59.123456',
          '-838:59:59.000', 'a "b", é\\r\\n', x'00ff', '{"a": [1, null]}', point(1, 2), 1, 'y', 'x'),
        (0, -0.5, -1e-7, 1e10, b'0', 2026, '0001-01-01', '1000-01-01', '00:00:00', '', '', '""', null, null, null, ''),
        (null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null)`);
  },
});
let browser: Browser;
before(async () => {
  browser = await openBrowser();
});
after(() => browser?.close());

async function withConsole(look: (page: Page, opened: ConsolePage) => Promise<void>) {
  const opened = await openConsole(browser, gateway.url, makeUpAnswers('world'), { part: 'query' });
  try {
    await opened.page.locator('#query-section option').first().waitFor({ state: 'attached' });
    await look(opened.page, opened);
    opened.assertQuiet();
  } finally {
    await opened.close();
  }
}

const said = (page: Page, text: string | RegExp) =>
  page.locator('#query-notice').getByText(text).waitFor();

async function run(page: Page, sql: string): Promise<void> {
  await page.fill('#sql', sql);
  await page.press('#sql', 'Control+Enter');
}

test('shows values as they are: exact, NULL apart from text, binary as bytes', async () => {
  await withConsole(async (page) => {
    await run(
      page,
      `select 9007199254740993 as big, cast('-1.50' as decimal(30,2)) as money, null as nothing, 'NULL' as word,
       '' as blank, unhex('00ff10') as bytes, 1e23 as dbl, '<script>alert(1)</script>' as \`<img src=x onerror=alert(2)>\``,
    );
    await said(page, /^1 row · /);
    const cells = page.locator('#query-result tbody td:visible');
    assert.deepEqual(await cells.allTextContents(), [
      '9007199254740993',
      '-1.50',
      'NULL',
      'NULL',
      '',
      '0x00ff10',
      '1e23',
      '<script>alert(1)</script>',
    ]);
    const kinds = await cells.evaluateAll((all) => all.map(({ className }) => className));
    assert.deepEqual(kinds.slice(0, 6), [
      'number',
      'number',
      'text null',
      'text',
      'text',
      'binary',
    ]);
    const heads = await page.locator('#query-result thead .type').allTextContents();
    assert.deepEqual(heads.slice(0, 2), ['BIGINT', 'DECIMAL']);
    assert.equal(await page.locator('#query-result img, #query-result script').count(), 0);
    assert.deepEqual(await findBarriers(page), []);
    await page.locator('#query-result .frame').focus();
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').getByText('VARBINARY, 3 B').waitFor();
    assert.deepEqual(await findBarriers(page), []);
  });
});

test('shows a hundred thousand rows with a page that remains small', async () => {
  await withConsole(async (page) => {
    await page.selectOption('#query-rows', '100000');
    await run(
      page,
      `select a.seq, concat("row ", b.seq) as t from ${database.name}.numbers a join ${database.name}.numbers b on b.seq <= 4`,
    );
    await said(page, /^100,000 rows, cut: there are more · /);
    const rows = page.locator('#query-result tbody tr:not(.space)');
    assert.ok((await rows.count()) < 80);
    const frame = page.locator('#query-result .frame');
    for (const at of [0.5, 1]) {
      await frame.evaluate((scrolled, part) => {
        scrolled.scrollTop = part * scrolled.scrollHeight;
      }, at);
      await eventually('the rows of this place', async () => {
        const numbers = await rows.locator('th').allTextContents();
        return numbers.includes(String(at * 100_000));
      });
      assert.ok((await rows.count()) < 80);
      // Visible without scrolling.
      assert.ok(await rows.last().isVisible());
    }
    await frame.focus();
    await page.keyboard.press('Home');
    await rows.locator('th').getByText('1', { exact: true }).waitFor();
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog', { name: 'Row by row' });
    await dialog.getByText('Row 1 of 100,000').waitFor();
    await page.keyboard.press('ArrowRight');
    await dialog.getByText('Row 2 of 100,000').waitFor();
  });
});

test('reports the effect of a write, and refuses writes while read only is on', async () => {
  await withConsole(async (page) => {
    await run(page, `insert into ${database.name}.note (text) values ('a'), ('b')`);
    await said(page, /status 403/);
    await page.locator('#query-read-only').uncheck();
    await page.click('#run');
    await said(page, /^2 rows affected, insert id 1 · /);
    assert.equal((await database.query('select * from note')).length, 2);
  });
});

test("shows MySQL's errors with their code, outcome and request", async () => {
  await withConsole(async (page) => {
    await run(page, 'select * from `<script>alert(1)</script>`');
    await said(
      page,
      /<script>.*ER_NO_SUCH_TABLE \(1146\) · status 422 · outcome: failed · request /,
    );
    await run(page, ' ');
    await said(page, 'Write a statement first.');
  });
});

test('shows the same as raw JSON, saves it as CSV, copies it as curl', async () => {
  await withConsole(async (page) => {
    await run(page, `select 'a' as n, 'it''s, "so"' as t union all select 'b', null`);
    await said(page, /^2 rows · /);
    await page.click('#query-raw');
    const raw = JSON.parse((await page.textContent('#query-result pre')) ?? '');
    assert.deepEqual(raw.rows, [
      ['a', 'it\'s, "so"'],
      ['b', null],
    ]);
    await page.click('#query-raw');
    await page.locator('#query-result table').waitFor();

    const [download] = await Promise.all([page.waitForEvent('download'), page.click('#query-csv')]);
    assert.equal(download.suggestedFilename(), 'world.csv');
    const text = await readFile(await download.path(), 'utf8');
    assert.equal(text, 'n,t\r\na,"it\'s, ""so"""\r\nb,\r\n');

    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.click('#query-curl');
    await said(page, 'The command was copied.');
    const command = await page.evaluate('navigator.clipboard.readText()');
    assert.match(
      String(command),
      new RegExp(`^curl -sS '${gateway.url}/v1/query' .*"max_rows":1000`),
    );
    await page.context().clearPermissions();
    await page.evaluate('navigator.clipboard.writeText = () => Promise.reject(new Error("no"))');
    await page.click('#query-curl');
    const shown = page.getByRole('dialog', { name: 'The same with curl' });
    assert.equal(await shown.locator('textarea').inputValue(), command);
  });
});

test('tells when a CSV file does not have all rows, and only then', async () => {
  await withConsole(async (page) => {
    await page.selectOption('#query-rows', '100');
    const save = async (last: number) => {
      const lines = `concat('"', char(10 using utf8mb4), ' line')`;
      await page.fill(
        '#sql',
        `select seq, ${lines} as t from ${database.name}.numbers where seq <= ${last}`,
      );
      const [download] = await Promise.all([
        page.waitForEvent('download'),
        page.click('#query-csv'),
      ]);
      await said(page, / saved as CSV: /);
      const text = await readFile(await download.path(), 'utf8');
      return [text.match(/^\d+,/gm)?.length, await page.textContent('#query-notice')];
    };
    const words = 'The rows were read again, READ ONLY, and saved as CSV: 100 rows';
    assert.deepEqual(await save(101), [100, `${words}, cut: there are more.`]);
    assert.deepEqual(await save(100), [100, `${words}.`]);
  });
});

test('saves CSV as the gateway writes it, whatever the types of the columns', async () => {
  await withConsole(async (page) => {
    const sql = `select * from ${database.name}.kinds`;
    await page.fill('#sql', sql);
    const [download] = await Promise.all([page.waitForEvent('download'), page.click('#query-csv')]);
    const accept = { Accept: 'text/csv' };
    const { status, text } = await gateway.post('/v1/query', { sql }, { headers: accept });
    assert.equal(status, 200, text);
    assert.equal(await readFile(await download.path(), 'utf8'), text);
  });
});

test('has one line for each row, and a part of a long text, so that all rows can be scrolled to', async () => {
  await withConsole(async (page) => {
    const text =
      "concat('first', char(10 using utf8mb4), repeat('z', 1000000), char(13, 10 using utf8mb4), 'last')";
    await run(page, `select ${text} as t from ${database.name}.numbers where seq <= 3`);
    await said(page, /^3 rows · /);
    const cells = page.locator('#query-result tbody td:visible');
    const shown = (await cells.first().textContent()) ?? '';
    assert.match(shown, /^first⏎z+…$/);
    assert.ok(shown.length < 400, `${shown.length} characters`);
    const heights = await page
      .locator('#query-result tbody tr:not(.space)')
      .evaluateAll((rows) => rows.map((row) => row.getBoundingClientRect().height));
    assert.deepEqual(new Set(heights).size, 1, heights.join());
    await page.locator('#query-result .frame').focus();
    await page.keyboard.press('Enter');
    const full = page.getByRole('dialog').locator('dd');
    assert.equal((await full.textContent())?.length, 1_000_012);
  });
});

test('shows the rows of each place while it is scrolled in small steps', async () => {
  await withConsole(async (page) => {
    await run(page, `select seq from ${database.name}.numbers where seq <= 200 order by seq`);
    await said(page, /^200 rows · /);
    const frame = page.locator('#query-result .frame');
    for (let step = 1; step <= 12; step += 1) {
      await frame.evaluate((scrolled, rows) => {
        scrolled.scrollTop = rows * 26;
      }, step * 12);
      const row = frame.getByRole('rowheader').getByText(String(step * 12 + 1), { exact: true });
      await eventually('the row is below the head', () =>
        row.evaluate((shown) => {
          const head = shown.closest('table')?.querySelector('thead th')?.getBoundingClientRect();
          const top = shown.closest('tr')?.getBoundingClientRect().top ?? 0;
          return Math.abs(top - (head?.bottom ?? 0)) < 26;
        }),
      );
    }
  });
});

test('shows the rows of a new result also as raw JSON', async () => {
  await withConsole(async (page) => {
    await run(page, 'select 7 as a');
    await said(page, /^1 row · /);
    await page.click('#query-raw');
    await run(page, `select seq from ${database.name}.numbers where seq <= 3 order by seq`);
    await said(page, /^3 rows · /);
    const raw = JSON.parse((await page.textContent('#query-result pre')) ?? '');
    assert.deepEqual(raw.rows.flat().map(Number), [1, 2, 3]);
  });
});

test('ends a statement that takes long', async () => {
  await withConsole(async (page) => {
    const sql = `select sleep(60) as ${database.name}`;
    await run(page, sql);
    await said(page, /^Running for /);
    // One at a time.
    await page.press('#sql', 'Control+Enter');
    await page.locator('#stop:focus').click();
    await said(page, 'Stopped.');
    await eventually('the statement is gone from the server', async () => {
      const running = await database.query('show full processlist');
      return running.every(({ Info }) => Info !== sql);
    });
    await run(page, 'select 1');
    await said(page, /^1 row · /);
  });
});
