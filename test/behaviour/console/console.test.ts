// The promise of /console: the page and its files come from the gateway alone, without token, under a
// strict policy; a link of another site opens the page, and nothing else of another site's does.
import assert from 'node:assert/strict';
import test, { after, before } from 'node:test';
import type { Target } from '../../support/gateway.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';

const token = 'a-token-of-the-tests';
/** No server listens there: the page needs no database. */
const unreachable: Target = {
  host: '127.0.0.1',
  port: 1,
  user: 'app',
  password: '',
  name: 'world',
};
let gateway: Gateway;
before(async () => {
  gateway = await startGateway({ database: unreachable, settings: { workers: 1, token } });
});
after(async () => await gateway?.stop());

const link = {
  'Sec-Fetch-Site': 'cross-site',
  'Sec-Fetch-Mode': 'navigate',
  'Sec-Fetch-Dest': 'document',
};

test('serves the page and each file that it names, without token', async () => {
  const page = await gateway.get('/console');
  assert.equal(page.status, 200);
  assert.equal(page.headers['content-type'], 'text/html; charset=utf-8');
  assert.equal((await gateway.get('/console/')).text, page.text);
  const named = [...page.text.matchAll(/(?:src|href)="(\/[^"]*)"/g)].map(([, path]) => path ?? '');
  assert.deepEqual(named, ['/console/uplot.css', '/console/console.css', '/console/main.js']);
  const types: Record<string, string> = { css: 'text/css', js: 'text/javascript' };
  const seen = new Set<string>();
  const follow = async (path: string): Promise<void> => {
    if (seen.has(path)) return;
    seen.add(path);
    const { status, headers, text } = await gateway.get(path);
    assert.equal(status, 200, path);
    assert.equal(headers['content-type'], `${types[path.split('.').pop() ?? '']}; charset=utf-8`);
    const imports = [...text.matchAll(/\bimport\b[^'";]*['"]\.\/([\w.-]+)['"]/g)];
    await Promise.all(imports.map(([, name]) => follow(`/console/${name}`)));
  };
  await Promise.all(named.map(follow));
  // One script beside the charts: modules would load in levels, one round trip after the other.
  assert.deepEqual([...seen].sort(), [...named, '/console/uplot.js'].sort());
});

test('lets the page load from and send to its own origin only, and lets no page frame or store it', async () => {
  for (const path of ['/console', '/console/main.js']) {
    const { headers } = await gateway.get(path);
    assert.equal(
      headers['content-security-policy'],
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
    assert.equal(headers['x-content-type-options'], 'nosniff');
    assert.equal(headers['cross-origin-resource-policy'], 'same-origin');
    assert.equal(headers['cache-control'], 'no-store');
    assert.equal(headers['referrer-policy'], 'no-referrer');
    assert.ok(headers['x-request-id']);
  }
  const { text } = await gateway.get('/console');
  assert.doesNotMatch(
    text,
    /<style|style=|<script(?! type="module" src=)| on\w+=|https?:\/\/(?!www\.w3\.org\/2000\/svg)/,
  );
});

test('answers HEAD without a body, and no other method', async () => {
  const head = await gateway.request('/console', { method: 'HEAD' });
  assert.equal(head.status, 200);
  assert.equal(head.body.length, 0);
  assert.ok(Number(head.headers['content-length']) > 1000);
  for (const method of ['POST', 'DELETE', 'QUERY']) {
    const refused = await gateway.request('/console', { method });
    assert.equal(refused.status, 405);
    assert.equal(refused.headers.allow, 'GET, HEAD');
  }
});

test('is opened by a link of another site', async () => {
  for (const path of ['/console', '/console/']) {
    assert.equal((await gateway.get(path, { headers: link })).status, 200);
  }
});

test('refuses whatever else another site may try', async () => {
  const tries: readonly [path: string, headers: Record<string, string>][] = [
    ['/console', { ...link, 'Sec-Fetch-Dest': 'iframe' }],
    ['/console', { ...link, 'Sec-Fetch-Dest': 'embed' }],
    ['/console', { ...link, 'Sec-Fetch-Mode': 'no-cors', 'Sec-Fetch-Dest': 'script' }],
    ['/console', { ...link, Origin: 'https://elsewhere.example' }],
    ['/console', { ...link, 'Sec-Purpose': 'prefetch;prerender' }],
    ['/console/main.js', link],
    ['/console/main.js', { ...link, 'Sec-Fetch-Mode': 'no-cors', 'Sec-Fetch-Dest': 'script' }],
    ['/console/nothing', link],
    ['/v1/stats', link],
    ['/db?{"SQL":"select+1"}', link],
  ];
  for (const [path, headers] of tries) {
    assert.equal(
      (await gateway.get(path, { headers })).status,
      403,
      JSON.stringify([path, headers]),
    );
  }
  const foreign = await gateway.get('/console', { headers: { Host: 'elsewhere.example' } });
  assert.equal(foreign.status, 421);
});

test('serves only its own files', async () => {
  for (const path of [
    '/console/../package.json',
    '/console/tsconfig.json',
    '/console/index.html',
  ]) {
    assert.equal((await gateway.get(path)).status, 401, path);
    const known = { headers: { Authorization: `Bearer ${token}` } };
    assert.equal((await gateway.get(path, known)).status, 404, path);
  }
});

test('is not there with console = off', async () => {
  const plain = await startGateway({
    database: unreachable,
    settings: { workers: 1, console: 'off' },
  });
  try {
    for (const path of ['/console', '/console/', '/console/main.js']) {
      assert.equal((await plain.get(path)).status, 404);
    }
  } finally {
    await plain.stop();
  }
});
