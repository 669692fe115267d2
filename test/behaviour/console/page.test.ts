// The promise of the console to its readers: every part by hand and by key, for every eye and every width, with
// whatever strangers have written, and without a request to any server except its gateway.
import assert from 'node:assert/strict';
import test, { after, before } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { openBrowser } from '../../support/browser.ts';
import { type ConsoleAnswers, makeUpAnswers } from '../../support/console-answers.ts';
import {
  askNow,
  type ConsolePage,
  findBarriers,
  type Look,
  openConsole,
} from '../../support/console-page.ts';
import { eventually } from '../../support/eventually.ts';
import { useSharedGateway } from '../../support/use-gateway.ts';

// The tests invent the data: the gateway only delivers the page.
const { gateway } = useSharedGateway();
let browser: Browser;
before(async () => {
  browser = await openBrowser();
});
after(() => browser?.close());

async function withConsole(
  answers: ConsoleAnswers | null,
  look: (page: Page, opened: ConsolePage) => Promise<void>,
  as: Look = {},
): Promise<void> {
  const opened = await openConsole(browser, gateway.url, answers, as);
  try {
    await look(opened.page, opened);
    opened.assertQuiet();
  } finally {
    await opened.close();
  }
}

const isShown = (page: Page, id: string) => page.locator(`#${id}[data-state="shown"]`).waitFor();
const parts = ['charts', 'clients', 'running', 'statements', 'workers', 'backends', 'errors'];
const allShown = (page: Page) => Promise.all(parts.map((id) => isShown(page, id)));

test('shows the state first, then charts, clients, running requests, statements, workers, backends and errors', async () => {
  await withConsole(makeUpAnswers(), async (page) => {
    await allShown(page);
    assert.match((await page.textContent('#verdict')) ?? '', /^Ready, \d things to look at$/);
    assert.match(
      (await page.textContent('#facts')) ?? '',
      /^1 of 2 workers serve · up 1 h 0 min, since /,
    );
    const figures = await page.locator('#figures dd').allTextContents();
    assert.deepEqual(figures, ['123', '1.6 %', '1 ms', '20 ms', '30 of 30', '12', '6']);
    assert.equal(await page.locator('#charts canvas').count(), 3);
    const rowsOf = (id: string) => page.locator(`#${id} tbody tr`).count();
    assert.deepEqual(await Promise.all(parts.slice(1).map(rowsOf)), [2, 2, 2, 2, 3, 2]);
    const [first = ''] = await page.locator('#workers tbody tr').allInnerTexts();
    assert.match(first.replaceAll(/\s+/g, ' '), /^0 serving 4000 3 10 – 93.5 MiB 0.4 ms 0$/);
    const headings = await page.locator('main h2:visible').allTextContents();
    assert.deepEqual(headings.slice(1), [
      'Last ten minutes',
      'Clients by share of time',
      'Running now',
      'Statements by share of time',
      'Workers',
      'Backends',
      'Last errors',
    ]);
  });
});

test('leads to every part by a link and by a key', async () => {
  await withConsole(makeUpAnswers(), async (page) => {
    await allShown(page);
    const keys = {
      c: 'charts',
      l: 'clients',
      r: 'running',
      s: 'statements',
      w: 'workers',
      b: 'backends',
      e: 'errors',
      n: 'named',
      q: 'query',
    };
    for (const [key, id] of Object.entries(keys)) {
      await page.locator('main').focus();
      await page.keyboard.press(key);
      await page.locator(`#${id}`).locator(':focus').waitFor();
      await page.locator('main').focus();
      await page.click(`nav a[href="#${id}"]`);
      assert.equal(new URL(page.url()).hash, `#${id}`);
      await page.locator(`#${id}`).waitFor({ state: 'visible' });
    }
    // In an input field, a key is a letter.
    await page.keyboard.press('q');
    await page.keyboard.type('rest?');
    assert.equal(await page.inputValue('#sql'), 'rest?');
  });
});

test('lists the keys, and can leave them alone', async () => {
  await withConsole(makeUpAnswers(), async (page) => {
    await page.keyboard.press('?');
    const dialog = page.getByRole('dialog', { name: 'Keys' });
    await dialog.getByText('running requests').waitFor();
    await dialog.getByLabel('Enable these keys').uncheck();
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    await page.keyboard.press('r');
    assert.equal(await page.locator('#running :focus').count(), 0);
    await page.click('#help');
    await dialog.getByLabel('Enable these keys').check();
    await dialog.getByRole('button', { name: 'Close' }).click();
    await page.keyboard.press('r');
    await page.locator('#running :focus').waitFor();
  });
});

test('shows one moment in all charts, by mouse and by arrow', async () => {
  await withConsole(makeUpAnswers(), async (page) => {
    await isShown(page, 'charts');
    const moments = page.locator('#charts .moment');
    await page.locator('#charts .u-over').first().hover();
    await eventually('one moment above all charts', async () => {
      const [one = '', ...others] = await moments.allTextContents();
      return /^\d\d:\d\d:\d\d$/.test(one) && others.every((other) => other === one);
    });
    await page.mouse.move(0, 0);
    await page.locator('#charts .plot').nth(1).focus();
    await page.keyboard.press('ArrowLeft');
    const said = await eventually('the moment in words', () => page.textContent('#charts-readout'));
    const values =
      'ok 121, error 2.0; p99 20 ms, p95 4 ms, p50 1 ms; in use 10, limit 10, waiting 4';
    assert.equal(said.replace(/^\d\d:\d\d:\d\d; /, ''), values);
    assert.equal(new Set(await moments.allTextContents()).size, 1);
  });
});

test('ends a request only after it was confirmed, by click and by key', async () => {
  await withConsole(makeUpAnswers(), async (page) => {
    const killed: string[] = [];
    await page.route('**/v1/requests/*', (route) => {
      killed.push(`${route.request().method()} ${new URL(route.request().url()).pathname}`);
      return route.fulfill({ status: killed.length === 1 ? 200 : 404, json: {} });
    });
    const kill = page.getByRole('button', { name: 'Kill request 0 select' });
    await kill.click();
    const dialog = page.getByRole('dialog', { name: 'Kill this request?' });
    // The careful answer has the keyboard.
    await page.keyboard.press('Enter');
    await dialog.waitFor({ state: 'detached' });
    assert.deepEqual(killed, []);
    await kill.click();
    await dialog.getByRole('button', { name: 'Kill it' }).click();
    await page.getByText('was killed.').waitFor();
    await kill.focus();
    await page.keyboard.press('Enter');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.getByText('had already ended.').waitFor();
    assert.deepEqual(killed, ['DELETE /v1/requests/0-1', 'DELETE /v1/requests/0-1']);
  });
});

test('keeps focus on a row while its content changes', async () => {
  await withConsole(makeUpAnswers(), async (page) => {
    const button = page.getByRole('button', { name: 'Kill request 1 select' });
    await button.focus();
    const answered = () => Promise.all([page.waitForResponse('**/v1/requests'), askNow(page)]);
    await answered();
    await answered();
    await page.locator('#running button.danger:focus').waitFor();
  });
});

test('sorts and filters statements', async () => {
  await withConsole(makeUpAnswers(), async (page) => {
    await isShown(page, 'statements');
    const first = page.locator('#statements tbody tr').first();
    assert.match((await first.textContent()) ?? '', /70 %/);
    await page.getByRole('button', { name: 'Errors', exact: true }).click();
    assert.match((await first.textContent()) ?? '', /30 %/);
    assert.equal(
      await page.locator('#statements th[aria-sort="descending"]').textContent(),
      'Errors',
    );
    await page.getByLabel('Show statements that contain').fill('1 SELECT');
    assert.equal(await page.locator('#statements tbody tr').count(), 1);
    await page.locator('#statements button.long').click();
    await page.locator('#statements button.long[aria-expanded="true"]').waitFor();
  });
});

const odd = `<script>alert(1)</script><img src=x onerror=alert(2)>"'&amp;\u202e\u0000${'long'.repeat(300)}`;

test('takes whatever strangers have written for text, on a phone too', async () => {
  const phone = { size: { width: 360, height: 740 } };
  const look = async (page: Page) => {
    await allShown(page);
    assert.equal(await page.locator('main img, main script, body > script').count(), 0);
    for (const id of [...parts.slice(1), 'attention']) {
      await page
        .locator(`#${id}`)
        .getByText('<script>alert(1)</script>')
        .filter({ visible: true })
        .first()
        .waitFor();
    }
    assert.ok((await page.title()).includes('<script>'));
    assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 360);
    await page.locator('#running button.danger').first().click();
    await page.getByRole('dialog').getByText('<script>').first().waitFor();
    assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 360);
  };
  await withConsole(makeUpAnswers(odd), look, phone);
});

for (const colorScheme of ['light', 'dark'] as const) {
  test(`has no accessibility barrier in ${colorScheme}`, async () => {
    const rules = colorScheme === 'light' ? 'all' : 'colours';
    const look = async (page: Page) => {
      await allShown(page);
      assert.deepEqual(await findBarriers(page, rules), []);
      await page.keyboard.press('?');
      assert.deepEqual(await findBarriers(page, rules), []);
      await page.keyboard.press('Escape');
      await page.locator('#running button.danger').first().click();
      assert.deepEqual(await findBarriers(page, rules), []);
    };
    await withConsole(makeUpAnswers(), look, { colorScheme });
  });
}

test('is dark or light as the system is, or as the reader chooses, and remembers that', async () => {
  const ground = (page: Page) => page.evaluate('getComputedStyle(document.body).backgroundColor');
  const look = async (page: Page) => {
    const dark = await ground(page);
    await page.click('#theme');
    const light = await ground(page);
    assert.notEqual(light, dark);
    await page.reload();
    assert.equal(await ground(page), light);
    await page.getByRole('button', { name: 'Theme: light' }).waitFor();
    await page.keyboard.press('t');
    assert.equal(await ground(page), dark);
  };
  await withConsole(makeUpAnswers(), look, { colorScheme: 'dark' });
});

test('shows for each empty part that it is empty', async () => {
  const { stats } = makeUpAnswers();
  const empty: ConsoleAnswers = {
    stats: {
      ...stats,
      workers: [],
      backends: [],
      errors: [],
      clients: { ...stats.clients, clients: [] },
      history: { ...stats.history, at: [] },
    },
    requests: [],
    statements: { history: { interval_seconds: 10, at: [] }, statements: [], named: [] },
  };
  await withConsole(empty, async (page) => {
    const ofAll = parts.filter((id) => id !== 'clients');
    for (const id of ofAll) await page.locator(`#${id}[data-state="empty"] .message`).waitFor();
    assert.deepEqual(await findBarriers(page), []);
  });
});

test('leaves the parts that are answered alone when one is not', async () => {
  await withConsole(makeUpAnswers(), async (page) => {
    await allShown(page);
    await page.route('**/v1/statements', (route) =>
      route.fulfill({ status: 404, json: { detail: 'There is nothing here.' } }),
    );
    await askNow(page);
    await page.getByText('Not available (404): There is nothing here.').waitFor();
    // The earlier content remains readable.
    assert.equal(await page.locator('#statements tbody tr').count(), 2);
    for (const id of parts.filter((one) => one !== 'statements')) await isShown(page, id);
    assert.equal(await page.locator('#banner').isVisible(), false);
  });
});

test('asks again if no answer comes, one request at a time, and shows the age of its data', async () => {
  await withConsole(makeUpAnswers(), async (page) => {
    await allShown(page);
    let asked = 0;
    let [open, most] = [0, 0];
    await page.route('**/v1/stats', () => {
      [asked, open] = [asked + 1, open + 1];
      most = Math.max(most, open);
      // No process answers.
    });
    page.on('requestfailed', (request) => {
      if (request.url().endsWith('/v1/stats')) open -= 1;
    });
    await askNow(page);
    await page
      .getByText(/^Disconnected\. This page shows the last answer, of \d\d:\d\d:\d\d\./)
      .waitFor();
    await eventually('it asks again', () => asked >= 2);
    assert.equal(most, 1);
    assert.deepEqual(await findBarriers(page), []);
    await page.unroute('**/v1/stats');
    await page.route('**/v1/stats', (route) => route.fulfill({ json: makeUpAnswers().stats }));
    await askNow(page);
    await page.locator('#banner').waitFor({ state: 'hidden' });
    await page.getByText(/^Ready/).waitFor();
  });
});

test('sends nothing while it is paused', async () => {
  const look = async (page: Page) => {
    await allShown(page);
    await page.keyboard.press('p');
    await page.locator('#pause[aria-pressed="true"]').waitFor();
    let asked = 0;
    page.on('request', () => {
      asked += 1;
    });
    await page.clock.install();
    await page.clock.runFor(20_000);
    assert.equal(asked, 0);
    await page.keyboard.press('p');
    await page.waitForRequest('**/v1/stats');
  };
  // Its clock stays another.
  await withConsole(makeUpAnswers(), look, { own: true });
});
