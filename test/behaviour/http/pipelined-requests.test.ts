// The promise of pipelining: requests on one connection are run and answered in order, one at a time.
import assert from 'node:assert/strict';
import test from 'node:test';
import { closeGate, createGate } from '../../support/database/gate.ts';
import { openProcesslist } from '../../support/database/processlist.ts';
import { eventually } from '../../support/eventually.ts';
import { startGateway } from '../../support/gateway.ts';
import { openRaw, type RawReply } from '../../support/http.ts';
import { serverSockets } from '../../support/kernel-sockets.ts';
import { freeze, signal } from '../../support/processes.ts';
import { parseStrictJson } from '../../support/strict-json.ts';
import { useProxiedGateway } from '../../support/use-gateway.ts';

const { database, proxy, gateway } = useProxiedGateway(
  { workers: 1, pool: 5, buffer: '1KiB' },
  {
    prepare: async (own) => {
      await createGate(own);
      await own.query('create table log (id int auto_increment primary key, n int)');
    },
  },
);

const get = (sql: string) =>
  `GET /db?${encodeURIComponent(JSON.stringify({ SQL: sql }))} HTTP/1.1\r\nHost: localhost\r\n\r\n`;

function post(sql: string): string {
  const body = JSON.stringify({ SQL: sql });
  return `POST /db HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}

const number = (reply: RawReply) => {
  parseStrictJson(reply.body);
  return Number(/"ROWS":\[\[(\d+)/.exec(String(reply.body))?.[1]);
};

test('answers 100 requests in the order in which they were sent', async () => {
  const client = await openRaw(gateway.port);
  const requests = Array.from({ length: 100 }, (_, n) => {
    // The first take longer than those behind them; some replies stream.
    const sql = `select ${n}, sleep(${n % 10 === 0 ? 0.02 : 0}), repeat('x', ${(n % 4) * 700})`;
    return n % 3 === 0 ? post(sql) : get(sql);
  });
  client.send(requests.join(''));
  for (let n = 0; n < 100; n += 1) assert.equal(number(await client.reply()), n);
  assert.equal(client.unread(), 0);
  client.close();
});

test('runs a write before the read behind it', async () => {
  const client = await openRaw(gateway.port);
  const count = 40;
  for (let n = 0; n < count; n += 1) {
    client.send(post(`insert into log (n) values (${n})`) + get('select max(n) from log'));
  }
  for (let n = 0; n < count; n += 1) {
    assert.match(String((await client.reply()).body), /"AFFECTED_ROWS":1/);
    assert.equal(number(await client.reply()), n);
  }
  client.close();
});

test('answers a good request before the rubbish behind it, and runs it once', async () => {
  const before = proxy.statements.length;
  const client = await openRaw(gateway.port);
  client.send(`${get("select 5, 'good'")}RUBBISH\r\n\r\n`);
  assert.equal(number(await client.reply()), 5);
  const refused = await client.reply();
  assert.equal(refused.status, 400);
  parseStrictJson(refused.body);
  assert.equal(await client.ended(), 'fin');
  assert.equal(proxy.statements.slice(before).filter((sql) => sql.includes('good')).length, 1);
  client.close();
});

const closing: Readonly<Record<string, string>> = {
  'refused for its syntax': 'GET /db HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n',
  'with Connection: close': get('select 1').replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'),
  'of HTTP/1.0': get('select 1').replace('HTTP/1.1', 'HTTP/1.0'),
  'of HTTP/1.0, kept alive, whose reply streams': get("select repeat('x', 9000)").replace(
    'HTTP/1.1\r\n',
    'HTTP/1.0\r\nConnection: keep-alive\r\n',
  ),
};

test('runs no request after one whose reply closes the connection', async (t) => {
  for (const [what, first] of Object.entries(closing)) {
    await t.test(what, async () => {
      const before = proxy.statements.length;
      const client = await openRaw(gateway.port);
      client.send(first + get("select 'behind'"));
      await client.reply();
      assert.equal(await client.ended(), 'fin');
      client.close();
      await gateway.db({ SQL: 'select 1' });
      assert.ok(proxy.statements.slice(before).every((sql) => !sql.includes('behind')));
    });
  }
});

test('answers the requests that wait on a connection when the gateway gets a signal to stop', async (t) => {
  const gate = await closeGate(database);
  t.after(gate.open);
  const other = await startGateway({ database, settings: { workers: 1 } });
  const client = await openRaw(other.port);
  client.send(
    get(`select ${gate.zero} + 1`) + post('insert into log (n) values (77)') + get('select 3'),
  );
  await eventually('it runs', async () => {
    const running = await database.query('select info from information_schema.processlist');
    return running.some(({ info }) => String(info).includes(gate.zero));
  });
  const stopped = other.stop();
  await eventually('it drains', () => other.log().includes('drain'));
  await gate.open();
  assert.equal(number(await client.reply()), 1);
  assert.match(String((await client.reply()).body), /"AFFECTED_ROWS":1/);
  const last = await client.reply();
  assert.equal(number(last), 3);
  assert.equal(last.header('connection'), 'close');
  assert.equal(await client.ended(), 'fin');
  client.close();
  await stopped;
});

test('goes on after refusals that leave no doubt where the next request begins', async () => {
  const client = await openRaw(gateway.port);
  const nothing = 'GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n';
  client.send(
    nothing + get('select 1') + post('') + get('select 2') + get('selec') + get('select 3'),
  );
  const statuses: number[] = [];
  for (let n = 0; n < 6; n += 1) statuses.push((await client.reply()).status);
  assert.deepEqual(statuses, [404, 200, 400, 200, 200, 200]);
  client.close();
});

test('runs no waiting request of a client that goes away', async (t) => {
  const before = proxy.statements.length;
  const gate = await closeGate(database);
  t.after(gate.open);
  const processlist = await openProcesslist(database);
  t.after(processlist.close);
  const client = await openRaw(gateway.port);
  client.send(get(`select ${gate.zero}, 'first'`) + get("select 'second'"));
  await processlist.started("'first'");
  client.reset();
  await processlist.ended("'first'");
  await gateway.db({ SQL: 'select 1' });
  const since = proxy.statements.slice(before);
  assert.ok(since.some((sql) => sql.startsWith('KILL')));
  assert.ok(since.every((sql) => !sql.includes('second')));
});

test('answers others between the refusals of 2,000 pipelined requests', async (t) => {
  const [worker = 0] = gateway.workers();
  const ask = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`;
  const many = await openRaw(gateway.port);
  const others = await Promise.all(Array.from({ length: 20 }, () => openRaw(gateway.port)));
  t.after(() => [many, ...others].forEach(({ socket }) => void socket.destroy()));
  freeze(worker);
  try {
    many.send(ask('/nothing').repeat(2_000));
    for (const other of others) other.send(ask('/livez'));
    // The worker finds all of them, and as much of the many as the kernel takes.
    await eventually('they have arrived', () => {
      const unread = serverSockets(gateway.port).map(({ unreadBytes }) => unreadBytes);
      const arrived = unread.filter((bytes) => bytes === ask('/livez').length);
      return arrived.length === others.length && Math.max(...unread) > 10_000;
    });
  } finally {
    signal(worker, 'SIGCONT');
  }
  // Requests are numbered in the order in which they are begun.
  const numberOf = (reply: RawReply) => {
    const [, count = ''] = (reply.header('x-request-id') ?? '').split('-');
    return Number.parseInt(count, 36);
  };
  const refusals: number[] = [];
  while (refusals.length < 2_000) refusals.push(numberOf(await many.reply()));
  const answers = await Promise.all(others.map(async (other) => numberOf(await other.reply())));
  assert.ok(Math.max(...answers) < (refusals[1_000] ?? 0), `${answers} beside ${refusals[0]}…`);
});
