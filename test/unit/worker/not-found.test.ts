// The promise of a 404: it names the path that was probably meant, or the key that is off, and never repeats the request.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Route } from '../../../src/worker/endpoints/endpoint.ts';
import { createNotFound } from '../../../src/worker/not-found.ts';

const paths = ['/db', '/db/', '/v1/query', '/v1/batch', '/v1/transaction', '/v1/stats'];
const routes = [...paths, '/v1/transaction/commit', '/v1/requests/*', '/livez', '/readyz'].map(
  (path) => ({ path, access: 'guarded' }) as Route,
);
const { of } = createNotFound(routes);

test('a path that is nearly one that is served gets its name', () => {
  for (const [asked, meant] of [
    ['/v1/querry', '/v1/query'],
    ['/v1/query/', '/v1/query'],
    ['/V1/Query', '/v1/query'],
    ['/query', '/v1/query'],
    ['/v2/batch', '/v1/batch'],
    ['/v1/transactions', '/v1/transaction'],
    ['/v1/transaction/comit', '/v1/transaction/commit'],
    ['/v1/requests/', '/v1/requests/{id}'],
    ['/dbs', '/db'],
    ['/readyz/', '/readyz'],
  ] as const) {
    assert.equal(of(asked).message, `There is nothing at this path. Did you mean ${meant}?`, asked);
  }
});

test('any other path gets the paths for SQL, and none is repeated', () => {
  for (const asked of [
    '/',
    '/favicon.ico',
    '/wp-login.php',
    '/%3Cscript%3E',
    `/${'x'.repeat(1e6)}`,
  ]) {
    const { status, code, message } = of(asked);
    assert.deepEqual([status, code], [404, 'NOT_FOUND']);
    assert.match(message, /SQL goes to \/v1\/query, \/v1\/batch or \/db/);
    assert.ok(message.length < 150 && !message.includes(asked.slice(1) || '<'), asked);
  }
});

test('a path below one that is served does not get the key that turns it on', () => {
  const served = ['/console', '/console/', '/mcp', '/health', '/psdb.v1alpha1.Database/Execute'];
  const all = [...routes, ...served.map((path) => ({ path, access: 'page' }) as Route)];
  for (const asked of ['/console/none-at-all', '/mcp/none-at-all', '/psdb.v1alpha1.Database/Nil']) {
    const { message } = createNotFound(all).of(asked);
    assert.doesNotMatch(message, /not served here/, asked);
  }
});

test('a path that a key of the configuration turns on gets that key', () => {
  for (const [asked, key] of [
    ['/psdb.v1alpha1.Database/Execute', /drivers = planetscale/],
    ['/mcp', /mcp = on/],
    ['/console', /console = off/],
    ['/console/', /console = off/],
    ['/health', /\/readyz.*compat = dbslayer/],
  ] as const) {
    assert.match(of(asked).message, key);
  }
});
