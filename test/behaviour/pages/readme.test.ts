// README.md: every command and every program runs as it stands, and prints what the page shows below it.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import {
  describeCreation,
  parseIdempotencyTable,
} from '../../../src/shared/database/idempotency-table.ts';
import { daemonFor } from '../../support/daemon.ts';
import { eventually } from '../../support/eventually.ts';
import { startGateway } from '../../support/gateway.ts';
import { type HttpFront, startHttpFront } from '../../support/http-front.ts';
import { findBlocks } from '../../support/pages/page-blocks.ts';
import { openCommands } from '../../support/pages/page-commands.ts';
import { useGateway } from '../../support/use-gateway.ts';

const run = promisify(execFile);
const blocks = findBlocks(readFileSync('README.md', 'utf8'));
const address = '127.0.0.1:9090';

const { gateway, database } = useGateway(
  { workers: 1, idempotency_table: 'request_keys' },
  {
    serverArguments: [],
    prepare: async (prepared) => {
      await prepared.query(`
        create table orders (
          id bigint unsigned auto_increment primary key,
          customer varchar(40) not null, total int not null);
        create table place (name varchar(60) not null, latitude decimal(8,5) not null);
        insert into place values ('Danmarkshavn', 76.76667), ('Baku', 40.38333), ('Longyearbyen', 78)`);
      await prepared.query(describeCreation(parseIdempotencyTable('request_keys', prepared.name)));
    },
    ready: async () => {
      front = await startHttpFront(gateway.url);
    },
  },
);
let front: HttpFront;
after(() => front?.stop());

test('a write whose reply was lost is sent again, and is there once', async () => {
  const commands = openCommands(blocks, 'It timed out. Did it happen?', { localise: byFront });
  front.next({ kind: 'drop', when: 'asked' });
  await commands.run();
  commands.end();
});

test('drizzle writes and reads over HTTP', async (t) => {
  const token = 'a-long-random-text';
  const served = await startGateway({
    database,
    settings: { workers: 1, token, drivers: 'planetscale' },
  });
  t.after(served.stop);
  await runProgram('Your ORM, on your own MySQL, over HTTP', `127.0.0.1:${served.port}`);
});

test('what the demo is asked has the answer that stands there', async () => {
  const own = blocks.filter(({ heading, language }) => heading === 'Try it' && language !== 'js');
  await openCommands(own.slice(0, 2), 'Try it', { localise: byFront }).run();
});

test('the client asks the same', () => runProgram('Try it', byFront(address)));

test('the package, once it is installed, checks, starts and stops a gateway', async (t) => {
  const { directory, configPath, pidfile, log, readLog } = daemonFor(t);
  const own = blocks.filter(({ heading }) => heading === 'Install');
  const [installation, settings] = own.map(({ text }) => text);
  // npm ci and npm install need a registry. The build that npm pack begins with has been done: these tests run from it.
  assert.match(installation ?? '', /^npm ci && npm pack .*\nnpm install -g dbhttpd-\*\.tgz .*\n$/);
  const packing = ['pack', '--ignore-scripts', '--json', '--pack-destination', directory];
  const [{ filename }] = JSON.parse((await run('npm', packing)).stdout);
  await run('tar', ['-xzf', join(directory, filename), '-C', directory]);
  symlinkSync(resolve('node_modules'), join(directory, 'package/node_modules'));

  await database.query(`
    create user app@'127.0.0.1' identified by 'one';
    grant select, show view on ${database.name}.* to app@'127.0.0.1'`);
  const localise = (text: string) =>
    text.replaceAll('/run/dbhttpd-world.pid', pidfile).replaceAll('/etc/', `${directory}/`);
  const keyFile = join(directory, 'server.pem');
  if (database.serverKey !== null) writeFileSync(keyFile, database.serverKey);
  const further = {
    ...{ port: database.port, listen: '127.0.0.1:0', pidfile, log, workers: 1 },
    ...(database.serverKey === null ? {} : { server_public_key: keyFile }),
  };
  const lines = Object.entries(further).map(([key, value]) => `${key} = ${value}\n`);
  const named = localise(settings ?? '').replace('= world', `= ${database.name}`);
  writeFileSync(configPath, `${named}${lines.join('')}`);
  writeFileSync(join(directory, 'dbhttpd.password'), 'one\n', { mode: 0o600 });

  const { bin } = JSON.parse(readFileSync('package.json', 'utf8'));
  const command = join(directory, 'package', bin.dbhttpd);
  const room = { localise, functions: `dbhttpd() { ${process.execPath} ${command} "$@"; }` };
  const commands = openCommands(own.slice(2), 'Install', room);
  await commands.run();
  commands.end();
  await eventually('it has stopped', () => / stopped /.test(readLog()));
});

/** Runs the one program of a section, which must print what the page shows below it. */
async function runProgram(heading: string, here: string): Promise<void> {
  const own = blocks.filter((block) => block.heading === heading);
  const at = own.findIndex(({ language }) => language === 'js');
  const program = (own[at]?.text ?? '').replaceAll(address, here);
  const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', program]);
  assert.equal(stdout, own[at + 1]?.text);
}

function byFront(text: string): string {
  return text
    .replaceAll(`http://${address}`, front.url)
    .replaceAll(address, new URL(front.url).host);
}
