// docs/reference/named.md: the server accepts every statement of the page, and the calls print what the page shows.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { daemonFor, type Settings } from '../../support/daemon.ts';
import type { Database } from '../../support/database/mariadb.ts';
import { findBlocks } from '../../support/pages/page-blocks.ts';
import { localiseGateway, openCommands } from '../../support/pages/page-commands.ts';
import { useDatabase, useGateway } from '../../support/use-gateway.ts';
import { createNamedDirectory } from '../named/support/named-directory.ts';

const blocks = findBlocks(readFileSync('docs/reference/named.md', 'utf8'));
const files = blocks.filter(({ language, mark }) => language === 'sql' && mark === 'file');

/** The tables of a shop whose numbers are integers, and of one whose orders have UUIDs. */
const tables = `
  create table orders (
    id int primary key, customer int not null default 7, status varchar(10) not null, total decimal(8,2) not null);
  insert into orders (id, status, total) values (1, 'open', 12.30), (2, 'paid', 5), (3, 'open', 7);
  create table products (id int primary key, name varchar(50) not null, price decimal(8,2) not null, stock int not null)`;
const placing = `
  create table orders (id char(36) primary key, customer int not null, created datetime not null);
  create table order_lines (order_id char(36) not null, product int not null, n int not null);
  create table products (id int primary key, stock int not null)`;

const isOfTransaction = ({ heading }: { readonly heading: string }) => heading === 'A transaction';
const shop = files.filter((file) => !isOfTransaction(file));

function loginOf({ name, host, port, user, password }: Database): Settings {
  const login = { database: name, host, port: String(port), user };
  return password === '' ? login : { ...login, password };
}

function suite(name: string, sql: string, own: typeof files) {
  const database = useDatabase({ prepare: async ({ query }) => void (await query(sql)) });
  test(`--check accepts the files of the page: ${name}`, async (t) => {
    const daemon = daemonFor(t);
    const directory = join(daemon.directory, 'shop.d');
    mkdirSync(directory);
    for (const [at, { text }] of own.entries()) {
      writeFileSync(join(directory, `${at}.sql`), text, { mode: 0o644 });
    }
    const clients = join(daemon.directory, 'clients.ini');
    const digest = '658a0920b56f59aeeffe5904ca9419194098e81503daa982b819717c8981e1fc';
    writeFileSync(clients, `[web]\nallow = named\ntoken_sha256 = ${digest}\n`, { mode: 0o600 });
    daemon.configure({
      ...loginOf(database),
      ...{ named: directory, clients, idempotency_table: 'request_keys' },
    });
    const { stderr } = await daemon.run(['--check']);
    const faults = stderr.split('\n').filter((line) => line.includes('shop.d'));
    assert.deepEqual(faults, []);
  });
}

test('--types prints what the page shows', async (t) => {
  const [shown] = blocks.filter(({ language, mark }) => language === 'ts' && mark === 'types');
  const daemon = daemonFor(t);
  daemon.configure({ ...loginOf(database), named: directory.path });
  const { stdout } = await daemon.run(['--types']);
  const text = shown?.text ?? '';
  assert.ok(text !== '' && stdout.includes(text), stdout);
});

suite('the shop', tables, shop);
suite('the transaction', placing, files.filter(isOfTransaction));

const directory = createNamedDirectory(shop[0]?.text ?? '');
after(() => directory.remove());
const { gateway, database } = useGateway(
  { workers: 1, named: directory.path },
  { prepare: async ({ query }) => void (await query(tables)) },
);

test('the first statements answer what the page shows', async () => {
  const heading = 'A first statement';
  const calls = blocks.filter(
    (block) => !(block.heading === heading && block.text.startsWith('dbhttpd:')),
  );
  const page = openCommands(calls, heading, { localise: localiseGateway(gateway) });
  for (let at = 0; at < 4; at += 1) await page.run();
  page.end();
});
