// Fair turns, reserved room and the limits of a client where requests wait. Loud statements stand at a gate that the test opens.
import assert from 'node:assert/strict';
import { after, afterEach, test } from 'node:test';
import type { Ask, Options, Reply } from '../../support/ask.ts';
import { fillPool } from '../../support/busy-pool.ts';
import { bearing, createClientsFile, tokenOf } from '../../support/clients-file.ts';
import { closeGate, createGate, type Gate } from '../../support/database/gate.ts';
import { eventually } from '../../support/eventually.ts';
import { startGateway } from '../../support/gateway.ts';
import { beginHeld } from '../../support/held.ts';
import { readMetric } from '../../support/scrape.ts';
import { useGateway } from '../../support/use-gateway.ts';
import { createJwtKeys, jwtNames } from './support/jwt-keys.ts';

const pool = 8;
/** An eighth of the pool. */
const reserved = 1;
const queue = 10;
const allow = 'sql, transaction';
const clients = createClientsFile({
  loud: { allow },
  quiet: { allow },
  two: { allow, max_in_flight: '2' },
  patient: { allow, max_in_flight: '1', queue: '2' },
  people: { allow, jwt: 'role: person' },
  anonymous: { allow: 'metrics' },
});
const keys = createJwtKeys();
const settings = {
  workers: 1,
  pool,
  queue,
  max_wait: '1m',
  statement_timeout: '5m',
  clients: clients.path,
  jwt_keys: keys.path,
  ...jwtNames,
};
const { gateway, database } = useGateway(settings, {
  prepare: async (own) => {
    await createGate(own);
    await own.query('create table turns (place int primary key auto_increment, name varchar(20))');
  },
  // While connections are being opened, more requests may wait.
  ready: () => fillPool(askingAs('loud'), pool),
});
let gate: Gate | null = null;
afterEach(async () => {
  await gate?.open();
  gate = null;
  await database.query('truncate turns');
});
after(() => {
  clients.remove();
  keys.remove();
});

const as = (name: string) => ({ headers: bearing(tokenOf(name)) });

/** Requests of one client. `/metrics` needs none. */
function askingAs(name: string): Ask {
  return { ...gateway, dbPost: (request) => gateway.dbPost(request, as(name)) };
}

const query = (options: Options, sql: string, at: Ask = gateway): Promise<Reply> =>
  at.post('/v1/query', { sql }, options);

/** A request that stands at the gate. */
function stand(options: Options, closed: Gate, at: Ask = gateway): Promise<Reply> {
  const reply = query(options, `select ${closed.zero}`, at);
  reply.catch(() => undefined);
  return reply;
}

/** A request that writes down its turn. It is never pipelined. */
const takeTurn = (options: Options, name: string, at: Ask = gateway) =>
  query(options, `insert into turns (name) values ('${name}')`, at);

async function turns(): Promise<readonly string[]> {
  const rows = await database.query('select name from turns order by place');
  return rows.map(({ name }) => String(name));
}

const refused = (client: string, code: string) =>
  readMetric(gateway, 'dbhttpd_client_refused_total', { client, code });

/** Resolves when a client has so many requests that run, and so many that wait. */
async function has(client: string, inFlight: number, inQueue: number, at: Ask = gateway) {
  const wanted = `${inFlight} run, ${inQueue} wait`;
  await eventually(`${client}: ${wanted}`, async () => {
    const runs = await readMetric(at, 'dbhttpd_client_requests_in_flight', { client });
    const waits = await readMetric(at, 'dbhttpd_client_requests_waiting', { client });
    return `${runs} run, ${waits} wait` === wanted;
  });
}

/** Closes the gate until the end of the test. */
async function close(): Promise<Gate> {
  gate = await closeGate(database);
  return gate;
}

/** Closes the gate and takes all connections that a loud client can have while there is another one. */
async function beLoud(waits: number) {
  assert.equal((await query(as('quiet'), 'do sleep(0)')).status, 200);
  const closed = await close();
  const replies = Array.from({ length: pool - reserved }, () => stand(as('loud'), closed));
  await has('loud', pool - reserved, 0);
  for (let n = 0; n < waits; n += 1) {
    replies.push(takeTurn(as('loud'), `loud ${n}`));
    await has('loud', pool - reserved, n + 1);
  }
  return { gate: closed, replies };
}

/** Runs a test with a gateway that has one connection, so that turns are taken one after the other. */
async function withOneConnection(
  look: (small: {
    readonly has: (client: string, inFlight: number, inQueue: number) => Promise<void>;
    readonly takeTurn: (options: Options, name: string) => Promise<Reply>;
    readonly stand: (options: Options, closed: Gate) => Promise<Reply>;
    readonly heldBy: (client: string) => Promise<number>;
  }) => Promise<void>,
): Promise<void> {
  const small = await startGateway({ database, settings: { ...settings, pool: 1 } });
  try {
    await look({
      has: (client, inFlight, inQueue) => has(client, inFlight, inQueue, small),
      takeTurn: (options, name) => takeTurn(options, name, small),
      stand: (options, closed) => stand(options, closed, small),
      heldBy: (client) => readMetric(small, 'dbhttpd_client_held_seconds_total', { client }),
    });
  } finally {
    await gate?.open();
    await small.stop();
  }
}

async function allSucceed(replies: readonly Promise<Reply>[]): Promise<void> {
  for (const reply of await Promise.all(replies)) assert.equal(reply.status, 200, reply.text);
}

test('a quiet client gets the reserved connection at once, while requests of the loud one wait', async () => {
  const loud = await beLoud(3);
  for (const name of ['first', 'second']) {
    assert.equal((await takeTurn(as('quiet'), name)).status, 200);
  }
  assert.deepEqual(await turns(), ['first', 'second']);
  await has('loud', pool - reserved, 3);
  await loud.gate.open();
  await allSucceed(loud.replies);
});

test('the next connection belongs to the client that has held one for the least time, and not to the first one', async () => {
  await withOneConnection(async ({ has, takeTurn, stand, heldBy }) => {
    const closed = await close();
    const replies = [stand(as('loud'), closed)];
    await has('loud', 1, 0);
    for (const [at, name] of ['loud 1', 'loud 2', 'loud 3'].entries()) {
      replies.push(takeTurn(as('loud'), name));
      await has('loud', 1, at + 1);
    }
    const from = await heldBy('loud');
    for (const [at, name] of ['quiet 1', 'quiet 2'].entries()) {
      replies.push(takeTurn(as('quiet'), name));
      await has('quiet', 0, at + 1);
    }
    // Far more than the first insert of the quiet client takes.
    await eventually('the loud client has held it', async () => (await heldBy('loud')) > from + 2);
    await closed.open();
    await allSucceed(replies);
    assert.deepEqual(await turns(), ['quiet 1', 'quiet 2', 'loud 1', 'loud 2', 'loud 3']);
  });
});

test('the users of one client take turns', async () => {
  const [ann, bob] = await Promise.all(
    ['ann', 'bob'].map(async (user) => ({
      headers: bearing(await keys.sign(user, { role: 'person' })),
    })),
  );
  assert.ok(ann && bob);
  await withOneConnection(async ({ has, takeTurn, stand }) => {
    const closed = await close();
    const replies = [stand(ann, closed)];
    await has('people', 1, 0);
    for (const [at, [user, name]] of (
      [
        [ann, 'ann 1'],
        [ann, 'ann 2'],
        [ann, 'ann 3'],
        [bob, 'bob 1'],
        [bob, 'bob 2'],
      ] as const
    ).entries()) {
      replies.push(takeTurn(user, name));
      await has('people', 1, at + 1);
    }
    await closed.open();
    await allSucceed(replies);
    assert.deepEqual(
      (await turns())
        .map((name) => name.slice(0, 3))
        .slice(0, 4)
        .toSorted(),
      ['ann', 'ann', 'bob', 'bob'],
    );
    for (const user of ['ann', 'bob']) {
      const own = (await turns()).filter((name) => name.startsWith(user));
      assert.deepEqual(own, own.toSorted(), 'within a user, the first comes first');
    }
  });
});

test('at max_in_flight the requests of a client wait, though connections are free, and others pass them', async () => {
  const closed = await close();
  const replies = Array.from({ length: 5 }, () => stand(as('two'), closed));
  await has('two', 2, 3);
  assert.equal((await takeTurn(as('quiet'), 'passes')).status, 200);
  assert.deepEqual(await turns(), ['passes']);
  await has('two', 2, 3);
  await closed.open();
  await allSucceed(replies);
  await has('two', 0, 0);
});

test('beyond its own queue a client gets 429 with its own Retry-After, nothing is executed, and others are not affected', async () => {
  const closed = await close();
  const replies = Array.from({ length: 3 }, () => stand(as('patient'), closed));
  await has('patient', 1, 2);
  const before = await refused('patient', 'CLIENT_BUSY');
  const busy = [
    await takeTurn(as('patient'), 'of no turn'),
    await gateway.dbPost({ SQL: "insert into turns (name) values ('none')" }, as('patient')),
    await gateway.post('/v1/transaction', {}, as('patient')),
  ];
  for (const reply of busy) {
    assert.equal(reply.status, 429, reply.text);
    assert.match(reply.text, /"CLIENT_BUSY"/);
    assert.match(reply.text, /"(outcome|OUTCOME)":"not_executed"/);
    assert.match(String(reply.headers['retry-after']), /^([1-9]|[12]\d|3[0-8])$/);
  }
  assert.equal(await refused('patient', 'CLIENT_BUSY'), before + 3);
  assert.equal((await takeTurn(as('quiet'), 'passes')).status, 200);
  assert.deepEqual(await turns(), ['passes']);
  await closed.open();
  await allSucceed(replies);
});

test('a full queue rejects the newest request of the client with the longest queue, and not the newcomer', async () => {
  const loud = await beLoud(queue - 1);
  const blocker = stand(as('quiet'), loud.gate);
  await has('quiet', 1, 0);
  const newest = takeTurn(as('loud'), 'the newest');
  await has('loud', pool - reserved, queue);
  const newcomer = takeTurn(as('quiet'), 'the newcomer');
  const rejected = await newest;
  assert.equal(rejected.status, 503);
  assert.match(rejected.text, /"QUEUE_FULL"/);
  await has('loud', pool - reserved, queue - 1);
  await has('quiet', 1, 1);
  // The client whose queue is the longest is rejected itself.
  assert.match((await takeTurn(as('loud'), 'one more')).text, /"QUEUE_FULL"/);
  await loud.gate.open();
  await allSucceed([...loud.replies, blocker, newcomer]);
  const names = await turns();
  assert.ok(names.includes('the newcomer'));
  assert.ok(!names.includes('the newest') && !names.includes('one more'));
});

test('a transaction that a client holds counts among the requests that it may have in flight', async () => {
  const held = [await beginHeld(gateway, {}, as('two')), await beginHeld(gateway, {}, as('two'))];
  await has('two', 2, 0);
  const waits = takeTurn(as('two'), 'waits');
  await has('two', 2, 1);
  // Its own statements go on.
  assert.deepEqual(await held[0]?.rows("select 'x'"), [['x']]);
  assert.deepEqual(await turns(), []);
  await held[0]?.rollback();
  await allSucceed([waits]);
  await held[1]?.rollback();
  await has('two', 0, 0);
});
