// The promise of the head: path, query and host as the client meant them; what is no sound head is refused.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createHeadReader } from '../../../../src/worker/http/head.ts';
import { incomingRequest } from '../../../support/incoming.ts';

const readHead = createHeadReader({ hostMayBeMissing: false });
const read = (url: string, headers = ['Host', 'localhost'], httpVersion = '1.1') => {
  const pairs = headers.flatMap((name, at) =>
    at % 2 === 0 ? [[name, headers[at + 1] ?? ''] as const] : [],
  );
  return readHead(incomingRequest(pairs, `GET ${url} HTTP/${httpVersion}`));
};

function head(...asked: Parameters<typeof read>) {
  const result = read(...asked);
  assert.ok(result.ok, JSON.stringify(result));
  return result.head;
}

function status(...asked: Parameters<typeof read>): number {
  const result = read(...asked);
  return result.ok ? 200 : result.failure.status;
}

test('cuts the target at its first question mark', () => {
  assert.deepEqual(head('/db?{"SQL":"select+\'?\'&="}#'), {
    path: '/db',
    query: '{"SQL":"select+\'?\'&="}#',
    host: 'localhost',
    authority: 'localhost',
  });
  assert.equal(head('/db').query, null);
  assert.equal(head('/db?').query, '');
});

test('names the host in lower case and without its port', () => {
  for (const [given, host, authority] of [
    ['LocalHost', 'localhost', 'localhost'],
    ['a:80', 'a', 'a:80'],
    ['[::1]', '[::1]', '[::1]'],
    ['[::1]:9090', '[::1]', '[::1]:9090'],
    ['127.0.0.1:65535', '127.0.0.1', '127.0.0.1:65535'],
    ['[2001:DB8::1]', '[2001:db8::1]', '[2001:db8::1]'],
    ['my_host.example.', 'my_host.example.', 'my_host.example.'],
  ] as const) {
    const found = head('/', ['hOST', given]);
    assert.deepEqual([found.host, found.authority], [host, authority]);
  }
  assert.equal(head('/', [], '1.0').host, null);
});

test('refuses a host that is none, and a second one', () => {
  for (const host of [
    '',
    ':80',
    '127.0.0.1:evil.example',
    '[::1]evil.example',
    '127.0.0.1:80, evil',
    '127.0.0.1:',
    '127.0.0.1:65536',
    '[::1',
    '[1:2]',
    '::1',
    'a b',
    'user@a',
    'a/b',
    'a?b',
    'a#b',
    'é',
  ]) {
    assert.equal(status('/', ['Host', host]), 400, host);
  }
  assert.equal(status('/', ['Host', 'a', 'hOST', 'a']), 400);
  assert.equal(status('/', []), 400);
  assert.equal(status('/', [], '1.0'), 200);
});

test('refuses to choose between two headers of which one would count', () => {
  for (const name of ['Authorization', 'Content-Type']) {
    assert.equal(status('/', ['Host', 'a', name, 'x', name.toLowerCase(), 'x']), 400);
  }
  assert.equal(status('/', ['Host', 'a', 'Accept', 'x', 'Accept', 'y']), 200);
});

test('refuses more than a hundred headers', () => {
  const more = (count: number) => Array.from({ length: count }, () => ['X', 'y']).flat();
  assert.equal(status('/', ['Host', 'a', ...more(99)]), 200);
  assert.equal(status('/', ['Host', 'a', ...more(100)]), 431);
});
