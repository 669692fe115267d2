// Replies that caches may keep, behind a real shared cache: users never see each other's rows, and no failure is stored.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import type { Reply } from '../../support/ask.ts';
import { bearing, createClientsFile, tokenOf } from '../../support/clients-file.ts';
import { useGateway } from '../../support/use-gateway.ts';
import { createNamedDirectory } from './support/named-directory.ts';
import { cacheStatusOf, type NginxCache, startNginxCache } from './support/nginx-cache.ts';

const rows = 3000;
const directory = createNamedDirectory(`
-- name: countries :many
-- for: *
-- max_age: 1h
-- param part: text(10) = null
select name, uuid() as run from countries where (:part is null or name = :part) order by name;

-- name: country :one
-- for: *
-- max_age: 1h
-- param name: text(10)
select name, uuid() as run from countries where name = :name;

-- name: long :many
-- for: *
-- max_age: 1h
select n from numbers order by n;

-- name: fresh :many
-- for: *
select uuid() as run;

-- name: mine :many
-- for: one, other
-- param who: text(10) = claims.who
select :who as who;

-- name: broken :many
-- for: *
-- max_age: 1h
select name from missing_table;

-- name: late :many
-- for: *
-- max_age: 1h
select repeat('x', 100) as filler, case when n = ${rows} then (select n from numbers) else 1 end as late
  from numbers order by n;
`);
const file = createClientsFile({
  one: { allow: 'named', may_claim: 'who' },
  other: { allow: 'named', may_claim: 'who' },
  anonymous: { allow: 'named' },
});
const origin = 'https://page.example';
const { gateway } = useGateway(
  { workers: 1, named: directory.path, clients: file.path, allow_origins: origin },
  {
    prepare: async (fresh) => {
      const values = Array.from({ length: rows }, (_, at) => `(${at + 1})`);
      await fresh.query(`
        create table countries (name varchar(10));
        insert into countries values ('Chad'), ('Fiji');
        create table numbers (n int primary key);
        insert into numbers values ${values.join(',')}`);
    },
    ready: async () => {
      [older, newer] = await Promise.all([
        startNginxCache(gateway.port, '1.0'),
        startNginxCache(gateway.port, '1.1'),
      ]);
    },
  },
);
let older: NginxCache;
let newer: NginxCache;
after(async () => {
  await Promise.all([older?.stop(), newer?.stop()]);
  directory.remove();
  file.remove();
});
let run = 0;
/** Makes the names of a test its own: nothing of an earlier one is in the store. */
let mark: (path: string) => string;
before(() => {
  mark = (path) => `${path}${path.includes('?') ? '&' : '?'}_timeout_ms=${20_000 + run}`;
});
const caches = () => {
  run += 1;
  return [older, newer];
};
const statuses = (replies: readonly Reply[]) => replies.map(cacheStatusOf);

test('a reply to a request without credentials is kept, and each format by itself', async () => {
  for (const cache of caches()) {
    const ask = (headers = {}) => cache.get(mark('/v1/named/countries'), headers);
    const first = await ask();
    const again = await ask();
    assert.deepEqual(statuses([first, again]), ['MISS', 'HIT']);
    assert.equal(again.text, first.text);
    assert.equal(first.headers['cache-control'], 'public, max-age=3600');
    assert.match(first.headers.vary ?? '', /Authorization, Origin, Accept, Accept-Encoding/);
    const csv = await ask({ Accept: 'text/csv' });
    assert.match(csv.text, /^name,run\r\n/);
    assert.equal(cacheStatusOf(await ask({ Accept: 'text/csv' })), 'HIT');
    assert.equal((await ask()).json<{ row_count: number }>().row_count, 2);
    const page = await ask({ Origin: origin });
    assert.equal(page.headers['access-control-allow-origin'], origin);
    assert.equal((await ask()).headers['access-control-allow-origin'], undefined);
  }
});

test('a long reply is kept compressed for those alone who take it so', async () => {
  for (const cache of caches()) {
    const path = mark('/v1/named/long');
    const plain = await cache.get(path);
    const zipped = await cache.get(path, { 'Accept-Encoding': 'gzip' });
    assert.equal(zipped.headers['content-encoding'], 'gzip');
    const { rows } = JSON.parse(gunzipSync(zipped.body).toString()) as { rows: object[] };
    assert.deepEqual(rows, plain.json<{ rows: object[] }>().rows);
    assert.equal(cacheStatusOf(await cache.get(path, { 'Accept-Encoding': 'gzip' })), 'HIT');
    assert.equal((await cache.get(path)).headers['content-encoding'], undefined);
  }
});

test('a reply to credentials is kept by no shared cache, and no other reply is theirs', async () => {
  for (const cache of caches()) {
    const path = mark('/v1/named/countries');
    const as = (name: string) => bearing(tokenOf(name));
    const replies = [
      await cache.get(path, as('one')),
      await cache.get(path, as('one')),
      await cache.get(path, as('other')),
      await cache.get(path),
      await cache.get(path, as('one')),
    ];
    assert.equal(replies[0]?.headers['cache-control'], 'private, max-age=3600');
    assert.deepEqual(statuses(replies), ['MISS', 'MISS', 'MISS', 'MISS', 'MISS']);
    const runs = new Set(replies.map((reply) => reply.text));
    assert.equal(runs.size, replies.length);
  }
});

test('users with different claims never get a stored reply', async () => {
  for (const cache of caches()) {
    const ask = (name: string, who: string) =>
      cache.get(mark('/v1/named/mine'), {
        ...bearing(tokenOf(name)),
        'Dbhttpd-Claims': JSON.stringify({ who }),
      });
    for (const [name, who] of [
      ['one', 'ann'],
      ['one', 'bob'],
      ['other', 'ann'],
      ['one', 'ann'],
    ] as const) {
      const reply = await ask(name, who);
      assert.deepEqual(reply.json<{ rows: object[] }>().rows, [{ who }]);
      assert.deepEqual(
        [cacheStatusOf(reply), reply.headers['cache-control']],
        ['MISS', 'no-store'],
      );
    }
  }
});

test('no failure is stored, and nothing of a statement without max_age', async () => {
  const paths = [
    ['/v1/named', 200],
    ['/v1/named/fresh', 200],
    ['/v1/named/nothing', 404],
    ['/v1/named/mine', 404],
    ['/v1/named/country?name=Nowhere', 404],
    ['/v1/named/country', 400],
    ['/v1/named/countries?part=far+too+long', 400],
    ['/v1/named/broken', 422],
  ] as const;
  for (const cache of caches()) {
    for (const [path, status] of paths) {
      for (let time = 0; time < 2; time += 1) {
        const reply = await cache.get(path === '/v1/named' ? path : mark(path));
        assert.deepEqual([reply.status, cacheStatusOf(reply)], [status, 'MISS'], path);
        assert.equal(reply.headers['cache-control'], 'no-store', path);
      }
    }
    const one = mark('/v1/named/country?name=Chad');
    assert.deepEqual(statuses([await cache.get(one), await cache.get(one)]), ['MISS', 'HIT']);
  }
});

test('a reply that fails once it has begun is not stored in any format', async () => {
  for (const cache of caches()) {
    for (const ending of ['', '.csv']) {
      const path = mark(`/v1/named/late${ending}`);
      for (let time = 0; time < 2; time += 1) {
        const reply = await cache.get(path).catch(() => null);
        // nginx ends a reply of an HTTP/1.0 upstream like a whole one. It must not keep it.
        if (reply !== null) assert.notEqual(cacheStatusOf(reply), 'HIT');
      }
    }
    const lines = { Accept: 'application/x-ndjson' };
    for (let time = 0; time < 2; time += 1) {
      const reply = await cache.get(mark('/v1/named/late'), lines);
      assert.match(reply.text, /"error"/);
      assert.deepEqual(
        [cacheStatusOf(reply), reply.headers['cache-control']],
        ['MISS', 'no-store'],
      );
    }
  }
});
