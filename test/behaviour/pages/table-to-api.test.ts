// docs/start/table-to-api.md: every command runs as it stands, and the page that it makes works in a real browser.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type TestContext, test } from 'node:test';
import { freeLastingPort } from '../../../scripts/support/private-server.ts';
import { bashArguments } from '../../support/bash.ts';
import { openBrowser } from '../../support/browser.ts';
import { daemonFor } from '../../support/daemon.ts';
import { eventually } from '../../support/eventually.ts';
import { findBlocks } from '../../support/pages/page-blocks.ts';
import { openCommands } from '../../support/pages/page-commands.ts';
import { useDatabase } from '../../support/use-gateway.ts';

const blocks = findBlocks(readFileSync('docs/start/table-to-api.md', 'utf8'));
const separate = new Set(['install', 'serve']);
const commands = blocks.filter(({ mark }) => !separate.has(mark));
const textOf = (wanted: string) =>
  blocks.find(({ language, mark }) => language === wanted || mark === wanted)?.text ?? '';
const account = "shop_api@'127.0.0.1'";

const database = useDatabase({
  prepare: async ({ name, query }) => {
    await query(`drop user if exists ${account}`);
    const sql = textOf('sql').replace(/^create database shop;\nuse shop;\n/, '');
    await query(sql.replaceAll('shop.*', `${name}.*`));
  },
});

/** Functions that the reader's shell still has when a later command is typed. */
const definitions = commands.flatMap(({ text }) => text.match(/^\w+\(\) \{\n[\s\S]*?^\}$/gm) ?? []);
/** The sections that change files which the gateway reads again, a moment later. */
const watched = /^[34569]\./;

/** Puts the folder, the ports and the database here in the place of those of the page. */
async function arrange(t: TestContext) {
  const { directory, pidfile, log, readLog } = daemonFor(t);
  const folder = join(directory, 'shop');
  mkdirSync(join(folder, 'node_modules'), { recursive: true });
  symlinkSync(resolve('.'), join(folder, 'node_modules/dbhttpd'));
  const keyFile = join(directory, 'server.pem');
  if (database.serverKey !== null) writeFileSync(keyFile, database.serverKey);
  const [address, site] = [
    `127.0.0.1:${await freeLastingPort()}`,
    `127.0.0.1:${await freeLastingPort()}`,
  ];
  const further = {
    ...{ port: database.port, listen: address, workers: 1 },
    // The page says that MySQL needs it.
    ...(database.serverKey === null ? {} : { server_public_key: keyFile }),
  };
  const lines = Object.entries(further).map(([key, value]) => `${key} = ${value}`);
  const localise = (text: string) =>
    text
      .replaceAll('127.0.0.1:9090', address)
      .replaceAll('127.0.0.1:8080', site)
      .replaceAll('$PWD/shop.log', log)
      .replaceAll('$PWD/shop.pid', pidfile)
      .replaceAll('cat shop.pid', `cat ${pidfile}`)
      .replace(/^database +=.*$/m, `database = ${database.name}\n${lines.join('\n')}`);
  // npm would have installed these programs.
  const programs = resolve('node_modules/.bin');
  const functions = `cd ${folder}; umask 077
    npx() { local name=$1; shift; if [ $name = dbhttpd ]; then dbhttpd "$@"; else ${programs}/$name "$@"; fi; }
    ${localise(definitions.join('\n'))}`;
  return { site, localise, functions, readLog };
}

/** Serves the page as the second terminal does. esbuild ends with its input. */
function serve(t: TestContext, command: string) {
  const server = spawn('bash', bashArguments(command), { stdio: ['pipe', 'ignore', 'ignore'] });
  t.after(() => void server.stdin.end());
}

/** Buys what is sold out, and something else, and saves the orders as a file. */
async function shopInBrowser(t: TestContext, address: string): Promise<void> {
  const browser = await openBrowser();
  t.after(() => browser.close());
  const page = await browser.newPage();
  const errors: string[] = [];
  page.on('pageerror', ({ message }) => errors.push(message));
  await page.goto(address);
  const orders = page.locator('#orders li');
  const buy = (name: string) =>
    page.locator('#products li').filter({ hasText: name }).getByRole('button').click();
  await page.locator('#products li').first().waitFor();
  assert.deepEqual(await orders.allTextContents(), [
    'Order 3: 1 for 12.00',
    'Order 1: 2 for 15.00',
  ]);
  await buy('Darjeeling');
  await page.getByText('Sold out.').waitFor();
  await buy('Mocha');
  await page.getByText('Thank you.').waitFor();
  await page.getByText('Mocha, 11.20, 4 left').waitFor();
  assert.match((await orders.first().textContent()) ?? '', /^Order \d+: 1 for 11\.20$/);
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'As a file' }).click(),
  ]);
  const lines = readFileSync(await download.path(), 'utf8').split('\r\n');
  assert.equal(download.suggestedFilename(), 'orders.csv');
  assert.deepEqual([lines[0], lines.length], ['id,pieces,total', 5]);
  // Without a token the same page is a visitor's.
  await page.goto('about:blank');
  await page.goto(address.replace(/#.*/, ''));
  await page.locator('#products li').first().waitFor();
  assert.equal(await orders.count(), 0);
  assert.deepEqual(errors, []);
}

test('a reader with a database follows the page to a typed page in a browser', async (t) => {
  const { site, localise, functions, readLog } = await arrange(t);
  t.after(() => database.query(`drop user ${account}`));
  const shell = commands.filter(({ language }) => language === 'sh');
  const headings = new Set(shell.map(({ heading }) => heading));
  for (const heading of headings) {
    const page = openCommands(commands, heading, { localise, functions });
    let printed = '';
    for (const _ of shell.filter((one) => one.heading === heading)) {
      printed = await (watched.test(heading) ? page.watch() : page.run());
    }
    page.end();
    if (!heading.startsWith('8.')) continue;
    serve(t, localise(`${functions}\n${textOf('serve')}`));
    await eventually('the page is served', async () => (await fetch(`http://${site}/page.js`)).ok);
    await shopInBrowser(t, printed.trim());
  }
  assert.equal(headings.size, 9);
  await eventually('the gateway has stopped', () => / stopped /.test(readLog()));
});
