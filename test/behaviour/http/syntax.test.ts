// The promise of HTTP: DBSlayer's URLs mean what they meant, long ones too, and any way to send a request is fine.
// Must not test refusals, nor who may ask.
import assert from 'node:assert/strict';
import test from 'node:test';
import { exchange, openRaw, type RawReply } from '../../support/http.ts';
import { at, parseStrictJson } from '../../support/strict-json.ts';
import { observeGateway } from './support/observed-gateway.ts';

const { gateway } = observeGateway();
const ask = (bytes: string | Buffer) => exchange(gateway.port, bytes);
const get = (target: string, more = '') =>
  ask(Buffer.from(`GET ${target} HTTP/1.1\r\nHost: localhost\r\n${more}\r\n`, 'latin1'));
const firstCell = (reply: RawReply) => at(parseStrictJson(reply.body), 'RESULT', 'ROWS', 0, 0);

/** What stands behind `/db?`, and the text that the database then sees. */
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
