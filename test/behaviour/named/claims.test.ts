// Users of one client with different claims: a user can neither send nor change a claim, and sees nothing of another user, in any place.
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import {
  describeCreation,
  parseIdempotencyTable,
} from '../../../src/shared/database/idempotency-table.ts';
import type { Reply } from '../../support/ask.ts';
import { bearing, createClientsFile, tokenOf } from '../../support/clients-file.ts';
import { closeGate, createGate, type Gate } from '../../support/database/gate.ts';
import { eventually } from '../../support/eventually.ts';
import { endRequest, getReport } from '../../support/reports.ts';
import { useGateway } from '../../support/use-gateway.ts';
import { createJwtKeys, jwtNames } from '../clients/support/jwt-keys.ts';
import { createNamedDirectory } from './support/named-directory.ts';

const directory = createNamedDirectory(`
-- name: mine :many
-- for: web, backend, plain
-- param customer: int = claims.customer_id
select id, note from notes where customer = :customer order by id;

-- name: write :exec
-- for: web, backend
-- param customer: int = claims.customer_id
-- param note: text(100)
insert into notes (customer, note) values (:customer, :note);

-- name: nested :many
-- for: web
-- param customer: int = claims.'https://example.com/app'.customer
select concat(:customer) as customer;
`);
const keys = createJwtKeys();
const allow = 'named, batch, transaction';
const file = createClientsFile({
  web: { allow, jwt: 'role: user' },
  backend: { allow, may_claim: 'customer_id' },
  both: { allow, jwt: 'role: both', may_claim: 'customer_id' },
  plain: { allow: `${allow}, sql` },
});
after(() => {
  directory.remove();
  file.remove();
  keys.remove();
});
const { gateway, database } = useGateway(
  {
    workers: 2,
    pool: 8,
    coalesce: 'on',
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
        create table notes (id int auto_increment primary key, customer bigint, note varchar(100));
        insert into notes (customer, note) values (1, 'of ann'), (2, 'of bob'), (9007199254740993, 'of big');
        ${describeCreation(parseIdempotencyTable('request_keys', fresh.name))}`);
    },
  },
);
type Headers = Readonly<Record<string, string>>;
let ann: Headers;
let bob: Headers;
let gate: Gate | null = null;
before(async () => {
  const sign = async (user: string, customer: unknown) =>
    bearing(await keys.sign(user, { role: 'user', customer_id: customer }));
  [ann, bob] = await Promise.all([sign('ann', 1), sign('bob', 2)]);
});
afterEach(async () => {
  await gate?.open();
  gate = null;
});
const stating = (customer: unknown): Headers => ({
  ...bearing(tokenOf('backend')),
  'Dbhttpd-Claims': JSON.stringify({ customer_id: customer }),
});
const get = (path: string, headers: Headers) => gateway.get(`/v1/named/${path}`, { headers });
const call = (name: string, body: object, headers: Headers) =>
  gateway.post(`/v1/named/${name}`, body, { headers });
const notesOf = (reply: Reply) =>
  reply.json<{ rows: { note: string }[] }>().rows.map(({ note }) => note);
const codeOf = (reply: Reply) => [reply.status, reply.json<{ code: string }>().code];

test('each user sees its own rows', async () => {
  assert.deepEqual(notesOf(await get('mine', ann)), ['of ann']);
  assert.deepEqual(notesOf(await get('mine', bob)), ['of bob']);
  assert.deepEqual(notesOf(await get('mine', stating(2))), ['of bob']);
  const big = {
    ...bearing(tokenOf('backend')),
    'Dbhttpd-Claims': '{"customer_id":9007199254740993}',
  };
  assert.deepEqual(notesOf(await get('mine', big)), ['of big']);
});

test('a forged parameter is refused in every place, and shows nothing', async () => {
  const forged = { customer: 2 };
  const begun = await gateway.post('/v1/transaction', {}, { headers: ann });
  const { transaction } = begun.json<{ transaction: string }>();
  const replies = [
    await get('mine?customer=2', ann),
    await get('mine.csv?customer=2', ann),
    await call('mine', { params: forged }, ann),
    await call('mine', { params: forged, transaction }, ann),
    await call('mine', { params: { customer: null } }, ann),
    await call('write', { params: { ...forged, note: 'x' } }, ann),
    await gateway.post(
      '/v1/batch',
      { statements: [{ named: 'mine', params: forged }] },
      { headers: ann },
    ),
  ];
  for (const reply of replies) {
    assert.deepEqual(codeOf(reply), [400, 'PARAMETER']);
    assert.doesNotMatch(reply.text, /of bob/);
  }
  for (const body of [{ claims: { customer_id: 2 } }, { customer: 2 }]) {
    assert.deepEqual(codeOf(await call('mine', { params: {}, ...body }, ann)), [
      400,
      'UNKNOWN_FIELD',
    ]);
  }
  const header = { ...ann, 'Dbhttpd-Claims': '{"customer_id":2}' };
  assert.deepEqual(codeOf(await get('mine', header)), [403, 'CLAIM_FORBIDDEN']);
  await gateway.post('/v1/transaction/rollback', { transaction }, { headers: ann });
});

test('a claim that is missing or of another type is a 403', async () => {
  const sign = async (claims: object) =>
    bearing(await keys.sign('eve', { role: 'user', ...claims }));
  assert.deepEqual(codeOf(await get('mine', await sign({}))), [403, 'CLAIM_MISSING']);
  for (const customer_id of ['x', null, [1], { a: 1 }, 1.5, true, 2 ** 53]) {
    const reply = await get('mine', await sign({ customer_id }));
    assert.deepEqual(codeOf(reply), [403, 'CLAIM_INVALID'], JSON.stringify(customer_id));
  }
  const nested = { 'https://example.com/app': { customer: 5 } };
  const { rows } = (await get('nested', await sign(nested))).json<{ rows: object[] }>();
  assert.deepEqual(rows, [{ customer: '5' }]);
  assert.deepEqual(codeOf(await get('mine', bearing(tokenOf('plain')))), [403, 'CLAIM_MISSING']);
});

test('only a client with may_claim states claims: those that are listed, and none that its token has', async () => {
  const with_ = (headers: Headers, claims: string) => ({ ...headers, 'Dbhttpd-Claims': claims });
  const refused = [
    [with_(bearing(tokenOf('plain')), '{"customer_id":2}'), 403, 'CLAIM_FORBIDDEN'],
    [with_(stating(1), '{"customer_id":1,"other":2}'), 403, 'CLAIM_FORBIDDEN'],
    [with_(stating(1), '[1]'), 400, 'CLAIMS'],
    [with_(stating(1), '{"customer_id":1}, {"customer_id":2}'), 400, 'CLAIMS'],
    [with_(stating(1), '{'), 400, 'CLAIMS'],
  ] as const;
  for (const [headers, status, code] of refused) {
    assert.deepEqual(codeOf(await get('mine', headers)), [status, code]);
  }
  // The header decides nothing elsewhere, and is refused there too.
  const reply = await gateway.post(
    '/v1/query',
    { sql: 'select 1' },
    {
      headers: with_(bearing(tokenOf('plain')), '{"customer_id":2}'),
    },
  );
  assert.deepEqual(codeOf(reply), [403, 'CLAIM_FORBIDDEN']);
  const has = bearing(await keys.sign('eve', { role: 'both', customer_id: 1 }));
  assert.deepEqual(codeOf(await get('mine', with_(has, '{"customer_id":2}'))), [
    403,
    'CLAIM_FORBIDDEN',
  ]);
});

test('the same key with the same body is another key for another claim', async () => {
  const body = { params: { note: 'once' } };
  for (const [one, other] of [
    [ann, bob],
    [stating(1), stating(2)],
  ] as const) {
    await database.query("delete from notes where note = 'once'");
    await database.query('delete from request_keys');
    const ask = (headers: Headers) =>
      call('write', body, { ...headers, 'Idempotency-Key': 'same' });
    const [first, second] = await Promise.all([ask(one), ask(other)]);
    assert.deepEqual([first.status, second.status], [200, 200]);
    assert.equal(second.headers['idempotency-replayed'], undefined);
    assert.equal((await ask(one)).text, first.text);
    const batch = (headers: Headers) =>
      gateway.post(
        '/v1/batch',
        { statements: [{ named: 'write', ...body }] },
        {
          headers: { ...headers, 'Idempotency-Key': 'batch' },
        },
      );
    assert.equal((await batch(one)).headers['idempotency-replayed'], undefined);
    assert.equal((await batch(other)).headers['idempotency-replayed'], undefined);
    assert.equal((await batch(one)).headers['idempotency-replayed'], 'true');
    for (const user of [one, other]) {
      const notes = notesOf(await get('mine', user));
      assert.equal(notes.filter((note) => note === 'once').length, 2);
    }
  }
});

test('simultaneous reads of two users are shared with none of each other', async () => {
  const asked = Array.from({ length: 40 }, (_, at) => (at % 2 === 0 ? ann : bob));
  const replies = await Promise.all(asked.map((headers) => get('mine', headers)));
  for (const [at, reply] of replies.entries()) {
    const own = at % 2 === 0 ? /of bob/ : /of ann/;
    assert.equal(reply.status, 200);
    assert.doesNotMatch(reply.text, own);
  }
});

test("a transaction belongs to the claims that its statements bind: another user's are refused", async () => {
  const begun = await gateway.post('/v1/transaction', {}, { headers: bearing(tokenOf('backend')) });
  const { transaction } = begun.json<{ transaction: string }>();
  const inside = (customer: number) =>
    call('write', { params: { note: 'in it' }, transaction }, stating(customer));
  assert.equal((await inside(1)).status, 200);
  assert.deepEqual(codeOf(await inside(2)), [409, 'TRANSACTION_ENDED']);
  assert.equal((await inside(1)).status, 200);
  const end = { headers: bearing(tokenOf('backend')) };
  assert.equal((await gateway.post('/v1/transaction/rollback', { transaction }, end)).status, 200);
});

test('a user lists and ends its own requests, and none of another one', async () => {
  gate = await closeGate(database);
  directory.write(
    `
-- name: gated :many
-- for: web
-- param customer: int = claims.customer_id
select ${gate.zero} as zero from notes where customer = :customer;

-- name: gated_too :many
-- for: backend
-- param customer: int = claims.customer_id
select ${gate.zero} + :customer as zero;
`,
    'gated.sql',
  );
  process.kill(gateway.pid, 'SIGHUP');
  const sign = async (customer: number) =>
    bearing(await keys.sign('shared', { role: 'user', customer_id: customer }));
  const [one, other] = await Promise.all([sign(1), sign(2)]);
  await eventually('all workers have the statement', async () => {
    const asked = Array.from({ length: 8 }, () => gateway.get('/v1/named', { headers: one }));
    return (await Promise.all(asked)).every(({ text }) => text.includes('gated'));
  });
  const running = get('gated', { ...one, 'X-Request-ID': 'of-one' });
  const list = async (headers: Headers) =>
    (await getReport(gateway, '/v1/requests', { headers })).json<{
      requests: { request_id: string; named: string | null; shape: string | null }[];
    }>().requests;
  const [own] = await eventually('it runs', async () => {
    const found = await list(one);
    return found.length > 0 && found;
  });
  assert.deepEqual([own?.request_id, own?.named, own?.shape], ['of-one', 'gated', null]);
  assert.deepEqual(await list(other), []);
  const endOf = (id: string, headers: Headers) => endRequest(gateway, id, { headers });
  const end = (headers: Headers) => endOf('of-one', headers);
  assert.equal((await end(other)).status, 404);
  const stated = call('gated_too', { params: {} }, { ...stating(7), 'X-Request-ID': 'stated' });
  await eventually('it runs', async () => (await list(stating(7))).length === 1);
  assert.deepEqual(await list(stating(8)), []);
  assert.equal((await endOf('stated', stating(7))).status, 200);
  await stated;
  assert.equal((await end(one)).status, 200);
  assert.deepEqual(codeOf(await running), [504, 'KILLED']);
});
