// docs/start/quickstart.md: every command and the program run as they stand, before a database of the reader's own.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { freeLastingPort } from '../../../scripts/support/private-server.ts';
import { daemonFor } from '../../support/daemon.ts';
import { eventually } from '../../support/eventually.ts';
import { findBlocks } from '../../support/pages/page-blocks.ts';
import { openCommands } from '../../support/pages/page-commands.ts';
import { useDatabase } from '../../support/use-gateway.ts';

const blocks = findBlocks(readFileSync('docs/start/quickstart.md', 'utf8'));
// A private server: the account has a name that other files use too.
const database = useDatabase({ serverArguments: [] });

test('a reader with a database follows the page from the account to the end', async (t) => {
  const { directory, pidfile, log, readLog } = daemonFor(t);
  const address = `127.0.0.1:${await freeLastingPort()}`;
  // These stand for defaults that the machine of a test cannot have.
  const keyFile = join(directory, 'server.pem');
  if (database.serverKey !== null) writeFileSync(keyFile, database.serverKey);
  const further = {
    ...{ port: database.port, listen: address, pidfile, log, workers: 1 },
    // The page says that MySQL needs it.
    ...(database.serverKey === null ? {} : { server_public_key: keyFile }),
  };
  const lines = Object.entries(further).map(([key, value]) => `${key} = ${value}`);
  const localise = (text: string) =>
    text
      .replaceAll('/run/dbhttpd-world.pid', pidfile)
      .replaceAll('/etc/', `${directory}/`)
      .replaceAll('127.0.0.1:9090', address)
      .replace(/^database +=.*$/m, `database = ${database.name}\n${lines.join('\n')}`)
      .replaceAll('"world"', `"${database.name}"`)
      .replace(/^world it/m, `${database.name} it`);
  const folder = join(directory, 'folder');
  mkdirSync(join(folder, 'node_modules'), { recursive: true });
  symlinkSync(resolve('.'), join(folder, 'node_modules/dbhttpd'));
  const ofLanguage = (language: string) => blocks.find((block) => block.language === language);
  writeFileSync(join(folder, 'ask.mjs'), localise(ofLanguage('js')?.text ?? ''));
  const account = ofLanguage('sql')?.text ?? '';
  await database.query(account.replaceAll('world.', `${database.name}.`));

  // The test of the README does the installation.
  const commands = blocks.filter(({ language, mark }) => language !== 'js' && mark !== 'install');
  const headings = new Set(commands.filter(({ language }) => language === 'sh').map(headingOf));
  for (const heading of headings) {
    const page = openCommands(commands, heading, { localise, functions: `cd ${folder}` });
    const own = commands.filter((one) => one.heading === heading && one.language === 'sh');
    for (const _ of own) await page.run();
    page.end();
  }
  assert.equal(headings.size, 4);
  await eventually('it has stopped', () => / stopped /.test(readLog()));
});

const headingOf = ({ heading }: { readonly heading: string }) => heading;
