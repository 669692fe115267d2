// The promise of the guard, part by part: hosts, browsers.
import assert from 'node:assert/strict';
import type { IncomingHttpHeaders } from 'node:http';
import { test } from 'node:test';
import {
  createBrowserGuard,
  createHostGuard,
  createPageGuard,
  type Target,
} from '../../../../src/worker/request/guard.ts';

const visitor = (
  headers: IncomingHttpHeaders = {},
  authority: string | null = 'here:9090',
): [Target, IncomingHttpHeaders] => [
  { host: authority?.split(':')[0] ?? null, authority },
  headers,
];
const settings = { allowHosts: null, allowOrigins: [], httpsTexts: null };
const withTls = { ...settings, httpsTexts: { cert: '', key: '' } };

test('lets any host pass without a list, and only listed ones with it', () => {
  assert.equal(createHostGuard(settings)(...visitor({}, 'anything')), null);
  const check = createHostGuard({ ...settings, allowHosts: ['here', '[::1]'] });
  assert.equal(check(...visitor()), null);
  assert.equal(check(...visitor({}, null)), null);
  assert.equal(check(...visitor({}, 'there'))?.status, 421);
  assert.equal(check(...visitor({}, 'here.there'))?.status, 421);
});

test('an origin is its own only with its scheme, host and port', () => {
  for (const [origin, authority, status, own = settings] of [
    ['http://here:9090', 'here:9090', undefined],
    ['http://here', 'here:80', undefined],
    ['https://here:9090', 'here:9090', 403],
    ['https://here', 'here', 403],
    ['https://here', 'here:443', undefined, withTls],
    ['https://here', 'here', undefined, withTls],
    ['https://here:9090', 'here:9090', undefined, withTls],
    ['http://here:9090', 'here:9090', 403, withTls],
    ['http://here', 'here', 403, withTls],
    ['http://here:9091', 'here:9090', 403],
    ['http://there:9090', 'here:9090', 403],
    ['http://here:9090', null, 403],
    ['null', 'here:9090', 403],
    ['', 'here:9090', 403],
    ['no url', 'here:9090', 403],
    ['http://here:9090@there', 'here:9090', 403],
  ] as const) {
    const failure = createBrowserGuard(own)(...visitor({ origin }, authority));
    assert.equal(failure?.status, status, `${origin} ${authority}`);
  }
});

test('lets listed origins pass from any site, to the letter', () => {
  const check = createBrowserGuard({ ...settings, allowOrigins: ['https://app.example'] });
  const from = (origin: string) => check(...visitor({ origin, 'sec-fetch-site': 'cross-site' }));
  assert.equal(from('https://app.example'), null);
  for (const other of [
    'https://app.example:444',
    'http://app.example',
    'https://app.example.evil',
  ]) {
    assert.equal(from(other)?.status, 403);
  }
});

test('lets listed origins fetch, and load nothing in any other way', () => {
  const check = createBrowserGuard({ ...settings, allowOrigins: ['https://app.example'] });
  const from = (headers: IncomingHttpHeaders) =>
    check(...visitor({ origin: 'https://app.example', ...headers }))?.status;
  assert.equal(from({ 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' }), undefined);
  for (const headers of [
    { 'sec-fetch-mode': 'no-cors' },
    { 'sec-fetch-mode': 'navigate' },
    { 'sec-fetch-mode': 'websocket' },
    { 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'image' },
    { accept: 'text/event-stream' },
    { upgrade: 'WebSocket' },
    { purpose: 'prefetch' },
  ]) {
    assert.equal(from(headers), 403, JSON.stringify(headers));
  }
  assert.equal(check(...visitor({ upgrade: 'h2c' })), null);
});

test('refuses prefetches by each of their names', () => {
  const check = createBrowserGuard(settings);
  assert.equal(check(...visitor({ purpose: 'prefetch' }))?.status, 403);
  assert.equal(check(...visitor({ 'sec-purpose': 'prefetch;prerender' }))?.status, 403);
  assert.equal(check(...visitor({ 'x-moz': 'Prefetch' }))?.status, 403);
  assert.equal(check(...visitor({ purpose: 'other' })), null);
});

test('lets a link of another site open a page, and nothing but a link', () => {
  const check = createPageGuard(settings);
  const link = {
    'sec-fetch-site': 'cross-site',
    'sec-fetch-mode': 'navigate',
    'sec-fetch-dest': 'document',
  };
  assert.equal(check(...visitor(link)), null);
  assert.equal(check(...visitor({})), null);
  assert.equal(check(...visitor({ 'sec-fetch-site': 'same-origin' })), null);
  for (const other of [
    { ...link, 'sec-fetch-dest': 'iframe' },
    { ...link, 'sec-fetch-mode': 'cors' },
    { ...link, origin: 'http://there' },
    { ...link, 'sec-purpose': 'prefetch' },
    { 'sec-fetch-site': 'cross-site' },
  ]) {
    assert.equal(check(...visitor(other))?.status, 403, JSON.stringify(other));
  }
});

test('accepts only pages of its own origin, by what the browser reports about their site', () => {
  const check = createBrowserGuard(settings);
  for (const [site, status] of [
    ['same-origin', undefined],
    ['none', undefined],
    ['same-site', 403],
    ['cross-site', 403],
    ['', 403],
    ['something new', 403],
  ] as const) {
    assert.equal(check(...visitor({ 'sec-fetch-site': site }))?.status, status, site);
  }
});

test('takes neither a name below a listed host nor one above it for that host', () => {
  const check = createHostGuard({ ...settings, allowHosts: ['db.example'] });
  assert.equal(check(...visitor({}, 'db.example:9090')), null);
  for (const host of ['evil.db.example', 'example', 'db.example.evil', 'db-example', '']) {
    assert.equal(check(...visitor({}, host))?.status, 421, host);
  }
});
