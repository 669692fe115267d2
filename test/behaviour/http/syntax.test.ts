// The promise of HTTP: DBSlayer's URLs keep their meaning, long ones too, and any way to send a request works. A bad request is answered in
// JSON, no SQL runs, and the worker lives.
import assert from 'node:assert/strict';
import test from 'node:test';
import { exchange, openRaw, type RawReply } from '../../support/http.ts';
import { at, parseStrictJson } from '../../support/strict-json.ts';
import { observeGateway } from './support/observed-gateway.ts';

const { gateway, proxy } = observeGateway();
const ask = (bytes: string | Buffer) => exchange(gateway.port, bytes);
const get = (target: string, more = '') =>
  ask(Buffer.from(`GET ${target} HTTP/1.1\r\nHost: localhost\r\n${more}\r\n`, 'latin1'));
const firstCell = (reply: RawReply) => at(parseStrictJson(reply.body), 'RESULT', 'ROWS', 0, 0);

/** The text after `/db?`, and the text that the database then sees. */
const urls: readonly (readonly [raw: string, seen: string])[] = [
  [`{"SQL":"select+'a+b'"}`, 'a b'],
  [`{"SQL":"select+'a%2Bb'"}`, 'a+b'],
  [`%7B%22SQL%22%3A%22select%20'x'%22%7D`, 'x'],
  [`{"SQL":"select+'a&b=c;d'"}`, 'a&b=c;d'],
  [`{"SQL":"select+'?'"}`, '?'],
  [`{"SQL":"select+'%C3%A9%F0%9F%98%80'"}`, 'é😀'],
  [`{"SQL":"select+'%E9'"}`, 'é'],
  [`{"SQL":"select+'%u8AA0%u00e9'"}`, '誠é'],
  [`{"SQL":"select+'%uD83D%uDE00'"}`, '😀'],
  [`{"SQL":"select+'\\u8aa0\\n'"}`, '誠\n'],
  [`{"SQL":"select+'100%25'"}`, '100%'],
];

test("reads URLs as DBSlayer's clients write them", async (t) => {
  for (const [raw, seen] of urls) {
    await t.test(raw, async () => {
      assert.equal(firstCell(await get(`/db?${raw}`)), seen);
    });
  }
});

test('gives the same answer to GET and POST', async () => {
  for (const SQL of ["select 'é誠😀+%u0041&'", 'select 1; select 2', 'select * from nope']) {
    const [byGet, byPost] = await Promise.all([gateway.db({ SQL }), gateway.dbPost({ SQL })]);
    assert.equal(byGet.text, byPost.text);
    for (const { headers } of [byGet, byPost]) {
      assert.equal(headers['cross-origin-resource-policy'], 'same-origin');
    }
  }
});

test('takes URLs and bodies up to max_request_bytes', async () => {
  const frame = `/db?{"SQL":"select+length('')"}`.length;
  const length = 1024 ** 2 - frame;
  const reply = await get(`/db?{"SQL":"select+length('${'x'.repeat(length)}')"}`);
  assert.equal((firstCell(reply) as { text: string }).text, String(length));
  const long = await get(`/db?{"SQL":"select+length('${'x'.repeat(length + 1)}')"}`);
  assert.equal(long.status, 414);
  const SQL = `select length('${'x'.repeat(1024 ** 2 - `{"SQL":"select length('')"}`.length)}')`;
  assert.equal((await gateway.dbPost({ SQL })).status, 200);
  assert.equal((await gateway.dbPost({ SQL: `${SQL} ` })).status, 413);
});

const json = 'Content-Type: application/json\r\n';
const host = 'Host: localhost\r\n';
const post = (headers: string, body: string) => `POST /db HTTP/1.1\r\n${host}${headers}\r\n${body}`;

test('takes chunked bodies, HEAD and 100-continue', async () => {
  const chunks = '9\r\n{"SQL":"s\r\na;x="y"\r\nelect \'c\'"\r\n1\r\n}\r\n0\r\nTrailer: x\r\n\r\n';
  assert.equal(firstCell(await ask(post(`${json}Transfer-Encoding: chunked\r\n`, chunks))), 'c');
  const head = await exchange(gateway.port, `HEAD /db HTTP/1.1\r\n${host}\r\n`, {
    toHead: true,
  });
  assert.equal(head.status, 405);
  const livez = await exchange(gateway.port, `HEAD /livez HTTP/1.1\r\n${host}\r\n`, {
    toHead: true,
  });
  assert.equal(livez.status, 200);
  const body = '{"SQL":"select \'waited\'"}';
  const client = await openRaw(gateway.port);
  client.send(post(`${json}Expect: 100-continue\r\nContent-Length: ${body.length}\r\n`, ''));
  await client.anything();
  client.send(body);
  assert.equal(firstCell(await client.reply()), 'waited');
  client.close();
});

test('takes a request that comes byte by byte', async () => {
  const client = await openRaw(gateway.port);
  const body = '{"SQL":"select \'slow\'"}';
  for (const byte of Buffer.from(post(`${json}Content-Length: ${body.length}\r\n`, body))) {
    await new Promise<void>((resolve) => client.socket.write(Buffer.from([byte]), () => resolve()));
  }
  assert.equal(firstCell(await client.reply()), 'slow');
  client.close();
});

const sql = '{"SQL":"select /* never */ 1"}';
const neverRun = () =>
  assert.ok(proxy.statements.every((statement) => !statement.includes('never')));

/** Well-formed requests that are refused all the same. messages.test.ts has the others. */
const refused: readonly (readonly [what: string, bytes: string, status: number])[] = [
  ['no path of ours', `GET /nothing HTTP/1.1\r\n${host}\r\n`, 404],
  ['a path that only begins like ours', `GET /dbx?{} HTTP/1.1\r\n${host}\r\n`, 404],
  ['another method', `DELETE /db HTTP/1.1\r\n${host}\r\n`, 405],
  ['OPTIONS', `OPTIONS /db HTTP/1.1\r\n${host}\r\n`, 405],
  ['a body without type', post(`Content-Length: ${sql.length}\r\n`, sql), 415],
  ['a form', post(`Content-Type: text/plain\r\nContent-Length: ${sql.length}\r\n`, sql), 415],
  [
    'a compressed body',
    post(`${json}Content-Encoding: gzip\r\nContent-Length: ${sql.length}\r\n`, sql),
    415,
  ],
  ['no JSON', post(`${json}Content-Length: 3\r\n`, 'sql'), 400],
  ['an empty body', post(`${json}Content-Length: 0\r\n`, ''), 400],
  ['an array', post(`${json}Content-Length: 2\r\n`, '[]'), 400],
  ['no query', `GET /db HTTP/1.1\r\n${host}\r\n`, 400],
  ['an empty query', `GET /db? HTTP/1.1\r\n${host}\r\n`, 400],
  ['another expectation', post(`${json}Expect: coffee\r\nContent-Length: 2\r\n`, '{}'), 417],
];

test('refuses requests without meaning in JSON, and runs nothing', async (t) => {
  for (const [what, bytes, status] of refused) {
    await t.test(`${what}: ${status}`, async () => {
      const reply = await ask(Buffer.from(bytes, 'latin1'));
      const body = parseStrictJson(reply.body);
      assert.equal(reply.status, status, String(reply.body));
      assert.equal(at(body, 'OUTCOME'), 'not_executed');
      assert.equal(typeof at(body, 'ERROR'), 'string');
      assert.match(String(at(body, 'CODE')), /^[A-Z_]+$/);
      assert.equal(reply.header('content-type'), 'application/json; charset=utf-8');
      assert.equal(reply.header('x-content-type-options'), 'nosniff');
      assert.equal(reply.header('cross-origin-resource-policy'), 'same-origin');
      assert.ok(reply.header('x-request-id'));
      if (status === 405) assert.ok(reply.header('allow'));
    });
  }
  neverRun();
});

test('runs nothing of a body that ends early, however it ends', async () => {
  for (const ending of ['close', 'reset'] as const) {
    for (const start of [
      post(`${json}Content-Length: ${sql.length + 1}\r\n`, sql),
      post(`${json}Transfer-Encoding: chunked\r\n`, `${sql.length.toString(16)}\r\n${sql}\r\n`),
    ]) {
      const client = await openRaw(gateway.port);
      client.send(start);
      await new Promise<void>((resolve) => client.socket.write('', () => resolve()));
      client[ending]();
      if (ending === 'close') await client.ended();
    }
  }
  await gateway.db({ SQL: 'select 1' });
  neverRun();
});

test('lets a client that sends too much read why', async () => {
  const body = Buffer.alloc(8 * 1024 ** 2, 'x');
  const starts = [
    post(`${json}Content-Length: ${body.length}\r\n`, ''),
    post(`Content-Type: text/plain\r\nContent-Length: ${body.length}\r\n`, ''),
    post(`${json}Transfer-Encoding: chunked\r\n`, '800000\r\n'),
    `PUT /nothing HTTP/1.1\r\n${host}Content-Length: ${body.length}\r\n\r\n`,
    `GET /db?`,
  ];
  const readWhy = async (start: string) => {
    const reply = await sendAll(start, body);
    assert.ok(
      [413, 414, 415, 404].includes(reply.status),
      `${start.slice(0, 80)}: ${reply.status}`,
    );
    assert.equal(reply.header('connection'), 'close');
  };
  // One after the other: the gateway reads on for two seconds after a refusal.
  for (const start of starts) await readWhy(start);
});

/** Writes everything before it reads, as simple clients do. */
async function sendAll(start: string, body: Buffer): Promise<RawReply> {
  const client = await openRaw(gateway.port);
  client.send(start);
  await new Promise<void>((resolve) => client.socket.write(body, () => resolve()));
  const reply = await client.reply();
  assert.equal(await client.ended(), 'fin');
  client.close();
  return reply;
}
