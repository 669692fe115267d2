// All that pages of a listed origin may send and read, and nothing more.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createCors } from '../../../../src/worker/request/cors.ts';

const origin = 'https://app.example';
const cors = createCors([origin]);
const asking = { origin, 'access-control-request-method': 'POST' };

const listed = (headers: readonly string[] | null | undefined, name: string) => {
  const at = headers?.indexOf(name) ?? -1;
  return at < 0 ? null : (headers?.[at + 1] ?? '').split(', ').sort();
};

test('a preflight gives leave to these methods and headers, and to no other', () => {
  const leave = cors?.preflight('OPTIONS', asking);
  const methods = ['DELETE', 'GET', 'HEAD', 'POST', 'QUERY'];
  assert.deepEqual(listed(leave, 'Access-Control-Allow-Methods'), methods);
  assert.deepEqual(listed(leave, 'Access-Control-Allow-Headers'), [
    'Authorization',
    'Content-Type',
    'Idempotency-Key',
    'User-Agent',
    'X-Consistency-Token',
    'X-Request-ID',
    'traceparent',
    'tracestate',
  ]);
  const names = leave?.filter((_text, at) => at % 2 === 0);
  assert.deepEqual(names, [
    'Access-Control-Allow-Methods',
    'Access-Control-Allow-Headers',
    'Access-Control-Max-Age',
  ]);
});

test('a page may read these headers of a reply, and no other', () => {
  assert.deepEqual(listed(cors?.headersFor(origin), 'Access-Control-Expose-Headers'), [
    'Allow',
    'Idempotency-Replayed',
    'Retry-After',
    'Server-Timing',
    'WWW-Authenticate',
    'X-Consistency',
    'X-Consistency-Token',
    'X-Request-ID',
  ]);
  assert.deepEqual(listed(cors?.headersFor(origin), 'Access-Control-Allow-Origin'), [origin]);
});

test('an origin is listed only as it was written, and no other gets any leave', () => {
  for (const other of [`${origin}.evil`, 'http://app.example', `${origin}:8443`, 'null', '*']) {
    assert.deepEqual(cors?.headersFor(other), ['Vary', 'Origin'], other);
    assert.equal(cors?.preflight('OPTIONS', { ...asking, origin: other }), null, other);
  }
  assert.equal(cors?.preflight('POST', asking), null);
  assert.equal(cors?.preflight('OPTIONS', { origin }), null);
  assert.equal(createCors([]), null);
});
