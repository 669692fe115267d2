// /openapi.json says what /v1 takes and answers: every status that it lists is provoked, every reply checked against it.
// Must not know how the document is made.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { occupy, waiting } from '../support/busy-pool.ts';
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { exchange } from '../support/http.ts';
import { type Database, startDatabase } from '../support/mariadb.ts';

type Media = Readonly<Record<string, { readonly schema: object }>>;
type Answer = { readonly headers: Readonly<Record<string, object>>; readonly content: Media };
type Operation = { readonly responses: Readonly<Record<string, Answer>> };
type Document = {
  readonly openapi: string;
  readonly info: { readonly version: string };
  readonly paths: Readonly<Record<string, { readonly post: Operation }>>;
  readonly components: { readonly schemas: Readonly<Record<string, object>> };
};

const token = 'a-token-of-the-test';
const authorization = { Authorization: `Bearer ${token}` };
const faults = new URL('../support/request-faults.js', import.meta.url).href;

let database: Database;
let proxy: FaultProxy;
let gateway: Gateway;
let document: Document;
let validator: Ajv2020;

before(async () => {
  database = await startDatabase();
  await database.query(`
    create table kept (id int primary key, total decimal(12,2) unsigned, data json, bytes blob, g point);
    insert into kept values (1, 1.5, '{"a":[1]}', x'00', point(1, 2));
    create procedure two() begin select 1 as a; select 2 as b; end`);
  proxy = await startFaultProxy(database);
  gateway = await startGateway({
    database: { ...database, ...proxy },
    settings: { token, workers: 1, pool: 1, queue: 1, max_request_bytes: '64KiB' },
    env: { NODE_OPTIONS: `--import ${faults}` },
  });
  const reply = await gateway.get('/openapi.json', { headers: authorization });
  assert.equal(reply.status, 200);
  assert.equal(reply.headers['content-type'], 'application/json; charset=utf-8');
  document = reply.json<Document>();
  validator = new Ajv2020({ strict: true, allowUnionTypes: true, keywords: ['components'] });
  validator.addSchema({ $id: 'document', components: document.components });
});
after(async () => {
  await gateway?.stop();
  await proxy?.stop();
  await database.stop();
});

/** A copy in which references lead into the document. */
function inDocument(schema: object): object {
  return JSON.parse(JSON.stringify(schema).replaceAll('"#/components', '"document#/components'));
}

function check(schema: object, value: unknown): string {
  const validate = validator.compile(inDocument(schema));
  return validate(value) ? '' : validator.errorsText(validate.errors);
}

/** A reply, however it was asked for. */
type Told = {
  readonly status: number;
  readonly header: (name: string) => string | undefined;
  readonly body: Buffer;
};

async function post(body: object | string, headers = {}, path = '/v1/query'): Promise<Told> {
  const reply = await gateway.post(path, body, { headers: { ...authorization, ...headers } });
  return { ...reply, header: (name) => reply.headers[name.toLowerCase()]?.toString() };
}

/** Bytes that a client library would not send, behind the request line and a token. */
const raw = (bytes: string): Promise<Told> =>
  exchange(gateway.port, `POST /v1/query HTTP/1.1\r\n${bytes}`, { timeoutMs: 60_000 });

const statusesOf = () => Object.keys(document.paths['/v1/query']?.post.responses ?? {});

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

/** What makes each status happen; a status may come in several ways. */
const provocations: Readonly<Record<string, readonly (() => Promise<Told>)[]>> = {
  200: [
    () => post({ sql: 'select * from kept' }),
    () => post({ sql: "select null, 1.5, 2e0, now(), cast(1 as unsigned), b'1', uuid()" }),
    () => post({ sql: 'select id from kept', max_rows: 1, numbers: 'raw', json: 'string' }),
    () => post({ sql: 'insert into kept (id) values (:id)', params: { id: 2 } }),
    () => post({ sql: 'select id, total from kept', rows: 'object' }),
    () => post({ sql: 'select id, total from kept' }, { Accept: 'application/x-ndjson' }),
    () => post({ sql: 'select id, total from kept' }, { Accept: 'text/csv' }),
    () => post({ sql: 'call two()' }),
  ],
  400: [
    () => post('{'),
    () => post({ sql: 'select 1; select 2' }),
    () => post({ sql: 'select ?' }),
    () => post({ sql: 'select 1' }, { 'Idempotency-Key': 'k' }),
    () => raw('No-Host: at-all\r\n\r\n'),
  ],
  401: [() => post({ sql: 'select 1' }, { Authorization: 'Bearer wrong' })],
  403: [
    () => post({ sql: 'delete from kept', read_only: true }),
    () => post({ sql: 'select 1' }, { 'Sec-Fetch-Site': 'cross-site' }),
  ],
  406: [() => post({ sql: 'select 1' }, { Accept: 'image/png' })],
  408: [() => raw('Host: localhost')],
  409: [() => post({ sql: 'insert into kept (id) values (1)' })],
  413: [() => post({ sql: `select '${'x'.repeat(70_000)}'` })],
  414: [() => post({ sql: 'select 1' }, {}, `/v1/query?${'x'.repeat(70_000)}`)],
  415: [() => post({ sql: 'select 1' }, { 'Content-Type': 'text/plain' })],
  417: [() => post({ sql: 'select 1' }, { Expect: 'a-miracle' })],
  421: [() => post({ sql: 'select 1' }, { Host: 'elsewhere.example' })],
  422: [() => post({ sql: 'select * from nope' })],
  431: [() => raw(`Host: localhost\r\n${'X: y\r\n'.repeat(101)}\r\n`)],
  500: [() => post({ sql: 'select ?', params: ['fault-in-binding'] })],
  502: [loseTheDatabase],
  503: [fillTheQueue],
  504: [() => post({ sql: 'select sleep(5)', timeout_ms: 50 })],
};

async function loseTheDatabase(): Promise<Told> {
  proxy.on(/lost on its way/, { kind: 'cut-after-request' }, { times: 1 });
  return await post({ sql: "insert into kept (id) select 9 where 'lost on its way' = ''" });
}

async function fillTheQueue(): Promise<Told> {
  await occupy(guarded(), proxy);
  const waits = post({ sql: 'select 1' });
  await waiting(guarded(), 1);
  const refused = await post({ sql: 'select 2' });
  proxy.release();
  await waits;
  return refused;
}

/** The gateway, asked with its token. */
function guarded(): Gateway {
  const withToken = (headers = {}) => ({ headers: { ...authorization, ...headers } });
  return {
    ...gateway,
    get: (path) => gateway.get(path, withToken()),
    dbPost: (body) => gateway.dbPost(body, withToken({ 'Content-Type': 'application/json' })),
  };
}

test('every status that is listed is provoked, and each reply is as it is described', async () => {
  assert.deepEqual(statusesOf(), Object.keys(provocations));
  const responses = document.paths['/v1/query']?.post.responses ?? {};
  const told = new Set<string>();
  for (const [status, ways] of Object.entries(provocations)) {
    for (const [way, provoke] of ways.entries()) {
      const reply = await provoke();
      const where = `${status}, way ${way}: ${reply.body.toString()}`;
      assert.equal(reply.status, Number(status), where);
      const { headers, content } = responses[status] ?? { headers: {}, content: {} };
      for (const name of Object.keys(headers)) assert.ok(reply.header(name), `${name} of ${where}`);
      const [type = ''] = (reply.header('content-type') ?? '').split(';');
      const media = content[type];
      assert.ok(media !== undefined, `${type} of ${where}`);
      const body = reply.body.toString();
      assert.equal(
        check(media.schema, jsonTypes.includes(type) ? JSON.parse(body) : body),
        '',
        where,
      );
      told.add(type);
    }
  }
  const listed = Object.values(responses).flatMap(({ content }) => Object.keys(content));
  assert.deepEqual([...told].sort(), [...new Set(listed)].sort());
});

test('a field that is listed is taken, and no other', async () => {
  const schema = document.components.schemas.QueryRequest as {
    properties: Readonly<Record<string, object>>;
  };
  const values: Readonly<Record<string, readonly unknown[]>> = {
    sql: ['select 1', '', 1],
    params: [[], {}, [{ $binary: '' }], 1, [{}]],
    timeout_ms: [1000, 0, 'x'],
    read_only: [true, 1],
    max_rows: [0, 1, -1, 1.5],
    max_affected: [0, 1, -1, 1.5],
    dry_run: [true, false, 1],
    rows: ['array', 'list'],
    numbers: ['exact', 'raw', 1],
    json: ['value', 'string', true],
    section: [gateway.section, 1],
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
