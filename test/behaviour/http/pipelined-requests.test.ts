// The promise of pipelining: requests on one connection are run and answered in order, one at a time.
// Must not test single requests.
import assert from 'node:assert/strict';
import test, { after, before } from 'node:test';
import { closeGate, createGate } from '../../support/database/gate.ts';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import {
  type ProxiedDatabase,
  startProxiedDatabase,
} from '../../support/database/proxied-database.ts';
import { eventually } from '../../support/eventually.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { openRaw, type RawReply } from '../../support/http.ts';
import { parseStrictJson } from '../../support/strict-json.ts';

let database: Database;
let proxy: ProxiedDatabase;
let gateway: Gateway;
before(async () => {
  database = await startDatabase();
  await createGate(database);
  await database.query('create table log (id int auto_increment primary key, n int)');
  proxy = await startProxiedDatabase(database);
  gateway = await startGateway({
    database: proxy.target,
    settings: { workers: 1, pool: 5, buffer: '1KiB' },
  });
});
after(async () => {
  await gateway?.stop();
  await proxy?.stop();
  await database?.stop();
});

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

test('runs nothing of what stands behind a request whose reply closes the connection', async (t) => {
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

test('answers what waits on a connection when the gateway is told to stop', async () => {
  const gate = await closeGate(database);
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

test('runs nothing of what waits when its client goes away', async () => {
  const before = proxy.statements.length;
  const client = await openRaw(gateway.port);
  client.send(get("select sleep(5), 'first'") + get("select 'second'"));
  const sent = () => proxy.statements.slice(before).some((sql) => sql.includes('first'));
  while (!sent()) await gateway.db({ SQL: 'select 1' });
  client.reset();
  const kill = () => proxy.statements.slice(before).some((sql) => sql.startsWith('KILL'));
  while (!kill()) await gateway.db({ SQL: 'select 1' });
  assert.ok(proxy.statements.slice(before).every((sql) => !sql.includes('second')));
});
