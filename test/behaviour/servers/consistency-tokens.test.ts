// X-Consistency-Token on requests and replies: which replies carry one, and what happens with a malformed token, a replica that lags, and writes
// that a failover has lost, which are reported with 409. consistency-history.test.ts tests that no read is older than what was seen.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { connect, Seen, sql } from '../../../src/client/client.ts';
import {
  describeCreation,
  parseIdempotencyTable,
} from '../../../src/shared/database/idempotency-table.ts';
import type { Reply } from '../../support/ask.ts';
import { type ReplicatedSet, startReplication } from '../../support/clusters/replication.ts';
import type { ReplicationServer } from '../../support/clusters/replication-server.ts';
import { chooseProgram } from '../../support/database/server-process.ts';
import { eventually } from '../../support/eventually.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { beginHeld } from '../../support/held.ts';
import type { Settings } from '../../support/ini-text.ts';
import { createWorkspace } from '../../support/workspace.ts';
import { createNamedDirectory } from '../named/support/named-directory.ts';

const origin = 'https://app.example';
const mayRun =
  process.env.DBHTTPD_TEST_MYSQL === undefined && chooseProgram().flavour === 'mariadb';
const skip = mayRun ? false : 'needs MariaDB servers of its own';

describe('the consistency token', { skip }, () => {
  const workspace = createWorkspace('tokens', () => undefined);
  const keyFile = join(workspace.path, 'key');
  const named = createNamedDirectory(`
-- name: counts :many
-- for: *
-- max_age: 1m
select count(*) as notes from notes;

-- name: texts :many
-- for: *
-- max_age: 1m
select text from pages;

-- name: fresh :many
-- for: *
select count(*) as notes from notes;
`);
  const running: Gateway[] = [];
  let set: ReplicatedSet;
  let gateway: Gateway;
  /** Each knows one replica alone, and has the key of the first one. */
  let near: Gateway;
  let far: Gateway;

  /** Before the primary and these replicas. */
  const start = async (replicas: readonly ReplicationServer[], settings: Settings = {}) => {
    const host = [set.primary(), ...replicas].map((one) => `${one.host}:${one.port}`).join(', ');
    const started = await startGateway({
      database: { ...set.target, host },
      settings: { reads: 'replicas', workers: 1, ...settings },
    });
    running.push(started);
    return started;
  };

  before(async () => {
    set = await startReplication();
    await set.primary().query(`create table notes (id int primary key, n int not null);
      insert into notes values (1, 0);
      create table pages (id int primary key, text longtext not null);
      insert into pages select seq, repeat('x', 60000) from seq_1_to_20;
      ${describeCreation(parseIdempotencyTable('request_keys', set.target.name))}`);
    await set.waitForCatchUp();
    writeFileSync(keyFile, randomBytes(32), { mode: 0o600 });
    gateway = await start(set.replicas(), {
      allow_origins: origin,
      idempotency_table: 'request_keys',
      session_key_file: keyFile,
      named: named.path,
    });
    const [one, other] = set.replicas() as [ReplicationServer, ReplicationServer];
    near = await start([one], { session_key_file: keyFile });
    // It may lag for as long as a test takes.
    far = await start([other], { session_key_file: keyFile, max_lag: '1m' });
    await Promise.all([gateway, near, far].map(readable));
  });

  after(async () => {
    await Promise.all(running.map((one) => one.stop()));
    await set.stop();
    workspace.remove();
    named.remove();
  });

  test('the warnings of a statement are listed, although the position is asked behind it', async () => {
    const sql = "select cast('x' as signed) as n, count(*) from notes";
    const reply = await gateway.post('/v1/query', { sql, show_warnings: true });
    const { warning_list: list } = reply.json<{ warning_list: readonly { errno: number }[] }>();
    assert.deepEqual(
      list.map(({ errno }) => errno),
      [1292],
    );
    assert.match(String(reply.headers['x-consistency-token']), /./);
  });

  test('every reply to SQL carries a token: results, errors, batches, replays and streams', async () => {
    const { dbPost, db, post, request } = gateway;
    const key = { headers: { 'Idempotency-Key': 'tokens-1' } };
    const insert = { statements: [{ sql: 'insert into notes values (100, 1)' }] };
    const long = 'select text from pages';
    const replies: Record<string, Reply> = {
      db: await dbPost({ SQL: 'select n from notes' }),
      'db by GET': await db({ SQL: 'select n from notes' }),
      'db of several': await dbPost({ SQL: 'select 1; select 2' }),
      'db that writes': await dbPost({ SQL: 'update notes set n = n + 1' }),
      'db read-only': await dbPost({ SQL: 'select n from notes', READ_ONLY: true }),
      "MySQL's error by db": await dbPost({ SQL: 'select nothing' }),
      query: await post('/v1/query', { sql: 'select n from notes' }),
      QUERY: await request('/v1/query', {
        method: 'QUERY',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ sql: 'select n from notes' }),
      }),
      "MySQL's error by query": await post('/v1/query', { sql: 'select nothing' }),
      batch: await post('/v1/batch', { statements: [{ sql: 'update notes set n = n + 1' }] }),
      "MySQL's error by batch": await post('/v1/batch', {
        statements: [{ sql: 'select nothing' }],
      }),
      'batch with a key': await post('/v1/batch', insert, key),
      'its replay': await post('/v1/batch', insert, key),
      'long query': await post('/v1/query', { sql: long }),
      'long db': await dbPost({ SQL: long, READ_ONLY: true }),
    };
    for (const [name, { status, headers, text }] of Object.entries(replies)) {
      assert.match(
        String(headers['x-consistency-token']),
        /^[\w.-]{10,4096}$/,
        `${name}: ${status} ${text.slice(0, 300)}`,
      );
      assert.equal(headers['x-consistency'], undefined, name);
    }
    assert.equal(replies['its replay']?.headers['idempotency-replayed'], 'true');
  });

  test('identical reads that share one execution each get a token', async () => {
    const replies = await Promise.all(
      Array.from({ length: 30 }, () => gateway.post('/v1/query', { sql: 'select n from notes' })),
    );
    for (const { headers } of replies) assert.ok(headers['x-consistency-token']);
  });

  test('a reply that caches may keep has no token, also if it is long, and a token says nothing there', async () => {
    const cached = (await gateway.get('/v1/named/counts')).headers;
    assert.equal(cached['cache-control'], 'public, max-age=60');
    for (const path of ['counts', 'counts.csv', 'texts', 'texts.csv']) {
      for (const method of ['GET', 'HEAD']) {
        const options = { method, headers: { 'X-Consistency-Token': 'of another gateway' } };
        const { status, headers } = await gateway.request(`/v1/named/${path}`, options);
        assert.equal(status, 200, path);
        assert.match(String(headers['cache-control']), /max-age=60/, path);
        assert.equal(headers['x-consistency-token'], undefined, path);
        assert.equal(headers['x-consistency'], undefined, path);
      }
    }
    const lines = await gateway.get('/v1/named/counts', {
      headers: { Accept: 'application/x-ndjson' },
    });
    const posted = await gateway.post('/v1/named/counts', { params: {} });
    const fresh = await gateway.get('/v1/named/fresh');
    for (const { status, headers } of [lines, posted, fresh]) {
      assert.equal(status, 200);
      assert.equal(headers['cache-control'], 'no-store');
      assert.ok(headers['x-consistency-token'], 'no cache keeps it');
    }
  });

  test('a request that is refused before any SQL gets no token', async () => {
    const { headers } = await gateway.dbPost({ SQL: 1 });
    assert.equal(headers['x-consistency-token'], undefined);
  });

  test('a malformed token is answered with 400, and nothing is run', async () => {
    const seen = await gateway.dbPost({ SQL: 'select 1' });
    const token = String(seen.headers['x-consistency-token']);
    const forged = `${token.slice(0, -1)}${token.endsWith('A') ? 'B' : 'A'}`;
    for (const text of ['x', '1.', '1..', forged, `${token}, ${token}`, 'a'.repeat(5_000)]) {
      const options = { headers: { 'X-Consistency-Token': text } };
      const write = 'insert into notes values (200, 1)';
      const byDb = await gateway.dbPost({ SQL: write }, options);
      assert.equal(byDb.status, 400, byDb.text);
      assert.match(byDb.text, /CONSISTENCY_TOKEN/);
      for (const reply of [
        await gateway.post('/v1/query', { sql: write }, options),
        await gateway.post('/v1/batch', { statements: [{ sql: write }] }, options),
      ]) {
        assert.equal(reply.status, 400, reply.text);
        assert.equal(reply.headers['content-type'], 'application/problem+json');
        assert.equal(reply.json<{ code: string }>().code, 'CONSISTENCY_TOKEN');
      }
    }
    assert.deepEqual(await set.primary().query('select id from notes where id = 200'), []);
  });

  test('pages of other origins may send and read the token', async () => {
    const headers = { Origin: origin };
    const reply = await gateway.post('/v1/query', { sql: 'select 1' }, { headers });
    assert.match(
      String(reply.headers['access-control-expose-headers']),
      /X-Consistency-Token, X-Consistency/,
    );
    const preflight = await gateway.request('/v1/query', {
      method: 'OPTIONS',
      headers: {
        ...headers,
        'Access-Control-Request-Method': 'POST',
        'Access-Control-Request-Headers': 'x-consistency-token',
      },
    });
    assert.match(String(preflight.headers['access-control-allow-headers']), /X-Consistency-Token/);
  });

  test('gateways with the same key read each other’s tokens, and no others', async () => {
    const [replica] = set.replicas() as [ReplicationServer];
    const otherKey = join(workspace.path, 'other-key');
    writeFileSync(otherKey, randomBytes(48), { mode: 0o600 });
    const stranger = await start([replica], { session_key_file: otherKey });
    const open = await start([replica]);
    const tokenOf = async (one: Gateway) =>
      String((await one.dbPost({ SQL: 'select 1' })).headers['x-consistency-token']);
    const ask = async (one: Gateway, token: string) =>
      (await one.dbPost({ SQL: 'select 1' }, { headers: { 'X-Consistency-Token': token } })).status;
    const token = await tokenOf(gateway);
    assert.equal(await ask(near, token), 200);
    assert.equal(await ask(stranger, token), 400);
    assert.equal(await ask(near, await tokenOf(stranger)), 400);
    assert.equal(await ask(near, await tokenOf(open)), 400, 'unsigned');
    assert.equal(await ask(open, await tokenOf(open)), 200);
  });

  test('if a replica does not reach the token, the primary answers', async () => {
    const [, late] = set.replicas() as [ReplicationServer, ReplicationServer];
    const read = { SQL: "select concat('n', n) from notes where id = 1", READ_ONLY: true };
    await set.lag(late, 'stopped');
    try {
      await set.primary().query('update notes set n = 4711 where id = 1');
      const seen = await eventually('the other replica shows it', async () => {
        const reply = await near.dbPost(read);
        return reply.text.includes('n4711') ? reply : null;
      });
      const headers = { 'X-Consistency-Token': String(seen.headers['x-consistency-token']) };
      const refused = await far.dbPost({ ...read, TIMEOUT: 200 }, { headers });
      assert.notEqual(refused.status, 200, 'it waits for its replica, and not beyond its deadline');
      const moved = await far.dbPost(read, { headers });
      assert.match(moved.text, /n4711/);
      assert.equal(moved.headers['x-consistency'], undefined);
      const query = { sql: read.SQL, read_only: true };
      assert.match((await far.post('/v1/query', query, { headers })).text, /n4711/);
    } finally {
      await set.lag(late, null);
    }
  });

  test('replicas answer a client that writes again as soon as they have caught up', async () => {
    const numberOf = (reply: Reply) =>
      reply.json<{ RESULT: { ROWS: [[number]] } }>().RESULT.ROWS[0][0];
    const read = { SQL: 'select @@server_id', READ_ONLY: true };
    const written = await gateway.dbPost({ SQL: 'update notes set n = n + 1 where id = 1' });
    let token = String(written.headers['x-consistency-token']);
    const ask = async () => {
      const reply = await gateway.dbPost(read, { headers: { 'X-Consistency-Token': token } });
      assert.equal(reply.headers['x-consistency'], undefined);
      return reply;
    };
    const primary = numberOf(await gateway.dbPost({ SQL: 'select @@server_id' }));
    await set.waitForCatchUp();
    const first = await eventually(
      'both replicas answer beside the token of the write',
      async () => {
        const replies = [await ask(), await ask(), await ask()];
        const numbers = new Set(replies.map(numberOf));
        return numbers.has(primary) || numbers.size === 1 ? null : (replies[0] ?? null);
      },
    );
    token = String(first.headers['x-consistency-token']);
    const numbers = new Set<number>();
    for (let count = 0; count < 20; count += 1) {
      const reply = await ask();
      numbers.add(numberOf(reply));
      token = String(reply.headers['x-consistency-token']);
    }
    assert.deepEqual([numbers.has(primary), numbers.size], [false, 2]);
  });

  test('a write with a token runs once, even if the gateway must first query the position of the server', async () => {
    const before = await gateway.dbPost({ SQL: 'select n from notes', READ_ONLY: true });
    const headers = { 'X-Consistency-Token': String(before.headers['x-consistency-token']) };
    const write = { statements: [{ sql: 'insert into notes values (300, 1)' }] };
    for (const one of [gateway, near]) {
      await set.primary().query('delete from notes where id = 300');
      const reply = await one.post('/v1/batch', write, { headers });
      assert.equal(reply.status, 200, reply.text);
    }
    assert.equal((await set.primary().query('select id from notes where id = 300')).length, 1);
  });

  test('dbhttpd/client sends the token on, also in a stream and a batch, and it can be given to another reader', async () => {
    const seen = new Seen();
    const mine = connect({ url: gateway.url }).with({ seen });
    await mine.query`insert into notes values (400, 1)`;
    const written = seen.token;
    const ids: unknown[] = [];
    const reading = mine.with({ readOnly: true });
    for await (const { id } of reading.stream<{
      id: number;
    }>`select id from notes where id = 400`) {
      ids.push(id);
    }
    assert.deepEqual(ids, [400]);
    await mine.batch([sql`update notes set n = 2 where id = 400`]);
    assert.ok(written !== null && seen.token !== null && seen.token !== written && seen.isVerified);
    const another = connect({ url: gateway.url }).with({ seen: new Seen(seen.token) });
    const { rows } = await another.with({ readOnly: true })
      .query`select n from notes where id = 400`;
    assert.deepEqual(rows, [{ n: 2 }]);
  });

  test('a request after a transaction of dbhttpd/client sees its changes', async () => {
    const seen = new Seen();
    const mine = connect({ url: gateway.url }).with({ seen });
    for (const n of [1, 2, 3]) {
      const before = seen.token;
      await mine.transaction(async (tx) => {
        await tx.query`insert into notes values (${500 + n}, ${n})`;
        await tx.query`select n from notes where id = ${500 + n}`;
      });
      assert.notEqual(seen.token, before);
      const { rows } = await mine.with({ readOnly: true })
        .query`select n from notes where id = ${500 + n}`;
      assert.deepEqual([rows, seen.isVerified], [[{ n }], true]);
    }
  });

  test('a statement of a transaction that is older than its token is unverified, and the token remains', async () => {
    const [, late] = set.replicas() as [ReplicationServer, ReplicationServer];
    const read = { sql: 'select n from notes where id = 1', read_only: true };
    const rowsOf = (reply: Reply) => reply.json<{ rows: unknown }>().rows;
    await set.waitForCatchUp();
    await set.lag(late, 'stopped');
    try {
      const begun = await far.post('/v1/transaction', { read_only: true });
      const { transaction } = begun.json<{ transaction: string }>();
      const number = await far.post('/v1/query', { transaction, sql: 'select @@server_id' });
      assert.notDeepEqual(rowsOf(number), [['1']], 'it is on the replica that lags');
      const written = await far.dbPost({ SQL: 'update notes set n = 9000 where id = 1' });
      const headers = { 'X-Consistency-Token': String(written.headers['x-consistency-token']) };
      const older = await far.post('/v1/query', { transaction, sql: read.sql }, { headers });
      assert.notDeepEqual(rowsOf(older), [[9000]]);
      const ended = await far.post('/v1/transaction/commit', { transaction }, { headers });
      for (const reply of [older, ended]) {
        assert.equal(reply.status, 200, reply.text);
        assert.equal(reply.headers['x-consistency'], 'unverified');
        const token = String(reply.headers['x-consistency-token']);
        const later = await far.post('/v1/query', read, {
          headers: { 'X-Consistency-Token': token },
        });
        assert.deepEqual([rowsOf(later), later.headers['x-consistency']], [[[9000]], undefined]);
      }
    } finally {
      await set.lag(late, null);
    }
  });

  test('a COMMIT is verified, also if the transaction was begun with a token of a replica', async () => {
    const seen = new Seen();
    const mine = connect({ url: gateway.url }).with({ seen });
    await mine.with({ readOnly: true }).query`select n from notes where id = 1`;
    // A primary that needs more than a second to show what a replica has shown cannot tell.
    await eventually('the primary shows it in time', async () => {
      const reading = await mine.transaction(async (tx) => {
        await tx.query`select n from notes where id = 1`;
        return seen.isVerified;
      });
      assert.equal(reading, false, 'a snapshot may be older than what its client has seen');
      return seen.isVerified;
    });
  });

  test('a COMMIT that is repeated is unverified: nothing bounds the earlier one any more', async () => {
    const held = await beginHeld(gateway);
    assert.equal((await held.query('update notes set n = 9002 where id = 1')).status, 200);
    const committed = '{"committed":true}';
    assert.equal((await held.commit()).text, committed);
    for (const [again, text] of [
      [await held.commit(), committed],
      [await held.rollback(), '{"rolled_back":false,"committed":true}'],
    ] as const) {
      assert.deepEqual([again.text, again.headers['x-consistency']], [text, 'unverified']);
    }
  });

  test('a COMMIT with a token of another server is unverified: nothing has waited for that', async () => {
    const begun = await gateway.post('/v1/transaction', {});
    const { transaction } = begun.json<{ transaction: string }>();
    const write = 'update notes set n = 9001 where id = 1';
    const written = await gateway.post('/v1/query', { transaction, sql: write });
    assert.equal(written.headers['x-consistency'], undefined);
    const read = { sql: 'select @@server_id', read_only: true };
    const elsewhere = await gateway.post('/v1/query', read);
    assert.notDeepEqual(elsewhere.json<{ rows: unknown }>().rows, [['1']]);
    const headersOf = ({ headers }: Reply) => ({
      headers: { 'X-Consistency-Token': String(headers['x-consistency-token']) },
    });
    const ended = await gateway.post(
      '/v1/transaction/commit',
      { transaction },
      headersOf(elsewhere),
    );
    assert.deepEqual([ended.status, ended.headers['x-consistency']], [200, 'unverified']);
    const later = await near.post(
      '/v1/query',
      { sql: 'select n from notes where id = 1', read_only: true },
      headersOf(ended),
    );
    assert.deepEqual(later.json<{ rows: unknown }>().rows, [[9001]]);
    assert.equal(later.headers['x-consistency'], undefined);
  });

  test('a long reply that is read at several moments reports that its token is unverified', async () => {
    const long = 'select text from pages; select n from notes';
    const { status, headers } = await gateway.dbPost({ SQL: long });
    assert.equal(status, 200);
    assert.equal(headers['x-consistency'], 'unverified');
  });

  // This is the last test, because the servers lose their first primary in it.
  test('after a failover a token shows the kept writes, and a token of lost writes is answered with 409 TOKEN_LOST', async () => {
    const former = set.primary();
    await former.query('create table kept (id int primary key)');
    const write = (id: number) => gateway.dbPost({ SQL: `insert into kept values (${id})` });
    const kept = await write(1);
    await set.waitForCatchUp();
    for (const replica of set.replicas()) await replica.query('stop slave io_thread');
    const lost = await write(2);
    assert.equal(lost.status, 200, lost.text);
    await former.kill();
    const [promoted] = set.replicas();
    assert.ok(promoted);
    await set.promote(promoted);
    await eventually('the new primary is written to', async () => (await write(3)).status === 200);

    const headersOf = ({ headers }: typeof lost) => ({
      headers: { 'X-Consistency-Token': String(headers['x-consistency-token']) },
    });
    const ids = { SQL: "select group_concat('n', id order by id) from kept" };
    for (const asked of [ids, { ...ids, READ_ONLY: true }]) {
      const seen = await gateway.dbPost(asked, headersOf(kept));
      assert.equal(seen.status, 200, seen.text);
      assert.match(seen.text, /n1/);
    }
    const insert = 'insert into kept values (4)';
    for (const reply of [
      await gateway.dbPost(ids, headersOf(lost)),
      await gateway.dbPost({ ...ids, READ_ONLY: true }, headersOf(lost)),
      await gateway.dbPost({ SQL: insert }, headersOf(lost)),
      await gateway.post('/v1/query', { sql: ids.SQL, read_only: true }, headersOf(lost)),
      await gateway.post('/v1/query', { sql: insert }, headersOf(lost)),
      await gateway.post('/v1/batch', { statements: [{ sql: insert }] }, headersOf(lost)),
      await gateway.post(
        '/v1/query',
        { sql: "select repeat('x', 60000) from seq_1_to_20" },
        headersOf(lost),
      ),
    ]) {
      assert.equal(reply.status, 409, reply.text.slice(0, 500));
      assert.match(reply.text, /TOKEN_LOST/);
      assert.equal(reply.headers['x-consistency-token'], undefined);
    }
    const { transaction } = (await gateway.post('/v1/transaction', {})).json<{
      transaction: string;
    }>();
    for (const [path, body] of [
      ['/v1/query', { transaction, sql: ids.SQL }],
      ['/v1/transaction/commit', { transaction }],
    ] as const) {
      const reply = await gateway.post(path, body, headersOf(lost));
      assert.deepEqual([reply.status, reply.headers['x-consistency']], [200, 'unverified']);
      const later = await gateway.dbPost(ids, headersOf(reply));
      assert.match(later.text, /TOKEN_LOST/, 'it is still compared with what was seen before');
    }
    const there = await promoted.query('select id from kept order by id');
    assert.deepEqual(
      there.map(({ id }) => id),
      [1, 3],
      'no write beside a lost token was run',
    );
  });

  /** Replicas are read from once it is known how far behind they are. */
  async function readable({ dbPost }: Gateway): Promise<void> {
    await eventually('a replica answers', async () => {
      const { text } = await dbPost({ SQL: 'select @@server_id', READ_ONLY: true });
      return !/\[\[1\]\]/.test(text);
    });
  }
});

describe('the consistency token of servers without log_slave_updates', { skip }, () => {
  let set: ReplicatedSet;
  let gateway: Gateway;

  before(async () => {
    set = await startReplication({ args: ['--log-slave-updates=0'] });
    await set.primary().query('create table kept (id int primary key)');
    await set.waitForCatchUp();
    gateway = await startGateway({
      database: set.target,
      settings: { reads: 'replicas', workers: 1 },
    });
  });
  after(async () => {
    await gateway?.stop();
    await set?.stop();
  });

  const ids = {
    SQL: "select @@server_id, group_concat('n', id order by id separator ' ') from kept",
  };
  const write = (id: number) => gateway.dbPost({ SQL: `insert into kept values (${id})` });
  const ask = (asked: { readonly SQL: string; readonly READ_ONLY?: boolean }, seen: Reply) =>
    gateway.dbPost(asked, {
      headers: { 'X-Consistency-Token': String(seen.headers['x-consistency-token']) },
    });
  const written = (id: number) =>
    eventually('the new primary is written to', async () =>
      /"SUCCESS":true/.test((await write(id)).text),
    );

  test('a former primary that follows another server bounds nothing: its log has only its own writes', async () => {
    const [former, promoted] = set.servers as [ReplicationServer, ReplicationServer];
    await write(1);
    await set.waitForCatchUp();
    await former.setReadOnly(true);
    await set.promote(promoted);
    await set.follow(former);
    await written(2);
    const reply = await eventually('the former primary answers', async () => {
      const read = await gateway.dbPost({ ...ids, READ_ONLY: true });
      return /\[1, ?"n1 n2"\]/.test(read.text) ? read : null;
    });
    assert.equal(reply.headers['x-consistency'], 'unverified');
    assert.equal(reply.headers['x-consistency-token'], undefined);
  });

  // This is the last test, because the servers lose their second primary in it.
  test('after a failover a token shows the kept writes, and a token of lost writes is unverified: its loss cannot be proven', async () => {
    const former = set.primary();
    const kept = await write(3);
    await set.waitForCatchUp();
    for (const replica of set.replicas()) await replica.query('stop slave io_thread');
    const lost = await write(4);
    assert.equal(lost.status, 200, lost.text);
    await former.kill();
    await set.promote(set.servers[2] as ReplicationServer);
    await written(5);

    const read = await ask(ids, kept);
    assert.equal(read.status, 200, read.text);
    assert.match(read.text, /\[3, ?"n1 n2 n3 n5"\]/);
    const next = await ask({ SQL: 'insert into kept values (6)' }, kept);
    assert.equal(next.status, 200, next.text);
    for (const { headers } of [read, next]) {
      assert.match(String(headers['x-consistency-token']), /./);
      assert.equal(headers['x-consistency'], undefined);
    }
    assert.match((await ask({ ...ids, READ_ONLY: true }, next)).text, /n6/);
    for (const asked of [ids, { SQL: 'insert into kept values (7)' }]) {
      const unsure = await ask(asked, lost);
      assert.equal(unsure.status, 200, unsure.text);
      assert.equal(unsure.headers['x-consistency'], 'unverified');
    }
    const headers = { 'X-Consistency-Token': String(lost.headers['x-consistency-token']) };
    const begun = await gateway.post('/v1/transaction', {}, { headers });
    assert.deepEqual([begun.status, begun.headers['x-consistency']], [201, 'unverified']);
  });
});
