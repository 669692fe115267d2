// docs/start/tutorial.md: every command and program runs as it stands, from the demo's start to its removal, and prints what the page
// shows.
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { after, type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { findMariadb } from '../../../scripts/support/private-server.ts';
import { openBrowser } from '../../support/browser.ts';
import { openConsole } from '../../support/console-page.ts';
import { findBlocks } from '../../support/pages/page-blocks.ts';
import { openCommands } from '../../support/pages/page-commands.ts';
import { createWorkspace } from '../../support/workspace.ts';

const blocks = findBlocks(readFileSync('docs/start/tutorial.md', 'utf8'));
const headings = [...new Set(blocks.map(({ heading }) => heading))];
const programs = blocks.filter(({ language }) => language === 'js');
const commands = blocks.filter(({ language }) => language !== 'js');
/** Functions that the reader's shell still has when a later command is typed. */
const definitions = commands.flatMap(({ text }) => text.match(/^\w+\(\) \{\n[\s\S]*?^\}$/gm) ?? []);

const demo = [resolve('dist/scripts/demo.js'), 'remove'];
const workspace = createWorkspace(
  'tutorial',
  () => void spawnSync(process.execPath, demo, { env }),
);
const env = {
  ...process.env,
  DBHTTPD_DEMO_DIR: join(workspace.path, 'demo'),
  DBHTTPD_DEMO_PORT: '0',
};
after(async () => {
  await promisify(execFile)(process.execPath, demo, { env });
  workspace.remove();
});

/** The folder in which the reader types: `dbhttpd/client` is found from it. */
const folder = join(workspace.path, 'folder');
mkdirSync(join(folder, 'node_modules'), { recursive: true });
symlinkSync(resolve('.'), join(folder, 'node_modules/dbhttpd'));
// Root's MariaDB runs under an account that must reach the demo's directory.
chmodSync(workspace.path, 0o755);

function findUrl(): string {
  const config = readFileSync(join(workspace.path, 'demo/dbhttpd.ini'), 'utf8');
  const [, address] = /^listen = (\S+)$/m.exec(config) ?? [];
  assert.ok(address);
  return `http://${address}`;
}

function open(heading: string, isRunning: boolean) {
  const url = isRunning ? findUrl() : '';
  const localise = (text: string) => text.replaceAll('http://127.0.0.1:9090', url);
  for (const { text, mark, heading: where } of programs) {
    if (where === heading) writeFileSync(join(folder, `${mark}.mjs`), localise(text));
  }
  const variables = ['DBHTTPD_DEMO_DIR', 'DBHTTPD_DEMO_PORT'] as const;
  const functions = [
    `cd ${folder}`,
    ...variables.map((name) => `export ${name}=${env[name]}`),
    // The script before it would install packages and build.
    `scripts/demo() { ${process.execPath} ${demo[0]} "$@"; }`,
    localise(definitions.join('\n')),
  ].join('\n');
  return openCommands(commands, heading, { localise, functions });
}

const commandsOf = (heading: string) =>
  commands.filter((block) => block.heading === heading && block.language === 'sh');

/** Kills what `run` runs, in a console that is open before. */
async function killInConsole(run: () => Promise<unknown>): Promise<void> {
  const browser = await openBrowser();
  try {
    const { page, assertQuiet, close } = await openConsole(browser, findUrl(), null);
    await page.getByRole('heading', { name: 'Running now' }).waitFor();
    const kill = async () => {
      await page.getByRole('button', { name: 'Kill' }).click();
      await page.getByRole('button', { name: 'Kill it' }).click();
      await page.getByText(' was killed.').waitFor();
    };
    await Promise.all([run(), kill()]);
    await page.locator('#statements').getByText('as bank').waitFor();
    const gone = page.locator('#errors tbody tr').filter({ hasText: 'CLIENT_GONE' });
    await gone.getByText('rolled back').waitFor();
    assertQuiet();
    await close();
  } finally {
    await browser.close();
  }
}

test('a newcomer follows the page from the first command to the last', async (t: TestContext) => {
  if (findMariadb(process.env.PATH ?? '') === null) return t.skip('mariadbd is not installed');
  for (const [index, heading] of headings.entries()) {
    const page = open(heading, index > 0);
    for (const { mark } of commandsOf(heading)) {
      await (mark === 'console' ? killInConsole(page.run) : page.run());
    }
    page.end();
  }
  assert.equal(headings.length, 8);
  assert.deepEqual(readdirSync(folder), ['node_modules']);
  assert.deepEqual(readdirSync(workspace.path), ['folder']);
});
