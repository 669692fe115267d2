// --check parses every file of named statements, tries each statement on the server, and prints what clients may call.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { appendFileSync, chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type Daemon, daemonFor, type Settings } from '../../support/daemon.ts';
import { useDatabase } from '../../support/use-gateway.ts';

const database = useDatabase({
  prepare: async ({ query }) => {
    await query(
      "create table orders (id int primary key, customer int not null, status enum('open','paid') not null, total decimal(10,2))",
    );
  },
});

type Files = Readonly<Record<string, string>>;

/** The settings of a section of the test's database, with a directory of these files. */
function settingsFor(daemon: Daemon, files: Files, folder = 'shop.d'): Settings {
  const directory = join(daemon.directory, folder);
  mkdirSync(directory);
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(directory, name), text, { mode: 0o644 });
  }
  const { name, host, port, user, password } = database;
  const login = { host, port: String(port), user, ...(password !== '' && { password }) };
  return { database: name, ...login, named: directory };
}

function prepare(t: TestContext, files: Files, more: Settings = {}): Daemon {
  const daemon = daemonFor(t);
  daemon.configure({ ...settingsFor(daemon, files), ...more });
  return daemon;
}

/** The faults of files, without the directory of the test. */
function faultsIn(stderr: string, daemon: Daemon): readonly string[] {
  return stderr
    .trimEnd()
    .split('\n')
    .map((line) => line.replace(`dbhttpd: ${daemon.directory}/`, ''));
}

const good = `-- name: orders_of :many
-- Orders of a customer.
-- for: *
-- param customer: int = claims.customer_id
-- param status: enum of orders.status = null
-- param sort: choice(newest: id desc | largest: total desc, id desc) = newest
-- param page_size: int(1..100) = 20
select id, status, total, :page_size + id as sum from orders
 where customer = :customer and (:status is null or status = :status) order by :sort limit :page_size;

-- name: order :one
-- for: default
-- param id: int
select id, status from orders where id = :id;

-- name: pay :exec
-- for: *
-- param ids: list(int; 50)
update orders set status = 'paid' where id in (:ids);
`;

test('the statements are printed with their parameters and columns, in lines of at most 100 characters', async (t) => {
  const daemon = prepare(t, { 'shop.sql': good, 'README.txt': 'no SQL' });
  const { status, stdout, stderr } = await daemon.run(['--check']);
  assert.equal(stderr, '');
  assert.equal(status, 0);
  const [, text = ''] = /^statements of .*\/shop\.d\n((?: {2}.*\n)*)/m.exec(stdout) ?? [];
  assert.deepEqual(text.trimEnd().split('\n'), [
    '  name       kind  for      parameters                           columns',
    '  order      one   default  id int                               id INT, status ENUM',
    '  orders_of  many  *        customer int = claims.customer_id,   id INT, status ENUM,',
    '                            status enum = null,                  total DECIMAL(10,2) null,',
    '                            sort choice = newest,                sum BIGINT',
    '                            page_size int = 20',
    '  pay        exec  *        ids list                             –',
  ]);
});

test('all faults are found together: of files, of the server, of the catalogue, and of the configuration', async (t) => {
  const files = {
    'a.sql': '-- name: one :many\n-- for: *\nselect id frm orders;\n',
    'b.sql': '-- name: two :many\n-- for: *\n-- param x: int\nselect 1 a;\n',
    'c.sql': `-- name: three :many
-- for: stranger
-- param a: enum of orders.total
-- param b: enum of order.status
-- param sort: choice(x: id | y: idd)
select id from orders where status = :a
   and status = :b order by :sort;
`,
    'd.sql': '-- name: one :exec\n-- for: *\n\n\nupdate orders\n   set totl = 1;\n',
  };
  const daemon = prepare(t, files);
  const { status, stderr } = await daemon.run(['--check']);
  assert.equal(status, 78);
  const faults = faultsIn(stderr, daemon);
  const begins = [
    'shop.d/b.sql: (line 3): the parameter `x` is not used',
    'shop.d/d.sql: (line 1): `one` is already in line 1 of a.sql',
    'shop.d/c.sql: (line 1): `-- for: …` of `three`: there is no client `stranger`',
    'shop.d/a.sql: (line 3): `one` is refused by the server: ',
    'shop.d/c.sql: (line 3): the parameter `a` of `three`: `orders.total` is decimal(10,2), and no ENUM',
    'shop.d/c.sql: (line 4): the parameter `b` of `three`: the database has no table `order`',
    'shop.d/c.sql: (line 6): `three` (sort: y) is refused by the server: ',
  ];
  assert.equal(faults.length, begins.length, stderr);
  for (const [at, begin] of begins.entries()) assert.ok(faults[at]?.startsWith(begin), stderr);

  const json = JSON.parse((await daemon.run(['--check', '--json'])).stdout);
  const [first] = json.faults;
  assert.deepEqual(
    [json.faults.length, first.file, first.line, first.message],
    [begins.length, join(daemon.directory, 'shop.d/b.sql'), 3, 'the parameter `x` is not used'],
  );

  daemon.configure({ ...settingsFor(daemon, files, 'again.d'), pool: 'many' });
  const both = faultsIn((await daemon.run(['--check'])).stderr, daemon);
  assert.ok(both[0]?.includes('pool'), both[0]);
  assert.ok(both[1]?.startsWith('again.d/b.sql: (line 3): '), both[1]);
});

test('the same name in two sections, and files that others may write, are faults', async (t) => {
  const daemon = prepare(t, { 'shop.sql': good });
  const other = settingsFor(daemon, { 'more.sql': good }, 'more.d');
  const lines = Object.entries(other).map(([key, value]) => `${key} = ${value}`);
  appendFileSync(daemon.configPath, `[more]\n${lines.join('\n')}\n`);
  chmodSync(join(daemon.directory, 'more.d/more.sql'), 0o666);
  const { status, stderr } = await daemon.run(['--check', '-m', 'more']);
  assert.equal(status, 78);
  assert.match(stderr, /more\.d\/more\.sql: may be written by others \(chmod o-w\)/);
});

test('without a database the files are parsed, and nothing is known of columns', async (t) => {
  const daemon = prepare(t, { 'shop.sql': good }, { host: '127.0.0.1', port: '1' });
  const { status, stdout, stderr } = await daemon.run(['--check']);
  assert.equal(status, 69);
  assert.match(stdout, /^ {2}order +one +default +id int +not known$/m);
  assert.doesNotMatch(stderr, /shop\.sql/);
  const faulty = prepare(t, { 'a.sql': 'select 1;\n' }, { host: '127.0.0.1', port: '1' });
  const found = await faulty.run(['--check']);
  assert.equal(found.status, 78);
  assert.match(found.stderr, /a\.sql: \(line 1\): there is text before/);
});

test('an agent with many tools, or with SQL beside a statement that writes, is warned of', async (t) => {
  const many = Array.from(
    { length: 39 },
    (_, at) => `-- name: s${at} :many\n-- for: agent, narrow\nselect 1 as a;\n`,
  ).join('\n');
  const daemon = prepare(t, { 'shop.sql': good, 'many.sql': many });
  const client = (name: string, allow: string) =>
    `[${name}]\nallow = ${allow}\ntoken_sha256 = ${createHash('sha256').update(name).digest('hex')}\n`;
  const clients = join(daemon.directory, 'clients.ini');
  const text =
    client('agent', 'mcp, sql, named') +
    client('narrow', 'mcp, named') +
    client('web', 'sql, named');
  writeFileSync(clients, text, { mode: 0o600 });
  appendFileSync(daemon.configPath, `clients = ${clients}\n`);
  const warnings = async () => {
    const { stdout, stderr } = await daemon.run(['--check']);
    assert.equal(stderr, '');
    return stdout.split('\n').filter((line) => line.startsWith('warning: the agent'));
  };
  assert.deepEqual(await warnings(), [], 'no agents without mcp');
  appendFileSync(daemon.configPath, 'mcp = on\n');
  assert.deepEqual(await warnings(), [
    'warning: the agent agent has 43 tools: above 40, agents choose worse',
    'warning: the agent agent has `sql` and may call `pay`: text that it reads anywhere in the database may talk it into a write',
    'warning: the agent narrow has 41 tools: above 40, agents choose worse',
  ]);
});
