// Named statements are known by their names: in statistics, metrics and logs, and in the OpenAPI document of each caller.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, test } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import {
  describeCreation,
  parseIdempotencyTable,
} from '../../../src/shared/database/idempotency-table.ts';
import type { StatementList } from '../../../src/shared/observe/statement-sums.ts';
import { bearing, createClientsFile, tokenOf } from '../../support/clients-file.ts';
import { eventually } from '../../support/eventually.ts';
import { logShows } from '../../support/log-shows.ts';
import { getReport } from '../../support/reports.ts';
import { useGateway } from '../../support/use-gateway.ts';
import { createNamedDirectory } from './support/named-directory.ts';

const directory = createNamedDirectory(`
-- name: sorted :many
-- Things, sorted.
-- for: web
-- param sort: choice(up: id | down: id desc) = up
-- param max: int(1..9) = 9
select id from things order by :sort limit :max;

-- name: thing :one
-- for: web
-- param id: int
select id, kind from things where id = :id;

-- name: slow :one
-- for: web
select sleep(0.2) as slept;

-- name: add :exec
-- for: web
-- key: required
-- param id: int
-- error 1062: 418 IS_THERE There is such a thing.
insert into things values (:id, 'a');

-- name: add_two :batch
-- for: web
-- param id: int
-- step: first
insert into things values (:id, 'a');
select :id as id;
`);
const file = createClientsFile({
  web: { allow: 'named, batch' },
  admin: { allow: 'all' },
  anonymous: { allow: 'metrics' },
});
after(() => {
  directory.remove();
  file.remove();
});
const { gateway } = useGateway(
  {
    workers: 1,
    named: directory.path,
    clients: file.path,
    access_log: 'json',
    slow_query: '100ms',
    idempotency_table: 'request_keys',
  },
  {
    prepare: async (fresh) => {
      await fresh.query('create table things (id int primary key, kind varchar(9))');
      await fresh.query("insert into things values (1, 'a'), (2, 'b')");
      await fresh.query(describeCreation(parseIdempotencyTable('request_keys', fresh.name)));
    },
  },
);
const asWeb = { headers: bearing(tokenOf('web')) };
const asAdmin = { headers: bearing(tokenOf('admin')) };
const get = (path: string) => gateway.get(`/v1/named/${path}`, asWeb);

test('statistics list a statement once by its name, whatever its choices', async () => {
  for (const path of ['sorted', 'sorted?sort=down', 'sorted?max=1']) await get(path);
  await get('thing?id=404');
  const listed = await eventually('they are listed', async () => {
    const reply = await getReport(gateway, '/v1/statements', asAdmin);
    const { statements } = reply.json<{
      statements: { name?: string; count: number; errors_by: object }[];
    }>();
    return statements.some(({ name }) => name === 'thing') && statements;
  });
  const sorted = listed.filter(({ name }) => name === 'sorted');
  assert.deepEqual(
    sorted.map(({ count }) => count),
    [3],
  );
  assert.deepEqual(listed.find(({ name }) => name === 'thing')?.errors_by, { NO_ROW: 1 });
});

test('statistics say of every statement who may call it, and how often it was called and failed', async () => {
  const read = async () => {
    const reply = await getReport(gateway, '/v1/statements', asAdmin);
    const { named } = reply.json<StatementList>();
    return new Map(named.map((one) => [one.name, one]));
  };
  const before = (await read()).get('thing');
  await get('thing?id=1');
  await get('thing?id=404');
  const after = await eventually('both are counted', async () => {
    const read_ = await read();
    return (read_.get('thing')?.calls ?? 0) >= (before?.calls ?? 0) + 2 && read_;
  });
  const { calls = 0, failed = 0, total_ms = 0, ...facts } = after.get('thing') ?? {};
  assert.deepEqual(facts, { name: 'thing', section: 'world', kind: 'one', for: ['web'] });
  assert.equal(calls - (before?.calls ?? 0), 2);
  assert.equal(failed - (before?.failed ?? 0), 1);
  assert.ok(total_ms > (before?.total_ms ?? 0));
  // Also those that no client has called.
  assert.equal(after.get('add_two')?.kind, 'batch');
  assert.deepEqual([...after.keys()], [...after.keys()].sort());
});

test('metrics count the calls of each statement', async () => {
  await get('thing?id=1');
  await get('thing?id=404');
  const { text } = await getReport(gateway, '/metrics');
  assert.match(text, /^dbhttpd_named_calls_total\{.*name="thing",result="ok"\} [1-9]/m);
  assert.match(text, /^dbhttpd_named_calls_total\{.*name="thing",result="failed"\} [1-9]/m);
  assert.match(text, /^dbhttpd_named_seconds_total\{.*name="thing"\} /m);
});

test('the access log and the log of slow statements have the name', async () => {
  await get('slow');
  await logShows(gateway, /slow statement.*named=slow/);
  const path = gateway.place.logfile.replace(/(\.log)?$/, '.access.log');
  const lines = await eventually('it is logged', () => {
    const found = readFileSync(path, 'utf8')
      .split('\n')
      .filter((line) => line.includes('/v1/named/slow'));
    return found.length > 0 && found;
  });
  assert.equal(JSON.parse(lines[0] ?? '').named, 'slow');
  await get('unknown_name');
  const unknown = await eventually('it is logged', () => {
    const found = readFileSync(path, 'utf8')
      .split('\n')
      .filter((line) => line.includes('unknown_name'));
    return found.length > 0 && found;
  });
  assert.equal(JSON.parse(unknown[0] ?? '').named, null);
});

type Responses = Record<string, { content?: Record<string, { schema: object }> }>;
type Operation = {
  readonly parameters?: readonly { name: string; in: string; required?: boolean }[];
  readonly responses: Responses;
};
type Document = {
  readonly paths: Record<string, Record<string, Operation>>;
  readonly components: { readonly schemas: Record<string, object> };
};

test('the OpenAPI document describes what the caller may call, and replies are as described', async () => {
  const document = (await gateway.get('/openapi.json', asWeb)).json<Document>();
  const admin = (await gateway.get('/openapi.json', asAdmin)).json<Document>();
  const own = (paths: Document['paths']) =>
    Object.entries(paths)
      .filter(([path]) => path.startsWith('/v1/named'))
      .map(([path, methods]) => `${path} ${Object.keys(methods)}`);
  assert.deepEqual(own(admin.paths), []);
  assert.deepEqual(own(document.paths), [
    '/v1/named get',
    '/v1/named/add post',
    '/v1/named/add_two post',
    '/v1/named/slow get,post',
    '/v1/named/sorted get,post',
    '/v1/named/thing get,post',
  ]);
  const query = document.paths['/v1/named/sorted']?.get?.parameters ?? [];
  assert.deepEqual(
    query.filter((one) => one.in === 'query').map(({ name }) => name),
    ['sort', 'max'],
  );
  const key = document.paths['/v1/named/add']?.post?.parameters?.find(
    ({ name }) => name === 'Idempotency-Key',
  );
  assert.equal(key?.required, true);

  const validator = new Ajv2020({
    strict: true,
    allowUnionTypes: true,
    strictTypes: false,
    keywords: ['components'],
  });
  validator.addSchema({ $id: 'document', components: document.components });
  const post = (name: string, params: object, headers = {}) =>
    gateway.post(`/v1/named/${name}`, { params }, { headers: { ...asWeb.headers, ...headers } });
  const replies = [
    ['/v1/named', 'get', await gateway.get('/v1/named', asWeb)],
    ['/v1/named/thing', 'get', await get('thing?id=1')],
    ['/v1/named/thing', 'get', await get('thing?id=404')],
    ['/v1/named/thing', 'get', await get('thing?id=x')],
    ['/v1/named/sorted', 'get', await get('sorted')],
    ['/v1/named/sorted', 'post', await post('sorted', {})],
    ['/v1/named/add', 'post', await post('add', { id: 3 }, { 'Idempotency-Key': 'a' })],
    ['/v1/named/add', 'post', await post('add', { id: 3 }, { 'Idempotency-Key': 'b' })],
    ['/v1/named/add', 'post', await post('add', { id: 3 })],
    ['/v1/named/add_two', 'post', await post('add_two', { id: 4 })],
  ] as const;
  for (const [path, method, reply] of replies) {
    const [type = ''] = (reply.headers['content-type'] ?? '').split(';');
    const described = document.paths[path]?.[method]?.responses[reply.status];
    const schema = described?.content?.[type]?.schema;
    assert.ok(schema !== undefined, `${path} ${reply.status} ${type}`);
    const inDocument = JSON.stringify(schema).replaceAll('"#/components', '"document#/components');
    const validate = validator.compile(JSON.parse(inDocument));
    assert.ok(
      validate(reply.json()),
      `${path}: ${reply.text} ${validator.errorsText(validate.errors)}`,
    );
  }
});
