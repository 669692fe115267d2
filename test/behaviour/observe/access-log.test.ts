// The access log of the real command: a line for every request, none lost in a rotation, no literal in any.
import assert from 'node:assert/strict';
import { readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createAsk } from '../../support/ask.ts';
import { createDaemon } from '../../support/daemon.ts';
import { closeGate, createGate } from '../../support/database/gate.ts';
import { eventually } from '../../support/eventually.ts';
import { exchange, openRaw } from '../../support/http.ts';
import { readMetric } from '../../support/scrape.ts';
import { useGateway } from '../../support/use-gateway.ts';

type Line = Readonly<Record<string, string | number | boolean | null>>;

const { gateway, database } = useGateway(
  { access_log: 'json', workers: 1 },
  { prepare: createGate },
);

const path = () => join(gateway.directory, 'log.access.log');
const linesOf = (file: string) =>
  readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Line);

/** The line of the request that had this id. */
const lineOf = (id: string) =>
  eventually(`the line of ${id}`, () => linesOf(path()).find((line) => line.request_id === id));

test('has for a request what came, what was answered, and how long it waited and ran', async () => {
  const headers = { 'X-Request-ID': 'one', 'User-Agent': 'tester/1', Referer: 'http://a/b?secret' };
  const askedAt = Date.now();
  const reply = await gateway.db({ SQL: "select 'secret' union select 'b'" }, { headers });
  assert.equal(reply.status, 200);
  const { time, duration_ms, queue_ms, db_ms, ...rest } = await lineOf('one');
  assert.ok(Date.parse(String(time)) >= askedAt && Date.parse(String(time)) <= Date.now());
  assert.ok(Number(duration_ms) >= Number(queue_ms) + Number(db_ms) && Number(db_ms) > 0);
  assert.deepEqual(rest, {
    address: '127.0.0.1',
    client: 'default',
    method: 'GET',
    path: '/db',
    protocol: 'HTTP/1.1',
    status: 200,
    code: null,
    bytes: reply.body.length,
    complete: true,
    outcome: 'ok',
    rows: 2,
    request_id: 'one',
    trace_id: null,
    user: null,
    tool: null,
    named: null,
    user_agent: 'tester/1',
    referer: 'http://a/b',
  });
});

test('has refusals, health checks and bytes that are not HTTP, with the bytes of their bodies', async () => {
  const missing = await gateway.get('/no/where?secret', { headers: { 'X-Request-ID': 'two' } });
  const { status, bytes, outcome, path: asked } = await lineOf('two');
  assert.deepEqual([status, bytes, outcome, asked], [404, missing.body.length, null, '/no/where']);
  await gateway.get('/livez', { headers: { 'X-Request-ID': 'three' } });
  assert.equal((await lineOf('three')).status, 200);
  const bad = await exchange(gateway.port, 'NO HTTP\r\n\r\n');
  const line = await lineOf(bad.header('x-request-id') ?? '');
  assert.deepEqual([line.method, line.status, line.bytes], [null, 400, bad.body.length]);
});

for (const [what, more, isLast] of [
  [
    'whose body is not well-formed',
    'Transfer-Encoding: chunked\r\n\r\n2\r\n{"\r\nrubbish\r\n',
    false,
  ],
  [
    'whose trailers are none',
    'Transfer-Encoding: chunked\r\n\r\n2\r\n{"\r\n0\r\n\0: x\r\n\r\n',
    false,
  ],
  ['whose client ends in its midst', 'Content-Length: 100\r\n\r\n{"', true],
] as const) {
  const [status, code] = [400, 'BAD_REQUEST'];
  test(`a request ${what} is one line, one reply and one failure`, async () => {
    const counts = async () => [
      await readMetric(gateway, 'dbhttpd_failures_total', { code }),
      await readMetric(gateway, 'dbhttpd_requests_total', { endpoint: 'db', status: '4xx' }),
      await readMetric(gateway, 'dbhttpd_requests_total', { endpoint: 'other', status: '4xx' }),
    ];
    const [failures = 0, ofDb = 0, others = 0] = await counts();
    const id = `half-${what.replaceAll(' ', '-')}`;
    const linesBefore = linesOf(path()).length;
    const connection = await openRaw(gateway.port);
    const head = 'POST /db HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n';
    connection.send(`${head}X-Request-ID: ${id}\r\n${more}`);
    if (isLast) connection.socket.end();
    const reply = await connection.reply();
    assert.deepEqual([reply.status, reply.header('x-request-id')], [status, id]);
    assert.equal(reply.header('connection'), 'close');
    const line = await lineOf(id);
    // The gateway waits two seconds for a client that does not end.
    if (!isLast) connection.socket.end();
    await connection.ended();
    assert.deepEqual(
      [line.method, line.path, line.status, line.code, line.bytes, line.complete, line.outcome],
      ['POST', '/db', status, code, reply.body.length, true, null],
    );
    // Lines are in the order of their events, so a second one would come before this.
    await gateway.get('/livez', { headers: { 'X-Request-ID': `${id}-after` } });
    await lineOf(`${id}-after`);
    const lines = linesOf(path()).slice(linesBefore);
    assert.equal(lines.filter(({ path: asked }) => asked === '/db' || asked === null).length, 1);
    assert.deepEqual(await counts(), [failures + 1, ofDb + 1, others]);
  });
}

test('has the outcome of a write whose client had gone before its end', async () => {
  await database.query('create table gone (a int)');
  const gate = await closeGate(database);
  const connection = await openRaw(gateway.port);
  const sql = `insert into gone select ${gate.zero}`;
  const target = `/db?${encodeURIComponent(JSON.stringify({ SQL: sql }))}`;
  connection.send(`GET ${target} HTTP/1.1\r\nHost: localhost\r\nX-Request-ID: four\r\n\r\n`);
  await eventually('it runs', async () =>
    (await database.query('show processlist')).some((row) =>
      String(row.Info).includes('gone select'),
    ),
  );
  const clients = () => readMetric(gateway, 'dbhttpd_client_connections');
  const clientsBefore = await clients();
  connection.reset();
  await eventually('it is gone', async () => (await clients()) < clientsBefore);
  await gate.open();
  const { status, complete, outcome } = await lineOf('four');
  assert.deepEqual([status, complete, outcome], [499, false, 'ok']);
});

test('a read that ends because its client has gone is one line and one failure', async () => {
  const failures = () => readMetric(gateway, 'dbhttpd_failures_total', { code: 'CLIENT_GONE' });
  const before = await failures();
  const connection = await openRaw(gateway.port);
  const target = `/db?${encodeURIComponent('{"SQL":"select sleep(30) as departed"}')}`;
  connection.send(`GET ${target} HTTP/1.1\r\nHost: localhost\r\nX-Request-ID: left\r\n\r\n`);
  await eventually('it runs', async () =>
    (await database.query('show processlist')).some((row) => String(row.Info).includes('departed')),
  );
  connection.reset();
  const { status, code, outcome } = await lineOf('left');
  assert.deepEqual([status, code, outcome], [499, 'CLIENT_GONE', 'failed']);
  // Lines are in the order of their events, so a second one would come before this.
  await gateway.get('/livez', { headers: { 'X-Request-ID': 'afterwards' } });
  await lineOf('afterwards');
  assert.equal(linesOf(path()).filter((line) => line.request_id === 'left').length, 1);
  assert.equal(await failures(), before + 1);
});

test('holds no literal and no control character', async () => {
  const connection = await openRaw(gateway.port);
  connection.send(
    'GET /%1b[31m?secret HTTP/1.1\r\nHost: localhost\r\nX-Request-ID: five\r\nUser-Agent: a\x9b\t"b\\\r\n\r\n',
  );
  await connection.reply();
  connection.close();
  await eventually('its line', () => readFileSync(path(), 'utf8').includes('%1b[31m'));
  const text = readFileSync(path(), 'latin1');
  assert.doesNotMatch(text, /secret/);
  assert.doesNotMatch(text, /[^\n -~]/);
});

test('loses no line when it is rotated under load', async () => {
  let asked = 0;
  let rotating = true;
  const client = async () => {
    while (rotating) {
      asked += 1;
      await gateway.get('/livez', { headers: { 'X-Request-ID': `r${asked}` } });
    }
  };
  const clients = [client(), client(), client(), client()];
  const files: string[] = [];
  for (let round = 0; round < 10; round += 1) {
    const askedBefore = asked;
    await eventually('some more requests', () => asked > askedBefore + 20);
    const old = `${path()}.${round}`;
    files.push(old);
    renameSync(path(), old);
    process.kill(gateway.pid, 'SIGHUP');
    await eventually('a new file', () => readFileSync(path()) !== null);
  }
  rotating = false;
  await Promise.all(clients);
  await eventually('every line is there', () => {
    const ids = new Set([...files, path()].flatMap(linesOf).map((line) => line.request_id));
    return Array.from({ length: asked }, (_, index) => `r${index + 1}`).every((id) => ids.has(id));
  });
});

test('speaks Combined by choice; goes to stdout in the foreground, the log to stderr', async () => {
  const daemon = createDaemon({ access_log: 'combined' });
  const child = daemon.spawn(['--foreground']);
  const ended = new Promise((resolve) => child.once('exit', resolve));
  try {
    let out = '';
    let log = '';
    child.stdout?.setEncoding('latin1').on('data', (text: string) => {
      out += text;
    });
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      log += text;
    });
    const address = await eventually('it listens', () => / listening (\S+)$/m.exec(log)?.[1]);
    const headers = { 'User-Agent': 'a "b\\ é', Referer: 'http://a/?secret' };
    const { body } = await createAsk(`http://${address}`).get('/livez?secret', { headers });
    const line = await eventually('a line', () => /.+\n/.exec(out)?.[0]);
    const day = String.raw`\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d \+0000`;
    const asked = String.raw`"GET /livez HTTP/1\.1" 200 ${body.length} `;
    assert.match(line, new RegExp(`^127\\.0\\.0\\.1 - - \\[${day}\\] ${asked}`));
    assert.ok(line.endsWith(' "http://a/" "a \\"b\\\\ \\xe9"\n'), line);
    assert.doesNotMatch(log, /livez/);
  } finally {
    child.kill('SIGTERM');
    await ended;
    await daemon.dispose();
  }
});
