// The promise of allow_origins: pages of a listed origin may fetch and read every reply, errors too; no other page learns
// or runs anything. Headers are as Chromium sends them.
import assert from 'node:assert/strict';
import test from 'node:test';
import type { Options, Reply } from '../../support/ask.ts';
import { exchange } from '../../support/http.ts';
import { useProxiedGateway } from '../../support/use-gateway.ts';

const origin = 'https://app.example';
const token = 'a-token-of-the-tests';
const { gateway, proxy } = useProxiedGateway({
  workers: 1,
  token,
  allow_origins: `http://other.example, ${origin}`,
  max_request_bytes: '64KiB',
});

const path = `/db?${encodeURIComponent('{"SQL":"select \'asked\'"}')}`;
const asked = () => proxy.statements.filter((sql) => sql === "select 'asked'").length;
const known = { Authorization: `Bearer ${token}` };
const fetching = {
  Origin: origin,
  'Sec-Fetch-Site': 'cross-site',
  'Sec-Fetch-Mode': 'cors',
  'Sec-Fetch-Dest': 'empty',
};
const preflight = {
  ...fetching,
  'Access-Control-Request-Method': 'POST',
  'Access-Control-Request-Headers': 'authorization,content-type',
};

/** The headers of a reply that browsers read. */
function leaveOf(reply: Reply) {
  assert.equal(reply.headers.vary, 'Origin', String(reply.status));
  assert.equal(reply.headers['access-control-allow-credentials'], undefined);
  return reply.headers['access-control-allow-origin'];
}

test('gives leave to a listed origin before it sends its token', async () => {
  for (const at of ['/db', '/metrics', '/readyz', '/nothing']) {
    const reply = await gateway.request(at, { method: 'OPTIONS', headers: preflight });
    assert.equal(reply.status, 204);
    assert.equal(reply.text, '');
    assert.equal(leaveOf(reply), origin);
    assert.match(String(reply.headers['access-control-allow-methods']), /\bPOST\b/);
    const headers = String(reply.headers['access-control-allow-headers']);
    for (const name of ['Authorization', 'Content-Type', 'X-Request-ID']) {
      assert.ok(headers.includes(name), headers);
    }
    assert.ok(Number(reply.headers['access-control-max-age']) > 0);
    assert.equal(reply.headers['access-control-allow-private-network'], undefined);
  }
  const headers = { ...preflight, 'Access-Control-Request-Private-Network': 'true' };
  const reply = await gateway.request('/db', { method: 'OPTIONS', headers });
  assert.equal(reply.headers['access-control-allow-private-network'], 'true');
});

test('lets pages of a listed origin read results and every kind of refusal', async () => {
  const body = JSON.stringify({ SQL: 'select 1' });
  const post = { 'Content-Type': 'application/json' };
  const cases: readonly (readonly [string, Options, number])[] = [
    [path, { headers: known }, 200],
    ['/db', { method: 'POST', body, headers: { ...post, ...known } }, 200],
    [`/db?${encodeURIComponent(`{"SQL":"select repeat('x', 100000)"}`)}`, { headers: known }, 200],
    ['/readyz', {}, 200],
    [path, {}, 401],
    ['/nothing', { headers: known }, 404],
    ['/db', { method: 'DELETE', headers: known }, 405],
    ['/db?{', { headers: known }, 400],
    ['/db', { method: 'POST', body: 'x', headers: known }, 415],
    ['/db', { method: 'POST', body: 'x'.repeat(70_000), headers: { ...post, ...known } }, 413],
    [path, { headers: { ...known, Host: 'evil.example' } }, 421],
    [path, { headers: { ...known, Host: 'no host' } }, 400],
  ];
  for (const [at, options, status] of cases) {
    const reply = await gateway.request(at, {
      ...options,
      headers: { ...fetching, ...options.headers },
    });
    assert.equal(reply.status, status, reply.text);
    assert.equal(leaveOf(reply), origin);
    assert.match(
      String(reply.headers['access-control-expose-headers']),
      /X-Request-ID.*Retry-After/,
    );
  }
});

test('gives nothing to any other origin, and runs nothing for it', async () => {
  const before = asked();
  for (const other of [
    'http://app.example',
    `${origin}:444`,
    `${origin}.evil`,
    'null',
    '',
    'https://APP.example.',
  ]) {
    for (const [method, headers] of [
      ['OPTIONS', preflight],
      ['GET', { ...fetching, ...known }],
      ['GET', known],
    ] as const) {
      const reply = await gateway.request(path, { method, headers: { ...headers, Origin: other } });
      assert.equal(reply.status, 403, `${method} ${other}`);
      assert.equal(leaveOf(reply), undefined);
      assert.ok(!Object.keys(reply.headers).some((name) => name.startsWith('access-control')));
    }
  }
  assert.equal(asked(), before);
});

test('runs nothing for whatever else a page of a listed origin can load', async () => {
  const before = asked();
  const browser = (site: string, mode: string, dest: string, more = {}) => ({
    ...known,
    'Sec-Fetch-Site': site,
    'Sec-Fetch-Mode': mode,
    'Sec-Fetch-Dest': dest,
    ...more,
  });
  const Origin = origin;
  for (const headers of [
    browser('cross-site', 'no-cors', 'image'),
    browser('same-site', 'no-cors', 'script'),
    browser('cross-site', 'cors', 'script', { Origin }),
    browser('cross-site', 'cors', 'image', { Origin }),
    browser('cross-site', 'no-cors', 'style', { Origin }),
    browser('cross-site', 'navigate', 'document', { Origin }),
    browser('cross-site', 'navigate', 'iframe'),
    browser('cross-site', 'websocket', 'empty', { Origin }),
    browser('cross-site', 'cors', 'empty', { Origin, Accept: 'text/event-stream' }),
    { ...known, Origin, Accept: 'text/event-stream' },
    { ...known, Origin, Upgrade: 'websocket', Connection: 'Upgrade', 'Sec-WebSocket-Key': 'x' },
    { ...known, ...fetching, 'Sec-Purpose': 'prefetch' },
  ]) {
    // A client that requests an upgrade would wait for it, so the test sends the bytes directly.
    const lines = Object.entries({ Host: 'localhost', ...headers });
    const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
    const reply = await exchange(gateway.port, `GET ${path} HTTP/1.1\r\n${head}\r\n`);
    assert.equal(reply.status, 403, JSON.stringify(headers));
  }
  assert.equal(asked(), before);
});

test('Vary names the origin on replies to bad requests, and to requests that no browser sent', async () => {
  assert.equal((await exchange(gateway.port, 'RUBBISH\r\n\r\n')).header('vary'), 'Origin');
  const plain = await gateway.get(path, { headers: known });
  assert.equal(plain.status, 200);
  assert.equal(leaveOf(plain), undefined);
});

test('lets a page of a listed origin read why its broken body was refused', async () => {
  const lines = `Host: localhost\r\nAuthorization: Bearer ${token}\r\nOrigin: ${origin}\r\nContent-Type: application/json\r\n`;
  const body = 'Transfer-Encoding: chunked\r\n\r\nrubbish\r\n';
  const reply = await exchange(gateway.port, `POST /db HTTP/1.1\r\n${lines}${body}`);
  assert.equal(reply.status, 400);
  assert.equal(reply.header('access-control-allow-origin'), origin);
});
