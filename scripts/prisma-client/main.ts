// scripts/prisma, once everything is built: Prisma from npm, the clients generated, a database, three gateways, the checks.
// Exit 0: all passed; 1: something failed, or could not be had; 64: command line; 130: stopped by a signal.
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  type Database,
  describeServer,
  startDatabase,
} from '../../test/support/database/mariadb.ts';
import { type Gateway, startGateway } from '../../test/support/gateway.ts';
import { signal } from '../../test/support/processes.ts';
import { explain } from '../support/command-line.ts';
import { openRunDirectory, survivors } from '../support/survivors.ts';
import { pageAddress, pageToken, readPageExamples } from './examples.ts';
import { generateClient } from './generate.ts';
import { installPrisma } from './install.ts';
import { help, parseCommand } from './options.ts';

const sources = 'scripts/prisma-client';
const checks = join(sources, 'checks');
/** The slowest file takes half a minute on a machine with other work. */
const fileTimeoutMs = 180_000;
const longestMs = 15 * 60_000;
const token = 'checked';
const drivers = { drivers: 'planetscale', workers: 3 } as const;

const say = (line: string) => void process.stdout.write(`${line}\n`);

async function runChecks(directory: string, words: readonly string[]): Promise<number> {
  const files = readdirSync(checks)
    .filter((name) => name.endsWith('.test.ts'))
    .filter((name) => words.length === 0 || words.some((word) => name.includes(word)));
  if (files.length === 0) throw new Error('no check has one of these words in its path');
  const packages = await installPrisma(say);
  say('- the generated clients');
  const out = await generateClient({
    directory: join(directory, 'checks'),
    packages,
    schema: readFileSync(join(sources, 'schema.prisma'), 'utf8'),
    sources: readdirSync(checks).map((name) => join(checks, name)),
  });
  const page = readPageExamples();
  const pageOut = await generateClient({
    directory: join(directory, 'page'),
    packages,
    schema: page.schema,
    sources: [],
  });
  const running: { readonly stop: () => Promise<void> }[] = [];
  const own = <Started extends { readonly stop: () => Promise<void> }>(started: Started) => {
    running.unshift(started);
    return started;
  };
  try {
    const database = own(await startDatabase());
    await database.query(readFileSync(join(sources, 'schema.sql'), 'utf8'));
    // The page's tables are on the same server, in another database.
    Object.assign(process.env, describeServer(database));
    const pageDatabase = own(await startDatabase());
    await pageDatabase.query(page.table);
    say(`- checks, with ${database.flavour} ${database.version}`);
    const pageGateway = own(
      await startGateway({
        database: pageDatabase,
        settings: { ...drivers, token: pageToken },
      }),
    );
    const examples = page.programs.map(({ text, printed }, at) => {
      const path = join(pageOut, `example-${at}.js`);
      writeFileSync(path, text.replaceAll(pageAddress, `127.0.0.1:${pageGateway.port}`));
      return { path, printed };
    });
    const roomy = own(await startGateway({ database, settings: { ...drivers, token, pool: 44 } }));
    const narrow = own(
      await startGateway({
        database,
        settings: {
          ...drivers,
          token,
          pool: 2,
          transaction_idle_timeout: '1s',
          init_sql: 'set session transaction isolation level read committed',
        },
      }),
    );
    return await runNode(
      files.map((name) => join(out, name.replace(/\.ts$/, '.js'))),
      {
        gateway: driverUrl(roomy),
        narrow: driverUrl(narrow),
        server: serverUrl(database),
        examples,
      },
    );
  } finally {
    for (const one of running) await one.stop();
  }
}

function driverUrl({ url }: Gateway): string {
  return url.replace('://', `://app:${token}@`);
}

function serverUrl({ host, port, user, password, name }: Database): string {
  const url = new URL(`mysql://${host}:${port}/${name}`);
  url.username = user;
  url.password = password;
  return url.href;
}

/** Runs the files one after the other, because they share their tables. */
function runNode(files: readonly string[], setting: object): Promise<number> {
  const options = ['--test-concurrency=1', `--test-timeout=${fileTimeoutMs}`];
  // At a terminal, Node chooses its own reporter.
  if (!process.stdout.isTTY) {
    const reporter = new URL('../support/tap-reporter.js', import.meta.url).href;
    options.push(`--test-reporter=${reporter}`, '--test-reporter-destination=stdout');
  }
  const runner = spawn(process.execPath, ['--test', ...options, ...files], {
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...process.env, DBHTTPD_PRISMA_CHECKS: JSON.stringify(setting) },
  });
  process.once('exit', () => runner.kill());
  return new Promise((resolve, reject) => {
    runner.once('error', reject);
    runner.once('exit', (code) => resolve(code ?? 1));
  });
}

async function runOrder(server: string | null, words: readonly string[]): Promise<number> {
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => process.exit(130));
  setTimeout(() => {
    say('the run took too long, and was ended');
    process.exit(1);
  }, longestMs).unref();
  if (server !== null) process.env.DBHTTPD_TEST_SERVER_ROOT = server;
  const directory = openRunDirectory('dbhttpd-prisma-');
  let status: number;
  try {
    status = await runChecks(directory, words);
  } catch (error) {
    process.stderr.write(`scripts/prisma: ${(error as Error).message}\n`);
    status = 1;
  }
  const left = await survivors(directory);
  for (const { pid, command } of left) {
    process.stderr.write(`left behind, ended now: ${pid} ${command}\n`);
    signal(pid, 'SIGKILL');
  }
  return left.length > 0 ? 1 : status;
}

async function main(): Promise<number> {
  const command = parseCommand(process.argv.slice(2));
  switch (command.kind) {
    case 'help':
    case 'fault':
      return explain(command, help);
    case 'run':
      return runOrder(command.server, command.words);
    default:
      throw new Error(`no such command: ${command satisfies never}`);
  }
}

process.exitCode = await main();
