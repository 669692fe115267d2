// The console in a tab of its own, and what it did besides: errors, requests to elsewhere.
// Must not know what a test looks for in it.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type axe from 'axe-core';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import type { ConsoleAnswers } from './console-answers.ts';

/** A tab with the console. Whoever opened it must close it. */
export type ConsolePage = {
  readonly page: Page;
  /** Fails where the page has complained, or asked anybody but its gateway. */
  readonly assertQuiet: () => void;
  readonly close: () => Promise<void>;
};

const axePath = createRequire(import.meta.url).resolve('axe-core');

/** @param answers what the instance tells of itself; null: what it does tell */
export async function openConsole(
  browser: Browser,
  url: string,
  answers: ConsoleAnswers | null,
  options: BrowserContextOptions = {},
): Promise<ConsolePage> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(`error: ${error.message}`));
  page.on('dialog', (dialog) => complaints.push(`dialog: ${dialog.message()}`));
  page.on('console', (message) => {
    // A status that is no success is told here too, whether or not the page knows what to do with it.
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
  await page.goto(`${url}/console`);
  return {
    page,
    assertQuiet: () => assert.deepEqual(complaints, []),
    close: () => context.close(),
  };
}

/** Answers in the gateway's place. */
async function answer(page: Page, { stats, requests, statements }: ConsoleAnswers): Promise<void> {
  await page.route('**/v1/stats', (route) => route.fulfill({ json: stats }));
  await page.route('**/v1/requests', (route) =>
    route.fulfill({ json: { requests, omitted: 0, silent_workers: [] } }),
  );
  await page.route('**/v1/statements', (route) => route.fulfill({ json: { statements } }));
}

/** What axe finds serious or critical in the page as it is now, in a line each. */
export async function findBarriers(page: Page): Promise<readonly string[]> {
  // As the browser's own tools do it: the page's policy lets no other script in.
  if (!(await page.evaluate(() => 'axe' in globalThis))) {
    await page.evaluate(readFileSync(axePath, 'utf8'));
  }
  const found = await page.evaluate(async () => {
    const { axe: tool } = globalThis as unknown as { readonly axe: typeof axe };
    const { violations } = await tool.run();
    return violations.map(({ id, impact, nodes }) => ({
      id,
      impact: impact ?? '',
      where: nodes.map(({ target, failureSummary }) => `${target.join(' ')} ${failureSummary}`),
    }));
  });
  return found
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, where }) => `${id}: ${where.join(' | ')}`);
}
