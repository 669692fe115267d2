// The promise of the guards: no page of another site, no unknown host, no client without a token is served. Others are not affected.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test, { after, before } from 'node:test';
import { timesSent } from '../../support/busy-pool.ts';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import {
  type ProxiedDatabase,
  startProxiedDatabase,
} from '../../support/database/proxied-database.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { pipelinedStatements } from '../../support/pipeline.ts';
import { getReport } from '../../support/reports.ts';
import { parseStrictJson } from '../../support/strict-json.ts';

const token = 'a-token-of-the-tests';
let database: Database;
let proxy: ProxiedDatabase;
let open: Gateway;
let guarded: Gateway;
before(async () => {
  database = await startDatabase();
  proxy = await startProxiedDatabase(database);
  open = await startGateway({ database: proxy.target, settings: { workers: 1 } });
  guarded = await startGateway({
    database: proxy.target,
    settings: {
      workers: 1,
      token: `first-token-of-two,${token}`,
      allow_hosts: 'db.example',
      allow_origins: 'https://app.example',
    },
  });
});
after(async () => {
  await Promise.all([open?.stop(), guarded?.stop()]);
  await proxy?.stop();
  await database?.stop();
});

type Case = readonly [headers: Readonly<Record<string, string>>, status: number];

let number = 0;

async function check(gateway: Gateway, [headers, status]: Case): Promise<void> {
  for (const ask of [gateway.db, gateway.dbPost]) {
    // Each has a shape of its own, in which digits count as one: one that is asked often is pipelined, and sent twice if its answer is late.
    number += 1;
    const SQL = `select 'asked' as ${'a'.repeat(number)}`;
    const reply = await ask({ SQL }, { headers });
    parseStrictJson(reply.body);
    assert.equal(reply.status, status, JSON.stringify(headers));
    assert.equal(timesSent(proxy, SQL), status === 200 ? 1 : 0);
    if (status === 401) assert.equal(reply.headers['www-authenticate'], 'Bearer');
  }
}

test('rejects pages of other sites, prefetches and unknown hosts, and no others', async (t) => {
  const own = `http://localhost:${open.port}`;
  const cases: readonly Case[] = [
    [{}, 200],
    [{ 'Sec-Fetch-Site': 'none' }, 200],
    [{ 'Sec-Fetch-Site': 'same-origin' }, 200],
    [{ 'Sec-Fetch-Site': 'same-site' }, 403],
    [{ 'Sec-Fetch-Site': 'cross-site' }, 403],
    [{ 'Sec-Fetch-Site': 'whatever-comes' }, 403],
    [{ Origin: 'http://evil.example' }, 403],
    [{ Origin: 'null' }, 403],
    [{ Origin: own, Host: `localhost:${open.port}` }, 200],
    [{ Origin: own.replace('http:', 'https:'), Host: `localhost:${open.port}` }, 403],
    [{ Origin: 'http://localhost:1', Host: `localhost:${open.port}` }, 403],
    [{ Origin: own, Host: `localhost:${open.port}`, 'Sec-Fetch-Site': 'cross-site' }, 403],
    [{ 'Sec-Purpose': 'prefetch;prerender' }, 403],
    [{ Purpose: 'prefetch' }, 403],
    [{ 'X-Moz': 'prefetch' }, 403],
    [{ Host: 'localhost' }, 200],
    [{ Host: 'LOCALHOST:80' }, 200],
    [{ Host: '127.0.0.1' }, 200],
    [{ Host: '[::1]:9090' }, 200],
    [{ Host: 'rebound.evil.example' }, 421],
    [{ Host: 'localhost.evil.example' }, 421],
  ];
  for (const one of cases) await t.test(JSON.stringify(one), () => check(open, one));
  assert.equal(await pipelinedStatements(open), 0);
});

test('requires one of its tokens, and accepts listed origins and hosts', async (t) => {
  const known = { Host: 'db.example', Authorization: `Bearer ${token}` };
  const cases: readonly Case[] = [
    [known, 200],
    [{ ...known, Authorization: 'bearer   first-token-of-two ' }, 200],
    [{ ...known, Origin: 'https://app.example', 'Sec-Fetch-Site': 'cross-site' }, 200],
    [{ ...known, Origin: 'https://app.example.evil' }, 403],
    [{ Host: 'db.example' }, 401],
    [{ ...known, Authorization: `Bearer ${token}x` }, 401],
    [{ ...known, Authorization: `Bearer ${token.slice(0, -1)}` }, 401],
    [{ ...known, Authorization: `Bearer first-token-of-two,${token}` }, 401],
    [{ ...known, Authorization: `Basic ${token}` }, 401],
    [{ ...known, Authorization: 'Bearer ' }, 401],
    [{ ...known, Host: 'localhost' }, 421],
  ];
  for (const one of cases) await t.test(JSON.stringify(one[0]), () => check(guarded, one));
});

test('requires no token on the paths of balancers, and one on those of metrics', async () => {
  const headers = { Host: 'db.example' };
  assert.equal((await guarded.get('/livez', { headers })).status, 200);
  assert.equal((await guarded.get('/readyz', { headers })).status, 200);
  assert.equal((await guarded.get('/metrics', { headers })).status, 401);
  const more = { ...headers, Authorization: `Bearer ${token}` };
  assert.equal((await getReport(guarded, '/metrics', { headers: more })).status, 200);
});

test('/ says what this is, with links that lead somewhere, the same for every client and without the version', async () => {
  const own = await guarded.get('/', { headers: { Authorization: `Bearer ${token}` } });
  const foreign = {
    Host: 'db.example',
    Origin: 'https://x.example',
    'Sec-Fetch-Site': 'cross-site',
  };
  const other = await guarded.get('/', { headers: foreign });
  assert.deepEqual([own.status, other.status], [200, 200]);
  assert.equal(other.text, own.text);
  assert.equal(own.headers['content-type'], 'application/json; charset=utf-8');
  const { name, links } = JSON.parse(own.text) as { name: string; links: Record<string, string> };
  assert.equal(name, 'dbhttpd');
  assert.deepEqual(Object.keys(links).slice(0, 2), ['openapi', 'console']);
  for (const path of Object.values(links).filter((link) => link.startsWith('/'))) {
    const headers = { Host: 'db.example', Authorization: `Bearer ${token}` };
    assert.equal((await guarded.get(path, { headers })).status, 200, path);
  }
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
  assert.ok(!own.text.includes(version));
  assert.equal((await guarded.get('/', { method: 'HEAD' })).status, 200);
  assert.equal(
    (await guarded.get('/', { method: 'POST', headers: { Host: 'db.example' } })).status,
    405,
  );
});

test('writes no token into its log', () => {
  assert.ok(!guarded.log().includes(token));
});

test('repeats a sane X-Request-ID, and makes one up for any other', async () => {
  for (const id of ['a', 'trace-01_x.y:z/8+=@', 'x'.repeat(128)]) {
    for (const asking of [
      open.db({ SQL: 'select 1' }, { headers: { 'X-Request-ID': id } }),
      open.get('/nothing', { headers: { 'X-Request-ID': id } }),
      open.db({ STAT: 'no' }, { headers: { 'X-Request-ID': id } }),
    ]) {
      assert.equal((await asking).headers['x-request-id'], id);
    }
  }
  const made = new Set<string>();
  for (const id of ['', 'two words', 'x'.repeat(129), 'é', '<script>', '"']) {
    const reply = await open.db({ SQL: 'select 1' }, { headers: { 'X-Request-ID': id } });
    made.add(String(reply.headers['x-request-id']));
  }
  assert.equal(made.size, 6);
  for (const id of made) assert.match(id, /^[\w-]{8,}$/);
});
