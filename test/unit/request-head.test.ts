// The promise of the head: path, query and host as the client meant them; what is no sound head is refused.
// Must not know routes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readHead } from '../../src/worker/http/request-head.ts';

const strict = { hostMayBeMissing: false };
const read = (url: string | undefined, rawHeaders = ['Host', 'localhost'], httpVersion = '1.1') =>
  readHead({ ...(url === undefined ? {} : { url }), httpVersion, rawHeaders }, 100, strict);

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
  assert.deepEqual(head('/db?{"SQL":"select \'?\'&="}#'), {
    path: '/db',
    query: '{"SQL":"select \'?\'&="}#',
    host: 'localhost',
    authority: 'localhost',
  });
  assert.equal(head('/db').query, null);
  assert.equal(head('/db?').query, '');
});

test('takes the absolute form, whose authority overrules Host', () => {
  for (const [target, path, query, host] of [
    ['http://a.example:8/db?x', '/db', 'x', 'a.example'],
    ['HTTPS://A.example', '/', null, 'a.example'],
    ['http://a.example?x', '/', 'x', 'a.example'],
    ['http://[::1]:9090/db', '/db', null, '[::1]'],
  ] as const) {
    const found = head(target);
    assert.deepEqual([found.path, found.query, found.host], [path, query, host]);
  }
});

test('names the host in lower case and without its port', () => {
  for (const [given, host, authority] of [
    ['LocalHost', 'localhost', 'localhost'],
    ['a:80', 'a', 'a:80'],
    ['[::1]', '[::1]', '[::1]'],
    ['[::1]:9090', '[::1]', '[::1]:9090'],
    ['', '', ''],
  ] as const) {
    const found = head('/', ['hOST', given]);
    assert.deepEqual([found.host, found.authority], [host, authority]);
  }
  assert.equal(head('/', [], '1.0').host, null);
});

test('refuses what is no sound head', () => {
  assert.equal(status('/', ['Host', 'a', 'host', 'a']), 400);
  assert.equal(status('/', []), 400);
  assert.equal(status('/', ['Host', 'a'], '2.0'), 400);
  assert.equal(status('/', ['Host', 'a'], '0.9'), 400);
  assert.equal(status('*'), 400);
  assert.equal(status('db?x'), 400);
  assert.equal(status('ftp://a/'), 400);
  assert.equal(status(''), 400);
  assert.equal(status(undefined), 400);
  assert.equal(status(`/${'x'.repeat(99)}`), 200);
  assert.equal(status(`/${'x'.repeat(100)}`), 414);
});
