// Transactions, idempotency keys, shared reads and running requests belong to a client and its user, and to no other.
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import {
  describeCreation,
  parseIdempotencyTable,
} from '../../../src/shared/database/idempotency-table.ts';
import type { Reply } from '../../support/ask.ts';
import { bearing, createClientsFile, digestOf, tokenOf } from '../../support/clients-file.ts';
import { closeGate, createGate, type Gate } from '../../support/database/gate.ts';
import { postAsDriver } from '../../support/driver.ts';
import { eventually } from '../../support/eventually.ts';
import { beginHeld, holdBy, summarise } from '../../support/held.ts';
import { logShows } from '../../support/log-shows.ts';
import { endRequest, getReport } from '../../support/reports.ts';
import { useGateway } from '../../support/use-gateway.ts';
import { beginAt, formatRequest, openAtEach } from '../../support/worker-connections.ts';
import { createJwtKeys, jwtNames } from './support/jwt-keys.ts';

const sql = 'sql, batch, transaction, drivers';
const clients = {
  web: { allow: sql, token_sha256: `${digestOf('web-token')}, ${digestOf('web-next')}` },
  app: { allow: sql },
  people: { allow: sql, jwt: 'role: person' },
  watcher: { allow: 'observe' },
  killer: { allow: 'kill, observe' },
  anonymous: { allow: 'sql, transaction' },
} as const;
const file = createClientsFile(clients);
const keys = createJwtKeys();
const { gateway, database } = useGateway(
  {
    workers: 2,
    pool: 16,
    drivers: 'planetscale',
    idempotency_table: 'request_keys',
    clients: file.path,
    jwt_keys: keys.path,
    ...jwtNames,
  },
  {
    prepare: async (fresh) => {
      await createGate(fresh);
      await fresh.query('create table t (id int auto_increment primary key, v varchar(20))');
      await fresh.query(describeCreation(parseIdempotencyTable('request_keys', fresh.name)));
    },
  },
);
let ann: string;
let bob: string;
let gate: Gate | null = null;
before(async () => {
  [ann, bob] = await Promise.all([
    keys.sign('ann', { role: 'person' }),
    keys.sign('bob', { role: 'person' }),
  ]);
});
afterEach(async () => {
  await gate?.open();
  gate = null;
});
after(() => {
  file.remove();
  keys.remove();
});

const over = '409 TRANSACTION_ENDED not_executed';
const as = (token: string | null) => ({ headers: token === null ? {} : bearing(token) });

/** All that may ask, each a caller of its own. */
const callers = (): readonly (string | null)[] => [tokenOf('web'), tokenOf('app'), ann, bob, null];

test('a transaction belongs to the client and the user that began it', async () => {
  for (const [at, caller] of callers().entries()) {
    const held = await beginHeld(gateway, {}, as(caller));
    for (const [other, stranger] of callers().entries()) {
      if (other === at) continue;
      const foreign = holdBy(gateway, held.token, as(stranger));
      assert.equal(summarise(await foreign.query('select 1')), over);
      assert.equal(summarise(await foreign.commit()), '409 TRANSACTION_ENDED unknown');
    }
    assert.deepEqual(await held.rows("select 'here'"), [['here']]);
    assert.equal((await held.rollback()).status, 200);
  }
});

test('both tokens of a client, and a new token of a user, continue its transaction', async () => {
  for (const [first, second] of [
    ['web-token', 'web-next'],
    [ann, await keys.sign('ann', { role: 'person', jti: 'another' })],
  ] as const) {
    const held = await beginHeld(gateway, {}, as(first));
    const continued = holdBy(gateway, held.token, as(second));
    assert.deepEqual(await continued.rows("select 'here'"), [['here']]);
    assert.equal((await continued.commit()).status, 200);
  }
});

test('a worker that passes a request on is not trusted by the other one: that one identifies the caller again', async () => {
  const [one, two] = await openAtEach(gateway.port, 2);
  assert.ok(one !== undefined && two !== undefined);
  try {
    const fresh = await keys.sign('ann', { role: 'person', jti: 'new to both workers' });
    const begun = await beginAt(one, bearing(fresh));
    for (const [token, status] of [
      [fresh, 200],
      [ann, 200],
      [bob, 409],
      [tokenOf('web'), 409],
      ['none', 401],
    ] as const) {
      const body = { sql: 'select 1', transaction: begun };
      two.send(formatRequest('POST', '/v1/query', body, bearing(token)));
      assert.equal((await two.reply()).status, status, token.slice(0, 20));
    }
    const body = { transaction: begun };
    // The 401 has closed the other connection.
    one.send(formatRequest('POST', '/v1/transaction/rollback', body, bearing(ann)));
    assert.equal((await one.reply()).status, 200);
  } finally {
    for (const { socket } of [one, two]) socket.destroy();
  }
});

test("a driver's transaction belongs to its client", async () => {
  const execute = (query: string, session: unknown, password: string) =>
    postAsDriver(gateway, { query, session }, { password });
  const begun = await execute('begin', null, 'web-token');
  const { session } = begun.body;
  const foreign = await execute('select 1', session, tokenOf('app'));
  assert.match(JSON.stringify(foreign.body), /TRANSACTION_ENDED/);
  const own = await execute('select 1', session, 'web-next');
  assert.equal(own.body.error, undefined, JSON.stringify(own.body));
  await execute('rollback', session, 'web-token');
});

test('the same idempotency key of another client or user is another key', async () => {
  const insert = { sql: "insert into t (v) values ('keyed')" };
  const ask = (token: string | null) =>
    gateway.post('/v1/query', insert, {
      headers: { ...as(token).headers, 'Idempotency-Key': 'one-key' },
    });
  const ids = new Set<string>();
  for (const caller of callers()) {
    const first = await ask(caller);
    assert.equal(first.status, 200, first.text);
    const second = await ask(caller);
    assert.equal(second.headers['idempotency-replayed'], 'true');
    const idOf = (reply: Reply) => reply.json<{ insert_id: string }>().insert_id;
    assert.equal(idOf(second), idOf(first));
    ids.add(idOf(first));
  }
  assert.equal(ids.size, callers().length);
  const [counted] = await database.query("select count(*) as n from t where v = 'keyed'");
  assert.equal(Number(counted?.n), callers().length);
});

type List = { readonly requests: readonly { readonly id: string; readonly request_id: string }[] };

async function listed(token: string | null): Promise<List['requests']> {
  const reply = await getReport(gateway, '/v1/requests', as(token));
  assert.equal(reply.status, 200, reply.text);
  return reply.json<List>().requests;
}

const idsOf = (requests: List['requests']) => requests.map(({ request_id }) => request_id).sort();

/** A statement of each caller that waits at the gate, each with its own id and one with an id that all have. */
async function runAll(): Promise<ReadonlyMap<string, Promise<Reply>>> {
  const closed = await closeGate(database);
  gate = closed;
  const replies = new Map<string, Promise<Reply>>();
  for (const [name, token] of Object.entries({ web: tokenOf('web'), ann, bob, none: null })) {
    for (const id of [name, 'shared/id']) {
      const headers = { ...as(token).headers, 'X-Request-ID': id };
      const reply = gateway.post('/v1/query', { sql: `select ${closed.zero}` }, { headers });
      replies.set(`${name} ${id}`, reply);
    }
  }
  await eventually('all run', async () => (await listed('watcher-token')).length === replies.size);
  return replies;
}

const end = (id: string, token: string | null) => endRequest(gateway, id, as(token));

test('a client sees its own requests, and with the permission observe all of them', async () => {
  const replies = await runAll();
  assert.deepEqual(idsOf(await listed(tokenOf('web'))), ['shared/id', 'web']);
  assert.deepEqual(idsOf(await listed(ann)), ['ann', 'shared/id']);
  assert.deepEqual(idsOf(await listed(tokenOf('app'))), []);
  // Others without credentials may have sent them.
  assert.deepEqual(idsOf(await listed(null)), []);
  assert.equal((await listed('watcher-token')).length, replies.size);
  await gate?.open();
  for (const reply of replies.values()) assert.equal((await reply).status, 200);
});

test('a client ends its own requests by their id, and those of no other', async () => {
  const replies = await runAll();
  const all = await listed('watcher-token');
  const numberOf = (id: string) => all.find(({ request_id }) => request_id === id)?.id ?? '';
  const codeOf = (reply: Reply) => reply.json<{ code: string }>().code;

  // Requests of other owners: by number, by id, without credentials.
  for (const [id, token, code] of [
    [numberOf('ann'), tokenOf('web'), 'FORBIDDEN'],
    [numberOf('ann'), bob, 'FORBIDDEN'],
    [numberOf('none'), tokenOf('web'), 'FORBIDDEN'],
    [numberOf('web'), 'watcher-token', 'FORBIDDEN'],
    ['ann', tokenOf('web'), 'NOT_FOUND'],
    ['ann', bob, 'NOT_FOUND'],
    ['none', null, 'FORBIDDEN'],
    [numberOf('none'), null, 'FORBIDDEN'],
  ] as const) {
    const reply = await end(id, token);
    assert.equal(codeOf(reply), code, `${id} ${reply.text}`);
  }
  assert.equal((await listed('watcher-token')).length, replies.size);

  assert.deepEqual((await end('shared/id', ann)).json(), { id: 'shared/id', killed: true });
  assert.equal((await replies.get('ann shared/id'))?.status, 504);
  assert.equal((await end(numberOf('ann'), ann)).status, 200);
  assert.equal((await replies.get('ann ann'))?.status, 504);
  assert.equal((await end('web', 'web-next')).status, 200);
  await logShows(gateway, /a request was ended by its X-Request-ID.* request=web/);
  await logShows(gateway, /a client ended its own request.* request=ann/);
  assert.equal((await end(numberOf('bob'), 'killer-token')).status, 200);
  await logShows(gateway, /an operator ended a request.* request=bob/);
  const left = await listed('watcher-token');
  assert.deepEqual(idsOf(left), ['none', 'shared/id', 'shared/id', 'shared/id']);
  await gate?.open();
  const ended = new Set(['ann shared/id', 'ann ann', 'web web', 'bob bob']);
  for (const [name, reply] of replies) {
    assert.equal((await reply).status, ended.has(name) ? 504 : 200, name);
  }
});

test('a transaction of a client that is gone accepts nothing more, and its running requests end as they would', async () => {
  const held = await beginHeld(gateway, {}, as(tokenOf('app')));
  const closed = await closeGate(database);
  gate = closed;
  const headers = { ...bearing(tokenOf('app')), 'X-Request-ID': 'remains' };
  const running = gateway.post('/v1/query', { sql: `select ${closed.zero}` }, { headers });
  await eventually('it runs', async () => idsOf(await listed('watcher-token')).includes('remains'));
  const { app: _, ...others } = clients;
  file.write(others);
  process.kill(gateway.pid, 'SIGHUP');
  await eventually('no worker knows the client', async () => {
    const replies = await Promise.all(
      Array.from({ length: 8 }, () => gateway.get('/openapi.json', as(tokenOf('app')))),
    );
    return replies.every(({ status }) => status === 401);
  });
  assert.equal((await held.query('select 1')).status, 401);
  assert.equal((await held.commit()).status, 401);
  await closed.open();
  assert.equal((await running).status, 200);
  file.write(clients);
});

test('a key that SIGHUP has taken away verifies nothing more, tokens that were known included', async () => {
  const fresh = await keys.sign('cat', { role: 'person' });
  assert.equal((await gateway.get('/openapi.json', as(fresh))).status, 200);
  keys.rename('second');
  process.kill(gateway.pid, 'SIGHUP');
  await eventually('the token is rejected by all', async () => {
    const replies = await Promise.all(
      Array.from({ length: 8 }, () => gateway.get('/openapi.json', as(fresh))),
    );
    return replies.every(({ status }) => status === 401);
  });
  const renamed = await keys.sign('cat', { role: 'person' }, 'second');
  assert.equal((await gateway.get('/openapi.json', as(renamed))).status, 200);
});
