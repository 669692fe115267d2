// The promise of strict HTTP, beyond the cases of messages.test.ts: nothing runs after the beginning of another protocol, no body comes
// before its head was found good. In random bytes, only requests that a strict reader finds are run. Complete requests before the first odd byte are
// answered, and every connection gets an answer.
import assert from 'node:assert/strict';
import test from 'node:test';
import { exchange, openRaw } from '../../support/http.ts';
import { createMutations, idsAllowedIn, idsIn } from './support/mutated-requests.ts';
import { observeGateway } from './support/observed-gateway.ts';

const { gateway, proxy } = observeGateway();
const host = 'Host: localhost\r\n';
const json = 'Content-Type: application/json\r\n';
const sql = '{"SQL":"select /* never */ 1"}';
const get = (line: string, headers = host) => `${line}\r\n${headers}\r\n`;
const target = `/db?${encodeURIComponent(sql)}`;
const smuggled = get(`GET ${target} HTTP/1.1`);

const neverRun = () =>
  assert.ok(proxy.statements.every((statement) => !statement.includes('never')));

/** Sends the bytes in one segment, in pieces, or byte by byte, and reads one reply. */
async function ask(bytes: string, pieceBytes: number) {
  const client = await openRaw(gateway.port);
  try {
    const all = Buffer.from(bytes, 'latin1');
    for (let from = 0; from < all.length; from += pieceBytes) {
      const piece = all.subarray(from, from + pieceBytes);
      await new Promise<void>((resolve) => client.socket.write(piece, () => resolve()));
    }
    const reply = await client.reply();
    if (reply.header('connection') === 'close') await client.ended();
    return reply;
  } finally {
    client.socket.destroy();
  }
}

const field = (count: number, bytes = 0) => `X: ${'y'.repeat(bytes)}\r\n`.repeat(count);

const headsOfBadForm: readonly (readonly [what: string, bytes: string, status: number])[] = [
  ['two spaces', get('HEAD  /livez HTTP/1.1'), 400],
  ['a tab behind the method', get('HEAD\t/livez HTTP/1.1'), 400],
  ['another version', get('HEAD /livez HTTP/1.2'), 400],
  ['a bare line feed', `HEAD /livez HTTP/1.1\n${host}`, 400],
  ['no colon', get('HEAD /livez HTTP/1.1', `${host}nonsense\r\n`), 400],
  ['two hosts', get('HEAD /livez HTTP/1.1', host + host), 400],
  ['headers of more than 16 KiB', get('HEAD /livez HTTP/1.1', `${host}${field(2, 8200)}`), 431],
  ['a path that never ends', `HEAD /${'y'.repeat(1024 ** 2 + 20)}`, 414],
];

test('a HEAD of bad form gets no body, in any segments and behind another request', {
  concurrency: true,
}, async (t) => {
  const before = get('GET /nothing HTTP/1.1');
  const refuse = async (bytes: string, status: number, isSecond: boolean, pieceBytes: number) => {
    const client = await openRaw(gateway.port);
    try {
      const all = (isSecond ? before : '') + bytes;
      for (let from = 0; from < all.length; from += pieceBytes) {
        const piece = all.slice(from, from + pieceBytes);
        await new Promise<void>((resolve) => client.socket.write(piece, () => resolve()));
      }
      if (isSecond) assert.equal((await client.reply()).status, 404);
      const reply = await client.reply({ toHead: true });
      assert.equal(reply.status, status);
      assert.ok(Number(reply.header('content-length')) > 0);
      await client.ended();
      assert.equal(client.received(), '');
    } finally {
      client.socket.destroy();
    }
  };
  const asked = headsOfBadForm.map(([what, bytes, status]) =>
    t.test(`${what}: ${status}`, async () => {
      const sizes = [2 * bytes.length, 1000, ...(bytes.length < 1000 ? [1] : [])];
      await Promise.all(
        sizes.flatMap((size) => [false, true].map((second) => refuse(bytes, status, second, size))),
      );
    }),
  );
  await Promise.all(asked);
  const other = await ask(get('HEADS  /livez HTTP/1.1'), 1000);
  assert.match(String(other.body), /BAD_REQUEST/);
});

const otherProtocols: Readonly<Record<string, readonly [head: string, status: number]>> = {
  'an upgrade to HTTP/2': [
    get('GET /livez HTTP/1.1', `${host}Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n`),
    200,
  ],
  'an upgrade without Connection': [get('GET /nothing HTTP/1.1', `${host}Upgrade: h2c\r\n`), 404],
  'an upgrade of a POST': [
    `POST /db HTTP/1.1\r\n${host}${json}Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 20\r\n\r\n{"SQL":"select 'a'"}`,
    200,
  ],
  CONNECT: [get('CONNECT localhost:1 HTTP/1.1', 'Host: localhost:1\r\n'), 405],
  'chunks of HTTP/1.0': [
    `POST /db HTTP/1.0\r\n${host}${json}Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n14\r\n{"SQL":"select 'a'"}\r\n0\r\n\r\n`,
    200,
  ],
};

test('parses nothing behind the beginning of another protocol', async (t) => {
  for (const [what, [head, status]] of Object.entries(otherProtocols)) {
    await t.test(what, async () => {
      for (const rest of [smuggled, `xx${smuggled}`]) {
        const reply = await ask(head + rest, head.length + rest.length);
        assert.equal(reply.status, status, String(reply.body));
        assert.equal(reply.header('connection'), 'close');
        // A reset answers what comes after the end, so there is no reply to rely on.
        for (const pieceBytes of [head.length, 1]) {
          await ask(head + rest, pieceBytes).catch((error) => assert.equal(error.fault, 'reset'));
        }
      }
    });
  }
  neverRun();
});

test('answers CONNECT in its turn, whatever runs or streams before it', async () => {
  const ahead = `/db?${encodeURIComponent(`{"SQL":"select sleep(0.1), repeat('x', 200000)"}`)}`;
  const client = await openRaw(gateway.port);
  client.send(get(`GET ${ahead} HTTP/1.1`) + get('CONNECT a:1 HTTP/1.1', 'Host: a:1\r\n'));
  const first = await client.reply();
  assert.equal(first.status, 200);
  assert.ok(first.body.length > 200_000);
  assert.equal((await client.reply()).status, 405);
  assert.equal(await client.ended(), 'fin');
  client.close();
});

test('sends 100 Continue only after everything else was found good', {
  concurrency: true,
}, async (t) => {
  const expecting = (headers: string, path = '/db', expectation = '100-continue') =>
    `POST ${path} HTTP/1.1\r\n${headers}Expect: ${expectation}\r\nContent-Length: ${sql.length}\r\n\r\n`;
  const cases: readonly (readonly [string, number])[] = [
    [expecting(`Host: evil.example\r\n${json}`), 421],
    [expecting(`Host: evil.example\r\n${json}`, '/db', 'coffee'), 421],
    [expecting(`${host}${json}Origin: http://evil.example\r\n`), 403],
    [expecting(`${host}${json}Origin: http://evil.example\r\n`, '/db', 'coffee'), 403],
    [expecting(`${host}${json}`, '/nothing'), 404],
    [expecting(host), 415],
    [expecting(`${host}${json}Content-Encoding: br\r\n`), 415],
    [expecting(`${host}${json}`).replace(String(sql.length), '9999999'), 413],
    [expecting(`${host}${json}`, '/db', 'coffee'), 417],
    [expecting(`${host}${json}`).replace('POST', 'PUT'), 405],
  ];
  // These last for two seconds, too.
  const asked = cases.map(([head, status]) =>
    t.test(`${status}: ${head.slice(0, 80)}`, async () => {
      const client = await openRaw(gateway.port);
      client.send(head);
      await client.anything();
      const reply = await client.reply();
      assert.equal(reply.status, status);
      assert.equal(reply.interim, 0);
      assert.equal(await client.ended(), 'fin');
      client.close();
    }),
  );
  await Promise.all(asked);
  neverRun();
});

test('takes one empty line before a request, and a hundred headers of 16 KiB beside a URL of any length', async () => {
  const long = encodeURIComponent(`{"SQL":"select length('${'x'.repeat(900_000)}')"}`);
  const headers = `${host}${field(99, 160)}`;
  for (const line of [`GET /db?${long} HTTP/1.1`, `GET /livez HTTP/1.1`]) {
    assert.equal((await exchange(gateway.port, `\r\n${get(line, headers)}`)).status, 200);
  }
});

test('reads chunks however they are cut, and the next request after them', async () => {
  const body = '{"SQL":"select \'chunks\'"}';
  const chunks = [...body].map((byte) => `1;a="b"\r\n${byte}\r\n`).join('');
  const post = `POST /db HTTP/1.1\r\n${host}${json}Transfer-Encoding: chunked\r\n\r\n${chunks}0\r\nA: b\r\n\r\n`;
  const bytes = Buffer.from(post + get('GET /nothing HTTP/1.1') + post);
  for (const pieceBytes of [bytes.length, 7, 1]) {
    const client = await openRaw(gateway.port);
    for (let from = 0; from < bytes.length; from += pieceBytes) {
      client.send(bytes.subarray(from, from + pieceBytes));
    }
    for (const status of [200, 404, 200]) assert.equal((await client.reply()).status, status);
    client.close();
  }
});

const rounds = 250;
const mutations = createMutations(20_261_122);

/** Sends the text in pieces. Resolves when the connection has ended, or when this many replies have come and then nothing. */
async function sendInPieces(
  text: string,
  pieces: number,
  replies: number,
): Promise<{ statuses: number[]; ended: boolean }> {
  const client = await openRaw(gateway.port, { tellsResets: false, timeoutMs: 20_000 });
  const bytes = Buffer.from(text, 'latin1');
  const statuses: number[] = [];
  try {
    for (let n = 0; n < pieces; n += 1) {
      const [from, to] = [n, n + 1].map((part) => Math.floor((part * bytes.length) / pieces));
      await new Promise<void>((resolve) =>
        client.socket.write(bytes.subarray(from, to), () => setImmediate(resolve)),
      );
    }
    while (statuses.length < replies) {
      const reply = await client.reply();
      statuses.push(reply.status);
      if (reply.header('connection') === 'close') return { statuses, ended: true };
    }
    return { statuses, ended: false };
  } finally {
    client.socket.destroy();
  }
}

test(`runs only what a strict reader finds in ${rounds} connections with an odd byte each`, async () => {
  for (let round = 0; round < rounds; round += 1) {
    const { text, whole } = mutations.draw();
    const seen = proxy.statements.length;
    const reported = JSON.stringify({ round, text });
    const pieces = 1 + mutations.random(4);
    // Requests that end before the change are answered, up to the first whose reply closes the connection.
    const { statuses, ended } = await sendInPieces(text, pieces, whole).catch((error: unknown) => {
      throw new Error(`no answer: ${reported}`, { cause: error });
    });
    assert.ok(ended || statuses.length === whole, reported);
    await gateway.db({ SQL: 'select 1' });
    const allowed = idsAllowedIn(text);
    for (const statement of proxy.statements.slice(seen)) {
      for (const id of idsIn(statement)) assert.ok(allowed.has(id), `${statement}: ${reported}`);
    }
  }
});
