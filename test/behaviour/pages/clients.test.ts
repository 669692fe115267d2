// docs/operate/clients.md: --check accepts each setup as it stands, and prints who may do what as the page shows it.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { permissions } from '../../../src/shared/clients/client.ts';
import { clientOptions } from '../../../src/shared/config/clients-file.ts';
import { daemonFor } from '../../support/daemon.ts';
import { findBlocks } from '../../support/pages/page-blocks.ts';
import { openCommands } from '../../support/pages/page-commands.ts';
import { useDatabase } from '../../support/use-gateway.ts';

const text = readFileSync('docs/operate/clients.md', 'utf8');
const blocks = findBlocks(text);
const files = blocks.filter(({ mark }) => mark !== '');
const commands = blocks.filter(({ mark }) => mark === '');
const setups = [...new Set(files.map(({ heading }) => heading))];
const database = useDatabase();

/** Writes the files of a setup. `localise` replaces their paths in the commands. */
function writeSetup(t: TestContext, heading: string) {
  const daemon = daemonFor(t);
  const { directory, configPath } = daemon;
  const path = (name: string) => join(directory, name);
  const localise = (page: string) =>
    page
      .replaceAll('/etc/dbhttpd.ini', configPath)
      .replaceAll(/\/etc\/dbhttpd[./](?=\w)/g, `${directory}/`)
      .replaceAll('/var/lib/dbhttpd-keys/', `${directory}/`);
  const write = (name: string, contents: string) => writeFileSync(name, contents, { mode: 0o600 });
  for (const { mark, text: contents } of files.filter((one) => one.heading === heading)) {
    if (mark === 'settings') write(configPath, reach(localise(contents), path));
    else if (mark === 'clients') write(path('clients.ini'), contents);
    else if (mark === 'keys') write(path('jwks.json'), contents);
    else assert.fail(`a block that is none of a setup's: ${mark}`);
  }
  for (const name of ['password', 'reports']) write(path(name), `${database.password}\n`);
  return { daemon, localise };
}

/** Points the sections of a setup to the database here, and the instance to files of its own. */
function reach(settings: string, path: (name: string) => string): string {
  const { name, host, port, user } = database;
  return settings
    .replaceAll(/^(database +=) .*$/gm, `$1 ${name}`)
    .replaceAll(/^(host +=) .*$/gm, `$1 ${host}:${port}`)
    .replaceAll(/^(user +=) .*$/gm, `$1 ${user}`)
    .replaceAll(/^password_file +=.*$/gm, (line) => (database.password === '' ? '' : line))
    .replace(
      '[world]\n',
      `[world]\nlisten = 127.0.0.1:0\npidfile = ${path('world.pid')}\nlog = ${path('world.log')}\n`,
    );
}

for (const heading of setups) {
  test(`${heading}: --check accepts the files, and prints what the page shows`, async (t) => {
    const { localise } = writeSetup(t, heading);
    const page = openCommands(commands, heading, {
      localise,
      // Faults are on stderr, which the page's pipe does not take.
      functions: 'set -o pipefail',
    });
    await page.run();
    page.end();
  });
}

test('Tokens: the command prints what the page shows', async () => {
  const page = openCommands(commands, 'Tokens', { localise: (command) => command });
  await page.run();
  page.end();
});

test('Permissions: a client that lacks one gets what the page shows', async (t) => {
  const { daemon, localise } = writeSetup(t, 'One backend');
  const path = join(daemon.directory, 'clients.ini');
  const digest = createHash('sha256').update('of-the-backend').digest('hex');
  writeFileSync(path, readFileSync(path, 'utf8').replace(/[0-9a-f]{64}/, digest));
  const token = join(daemon.directory, 'backend.token');
  writeFileSync(token, 'of-the-backend\n');
  assert.equal((await daemon.start()).status, 0, daemon.readLog());
  const page = openCommands(commands, 'Permissions', {
    localise: (command) =>
      localise(command)
        .replaceAll('/root/backend.token', token)
        .replaceAll('127.0.0.1:9090', daemon.address()),
  });
  await page.watch();
  await page.run();
  page.end();
});

test('there are three setups, and every section with commands is run', () => {
  assert.equal(setups.length, 3);
  const all = commands.filter(({ language }) => language === 'sh').map(({ heading }) => heading);
  assert.deepEqual([...new Set(all)], [...setups, 'Permissions', 'Tokens']);
});

test('the page has every permission, and names every key', () => {
  const [, table = ''] = /^\| permission \|.*\n\|.*\n((?:\|.*\n)*)/m.exec(text) ?? [];
  const rows = [...table.matchAll(/^\| `(\w+)` \|/gm)].map(([, permission]) => permission);
  assert.deepEqual(rows, [...permissions]);
  for (const key of Object.keys(clientOptions)) assert.match(text, new RegExp(`\\b${key}\\b`), key);
});
