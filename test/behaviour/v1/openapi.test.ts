// /openapi.json says what /v1 takes and answers: every status that it lists is provoked, every reply checked against it.
import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import {
  describeCreation,
  parseIdempotencyTable,
} from '../../../src/shared/database/idempotency-table.ts';
import { occupy, waiting } from '../../support/busy-pool.ts';
import { bearing, createClientsFile, tokenOf } from '../../support/clients-file.ts';
import { closeGate, createGate } from '../../support/database/gate.ts';
import { eventually } from '../../support/eventually.ts';
import type { Gateway } from '../../support/gateway.ts';
import { exchange } from '../../support/http.ts';
import { hurryVariable } from '../../support/request-faults.ts';
import { useProxiedGateway } from '../../support/use-gateway.ts';
import { createWorkspace } from '../../support/workspace.ts';

type Media = Readonly<Record<string, { readonly schema: object }>>;
type Header = { readonly required?: boolean; readonly schema: object };
type Answer = { readonly headers: Readonly<Record<string, Header>>; readonly content: Media };
type Operation = { readonly responses: Readonly<Record<string, Answer>> };
type Document = {
  readonly openapi: string;
  readonly info: { readonly version: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, object>> };
};

const token = 'a-token-of-the-test';
const authorization = { Authorization: `Bearer ${token}` };
const clients = createClientsFile({
  impatient: { allow: 'sql, batch', queue: '0' },
  prometheus: { allow: 'metrics' },
});
const faults = new URL('../../support/request-faults.js', import.meta.url).href;

let document: Document;
let validator: Ajv2020;
const workspace = createWorkspace('openapi', () => {});
const hurry = join(workspace.path, 'hurry');

const { gateway, database, proxy } = useProxiedGateway(
  {
    token,
    workers: 1,
    pool: 1,
    queue: 1,
    max_request_bytes: '64KiB',
    idempotency_table: 'request_keys',
    clients: clients.path,
  },
  {
    env: { NODE_OPTIONS: `--import ${faults}`, [hurryVariable]: hurry },
    prepare: async (database) => {
      await createGate(database);
      await database.query(`
        create table kept (id int primary key, total decimal(12,2) unsigned, data json, bytes blob, g point);
        insert into kept values (1, 1.5, '{"a":[1]}', x'00', point(1, 2));
        create procedure two() begin select 1 as a; select 2 as b; end;
        create procedure long_result() begin select repeat('x', 100000) as a; end;
        ${describeCreation(parseIdempotencyTable('request_keys', database.name))}`);
    },
    ready: async () => {
      const reply = await gateway.get('/openapi.json', { headers: authorization });
      assert.equal(reply.status, 200);
      assert.equal(reply.headers['content-type'], 'application/json; charset=utf-8');
      document = reply.json<Document>();
      validator = new Ajv2020({ strict: true, allowUnionTypes: true, keywords: ['components'] });
      validator.addSchema({ $id: 'document', components: document.components });
    },
  },
);
after(() => {
  workspace.remove();
  clients.remove();
});

/** A copy in which references lead into the document. */
function inDocument(schema: object): object {
  return JSON.parse(JSON.stringify(schema).replaceAll('"#/components', '"document#/components'));
}

function check(schema: object, value: unknown): string {
  const validate = validator.compile(inDocument(schema));
  return validate(value) ? '' : validator.errorsText(validate.errors);
}

/** A reply, to any kind of request. */
type Reported = {
  readonly status: number;
  readonly header: (name: string) => string | undefined;
  readonly body: Buffer;
};

async function post(body: object | string, headers = {}, path = '/v1/query'): Promise<Reported> {
  const reply = await gateway.post(path, body, { headers: { ...authorization, ...headers } });
  return { ...reply, header: (name) => reply.headers[name.toLowerCase()]?.toString() };
}

/** Bytes that a client library would not send, behind the request line and a token. */
const raw = (path: string, bytes: string): Promise<Reported> =>
  exchange(gateway.port, `POST ${path} HTTP/1.1\r\n${bytes}`, { timeoutMs: 60_000 });

test('its document is one of OpenAPI 3.1, behind the guards of everything else', async () => {
  assert.match(document.openapi, /^3\.1\.\d+$/);
  assert.match(document.info.version, /^\d+\.\d+\.\d+/);
  assert.equal((await gateway.get('/openapi.json')).status, 401);
  assert.equal((await gateway.post('/openapi.json', {}, { headers: authorization })).status, 405);
  for (const [name, schema] of Object.entries(document.components.schemas)) {
    assert.doesNotThrow(() => validator.compile(inDocument(schema)), name);
  }
});

const jsonTypes = ['application/json', 'application/problem+json'];

/** The requests that cause each status. A status may have several causes. */
type Provocations = Readonly<Record<string, readonly (() => Promise<Reported>)[]>>;

/** A request that runs one statement, by a path's own body. */
type AskOne = (sql: string, options?: object, headers?: object) => Promise<Reported>;

const query: AskOne = (sql, options = {}, headers = {}) => post({ sql, ...options }, headers);
const batch: AskOne = (sql, options = {}, headers = {}) => {
  const { params = [], expect = null, ...others } = options as Record<string, unknown>;
  return post({ statements: [{ sql, params, expect }], ...others }, headers, '/v1/batch');
};

/** The causes that both paths share. */
const alike = (path: string, ask: AskOne): Omit<Provocations, '200'> => ({
  400: [
    () => post('{', {}, path),
    () => ask('select 1; select 2'),
    () => ask('select ?'),
    () => ask('select 1', { read_only: true }, { 'Idempotency-Key': 'k' }),
    () => ask('do 1', {}, { 'Idempotency-Key': 'two words' }),
    () => raw(path, 'No-Host: at-all\r\n\r\n'),
  ],
  401: [() => ask('select 1', {}, { Authorization: 'Bearer wrong' })],
  403: [
    () => ask('delete from kept', { read_only: true }),
    () => ask('select 1', {}, { 'Sec-Fetch-Site': 'cross-site' }),
    () => ask('select 1', {}, bearing(tokenOf('prometheus'))),
  ],
  406: [() => ask('select 1', {}, { Accept: 'image/png' })],
  408: [() => neverFinish(path)],
  409: [() => ask('insert into kept (id) values (1)')],
  413: [() => ask(`select '${'x'.repeat(70_000)}'`)],
  414: [() => post({}, {}, `${path}?${'x'.repeat(70_000)}`)],
  415: [() => ask('select 1', {}, { 'Content-Type': 'text/plain' })],
  417: [() => ask('select 1', {}, { Expect: 'a-miracle' })],
  421: [() => ask('select 1', {}, { Host: 'elsewhere.example' })],
  422: [() => ask('select * from nope'), () => reuseKey(ask)],
  429: [() => exceedOwnQueue(ask)],
  431: [() => raw(path, `Host: localhost\r\n${'X: y\r\n'.repeat(101)}\r\n`)],
  500: [() => ask('select ?', { params: ['fault-in-binding'] })],
  502: [() => loseTheDatabase(ask)],
  503: [() => fillTheQueue(ask), () => loseTheTable(ask)],
  504: [() => ask('select sleep(20)', { timeout_ms: 2_000 })],
});

const write = "update kept set bytes = 'x' where id = 1";

const ofQuery: Provocations = {
  200: [
    () => query('select * from kept'),
    () => query("select null, 1.5, 2e0, now(), cast(1 as unsigned), b'1', uuid()"),
    () => query('select id from kept', { max_rows: 1, numbers: 'raw', json: 'string' }),
    () => query('insert into kept (id) values (:id)', { params: { id: 2 } }),
    () => query('select id, total from kept', { rows: 'object' }),
    () => query('select id, total from kept', {}, { Accept: 'application/x-ndjson' }),
    () => query('select id, total from kept', {}, { Accept: 'text/csv' }),
    () => query('call two()'),
    () => query('call two()', { show_warnings: true }),
    () => query("select cast('x' as signed)", { show_warnings: true }),
    () => query('insert ignore into kept (id) values (1)', { show_warnings: true }),
    () => query(write, { dry_run: true }),
    ...twice(() => query(write, {}, { 'Idempotency-Key': 'query' })),
  ],
  ...alike('/v1/query', query),
};

const ofBatch: Provocations = {
  200: [
    () => batch('select * from kept', { rows: 'object', numbers: 'raw', json: 'string' }),
    () => batch('insert into kept (id) values (:id)', { params: { id: 3 } }),
    () => batch('call two()', { atomic: false }),
    () => batch('call two()', { show_warnings: true }),
    () => batch("select cast('x' as signed)", { show_warnings: true }),
    () => batch('insert ignore into kept (id) values (1)', { show_warnings: true }),
    () => batch('select id from kept', { isolation: 'serializable', read_only: true }),
    ...twice(() => batch(write, {}, { 'Idempotency-Key': 'batch' })),
    ...twice(() => batch('call long_result()', {}, { 'Idempotency-Key': 'long' })),
  ],
  ...alike('/v1/batch', batch),
};

function twice<Way>(way: Way): readonly Way[] {
  return [way, way];
}

/** Sends headers that do not end, and has the gateway find that their time is over. */
async function neverFinish(path: string): Promise<Reported> {
  writeFileSync(hurry, '');
  try {
    return await raw(path, 'Host: localhost');
  } finally {
    rmSync(hurry);
  }
}

async function reuseKey(ask: AskOne): Promise<Reported> {
  const headers = { 'Idempotency-Key': 'reused' };
  await ask(write, {}, headers);
  return ask('delete from kept where id = 0', {}, headers);
}

async function loseTheTable(ask: AskOne): Promise<Reported> {
  await database.query('rename table request_keys to elsewhere');
  const reported = await ask(write, {}, { 'Idempotency-Key': 'lost' });
  await database.query('rename table elsewhere to request_keys');
  return reported;
}

async function loseTheDatabase(ask: AskOne): Promise<Reported> {
  proxy.on(/lost on its way/, { kind: 'cut-after-request' }, { times: 1 });
  return await ask("insert into kept (id) select 9 where 'lost on its way' = ''");
}

async function exceedOwnQueue(ask: AskOne): Promise<Reported> {
  await occupy(guarded(), proxy);
  const refused = await ask('select 1', {}, bearing(tokenOf('impatient')));
  proxy.release();
  return refused;
}

async function fillTheQueue(ask: AskOne): Promise<Reported> {
  await occupy(guarded(), proxy);
  const waits = ask('select 1');
  await waiting(guarded(), 1);
  const refused = await ask('select 2');
  proxy.release();
  await waits;
  return refused;
}

/** The gateway, with its token in each request. */
function guarded(): Gateway {
  const withToken = (headers = {}) => ({ headers: { ...authorization, ...headers } });
  return {
    ...gateway,
    get: (path) => gateway.get(path, withToken()),
    dbPost: (body) => gateway.dbPost(body, withToken({ 'Content-Type': 'application/json' })),
  };
}

for (const [path, provocations] of Object.entries({ '/v1/query': ofQuery, '/v1/batch': ofBatch })) {
  test(`every status that is listed for ${path} is provoked, and each reply matches its description`, async () => {
    const responses = document.paths[path]?.post?.responses ?? {};
    assert.deepEqual(Object.keys(responses), Object.keys(provocations));
    const reported = new Set<string>();
    for (const [status, ways] of Object.entries(provocations)) {
      for (const [way, provoke] of ways.entries()) {
        const reply = await provoke();
        const where = `${status}, way ${way}: ${reply.body.toString()}`;
        assert.equal(reply.status, Number(status), where);
        reported.add(checkReply(reply, responses[status] ?? { headers: {}, content: {} }, where));
      }
    }
    const listed = Object.values(responses).flatMap(({ content }) => Object.keys(content));
    assert.deepEqual([...reported].sort(), [...new Set(listed)].sort());
  });
}

const inside = [
  ['/v1/stats', 'get'],
  ['/v1/requests', 'get'],
  ['/v1/statements', 'get'],
  ['/v1/requests/{id}', 'delete'],
] as const;

for (const [path, method] of inside) {
  test(`every status of ${method} ${path} is provoked, and each reply matches its description`, async (t) => {
    const responses = document.paths[path]?.[method]?.responses ?? {};
    const gate = await closeGate(database);
    t.after(gate.open);
    const runs = guarded().dbPost({ SQL: `select ${gate.zero}` });
    const { requests } = await eventually('it runs', async () => {
      const reply = await gateway.get('/v1/requests', { headers: authorization });
      const reported = reply.json<{ requests: { id: string }[] }>();
      return reported.requests.length > 0 && reported;
    });
    const ask = (id = requests[0]?.id ?? '', headers = {}) =>
      gateway.request(path.replace('{id}', id), {
        method: method.toUpperCase(),
        headers: { ...authorization, ...headers },
      });
    const hung = async () => {
      process.kill(gateway.pid, 'SIGSTOP');
      return ask().finally(() => process.kill(gateway.pid, 'SIGCONT'));
    };
    const provocations = {
      '401': () => ask('', { Authorization: 'Bearer none' }),
      '403': () => ask('', { 'Sec-Fetch-Site': 'cross-site' }),
      ...(method === 'delete' && { '404': () => ask('0-0-0') }),
      '421': () => ask('', { Host: 'elsewhere.example' }),
      '503': hung,
      '200': () => ask(),
    };
    assert.deepEqual(Object.keys(responses).sort(), Object.keys(provocations).sort());
    for (const [status, provoke] of Object.entries(provocations)) {
      const reply = await provoke();
      assert.equal(reply.status, Number(status), reply.text);
      const [type = ''] = (reply.headers['content-type'] ?? '').split(';');
      const schema = responses[status]?.content[type]?.schema ?? { not: {} };
      assert.equal(check(schema, reply.json()), '', reply.text);
    }
    await gate.open();
    await runs;
  });
}

/** Returns the reply's media type. */
function checkReply(reply: Reported, { headers, content }: Answer, where: string): string {
  for (const [name, { required, schema }] of Object.entries(headers)) {
    const value = reply.header(name);
    if (required === true) assert.ok(value, `${name} of ${where}`);
    const typed = 'type' in schema && schema.type === 'integer' ? Number(value) : value;
    if (value !== undefined) assert.equal(check(schema, typed), '', `${name} of ${where}`);
  }
  const [type = ''] = (reply.header('content-type') ?? '').split(';');
  const media = content[type];
  assert.ok(media !== undefined, `${type} of ${where}`);
  const body = reply.body.toString();
  const value = jsonTypes.includes(type) ? JSON.parse(body) : body;
  assert.equal(check(media.schema, value), '', where);
  return type;
}

/** The token of a transaction. */
async function beginOne(): Promise<string> {
  const begun = await post({}, {}, '/v1/transaction');
  return (JSON.parse(begun.body.toString()) as { transaction: string }).transaction;
}

test('a transaction is answered as is described, from its beginning to after its end', async () => {
  const ask = async (below: string, body: object, status: number) => {
    const path = `/v1/transaction${below}`;
    const reply = await post(body, {}, path);
    assert.equal(reply.status, status, reply.body.toString());
    const answer = document.paths[path]?.post?.responses[status];
    checkReply(reply, answer ?? { headers: {}, content: {} }, `${status} of ${path}`);
    return JSON.parse(reply.body.toString()) as { readonly transaction: string };
  };
  await ask('', { isolation: 'chaos' }, 400);
  const begun = await ask('', { isolation: 'serializable', read_only: true }, 201);
  const committed = { transaction: begun.transaction };
  const within = { sql: 'select 1', ...committed };
  const schema = document.components.schemas.QueryRequest ?? {};
  assert.equal(check(schema, within), '');
  assert.equal((await post(within)).status, 200);
  for (const verb of ['/commit', '/commit', '/rollback']) await ask(verb, committed, 200);
  const undone = { transaction: await beginOne() };
  await ask('/rollback', undone, 200);
  await ask('/commit', undone, 409);
  await ask('/commit', {}, 400);
  await ask('/rollback', { transaction: 'of no client' }, 200);
});

test('a field that is listed is taken, and no other', async () => {
  const schema = document.components.schemas.QueryRequest as {
    properties: Readonly<Record<string, object>>;
  };
  const values: Readonly<Record<string, readonly unknown[]>> = {
    sql: ['select 1', '', 1],
    params: [[], {}, [{ $binary: '' }], 1, [{}]],
    timeout_ms: [20_000, 0, 'x'],
    read_only: [true, 1],
    max_rows: [0, 1, -1, 1.5],
    max_affected: [0, 1, -1, 1.5],
    dry_run: [true, false, 1],
    show_warnings: [true, false, 1],
    rows: ['array', 'list'],
    numbers: ['exact', 'raw', 1],
    json: ['value', 'string', true],
    section: [gateway.section, 1],
    transaction: [1],
  };
  assert.deepEqual(Object.keys(schema.properties).sort(), Object.keys(values).sort());
  for (const [name, tried] of Object.entries(values)) {
    for (const value of [...tried, null]) {
      const sql =
        name === 'params' && Array.isArray(value) && value.length > 0 ? 'select ?' : 'select 1';
      const request = { sql, [name]: value };
      const reply = await post(request);
      const isDescribed = check(schema, request) === '';
      assert.equal(reply.status === 200, isDescribed, JSON.stringify(request));
    }
  }
  const refused = await post({ sql: 'select 1', another: 1 });
  const { detail } = JSON.parse(refused.body.toString()) as { detail: string };
  const named = detail.slice(detail.indexOf('there are ') + 'there are '.length).split(', ');
  assert.deepEqual(named.sort(), Object.keys(schema.properties).sort());
});
