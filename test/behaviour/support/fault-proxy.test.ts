// The fault proxy between mysql2 and a real server: each fault is what its name says.
// Must not know the gateway.
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import mysql from 'mysql2/promise';
import { eventually } from '../../support/eventually.ts';
import { type FaultProxy, startFaultProxy } from '../../support/fault-proxy.ts';
import { type Database, startDatabase } from '../../support/mariadb.ts';

let database: Database;
let proxy: FaultProxy;

before(async () => {
  database = await startDatabase();
  await database.query('create table t (id int primary key)');
});
after(() => database.stop());
afterEach(() => proxy.stop());

async function connect(): Promise<mysql.Connection> {
  proxy = await startFaultProxy({ host: database.host, port: database.port });
  const { user, password, name } = database;
  const connection = await mysql.createConnection({
    host: proxy.host,
    port: proxy.port,
    user,
    password,
    database: name,
  });
  // A lost connection is told by the query's own promise.
  connection.on('error', () => undefined);
  return connection;
}

async function holds(id: number): Promise<boolean> {
  return (await database.query('select id from t where id = ?', [id])).length === 1;
}

test('passes everything on, and remembers the statements', async () => {
  const connection = await connect();
  const [rows] = await connection.query("select 1 as one, 'é' as e");
  assert.deepEqual(JSON.parse(JSON.stringify(rows)), [{ one: 1, e: 'é' }]);
  assert.deepEqual(proxy.statements, ["select 1 as one, 'é' as e"]);
  assert.deepEqual(proxy.connections(), { total: 1, open: 1 });
  await connection.end();
  await eventually('the connection is gone', () => proxy.connections().open === 0);
});

test('cuts a request before it reaches the server', async () => {
  const connection = await connect();
  const rule = proxy.on(/insert/i, { kind: 'cut-request' });
  await assert.rejects(connection.query('insert into t values (1)'), { code: 'ECONNRESET' });
  assert.equal(rule.hits(), 1);
  assert.equal(await holds(1), false);
});

test('cuts a request in its middle', async () => {
  const connection = await connect();
  proxy.on(/insert/i, { kind: 'cut-request', afterBytes: 12, how: 'fin' });
  await assert.rejects(connection.query('insert into t values (2)'));
  assert.equal(await holds(2), false);
});

test('cuts after the request, and the server still runs it', async () => {
  const connection = await connect();
  proxy.on(/insert/i, { kind: 'cut-after-request' });
  await assert.rejects(connection.query('insert into t values (3)'), { code: 'ECONNRESET' });
  await eventually('the row is there', () => holds(3));
});

test('resets in place of a reply, after any number of its bytes', async () => {
  for (const afterBytes of [0, 1, 5]) {
    const connection = await connect();
    proxy.on(/insert/i, { kind: 'cut-reply', afterBytes }, { times: 1 });
    const id = 10 + afterBytes;
    await assert.rejects(connection.query(`insert into t values (${id})`));
    assert.equal(await holds(id), true);
    await proxy.stop();
  }
});

test('holds a reply back until it is released', async () => {
  const connection = await connect();
  proxy.on((statement) => statement === 'select 5', { kind: 'stall' });
  let answered = false;
  const answer = connection.query('select 5').then(() => {
    answered = true;
  });
  await eventually('the statement has been seen', () => proxy.statements.includes('select 5'));
  assert.equal(answered, false);
  proxy.release();
  await answer;
  await connection.query('select 6');
  await connection.end();
});

test('holds a statement back until it is released, and loses none behind it', async () => {
  const connection = await connect();
  const rule = proxy.on(/insert/i, { kind: 'hold' }, { times: 1 });
  const all = [4, 5].map((id) => connection.query('insert into t values (?)', [id]));
  await eventually('the statement has been seen', () => rule.hits() === 1);
  assert.equal(await holds(4), false);
  proxy.release();
  await Promise.all(all);
  assert.deepEqual([await holds(4), await holds(5)], [true, true]);
  await connection.end();
});

test('delays a statement, and loses none behind it', async () => {
  const connection = await connect();
  proxy.on(/select 7/, { kind: 'delay', ms: 150 }, { times: 1 });
  const started = performance.now();
  await connection.query('select 7');
  assert.ok(performance.now() - started >= 149);
  await connection.query('select 7');
  await connection.end();
});

test('partitions and heals', async () => {
  const connection = await connect();
  proxy.partition();
  let answered = false;
  const answer = connection.query('select 8').then(() => {
    answered = true;
  });
  await database.query('select 1');
  assert.equal(answered, false);
  assert.deepEqual(proxy.statements, []);
  proxy.heal();
  await answer;
  proxy.refuse(true);
  await assert.rejects(mysql.createConnection({ host: proxy.host, port: proxy.port }));
  await connection.end();
});
