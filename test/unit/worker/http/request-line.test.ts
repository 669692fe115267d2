// The first line of a request, to the letter, and a URL of the longest length and one byte more.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkRequestLine } from '../../../../src/worker/http/request-line.ts';

const maxUrlBytes = 16;
const check = (line: string) =>
  checkRequestLine(Buffer.from(line), 0, line.length, maxUrlBytes)?.code ?? 'taken';

test('a request line has three parts, with one space between them', () => {
  for (const line of ['GET / HTTP/1.1', 'QUERY /v1/query HTTP/1.0', 'GET /?a=%20 HTTP/1.1']) {
    assert.equal(check(line), 'taken', line);
  }
  for (const line of [
    'GET  / HTTP/1.1',
    'GET /  HTTP/1.1',
    'GET / a HTTP/1.1',
    'GET / HTTP/1.1 ',
    ' GET / HTTP/1.1',
    'get / HTTP/1.1',
    'GET / HTTP/1.2',
    'GET / HTTP/2.0',
    'GET / http/1.1',
    'GET /',
    'GET http://a/ HTTP/1.1',
    'GET * HTTP/1.1',
  ]) {
    assert.equal(check(line), 'BAD_REQUEST', line);
  }
  assert.equal(check('CONNECT a:1 HTTP/1.1'), 'METHOD_NOT_ALLOWED');
});

test('a URL of exactly the limit is taken, and one byte more refused', () => {
  const line = (bytes: number) => `GET /${'x'.repeat(bytes - 1)} HTTP/1.1`;
  assert.equal(check(line(maxUrlBytes)), 'taken');
  assert.equal(check(line(maxUrlBytes + 1)), 'URL_TOO_LONG');
});
