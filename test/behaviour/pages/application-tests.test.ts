// docs/guides/application-tests.md: a project starts a gateway by npx, asks it, checks its file and stops it.

import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { freeLastingPort } from '../../../scripts/support/private-server.ts';
import { command } from '../../support/command.ts';
import { daemonFor } from '../../support/daemon.ts';
import { keySettings } from '../../support/database/server-key.ts';
import { eventually } from '../../support/eventually.ts';
import { findBlocks } from '../../support/pages/page-blocks.ts';
import { openCommands } from '../../support/pages/page-commands.ts';
import { useDatabase } from '../../support/use-gateway.ts';

const database = useDatabase({ serverArguments: [] });

test('a project starts a gateway before its tests, and stops it after them', async (t) => {
  const { directory, pidfile } = daemonFor(t);
  const address = `127.0.0.1:${await freeLastingPort()}`;
  await database.query("create user app@'%' identified by 'secret'");
  await database.query(`grant all on ${database.name}.* to app@'%'`);
  const project = join(directory, 'project');
  mkdirSync(join(project, 'node_modules/.bin'), { recursive: true });
  symlinkSync(resolve('.'), join(project, 'node_modules/dbhttpd'));
  // npm links the command, and makes it executable, which the compiler does not.
  const script = `#!/bin/sh\nexec '${process.execPath}' '${command}' "$@"\n`;
  writeFileSync(join(project, 'node_modules/.bin/dbhttpd'), script, { mode: 0o755 });
  const key = Object.entries(keySettings(database)).map(([name, file]) => `${name} = ${file}\n`);
  const localise = (text: string) =>
    text
      .replaceAll('/tmp/app-gateway.pid', pidfile)
      .replace('= 127.0.0.1\n', `= 127.0.0.1\nport = ${database.port}\n${key.join('')}`)
      .replace('= app\n', `= ${database.name}\n`)
      .replaceAll('127.0.0.1:9090', address);
  const blocks = findBlocks(readFileSync('docs/guides/application-tests.md', 'utf8'));
  const room = { localise, functions: `cd ${project}` };
  const run = async (heading: string, count: number) => {
    const page = openCommands(
      blocks.filter(({ language }) => language !== 'yaml'),
      heading,
      room,
    );
    for (let command = 0; command < count; command += 1) await page.run();
    page.end();
  };
  await run('Start it before the tests', 3);
  await run('Check what you will run in production', 1);
  await run('Stop it after them', 1);
  const log = () => readFileSync(join(project, 'gateway.log'), 'utf8');
  await eventually('it has stopped', () => / stopped /.test(log()));
  assert.match(log(), / listening /);
});
