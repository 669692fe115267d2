// Named statements as tools: which an agent sees, what they return, and that each user of a client has its own rows and keys.
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import {
  describeCreation,
  parseIdempotencyTable,
} from '../../../src/shared/database/idempotency-table.ts';
import { bearing, createClientsFile, tokenOf } from '../../support/clients-file.ts';
import { closeGate, createGate, type Gate } from '../../support/database/gate.ts';
import { openProcesslist } from '../../support/database/processlist.ts';
import { eventually } from '../../support/eventually.ts';
import { openRaw } from '../../support/http.ts';
import { readMetric } from '../../support/scrape.ts';
import { useGateway } from '../../support/use-gateway.ts';
import { createJwtKeys, jwtNames } from '../clients/support/jwt-keys.ts';
import { createNamedDirectory } from '../named/support/named-directory.ts';
import {
  createAgent,
  headersOf,
  messageOf,
  type Outcome,
  type Rows,
  type ToolError,
} from './support/agent.ts';

const directory = createNamedDirectory(`
-- name: cities :many
-- Cities of a country, by name.
-- for: agent, admin, bounded
-- param country: text(2)
-- param page_size: int(1..500) = 3
select id, name, area from cities where country = :country order by name limit :page_size;

-- name: city :one
-- for: agent
-- param id: int
select name, area, note from cities where id = :id;

-- name: documents :many
-- for: agent
select document from documents;

-- name: add_note :exec
-- for: agent
-- key: required
-- param text: text(100)
insert into notes (customer, text) values (0, :text);

-- name: rename :exec
-- for: agent
-- param id: int
-- param name: text(50)
update cities set name = :name where id = :id;

-- name: take :batch
-- for: agent
-- param n: int(1..99)
-- error TOO_FEW: 409 There are not so many left.
-- expect: affected_rows = 1 else TOO_FEW
update stock set n = n - :n where n >= :n;
-- answer
select n from stock;

-- name: unique_note :exec
-- for: agent, admin
-- error 1062: 409 NOTE_TAKEN Another note has this text.
-- param text: text(100)
insert into unique_notes (text) values (:text);

-- name: collide :exec
-- for: agent, admin
insert into unique_notes (text) values ('same'), ('same');

-- name: slow_note :exec
-- for: agent
insert into notes (customer, text) select 0, 'slow' from (select 1 as one) o where (select count(*) from gate) >= 0;

-- name: slow_notes :batch
-- for: agent
insert into notes (customer, text) values (0, 'first');
insert into notes (customer, text) select 0, 'second' from (select 1 as one) o where (select count(*) from gate) >= 0;

-- name: my_notes :many
-- for: user
-- param customer: int = claims.customer_id
select text from notes where customer = :customer order by id;

-- name: write_mine :exec
-- for: user
-- param customer: int = claims.customer_id
-- param text: text(100)
insert into notes (customer, text) values (:customer, :text);

-- name: secret :many
-- for: other
select 'secret' as word;
`);
const keys = createJwtKeys();
const file = createClientsFile({
  agent: { allow: 'mcp, named' },
  admin: { allow: 'mcp, named, sql, metrics, observe' },
  bounded: { allow: 'mcp, named, sql', max_result_bytes: '1KiB' },
  plain: { allow: 'mcp' },
  other: { allow: 'mcp, named' },
  user: { allow: 'mcp, named', jwt: 'role: user' },
});
after(() => {
  directory.remove();
  file.remove();
  keys.remove();
});
const { gateway, database } = useGateway(
  {
    workers: 2,
    pool: 4,
    mcp: 'on',
    named: directory.path,
    clients: file.path,
    jwt_keys: keys.path,
    idempotency_table: 'request_keys',
    ...jwtNames,
  },
  {
    prepare: async (fresh) => {
      await createGate(fresh);
      await fresh.query(`
        create table cities (id int primary key, country char(2) not null, name varchar(50) not null, area decimal(10,2), note varchar(100));
        insert into cities values (1, 'gr', 'Athens', 2928.72, null), (2, 'de', 'Berlin', 891.7, 'capital'), (3, 'de', 'Bonn', null, 'was one');
        insert into cities with recursive c (n) as (select 1 union all select n + 1 from c where n < 300)
          select 100 + n, 'xx', concat('town ', n), 1, null from c;
        create table documents (document json not null);
        insert into documents values ('{"n": 9007199254740993, "price": 2.50}');
        create table notes (id int auto_increment primary key, customer bigint not null, text varchar(100) not null);
        create table unique_notes (text varchar(100) primary key);
        create table stock (n int not null);
        insert into stock values (5);
        ${describeCreation(parseIdempotencyTable('request_keys', fresh.name))}`);
    },
  },
);
let ann = {};
let bob = {};
before(async () => {
  const sign = async (user: string, customer_id: number) =>
    bearing(await keys.sign(user, { role: 'user', customer_id }));
  [ann, bob] = await Promise.all([sign('ann', 1), sign('bob', 2)]);
});
let gate: Gate | null = null;
afterEach(async () => {
  await gate?.open();
  gate = null;
});
const agentOf = (name: string, revision?: Parameters<typeof createAgent>[1]) =>
  createAgent(
    () => gateway,
    revision,
    () => bearing(tokenOf(name)),
  );
const agent = agentOf('agent');
const admin = agentOf('admin');

type Listed = {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: {
    readonly properties: Readonly<Record<string, object>>;
    readonly required?: readonly string[];
  };
  readonly outputSchema: { readonly properties: Readonly<Record<string, object>> };
  readonly annotations: Readonly<Record<string, boolean>>;
};

async function list(of: typeof agent): Promise<readonly Listed[]> {
  const { result } = await of.send('tools/list');
  return result?.tools as Listed[];
}

const namesOf = async (of: typeof agent) => (await list(of)).map(({ name }) => name);

async function succeed<Shape>(name: string, args: object, of = agent): Promise<Shape> {
  const { isError, text, json } = await of.call<Shape>(name, args);
  assert.equal(isError, false, text);
  return json;
}

async function fail(name: string, args: object, of = agent): Promise<ToolError> {
  const { isError, text, json } = await of.call<{ error: ToolError }>(name, args);
  assert.equal(isError, true, text);
  return json.error;
}

const countOf = async (sql: string) => Number((await database.query(sql))[0]?.n);

test('an agent sees the statements for its client, sorted, and nothing else', async () => {
  assert.deepEqual(await namesOf(agent), [
    'add_note',
    'cities',
    'city',
    'collide',
    'documents',
    'rename',
    'slow_note',
    'slow_notes',
    'take',
    'unique_note',
  ]);
  assert.deepEqual(await namesOf(admin), ['cities', 'collide', 'describe', 'query', 'unique_note']);
  assert.deepEqual(await namesOf(agentOf('plain')), []);
  for (const name of ['secret', 'my_notes', 'query', 'nothing']) {
    const { error, result } = await agent.send('tools/call', { name, arguments: {} });
    assert.equal(result, undefined, name);
    assert.match(error?.message ?? '', /^Unknown tool: /);
  }
});

test('a tool has the description of its file, schemas of its arguments and rows, and honest annotations', async () => {
  const known = await eventually('the columns are known', async () => {
    const tools = new Map((await list(agent)).map((tool) => [tool.name, tool]));
    const { rows } = (tools.get('cities') as Listed).outputSchema.properties;
    return JSON.stringify(rows).includes('prefixItems') ? tools : null;
  });
  const find = (name: string) => known.get(name) as Listed;
  const cities = find('cities');
  assert.equal(cities.description, 'Cities of a country, by name.');
  assert.deepEqual(cities.inputSchema, {
    type: 'object',
    properties: {
      country: { type: 'string', maxLength: 2 },
      page_size: { type: 'integer', minimum: 1, maximum: 500, default: 3 },
    },
    required: ['country'],
    additionalProperties: false,
  });
  assert.deepEqual(cities.outputSchema.properties.rows, {
    type: 'array',
    items: {
      type: 'array',
      prefixItems: [
        { type: 'integer' },
        { type: 'string' },
        { type: ['string', 'null'], pattern: '^-?\\d+(\\.\\d+)?$' },
      ],
    },
  });
  const hints = (name: string) => {
    const { readOnlyHint, destructiveHint, idempotentHint } = find(name).annotations;
    return [readOnlyHint, destructiveHint, idempotentHint];
  };
  assert.deepEqual(hints('cities'), [true, false, true]);
  assert.deepEqual(hints('add_note'), [false, false, true]);
  assert.deepEqual(hints('rename'), [false, true, false]);
  assert.deepEqual(hints('take'), [false, true, false]);
  const keyIn = (name: string) => {
    const { properties, required = [] } = find(name).inputSchema;
    return ['idempotency_key' in properties, required.includes('idempotency_key')];
  };
  assert.deepEqual(keyIn('cities'), [false, false]);
  assert.deepEqual(keyIn('add_note'), [true, true]);
  assert.deepEqual(keyIn('rename'), [true, false]);
});

for (const revision of ['2026-07-28', '2025-06-18'] as const) {
  test(`in revision ${revision}, rows are compact text, and the same as structured content`, async () => {
    const { result } = await agentOf('agent', revision).send('tools/call', {
      name: 'cities',
      arguments: { country: 'de' },
    });
    const rows = [
      [2, 'Berlin', '891.70'],
      [3, 'Bonn', null],
    ];
    const wanted = { columns: ['id', 'name', 'area'], rows, row_count: 2, truncated: false };
    assert.deepEqual(result?.structuredContent, wanted);
    assert.deepEqual(result?.content, [{ type: 'text', text: JSON.stringify(wanted) }]);
  });
}

for (const revision of ['2026-07-28', '2025-06-18'] as const) {
  test(`in revision ${revision}, structured content has all digits that the text has`, async () => {
    const { reply } = await agentOf('agent', revision).send('tools/call', { name: 'documents' });
    const rows = '[[{"n":9007199254740993,"price":2.50}]]';
    const wanted = `{"columns":["document"],"rows":${rows},"row_count":1,"truncated":false}`;
    assert.ok(reply.text.includes(`"structuredContent":${wanted}`), reply.text);
    assert.ok(reply.text.includes(`"text":${JSON.stringify(wanted)}`), reply.text);
  });
}

test('rows end after the max_result_bytes of the client, if the call does not ask for less', async () => {
  const bounded = agentOf('bounded');
  const args = { country: 'xx', page_size: 300 };
  const sql = "select * from cities where country = 'xx'";
  for (const { text, json } of [
    await bounded.call<Rows>('cities', args),
    await bounded.call<Rows>('query', { sql }),
    await bounded.call<Rows>('query', { sql, max_bytes: 100_000 }),
  ]) {
    assert.equal(json.truncated, true);
    assert.ok(text.length < 1100, `${text.length} bytes`);
  }
  const few = await bounded.call<Rows>('cities', { country: 'de' });
  assert.deepEqual([few.json.row_count, few.json.truncated], [2, false]);
});

test('rows end after 200', async () => {
  const args = { country: 'xx', page_size: 300 };
  const { row_count, truncated } = await succeed<Rows>('cities', args);
  assert.deepEqual([row_count, truncated], [200, true]);
});

test('one row is an object, and no row is a failure', async () => {
  assert.deepEqual(await succeed('city', { id: 2 }), {
    name: 'Berlin',
    area: '891.70',
    note: 'capital',
  });
  const { code, outcome } = await fail('city', { id: 99 });
  assert.deepEqual([code, outcome], ['NO_ROW', 'failed']);
});

test('arguments that are wrong, unknown or missing are named', async () => {
  for (const [args, message] of [
    [{}, /country is missing/],
    [{ country: 7 }, /country must be /],
    [{ country: 'de', other: 1 }, /"other" is not a parameter/],
    [{ country: 'de', idempotency_key: 'k' }, /"idempotency_key" is not a parameter/],
    [{ country: 'de', page_size: 501 }, /page_size must be /],
  ] as const) {
    const error = await fail('cities', args);
    assert.equal(error.code, 'PARAMETER');
    assert.match(error.message ?? '', message);
  }
});

test('a write with a key takes effect once', async () => {
  const once = { text: 'once', idempotency_key: 'key-1' };
  const first = await succeed<{ affected_rows: number }>('add_note', once);
  assert.equal(first.affected_rows, 1);
  assert.deepEqual(await succeed('add_note', once), first);
  assert.equal(await countOf("select count(*) n from notes where text = 'once'"), 1);
  assert.equal((await fail('add_note', { ...once, text: 'other' })).code, 'IDEMPOTENCY_KEY_REUSED');
  assert.equal((await fail('add_note', { text: 'once' })).code, 'KEY_REQUIRED');
  for (const idempotency_key of ['', 'a b', 7, 'x'.repeat(256)]) {
    assert.equal((await fail('add_note', { ...once, idempotency_key })).code, 'IDEMPOTENCY_KEY');
  }
  const renamed = { id: 1, name: 'Athína' };
  await succeed('rename', renamed);
  await succeed('rename', { ...renamed, idempotency_key: null });
  // The same key belongs to another call.
  const reused = await fail('rename', { ...renamed, idempotency_key: 'key-1' });
  assert.equal(reused.code, 'IDEMPOTENCY_KEY_REUSED');
});

test('a batch answers with its rows, and an expectation that fails undoes all, with the code of the file', async () => {
  const taken = await succeed<Rows & { committed: boolean }>('take', { n: 2 });
  assert.deepEqual([taken.committed, taken.columns, taken.rows], [true, ['n'], [[3]]]);
  const error = await fail('take', { n: 4 });
  assert.deepEqual(
    [error.code, error.message, error.outcome],
    ['TOO_FEW', 'There are not so many left.', 'rolled_back'],
  );
  assert.equal(await countOf('select n from stock'), 3);
});

test("MySQL's own words are for clients with sql, and the codes of the file for all", async () => {
  await succeed('unique_note', { text: 'taken' });
  for (const of of [agent, admin]) {
    for (const more of [{}, { idempotency_key: `taken-${of === admin}` }]) {
      const error = await fail('unique_note', { text: 'taken', ...more }, of);
      assert.equal(error.code, 'NOTE_TAKEN');
      assert.equal(error.message, 'Another note has this text.');
      assert.equal(error.errno, undefined);
    }
  }
  const hidden: Outcome = await agent.call('collide', {});
  assert.equal(hidden.isError, true);
  assert.match(hidden.text, /ER_DUP_ENTRY/);
  assert.doesNotMatch(hidden.text, /unique_notes|PRIMARY|Duplicate entry/);
  assert.match((await fail('collide', {}, admin)).message ?? '', /Duplicate entry/);
});

test('each user of a client has its own rows and its own keys, and cannot send a claim', async () => {
  const users = [ann, bob].map((headers) =>
    createAgent(
      () => gateway,
      undefined,
      () => headers,
    ),
  );
  for (const [at, user] of users.entries()) {
    assert.deepEqual(await namesOf(user), ['my_notes', 'write_mine']);
    const args = { text: `of user ${at}`, idempotency_key: 'same' };
    await succeed('write_mine', args, user);
    await succeed('write_mine', args, user);
    const { rows } = await succeed<Rows>('my_notes', {}, user);
    assert.deepEqual(rows, [[`of user ${at}`]]);
    assert.equal((await fail('my_notes', { customer: 1 }, user)).code, 'PARAMETER');
  }
  // The token of the client itself has no claims.
  assert.equal((await fail('my_notes', {}, agentOf('user'))).code, 'CLAIM_MISSING');
});

const watched = () => ({
  ...gateway,
  get: (path: string) => gateway.get(path, { headers: bearing(tokenOf('admin')) }),
});

/** Calls a tool and goes away while its statement with this text waits at the gate. */
async function leaveDuring(name: string, text: string): Promise<void> {
  const processlist = await openProcesslist(database);
  const params = { name, arguments: {} };
  const body = JSON.stringify(messageOf('2026-07-28', 'tools/call', params));
  const all = { ...headersOf('2026-07-28', 'tools/call', params), ...bearing(tokenOf('agent')) };
  const headers = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  const connection = await openRaw(gateway.port);
  connection.send(
    `POST /mcp HTTP/1.1\r\nHost: localhost\r\n${headers.join('')}Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
  await processlist.started(text);
  connection.close();
  processlist.close();
}

test('a write runs to its end if the agent goes away', async () => {
  gate = await closeGate(database);
  await leaveDuring('slow_note', "select 0, 'slow'");
  await gate.open();
  await eventually(
    'the note is there',
    async () => (await countOf("select count(*) n from notes where text = 'slow'")) === 1,
  );
});

test('a batch is rolled back as a whole if the agent goes away before its COMMIT', async () => {
  gate = await closeGate(database);
  await leaveDuring('slow_notes', "select 0, 'second'");
  // The gate is closed: without a kill the statement would not end.
  await eventually('the call has failed', async () => {
    const labels = { name: 'slow_notes', result: 'failed' };
    return (await readMetric(watched(), 'dbhttpd_named_calls_total', labels)) === 1;
  });
  await gate.open();
  assert.equal(await countOf("select count(*) n from notes where text in ('first', 'second')"), 0);
});

test('metrics name the tool', async () => {
  const count = () =>
    readMetric(watched(), 'dbhttpd_tool_calls_total', { tool: 'city', result: 'ok' });
  const earlier = await count();
  await succeed('city', { id: 2 });
  assert.equal(await count(), earlier + 1);
});

test('statements that are replaced are other tools', async () => {
  directory.write("-- name: added :one\n-- for: other\nselect 'new' as n;\n", 'more.sql');
  process.kill(gateway.pid, 'SIGHUP');
  const other = agentOf('other');
  await eventually('the tool is there', async () => (await namesOf(other)).includes('added'));
  assert.deepEqual(await namesOf(other), ['added', 'secret']);
  assert.deepEqual(await succeed('added', {}, other), { n: 'new' });
});
