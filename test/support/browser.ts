// A real browser, without a window, for tests of pages.
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { type Browser, chromium } from 'playwright-core';

/**
 * Starts the system's Chromium, which takes 0.7 s of the processor. The caller must close it. One Chromium for all files of a run was tried, and
 * costs as much: each message between a test and its page passes a third process then.
 */
export async function openBrowser(): Promise<Browser> {
  // Its own sandbox does not work for root, which tests in containers run as; what it loads here is ours.
  return await chromium.launch({
    executablePath: findChromium(),
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
  });
}

function findChromium(): string {
  const folders = (process.env.PATH ?? '').split(delimiter);
  const found = folders.map((folder) => join(folder, 'chromium')).find(isExecutable);
  if (found === undefined) throw new Error('there is no chromium here: apt-get install chromium');
  return found;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
