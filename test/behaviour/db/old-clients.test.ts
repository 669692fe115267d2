// The promise of `compat = dbslayer`: clients written before HTTP/1.1 was usual are served as DBSlayer served them. Each
// test speaks, byte for byte, as the client it names.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import {
  type ProxiedDatabase,
  startProxiedDatabase,
} from '../../support/database/proxied-database.ts';
import { eventually } from '../../support/eventually.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { exchange, openRaw, type RawReply } from '../../support/http.ts';
import type { HttpReplyError } from '../../support/http-error.ts';
import { at, type JsonValue, parseStrictJson } from '../../support/strict-json.ts';

let database: Database;
let proxy: ProxiedDatabase;
let old: Gateway;
let strict: Gateway;

before(async () => {
  database = await startDatabase();
  proxy = await startProxiedDatabase(database);
  old = await startGateway({
    database: proxy.target,
    settings: { compat: 'dbslayer', workers: 1, pool: 2, keepalive_timeout: '60s' },
  });
  strict = await startGateway({ database, settings: { workers: 1, pool: 2 } });
});
after(async () => {
  await old?.stop();
  await strict?.stop();
  await proxy?.stop();
  await database?.stop();
});

const encoded = (request: object) => encodeURIComponent(JSON.stringify(request));
const here = encoded({ SQL: "select 'here'" });
/** Rows in number, of a size: longer together than what is held back for Content-Length. */
const rowsOf = (size: number) =>
  `with recursive c (n) as (select 1 union all select n + 1 from c where n < 900)
   select repeat('x', ${size}) from c`;
const long = encoded({ SQL: rowsOf(100) });

/** Node 0.1 and 0.2: `connection.request('/db?…')`, without further headers. */
const node02 = (target: string) => `GET ${target} HTTP/1.1\r\nConnection: close\r\n\r\n`;
/** Yajl::HttpStream of yajl-ruby, whose header section ends twice. It reads JSON from the socket, to its end. */
const yajl = (target: string) =>
  `GET ${target} HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: Yajl::HttpStream 0.6.1\r\n` +
  'Accept: */*\r\nAccept-Charset: utf-8\r\n\r\n\r\n';
/** Ruby 1.8's Net::HTTP, as open-uri, dm-dbslayer and the ActiveRecord adapter use it. */
const netHttp = (target: string) =>
  `GET ${target} HTTP/1.1\r\nAccept: */*\r\nHost: 127.0.0.1:9090\r\n\r\n`;
/** PHP 5's fopen of an http URL. */
const fopen = (target: string) => `GET ${target} HTTP/1.0\r\nHost: 127.0.0.1:9090\r\n\r\n`;
/** A socket and nothing else. */
const bare = (target: string) => `GET ${target} HTTP/1.0\r\n\r\n`;

/** The document that a client finds if it drops the header section and reads everything else up to the end. */
async function readToEnd(gateway: Gateway, bytes: string): Promise<JsonValue> {
  const client = await openRaw(gateway.port, { timeoutMs: 10_000 });
  try {
    client.send(bytes);
    assert.equal(await client.ended(), 'fin');
    return parseStrictJson(client.received().split('\r\n\r\n')[1] ?? '');
  } finally {
    client.close();
  }
}

const cell = (reply: RawReply) => at(parseStrictJson(reply.body), 'RESULT', 'ROWS', 0, 0);
const ask = (bytes: string, gateway = old) => exchange(gateway.port, bytes, { timeoutMs: 10_000 });

for (const [name, request] of Object.entries({ node02, yajl, netHttp, fopen, bare })) {
  test(`${name} reads short and long replies to the end of the connection`, async () => {
    assert.equal(at(await readToEnd(old, request(`/db?${here}`)), 'RESULT', 'ROWS', 0, 0), 'here');
    const rows = at(await readToEnd(old, request(`/db?${long}`)), 'RESULT', 'ROWS');
    assert.ok(Array.isArray(rows));
    assert.equal(rows.length, 900);
  });
}

test('closes after every kind of reply of /db, and announces it', async () => {
  for (const target of [
    `/db?${here}`,
    `/db/?${here}`,
    `/db?${long}`,
    `/db?${encoded({ SQL: 'select * from nowhere' })}`,
    `/db?${encoded({ SERVER_NAME: true })}`,
    '/db?nonsense',
    '/db',
  ]) {
    const client = await openRaw(old.port, { timeoutMs: 10_000 });
    client.send(netHttp(target));
    const reply = await client.reply();
    assert.equal(reply.header('connection'), 'close', target);
    assert.equal(reply.framing, target.includes(long) ? 'close' : 'length', target);
    assert.equal(await client.ended(), 'fin', target);
    client.close();
  }
});

test('keeps the connection of a client that requests it by name, except after replies without length', async () => {
  for (const version of ['1.0', '1.1']) {
    const client = await openRaw(old.port, { timeoutMs: 10_000 });
    const get = (target: string) =>
      `GET ${target} HTTP/${version}\r\nHost: localhost\r\nConnection: Keep-Alive\r\n\r\n`;
    for (let n = 0; n < 3; n += 1) {
      client.send(get(`/db?${here}`));
      const reply = await client.reply();
      assert.equal(cell(reply), 'here');
      assert.equal(reply.header('connection'), 'keep-alive');
    }
    client.send(get(`/db?${long}`));
    const last = await client.reply();
    assert.equal(last.framing, 'close');
    assert.equal(last.header('connection'), 'close');
    assert.equal(await client.ended(), 'fin');
    client.close();
  }
});

test('resets a long reply that fails, so that its end never looks complete', async () => {
  const cut = rowsOf(1000);
  const rule = proxy.on(
    (statement) => statement.includes('1000'),
    { kind: 'cut-reply', afterBytes: 300_000, how: 'fin' },
    { times: 2 },
  );
  await assert.rejects(ask(netHttp(`/db?${encoded({ SQL: cut })}`)), (error: HttpReplyError) => {
    assert.equal(error.fault, 'reset');
    return error.received.length > 0;
  });
  rule.remove();
  assert.equal(cell(await ask(netHttp(`/db?${here}`))), 'here');
});

test('takes a request without Host, for any path, though only some hosts are allowed', async () => {
  assert.equal(cell(await ask(`GET /db?${here} HTTP/1.1\r\n\r\n`)), 'here');
  assert.equal((await ask('GET /livez HTTP/1.1\r\n\r\n')).status, 200);
  assert.equal((await ask(`GET /db?${here} HTTP/1.1\r\nHost: evil.example\r\n\r\n`)).status, 421);
  const twice = `GET /db?${here} HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n`;
  assert.equal((await ask(twice)).status, 400);
});

/** Requests that DBSlayer's parser took, and HTTP/1.1 does not. */
const loose: readonly (readonly [what: string, bytes: string])[] = [
  ['line feeds alone', `GET /db?${here} HTTP/1.0\nHost: localhost\nAccept: */*\n\n`],
  ['line feeds of both kinds', `GET /db?${here} HTTP/1.1\r\nHost: localhost\nA: b\r\n\n`],
  ['an empty line before it', `\nGET /db?${here} HTTP/1.1\nHost: localhost\n\n`],
  ['several spaces', `GET   /db?${here}  HTTP/1.1\r\nHost: localhost\r\n\r\n`],
  ['several spaces and line feeds', `GET  /db?${here}  HTTP/1.0\n\n`],
  ['an empty Host', `GET /db?${here} HTTP/1.1\r\nHost:\r\n\r\n`],
  ['an empty Host of HTTP/1.0', `GET /db?${here} HTTP/1.0\r\nHost: \r\n\r\n`],
  [
    'a body',
    `POST /db HTTP/1.1\nHost: localhost\nContent-Type: application/json\nContent-Length: 23\n\n{"SQL":"select 'here'"}`,
  ],
];

/** Sends the bytes in pieces, and reads one reply. */
async function askInPieces(bytes: string, pieceBytes: number, gateway = old): Promise<RawReply> {
  const client = await openRaw(gateway.port, { timeoutMs: 10_000 });
  try {
    for (let from = 0; from < bytes.length; from += pieceBytes) {
      const piece = bytes.slice(from, from + pieceBytes);
      await new Promise<void>((resolve) => client.socket.write(piece, () => resolve()));
    }
    return await client.reply();
  } finally {
    client.socket.destroy();
  }
}

test('takes line feeds alone, several spaces and an empty Host, in any segments', async (t) => {
  for (const [what, bytes] of loose) {
    await t.test(what, async () => {
      for (const pieceBytes of [bytes.length, 7, 1]) {
        const reply = await askInPieces(bytes, pieceBytes);
        assert.equal(reply.status, 200, String(reply.body));
        assert.equal(cell(reply), 'here');
      }
    });
  }
});

test('reads requests of both forms behind each other, and bodies to their end', async () => {
  const body = '{"SQL":"select \'\\n\\n\'"}';
  const first = `POST /db HTTP/1.1\nHost: localhost\nConnection: keep-alive\nContent-Type: application/json\nContent-Length: ${body.length}\n\n`;
  const second = `GET  /db?${here} HTTP/1.1\r\nHost:\r\nConnection: keep-alive\r\n\r\n`;
  const client = await openRaw(old.port, { timeoutMs: 10_000 });
  client.send(first + body + second + first);
  client.send(body);
  assert.deepEqual(
    [cell(await client.reply()), cell(await client.reply()), cell(await client.reply())],
    ['\n\n', 'here', '\n\n'],
  );
  client.close();
});

test('refuses what the parser of DBSlayer refused too, and limits what it reads', async () => {
  const head = `GET /db?${here} HTTP/1.0`;
  for (const [bytes, status] of [
    [` ${head}\n\n`, 400],
    [`${head} \n\n`, 400],
    [`GET\t/db?${here} HTTP/1.0\n\n`, 400],
    [`GET  /db?${here} x  HTTP/1.0\n\n`, 400],
    [`${head}\r\r\n\n`, 400],
    [`${head}\nHost: localhost\nHost:\n\n`, 400],
    [`${head}\n${`X: ${'y'.repeat(1000)}\n`.repeat(17)}\n`, 431],
    [`${head}\nX: ${'y'.repeat(16_400)}`, 431],
    [`GET /${' '.repeat(1024 ** 2 + 20)}`, 414],
    [
      `POST /db HTTP/1.1\nHost: localhost\nContent-Type: application/json\nTransfer-Encoding: chunked\n\n1\n{\n`,
      400,
    ],
  ] as const) {
    for (const pieceBytes of [bytes.length, 999]) {
      const reply = await askInPieces(bytes, pieceBytes);
      assert.equal(reply.status, status, `${bytes.slice(0, 99)}: ${reply.body}`);
    }
  }
});

test('a page of another site is refused without Host too', async () => {
  const page = `GET /db?${here} HTTP/1.1\r\nOrigin: https://evil.example\r\n\r\n`;
  assert.equal((await ask(page)).status, 403);
  const image = `GET /db?${here} HTTP/1.1\r\nSec-Fetch-Site: cross-site\r\n\r\n`;
  assert.equal((await ask(image)).status, 403);
});

test('takes flags as 1, "true" and null', async () => {
  for (const yes of [true, 1, 'true']) {
    const reply = await old.db({ SERVER_NAME: yes, CLIENT_INFO: null, SQL: null });
    assert.deepEqual(reply.json(), { SERVER_NAME: 'world' });
    const refused = await old.db({ SQL: 'do 1', READ_ONLY: yes });
    assert.equal(refused.status, 403, refused.text);
  }
  for (const no of [false, 0, 'false', null]) {
    const reply = await old.db({ SQL: "select 'here'", STAT: no, READ_ONLY: no });
    assert.deepEqual(Object.keys(reply.json<object>()), ['RESULT', 'SERVER']);
  }
  assert.match((await old.db({ STAT: 1 })).json<{ STAT: string }>().STAT, /Uptime/);
  assert.equal((await old.db({ STAT: 'yes' })).status, 400);
  assert.equal((await old.db({ READ_ONLY: 2, SQL: 'do 1' })).status, 400);
});

test('takes SERVER: null as absent, and still no other section', async () => {
  assert.equal((await old.db({ SQL: 'do 1', SERVER: null })).status, 200);
  assert.equal((await old.db({ SQL: 'do 1', SERVER: 'other' })).status, 400);
});

test('takes tabs and line ends inside the strings of a URL', async () => {
  const raw = '{"SQL":\n\t"select\t?,\r\n\'a\\"\\n\'", "PARAMS":["b\t\nc"]}';
  const reply = await ask(netHttp(`/db?${encodeURIComponent(raw)}`));
  const row = at(parseStrictJson(reply.body), 'RESULT', 'ROWS', 0);
  assert.deepEqual(row, ['b\t\nc', 'a"\n']);
  for (const unsound of ['{"SQL":"do 1\\\n"}', '{"SQL":"do 1"\u0001}']) {
    const refused = await ask(netHttp(`/db?${encodeURIComponent(unsound)}`));
    assert.equal(refused.status, 400);
  }
});

test('takes a POST whose URL holds the object, whatever its body contains', async () => {
  for (const [headers, body] of [
    ['', ''],
    ['Content-Length: 0\r\n', ''],
    ['Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 3\r\n', 'a=b'],
    ['Content-Type: application/json\r\nContent-Length: 16\r\n', '{"SQL":"do 1/0"}'],
    ['Transfer-Encoding: chunked\r\n', '3\r\na=b\r\n0\r\n\r\n'],
  ]) {
    const post = `POST /db?${here} HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n${body}`;
    assert.equal(cell(await ask(post)), 'here', headers);
  }
  const json = '{"SQL":"select \'body\'"}';
  const type = `Content-Type: application/json\r\nContent-Length: ${json.length}`;
  for (const target of ['/db', '/db?']) {
    const post = `POST ${target} HTTP/1.1\r\nHost: localhost\r\n${type}\r\n\r\n${json}`;
    assert.equal(cell(await ask(post)), 'body');
  }
});

test('runs nothing of a POST before its body has come to its end', async () => {
  const mark = 'never run';
  const client = await openRaw(old.port, { timeoutMs: 10_000 });
  const target = `/db?${encoded({ SQL: `select '${mark}'` })}`;
  client.send(
    `POST ${target} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n`,
  );
  assert.equal((await client.reply()).status, 400);
  client.close();
  assert.ok(!proxy.statements.some((statement) => statement.includes(mark)));
});

test('/health is readiness, without a token', async (t) => {
  const locked = await startGateway({
    database: proxy.target,
    settings: { compat: 'dbslayer', workers: 1, pool: 1, token: 'sesame' },
  });
  try {
    assert.equal((await ask(netHttp(`/db?${here}`), locked)).status, 401);
    const well = await ask('GET /health HTTP/1.1\r\n\r\n', locked);
    assert.equal(well.status, 200);
    assert.equal(well.body.toString(), '{"status":"ok"}');
    assert.match(well.header('content-type') ?? '', /^application\/json/);
    proxy.refuse(true);
    proxy.cutAll();
    t.after(() => proxy.refuse(false));
    const ill = await eventually('not ready', async () => {
      const reply = await locked.get('/health');
      return reply.status === 200 ? null : reply;
    });
    assert.equal(ill.status, 503);
    assert.deepEqual(ill.json(), { status: 'unavailable' });
  } finally {
    proxy.refuse(false);
    await locked.stop();
  }
});

describe('without compat', () => {
  test('all of this is as strict as ever', async () => {
    const post = `POST /db?${here} HTTP/1.1\r\nHost: localhost\r\n\r\n`;
    for (const [bytes, status] of [
      [node02(`/db?${here}`), 400],
      [post, 415],
      [netHttp('/db?{"SQL":"select%091"}'), 400],
      [netHttp(`/db?${encoded({ STAT: 1 })}`), 400],
      [netHttp(`/db?${encoded({ STAT: 'true' })}`), 400],
      [netHttp(`/db?${encoded({ SQL: 'do 1', STAT: null })}`), 400],
      [netHttp(`/db?${encoded({ SQL: 'do 1', SERVER: null })}`), 400],
      [netHttp('/health'), 404],
      ...loose.map(([, bytes]) => [bytes, 400] as const),
    ] as const) {
      assert.equal((await ask(bytes, strict)).status, status, bytes);
    }
    const client = await openRaw(strict.port);
    for (const [target, framing] of [
      [`/db?${here}`, 'length'],
      [`/db?${long}`, 'chunked'],
    ] as const) {
      client.send(netHttp(target));
      const reply = await client.reply();
      assert.equal(reply.framing, framing);
      assert.equal(reply.header('connection'), 'keep-alive');
    }
    client.close();
  });
});

test('FORMAT other than json is refused, with compat or without; DBSlayer wrote XML too', async () => {
  for (const gateway of [old, strict]) {
    for (const FORMAT of ['json', 'JSON']) {
      assert.equal((await gateway.db({ SQL: 'do 1', FORMAT })).status, 200);
    }
    for (const FORMAT of ['xml', '', 1, true]) {
      const reply = await gateway.db({ SQL: 'do 1', FORMAT });
      assert.equal(reply.status, 400);
      assert.match(reply.json<{ ERROR: string }>().ERROR, /FORMAT must be "json"/);
    }
  }
});
