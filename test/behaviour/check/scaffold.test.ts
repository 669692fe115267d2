// --scaffold prints statements for a table, and --check accepts them as they are, for every table of a schema that is hard to write for.
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { composeScaffold } from '../../../src/supervisor/generate/scaffold.ts';
import { createClientsFile } from '../../support/clients-file.ts';
import { type Daemon, daemonFor, type Settings } from '../../support/daemon.ts';
import { openWireConnection } from '../../support/database/wire-connection.ts';
import { startGateway } from '../../support/gateway.ts';
import { useDatabase } from '../../support/use-gateway.ts';

/** Each table, and the statements that it must get. */
const tables: Readonly<Record<string, readonly [kinds: string, sql: string]>> = {
  orders: [
    'by_id page insert update delete',
    `create table orders (id bigint unsigned auto_increment primary key, customer int not null,
       status enum('open', 'it''s paid', 'a,b') not null default 'open', total decimal(10,2) not null default 0.00,
       paid tinyint(1) not null default 0, note varchar(200), made datetime not null default current_timestamp,
       changed timestamp null default current_timestamp on update current_timestamp, unique (customer, note))`,
  ],
  order_lines: [
    'by_key page insert update delete',
    'create table order_lines (order_id bigint unsigned, product int, n int unsigned not null, primary key (order_id, product))',
  ],
  only_key: [
    'by_key page insert delete',
    'create table only_key (a int, b varchar(20), c date, primary key (a, b, c))',
  ],
  generated: [
    'by_id page insert update delete',
    'create table `generated` (id int primary key, n int not null, twice int generated always as (n * 2) virtual, thrice int generated always as (n * 3) stored)',
  ],
  select: [
    'by_group page insert update delete',
    'create table `select` (`group` int primary key, `order` varchar(10), `current_user` int, `from` date, `idempotency_key` int, `key` int, `status` int, `page_size` int)',
  ],
  'odd ``names': [
    'by_first_name page insert update delete',
    'create table `odd ``names` (`First Name` int primary key, `first-name` int, `ünï` int, `1st` int, `a;b` int, `?` int, `:x` int, `--` int, `select` int)',
  ],
  kinds: [
    'by_kind page insert update delete',
    "create table kinds (kind enum('small', 'GREAT') primary key, flags set('a','b') not null, word enum('with space') null)",
  ],
  documents: [
    'by_id page insert update delete',
    'create table documents (id char(36) primary key, doc json not null, more json, raw varbinary(16), big longblob, small tinytext, long_text longtext)',
  ],
  places: [
    'by_id page insert update delete',
    'create table places (id int primary key, at point not null, area polygon)',
  ],
  no_key: ['rows insert', 'create table no_key (a int, b int, unique (a))'],
  other_key: [
    'by_b page insert update delete',
    'create table other_key (a int, b int not null, c text, unique (a), unique (c(10)), unique (b))',
  ],
  numbers: [
    'by_t page insert update delete',
    `create table numbers (t tinyint(1) primary key, b1 bit not null, b64 bit(64), y year, s smallint unsigned, m mediumint, f float unsigned,
       d double not null default 1.5, big bigint unsigned, deep decimal(65,30), z int(8) zerofill, ti time(3) not null default '10:00:00', da date default '2026-01-01')`,
  ],
  binary_key: ['by_id page insert delete', 'create table binary_key (id binary(16) primary key)'],
  only_number: [
    'by_id page insert delete',
    'create table only_number (id int auto_increment primary key)',
  ],
  texts: [
    'by_id page insert update delete',
    "create table texts (id int primary key, quoted varchar(50) not null default 'it''s', slash varchar(50) not null default 'a\\\\b', none varchar(0), computed varchar(36) default (uuid()))",
  ],
  stamped: [
    'by_id page insert update delete',
    `create table stamped (id int primary key, a int, changed datetime null on update current_timestamp,
       first_change timestamp not null default '2000-01-01 00:00:00' on update current_timestamp)`,
  ],
  defaults: [
    'by_id page insert update delete',
    `create table defaults (id int primary key, flag bit not null default b'0', mask bit(8) default b'1010',
       path varchar(20) not null default 'c:\\\\new', poem varchar(20) not null default 'it''s\\n\\\\n')`,
  ],
  codes: [
    'by_id page insert update delete',
    "create table codes (id int primary key, code varbinary(4) not null default 'abcd')",
  ],
  without_transactions: [
    'by_id page insert update delete',
    'create table without_transactions (id int primary key, a int) engine = myisam',
  ],
  [`table_${'x'.repeat(50)}`]: [
    'by_key page insert update delete',
    `create table table_${'x'.repeat(50)} (${'k'.repeat(60)} int primary key, ${'k'.repeat(59)} int)`,
  ],
  open_orders: [
    'rows',
    "create view open_orders as select id, status from orders where status = 'open'",
  ],
};

/** Those of MariaDB alone. */
const ofMaria: typeof tables = {
  hidden: [
    'by_id page insert update delete',
    'create table hidden (id int primary key, shown int, secret int invisible, must int not null invisible default 7)',
  ],
  addresses: [
    'by_id page insert update delete',
    'create table addresses (id uuid primary key, four inet4, six inet6 not null)',
  ],
  versions: [
    'by_id page insert update delete',
    'create table versions (id int primary key, a int) with system versioning',
  ],
};

const database = useDatabase({
  prepare: async ({ query, flavour }) => {
    const all = { ...tables, ...(flavour === 'mariadb' ? ofMaria : {}) };
    for (const [, sql] of Object.values(all)) await query(sql);
  },
});

function settings(more: Settings = {}): Settings {
  const { name, host, port, user, password } = database;
  const login = { database: name, host, port: String(port), user, ...more };
  return password === '' ? login : { ...login, password };
}

function prepare(t: TestContext, more: Settings = {}): Daemon {
  const daemon = daemonFor(t);
  daemon.configure(settings(more));
  return daemon;
}

test('--check accepts the statements of every table', async (t) => {
  const daemon = prepare(t);
  const all = { ...tables, ...(database.flavour === 'mariadb' ? ofMaria : {}) };
  const directory = join(daemon.directory, 'shop.d');
  mkdirSync(directory);
  const names = Object.keys(all).map((name) => name.replaceAll('``', '`'));
  const connection = await openWireConnection(database);
  t.after(() => connection.destroy(new Error('the test is over')));
  const texts: string[] = [];
  for (const name of names) {
    const composed = await composeScaffold(
      connection,
      { hasKeys: false, isReadOnly: false, clients: null },
      name,
    );
    assert.deepEqual(composed?.refused, [], name);
    texts.push(
      [composed?.head, ...(composed?.accepted ?? []).map(({ text }) => text)].join('\n\n'),
    );
  }
  for (const [at, [kinds]] of Object.values(all).entries()) {
    const text = texts[at] ?? '';
    writeFileSync(join(directory, `${at}.sql`), text, { mode: 0o644 });
    const found = [...text.matchAll(/^-- name: (\S+) :/gm)].map(([, name = '']) => name);
    const base = (found[0] ?? '').replace(/_(by_\w+|rows)$/, '');
    assert.deepEqual(
      found,
      kinds.split(' ').map((kind) => `${base}_${kind}`),
    );
  }
  daemon.configure(settings({ named: directory }));
  const { status, stdout, stderr } = await daemon.run(['--check']);
  assert.deepEqual([status, stderr], [0, ''], stdout);
});

test('with clients, the statements are for those that may call them, and --check accepts them', async (t) => {
  const daemon = daemonFor(t);
  const file = createClientsFile({
    web: { allow: 'named' },
    reports: { allow: 'all' },
    scraper: { allow: 'metrics' },
    anonymous: { allow: 'named' },
  });
  t.after(file.remove);
  const clients = file.path;
  daemon.configure(settings({ clients }));
  const { status, stdout } = await daemon.run(['--scaffold', 'orders']);
  assert.equal(status, 0);
  const lines = [...new Set([...stdout.matchAll(/^-- for: .*/gm)].map(([line]) => line))];
  assert.deepEqual(lines, ['-- for: web, reports']);
  assert.match(stdout, /^-- Every client with the permission `named` may call them/m);
  const directory = join(daemon.directory, 'named.d');
  mkdirSync(directory);
  writeFileSync(join(directory, 'orders.sql'), stdout, { mode: 0o644 });
  daemon.configure(settings({ clients, named: directory }));
  const checked = await daemon.run(['--check']);
  assert.deepEqual([checked.status, checked.stderr], [0, ''], checked.stdout);
});

/** The first statements for a table whose rows have numbers. */
const first = `-- Statements for the table orders, to start from. Edit them, and delete those that you do not need.
-- So far only the client \`default\` may call them: write the names of your clients in its place.

-- name: orders_by_id :one
-- One row.
-- for: default
-- param id: int(0..)
select id, customer, status, total, paid, note, made, changed
  from orders
 where id = :id;

-- name: orders_page :many
-- Rows by id, page by page: a page begins behind the last row of the page before.
-- for: default
-- param after_id: int(0..) = null
-- param page_size: int(1..100) = 20
select id, customer, status, total, paid, note, made, changed
  from orders
 where :after_id is null
    or id > :after_id
 order by id
 limit :page_size;

-- name: orders_insert :exec
-- Inserts a row, and only one for each Idempotency-Key.
-- for: default
-- key: required
-- param customer: int
-- param status: enum of orders.status = open
-- param total: decimal(10,2) = 0.00
-- param paid: bool = false
-- param note: text(200) = null
-- error 1062: 409 ALREADY_EXISTS There is such a row already.
insert into orders (customer, status, total, paid, note)
values (:customer, :status, :total, :paid, :note);
`;

test('the command prints them, for a section with keys with one for an insert', async (t) => {
  const daemon = prepare(t, { idempotency_table: 'request_keys' });
  const { status, stdout, stderr } = await daemon.run(['--scaffold', 'orders']);
  assert.deepEqual([status, stderr], [0, '']);
  assert.equal(stdout.slice(0, first.length), first);
  assert.ok(stdout.endsWith(';\n'));
});

/** The statements for a table as they are printed, and a call of one that is served. */
async function serveScaffold(t: TestContext, table: string) {
  const daemon = daemonFor(t);
  const directory = join(daemon.directory, 'shop.d');
  mkdirSync(directory);
  daemon.configure(settings());
  const { stdout } = await daemon.run(['--scaffold', table]);
  writeFileSync(join(directory, 'all.sql'), stdout, { mode: 0o644 });
  const gateway = await startGateway({ database, settings: { workers: 1, named: directory } });
  t.after(gateway.stop);
  return {
    stdout,
    call: async (name: string, params: object) => {
      const reply = await gateway.post(`/v1/named/${name}`, { params });
      assert.equal(reply.status, 200, reply.text);
    },
  };
}

test('an update leaves a column that the server sets at each change to the server', async (t) => {
  await database.query(
    "insert into stamped (id, a, changed) values (1, 1, '2000-01-01'), (2, 2, '2000-01-01')",
  );
  const { call } = await serveScaffold(t, 'stamped');
  await call('stamped_update', { id: 1, a: 5 });
  const rows = await database.query(
    "select a, changed > '2000-01-01' as moved, first_change > '2000-01-01' as moved_too from stamped order by id",
  );
  assert.deepEqual(rows, [
    { a: 5, moved: 1, moved_too: 1 },
    { a: 2, moved: 0, moved_too: 0 },
  ]);
});

test('bits, backslashes and line breaks are defaults as in the table, and an update changes them', async (t) => {
  const { stdout, call } = await serveScaffold(t, 'defaults');
  assert.match(stdout, /^-- param flag: int\(0\.\.1\) = 0$/m);
  assert.match(stdout, /^-- param mask: int\(0\.\.255\) = 10$/m);
  assert.match(stdout, /^-- param path: text\(20\) = 'c:\\new'$/m);
  await call('defaults_insert', { id: 1 });
  const read = () =>
    database.query('select flag + 0 as flag, mask + 0 as mask, path, poem from defaults');
  assert.deepEqual(await read(), [{ flag: 0, mask: 10, path: 'c:\\new', poem: "it's\n\\n" }]);
  const given = { flag: 1, mask: 129, path: 'd:\\', poem: 'no\n' };
  await call('defaults_update', { id: 1, ...given });
  assert.deepEqual(await read(), [given]);
});

test('an insert gives a binary column the default of the table', async (t) => {
  const { call } = await serveScaffold(t, 'codes');
  await call('codes_insert', { id: 1 });
  assert.deepEqual(await database.query('select hex(code) as code from codes'), [
    { code: '61626364' },
  ]);
});

test('a section that only reads gets no writes', async (t) => {
  const { stdout } = await prepare(t, { read_only: 'on' }).run(['--scaffold', 'ORDERS']);
  assert.match(stdout, /orders_page/);
  assert.doesNotMatch(stdout, /_(insert|update|delete)/);
});

test('a table that does not exist, and a database that is down, are a line and a status', async (t) => {
  const cases: readonly (readonly [Settings, string, number, RegExp])[] = [
    [
      {},
      'nowhere',
      78,
      /\[world\]: the database \S+ has no table nowhere that the account may read$/,
    ],
    [{ port: '1' }, 'orders', 69, /\[world\]: no server can be asked: .*ECONNREFUSED/],
    [{ pool: '0' }, 'orders', 78, /\[world\] pool/],
  ];
  for (const [more, table, code, message] of cases) {
    const { status, stdout, stderr } = await prepare(t, more).run(['--scaffold', table]);
    assert.deepEqual([status, stdout], [code, ''], stderr);
    assert.match(stderr.trimEnd(), message);
  }
});
