// Requests that are passed on to the worker that has their transaction, in every form that HTTP gives them, and while the gateway stops.
import assert from 'node:assert/strict';
import { after, afterEach, beforeEach, test } from 'node:test';
import { createDaemon } from '../../support/daemon.ts';
import { closeGate, createGate, type Gate } from '../../support/database/gate.ts';
import { openProcesslist, type Processlist } from '../../support/database/processlist.ts';
import { startGateway } from '../../support/gateway.ts';
import type { RawReply } from '../../support/http.ts';
import { gone } from '../../support/processes.ts';
import { useGateway } from '../../support/use-gateway.ts';
import {
  beginAt,
  formatRequest,
  openAtEach,
  openBeside,
  type WorkerConnection,
} from '../../support/worker-connections.ts';
import { longInsert, sendBehind } from './support/overtaking.ts';

const maxRequestBytes = 2 * 1024 ** 2;

const { gateway, database } = useGateway(
  { workers: 2, max_request_bytes: maxRequestBytes, transaction_idle_timeout: '1m' },
  {
    prepare: createGate,
    ready: async () => {
      processes = await openProcesslist(database);
    },
  },
);
let processes: Processlist;
/** One at each of two workers, and a transaction that each of them has. */
let connections: readonly [WorkerConnection, WorkerConnection];
let transactions: readonly [string, string];
let gate: Gate | null = null;
after(() => processes?.close());
beforeEach(async () => {
  const [one, two] = await openAtEach(gateway.port, 2);
  assert.ok(one && two);
  connections = [one, two];
  transactions = [await beginAt(one), await beginAt(two)];
});
afterEach(async () => {
  await gate?.open();
  gate = null;
  for (const { socket } of connections) socket.destroy();
  for (const transaction of transactions) {
    await gateway.post('/v1/transaction/rollback', { transaction });
  }
});

const query = (transaction: string, sql: string) =>
  formatRequest('POST', '/v1/query', { sql, transaction });

/** As text, because servers differ in the width of a literal. */
function firstCell({ status, body }: RawReply): string {
  assert.equal(status, 200, body.toString());
  return String(JSON.parse(body.toString()).rows[0][0]);
}

test('requests of two workers, sent at once on one connection, are answered in their order', async () => {
  const [{ send, reply }] = connections;
  const numbers = Array.from({ length: 12 }, (_, n) => n);
  gate = await closeGate(database);
  const asked = numbers.map((n) => {
    const first = n === 0 ? `${gate?.zero} as pipelined` : `${n}`;
    return query(transactions[(n + 1) % 2] ?? '', `select ${first}`);
  });
  send(asked.join(''));
  await processes.started('pipelined');
  await gate.open();
  for (const n of numbers) assert.equal(Number(firstCell(await reply())), n);
});

test('a body in chunks, with trailers, or one that is waited for, comes whole to the other worker', async () => {
  const [{ send, reply }] = connections;
  const body = JSON.stringify({ sql: 'select 7', transaction: transactions[1] });
  const head = 'POST /v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n';
  const half = Math.floor(body.length / 2);
  const chunks = [body.slice(0, half), body.slice(half)].map(
    (part) => `${part.length.toString(16)}\r\n${part}\r\n`,
  );
  send(`${head}Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n${chunks.join('')}0\r\n`);
  send('X-Sum: 7\r\n\r\n');
  assert.equal(firstCell(await reply()), '7');
  send(`${head}Expect: 100-continue\r\nContent-Length: ${body.length}\r\n\r\n`);
  const answered = reply();
  send(body);
  const waited = await answered;
  assert.equal(waited.interim, 1);
  assert.equal(firstCell(waited), '7');
});

test('a short request does not overtake a long one on its way to the other worker', async (t) => {
  const [here, there] = connections;
  const [, transaction] = transactions;
  await database.query(
    'create table notes (id int auto_increment primary key, who int) engine = innodb',
  );
  const more = [
    await openBeside(gateway.port, [there.worker]),
    await openBeside(gateway.port, [there.worker]),
  ];
  t.after(() => {
    for (const { socket } of more) socket.destroy();
  });
  const replies = await sendBehind(
    gateway.port,
    [here, ...more],
    [
      // More than the kernel keeps for a socket between two workers.
      query(transaction, `${longInsert} /* ${'x'.repeat(1_500_000)} */`),
      query(transaction, 'insert into notes (who) values (2)'),
      formatRequest('POST', '/v1/transaction/commit', { transaction }),
    ],
  );
  assert.deepEqual(
    replies.map(({ status, body }) => (status === 200 ? '' : body.toString())),
    ['', '', ''],
  );
  const rows = await database.query('select who from notes order by id');
  assert.deepEqual(
    rows.map(({ who }) => who),
    [1, 2],
  );
});

test('a request of the largest body and headers is passed on, and no larger one', async () => {
  const [{ send, reply }] = connections;
  const shell = query(transactions[1], "select length('')");
  const most = maxRequestBytes - (shell.length - shell.indexOf('\r\n\r\n') - 4);
  send(query(transactions[1], `select length('${'x'.repeat(most)}')`));
  assert.equal(Number(firstCell(await reply())), most);
  const many = Array.from({ length: 90 }, (_, n) => [`x${n}`, 'y'.repeat(174)]);
  const headers = Object.fromEntries(many);
  const asked = { sql: 'select 7', transaction: transactions[1] };
  const full = formatRequest('POST', '/v1/query', asked, headers).replaceAll(': y', ':y');
  assert.ok(full.indexOf('\r\n\r\n') > 16_200, `${full.indexOf('\r\n\r\n')}`);
  send(full);
  assert.equal(firstCell(await reply()), '7');
  send(query(transactions[1], `select length('${'x'.repeat(most + 1)}')`));
  assert.equal((await reply()).status, 413);
});

test('a request that runs in another worker, which has no other client, is answered while the gateway stops', async () => {
  const own = await startGateway({ database, settings: { workers: 2 } });
  try {
    const [owner, other] = await openAtEach(own.port, 2);
    assert.ok(owner && other);
    const transaction = await beginAt(owner);
    owner.close();
    gate = await closeGate(database);
    other.send(query(transaction, `select repeat('x', 1000000), ${gate.zero} as stopping`));
    await processes.started('stopping');
    process.kill(own.pid, 'SIGTERM');
    await gate.open();
    assert.equal(firstCell(await other.reply()).length, 1_000_000);
  } finally {
    await own.stop();
  }
});

test('an instance that drains keeps what runs in its transactions, over a unix socket too, and its successor has none of them', async () => {
  const { name, host, port, user, password } = database;
  const daemon = createDaemon();
  try {
    daemon.configure({
      database: name,
      host,
      port: String(port),
      user,
      password: password || null,
      listen: `${daemon.directory}/http.sock`,
      workers: '2',
    });
    assert.equal((await daemon.start()).status, 0, daemon.readLog());
    const path = { path: daemon.address() };
    const first = daemon.pid();
    const [owner, other] = await openAtEach(path, 2);
    assert.ok(owner && other);
    const transaction = await beginAt(owner);
    other.send(query(transaction, 'select 7'));
    assert.equal(firstCell(await other.reply()), '7');
    gate = await closeGate(database);
    other.send(query(transaction, `select ${gate.zero} as draining`));
    await processes.started('draining');
    process.kill(first, 'SIGTERM');
    assert.equal((await daemon.start()).status, 0, daemon.readLog());
    const [next, beside] = await openAtEach(path, 2);
    assert.ok(next && beside);
    const lived = await beginAt(next);
    for (const { send, reply } of [next, beside]) {
      send(query(lived, 'select 7'));
      assert.equal(firstCell(await reply()), '7');
    }
    await gate.open();
    assert.equal(Number(firstCell(await other.reply())), 0);
    await gone(first);
    for (const { send, reply } of [beside, next]) {
      send(query(transaction, 'select 7'));
      assert.equal((await reply()).status, 409);
      send(query(lived, 'select 7'));
      assert.equal(firstCell(await reply()), '7');
    }
    for (const { socket } of [next, beside, owner, other]) socket.destroy();
  } finally {
    await gate?.open();
    await daemon.dispose();
  }
});
