// The console in a tab, with its errors and its requests to other servers.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type axe from 'axe-core';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import type { ConsoleAnswers } from './console-answers.ts';

/** A tab with the console. The caller must close it before it opens another. */
export type ConsolePage = {
  readonly page: Page;
  /** Fails if the page logged an error, or asked any server except its gateway. */
  readonly assertQuiet: () => void;
  readonly close: () => Promise<void>;
};

const axePath = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

/** The longest time of an action in the browser, unless a test chooses another. */
const patienceMs = 30_000;

const usualSize = { width: 1280, height: 900 };

/** How the browser shows the page. */
export type Look = {
  readonly size?: { readonly width: number; readonly height: number };
  readonly colorScheme?: 'light' | 'dark';
  /** The part that its address names; missing: the overview. */
  readonly part?: string;
  /** A token that its reader has given before. */
  readonly token?: string;
  /** Opens a separate profile and tab, for a test that leaves something behind which the next test cannot remove. */
  readonly own?: true;
};

/**
 * Opens the console like a first-time reader. One profile and one tab serve all tests of a file, and are emptied when they are closed: a
 * new profile takes three processes.
 * @param answers what the instance reports about itself; null: its real reports
 */
export async function openConsole(
  browser: Browser,
  url: string,
  answers: ConsoleAnswers | null,
  { size = usualSize, colorScheme, part = '', token, own }: Look = {},
): Promise<ConsolePage> {
  const [shared] = own ? [] : browser.contexts();
  const context = shared ?? (await browser.newContext());
  const page = context.pages()[0] ?? (await context.newPage());
  await page.setViewportSize(size);
  await page.emulateMedia({ colorScheme: colorScheme ?? null });
  page.setDefaultTimeout(patienceMs);
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(`error: ${error.message}`));
  page.on('dialog', (dialog) => complaints.push(`dialog: ${dialog.message()}`));
  page.on('console', (message) => {
    // Statuses other than success appear here too, whether or not the page handles them.
    const isStatus = message.text().startsWith('Failed to load resource');
    if (['error', 'warning'].includes(message.type()) && !isStatus) complaints.push(message.text());
  });
  page.on('request', (request) => {
    const { origin, protocol } = new URL(request.url());
    if (origin !== url && protocol !== 'data:' && protocol !== 'blob:') {
      complaints.push(`asked ${request.url()}`);
    }
  });
  if (answers !== null) await answer(page, answers);
  if (token !== undefined) await keepToken(page, url, token);
  await page.goto(`${url}/console${part === '' ? '' : `#${part}`}`);
  return {
    page,
    assertQuiet: () => assert.deepEqual(complaints, []),
    close: () => (own ? context.close() : empty(context, page)),
  };
}

/** Puts a token where the page looks for it. A file of the page has its storage, and loads faster than the page. */
async function keepToken(page: Page, url: string, token: string): Promise<void> {
  await page.goto(`${url}/console/console.css`);
  await page.evaluate(`sessionStorage.setItem('dbhttpd.token', ${JSON.stringify(token)})`);
}

/** Takes away what a test has left. A tab that does not let that happen goes. */
async function empty(context: BrowserContext, page: Page): Promise<void> {
  try {
    page.removeAllListeners();
    await page.unrouteAll({ behavior: 'ignoreErrors' });
    await page.evaluate('localStorage.clear(); sessionStorage.clear()');
    await context.clearPermissions();
    await context.clearCookies();
    await page.mouse.move(0, 0);
    // The page sends no more requests, so the gateway may be stopped.
    await page.goto('about:blank');
  } catch {
    await context.close();
  }
}

/** Makes the page ask for everything now, without waiting for its interval. */
export async function askNow(page: Page): Promise<void> {
  // Paused and resumed within one turn.
  await page.evaluate("for (const _ of [1, 2]) document.getElementById('pause').click()");
}

/** Answers in the gateway's place. */
async function answer(page: Page, { stats, requests, statements }: ConsoleAnswers): Promise<void> {
  await page.route('**/v1/stats', (route) => route.fulfill({ json: stats }));
  await page.route('**/v1/requests', (route) =>
    route.fulfill({ json: { requests, omitted: 0, silent_workers: [] } }),
  );
  await page.route('**/v1/statements', (route) => route.fulfill({ json: statements }));
}

/**
 * The serious and critical findings of axe in the page as it is now, a line each.
 * @param rules `colours`: only the rules that depend on colours, for the second of two colour schemes
 */
export async function findBarriers(
  page: Page,
  rules: 'all' | 'colours' = 'all',
): Promise<readonly string[]> {
  // The browser's own tools add it in this way: the page's policy allows no other script.
  if (!(await page.evaluate(() => 'axe' in globalThis))) {
    await page.evaluate(readFileSync(axePath, 'utf8'));
  }
  const found = await page.evaluate(async (chosen) => {
    const { axe: tool } = globalThis as unknown as { readonly axe: typeof axe };
    const { violations } = await tool.run({
      // The texts of what it accepts take a third of its time.
      resultTypes: ['violations'],
      ...(chosen === 'all' ? {} : { runOnly: ['color-contrast', 'link-in-text-block'] }),
    });
    return violations.map(({ id, impact, nodes }) => ({
      id,
      impact: impact ?? '',
      where: nodes.map(({ target, failureSummary }) => `${target.join(' ')} ${failureSummary}`),
    }));
  }, rules);
  return found
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, where }) => `${id}: ${where.join(' | ')}`);
}
