// The promise about what is no good request: answered in JSON, no SQL run, the worker alive afterwards.
// Must not test who may ask.
import assert from 'node:assert/strict';
import test from 'node:test';
import { exchange, openRaw, type RawReply } from '../../support/http.ts';
import { at, parseStrictJson } from '../../support/strict-json.ts';
import { observeGateway } from './support/observed-gateway.ts';

const { gateway, proxy } = observeGateway();
const ask = (bytes: string | Buffer) => exchange(gateway.port, bytes);

const json = 'Content-Type: application/json\r\n';
const sql = '{"SQL":"select /* never */ 1"}';
const host = 'Host: localhost\r\n';
const post = (headers: string, body: string) => `POST /db HTTP/1.1\r\n${host}${headers}\r\n${body}`;

const refused: readonly (readonly [what: string, bytes: string, status: number])[] = [
  ['no path of ours', `GET /nothing HTTP/1.1\r\n${host}\r\n`, 404],
  ['a path that only begins like ours', `GET /dbx?{} HTTP/1.1\r\n${host}\r\n`, 404],
  ['another method', `DELETE /db HTTP/1.1\r\n${host}\r\n`, 405],
  ['OPTIONS', `OPTIONS /db HTTP/1.1\r\n${host}\r\n`, 405],
  ['OPTIONS *', `OPTIONS * HTTP/1.1\r\n${host}\r\n`, 400],
  ['CONNECT', 'CONNECT localhost:1 HTTP/1.1\r\nHost: localhost:1\r\n\r\n', 405],
  ['an unknown method', `BREW /db HTTP/1.1\r\n${host}\r\n`, 400],
  ['a body without type', post(`Content-Length: ${sql.length}\r\n`, sql), 415],
  ['a form', post(`Content-Type: text/plain\r\nContent-Length: ${sql.length}\r\n`, sql), 415],
  ['no JSON', post(`${json}Content-Length: 3\r\n`, 'sql'), 400],
  ['an empty body', post(`${json}Content-Length: 0\r\n`, ''), 400],
  ['an array', post(`${json}Content-Length: 2\r\n`, '[]'), 400],
  ['an announced body too long', post(`${json}Content-Length: 9999999\r\n`, '{'), 413],
  ['no query', `GET /db HTTP/1.1\r\n${host}\r\n`, 400],
  ['an empty query', `GET /db? HTTP/1.1\r\n${host}\r\n`, 400],
  ['two hosts', `GET /db?{} HTTP/1.1\r\n${host}${host}\r\n`, 400],
  ['no host', 'GET /livez HTTP/1.1\r\n\r\n', 400],
  ['HTTP/2.0', `GET /livez HTTP/2.0\r\n${host}\r\n`, 400],
  ['HTTP/0.9', 'GET /livez\r\n\r\n', 400],
  ['HTTP/3.7', `GET /livez HTTP/3.7\r\n${host}\r\n`, 400],
  ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400],
  ['no HTTP', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n', 400],
  ['a header without colon', `GET /livez HTTP/1.1\r\n${host}nonsense\r\n\r\n`, 400],
  ['a folded header', `GET /livez HTTP/1.1\r\n${host}A: b\r\n c\r\n\r\n`, 400],
  ['a space before the colon', `GET /livez HTTP/1.1\r\nHost : localhost\r\n\r\n`, 400],
  ['a GET with a body', `GET /db?{} HTTP/1.1\r\n${host}Content-Length: 2\r\n\r\n{}`, 400],
  ['two lengths', post(`${json}Content-Length: 2\r\nContent-Length: 3\r\n`, '{}'), 400],
  ['a negative length', post(`${json}Content-Length: -1\r\n`, '{}'), 400],
  [
    'length and chunks',
    post(`${json}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n`, '0\r\n\r\n'),
    400,
  ],
  ['another coding', post(`${json}Transfer-Encoding: gzip\r\n`, sql), 400],
  [
    'another coding inside of chunks',
    post(
      `${json}Transfer-Encoding: gzip, chunked\r\n`,
      `${sql.length.toString(16)}\r\n${sql}\r\n0\r\n\r\n`,
    ),
    400,
  ],
  ['a broken chunk', post(`${json}Transfer-Encoding: chunked\r\n`, `5\r\n{"SQL\r\nzz\r\n`), 400],
  [
    'a chunk longer than said',
    post(`${json}Transfer-Encoding: chunked\r\n`, `2\r\n${sql}\r\n0\r\n\r\n`),
    400,
  ],
  [
    'headers too long',
    `GET /livez HTTP/1.1\r\n${host}${`A: ${'x'.repeat(990)}\r\n`.repeat(1200)}\r\n`,
    431,
  ],
  ['another expectation', post(`${json}Expect: coffee\r\nContent-Length: 2\r\n`, '{}'), 417],
];

test('answers whatever is no good request in JSON, and runs nothing', async (t) => {
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
      assert.ok(reply.header('x-request-id'));
      if (status === 405 && !what.startsWith('CONNECT')) assert.ok(reply.header('allow'));
    });
  }
  assert.ok(proxy.statements.every((statement) => !statement.includes('never')));
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
  assert.ok(proxy.statements.every((statement) => !statement.includes('never')));
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
  await Promise.all(starts.map(readWhy));
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
