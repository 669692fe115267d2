// Changes under a gateway with several servers: a name that leads elsewhere, a password, a primary during a COMMIT, a start without servers.
// The tests share one set of servers. Each test except the last leaves it whole.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import {
  describeCreation,
  parseIdempotencyTable,
} from '../../../src/shared/database/idempotency-table.ts';
import { parsePrimaryMemory } from '../../../src/shared/servers/primary-memory.ts';
import { makeGhost } from '../../support/clusters/ghost.ts';
import {
  type ReplicatedSet,
  replicationHere,
  startReplication,
} from '../../support/clusters/replication.ts';
import type { ReplicationServer } from '../../support/clusters/replication-server.ts';
import {
  readerOf,
  readersOf,
  readyReasonsOf,
  reasonsOf,
  rolesBecome,
  rolesOf,
  startBefore,
} from '../../support/clusters/several-servers.ts';
import { type FaultProxy, startFaultProxy } from '../../support/database/fault-proxy.ts';
import { chooseProgram } from '../../support/database/server-process.ts';
import { eventually } from '../../support/eventually.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { createWorkspace } from '../../support/workspace.ts';

const canRun =
  process.env.DBHTTPD_TEST_MYSQL === undefined && chooseProgram().flavour === 'mariadb';
let set: ReplicatedSet;
before(async () => {
  if (!canRun) return;
  set = await startReplication();
  await set.primary().query('create table written (id int, index (id)) engine = innodb');
  await set
    .primary()
    .query(describeCreation(parseIdempotencyTable('request_keys', set.target.name)));
  await set.waitForCatchUp();
});
after(async () => {
  await stopShared();
  await set?.stop();
});

const serverAt = (at: number) => set.servers[at] as ReplicationServer;

/** The gateway of the tests that find it before a whole set; null until one needs it. Its second section has no patience. */
let shared: Gateway | null = null;

async function withSharedGateway(use: (gateway: Gateway) => Promise<void>): Promise<void> {
  const own = { statement_timeout: '15s', reads: 'replicas', pool: 3 };
  shared ??= await startGateway({
    database: set.target,
    settings: { workers: 1, ...own, idempotency_table: 'request_keys' },
    beside: { hasty: { database: set.target, settings: { ...own, failover_wait: '300ms' } } },
  });
  for (const section of [shared.section, 'hasty']) {
    await rolesBecome({ ...shared, section }, ['primary', 'replica', 'replica']);
  }
  await use(shared);
}

async function stopShared(): Promise<void> {
  await shared?.stop();
  shared = null;
}

async function withGateway(
  settings: Parameters<typeof startBefore>[1],
  use: (gateway: Gateway) => Promise<void>,
  target: ReplicatedSet['target'] = set.target,
): Promise<void> {
  const gateway = await startBefore({ target }, settings);
  try {
    await use(gateway);
  } finally {
    await gateway.stop();
  }
}

const write = (gateway: Gateway, id: number, more: object = {}) =>
  gateway.post('/v1/query', { sql: 'insert into written values (?)', params: [id], ...more });

async function count(server: ReplicationServer, id: number): Promise<number> {
  const [row] = await server.query('select count(*) as n from written where id = ?', [id]);
  return Number(row?.n);
}

test('failover_wait bounds how long a request waits for a primary: 503 NO_PRIMARY, and nothing was executed', async (t) => {
  if (!replicationHere(t)) return;
  await withSharedGateway(async (gateway) => {
    const hasty = { ...gateway, section: 'hasty' };
    await serverAt(0).setReadOnly(true);
    try {
      await rolesBecome(hasty, ['replica', 'replica', 'replica']);
      const fromMs = performance.now();
      const reply = await write(gateway, 1, { section: 'hasty' });
      const { code, outcome, retryable } = reply.json<Record<string, unknown>>();
      assert.deepEqual(
        [reply.status, code, outcome, retryable],
        [503, 'NO_PRIMARY', 'not_executed', true],
      );
      assert.ok(Number(reply.headers['retry-after']) > 0);
      const tookMs = performance.now() - fromMs;
      assert.ok(tookMs >= 290 && tookMs < 5_000, `${tookMs}`);
    } finally {
      await serverAt(0).setReadOnly(false);
    }
    await rolesBecome(hasty, ['primary', 'replica', 'replica']);
    assert.equal(await count(serverAt(0), 1), 0);
  });
});

test('a batch with a key whose COMMIT is refused by a primary that has become read-only runs once more on the next', async (t) => {
  if (!replicationHere(t)) return;
  await withSharedGateway(async (gateway) => {
    const [first, second] = [serverAt(0), serverAt(1)];
    const held = first.link.on(/^commit/i, { kind: 'hold' }, { times: 1 });
    const statements = [{ sql: 'insert into written values (2)' }];
    const headers = { 'Idempotency-Key': 'switch' };
    const asked = gateway.post('/v1/batch', { statements }, { headers });
    await eventually('COMMIT is on its way', () => held.hits() > 0);
    await first.setReadOnly(true);
    first.link.release();
    await set.waitForCatchUp();
    await set.promote(second);
    const reply = await asked;
    assert.equal(reply.status, 200, reply.text);
    assert.equal(await count(second, 2), 1);
    assert.equal(await count(first, 2), 0);
    const again = await gateway.post('/v1/batch', { statements }, { headers });
    assert.deepEqual([again.status, again.headers['idempotency-replayed']], [200, 'true']);
    await set.follow(first);
    await rolesBecome(gateway, ['replica', 'primary', 'replica']);
  });
  await set.waitForCatchUp();
  await serverAt(1).setReadOnly(true);
  await set.promote(serverAt(0));
  await set.follow(serverAt(1));
});

test('a name that leads to another server is followed, though the one before still answers', async (t) => {
  if (!replicationHere(t)) return;
  // It would see two servers that can be written to, and remember for the next tests that one was passed over.
  await stopShared();
  const workspace = createWorkspace('changes', () => {});
  let upstream = serverAt(0).ownPort;
  const name: FaultProxy = await startFaultProxy(() => ({ host: '127.0.0.1', port: upstream }));
  const host = `127.0.0.1:${name.port}, 127.0.0.1:${serverAt(2).port}`;
  try {
    await withGateway(
      { reads: 'replicas', state_dir: workspace.path },
      async (gateway) => {
        await rolesBecome(gateway, ['primary', 'replica']);
        // Sessions of every kind are open there.
        await Promise.all(Array.from({ length: 8 }, (_, at) => write(gateway, 100 + at)));
        assert.equal(await readerOf(gateway, false), 1);
        await serverAt(0).setReadOnly(true);
        await set.waitForCatchUp();
        await set.promote(serverAt(1));
        upstream = serverAt(1).ownPort;
        const fromMs = performance.now();
        // A statement on a server that has become read-only gets that error; then the gateway knows.
        const isServed = async () => (await write(gateway, 3)).status === 200;
        await eventually('it is served', isServed);
        t.diagnostic(`served after ${Math.round(performance.now() - fromMs)} ms`);
        assert.equal(await count(serverAt(1), 3), 1);
        for (let left = 8; left > 0; left -= 1) assert.equal(await readerOf(gateway, false), 2);
        await rolesBecome(gateway, ['primary', 'replica']);

        // The server is back, and this time both can be written to: new connections show it. The gateway follows the first one because that
        // one has everything that the gateway has seen the second one write.
        await eventually('what the second has written is remembered', () => {
          const file = readFileSync(join(workspace.path, 'world.primary'), 'utf8');
          const { taken, position } = parsePrimaryMemory(file)?.primary ?? {};
          return position !== taken;
        });
        await set.follow(serverAt(0));
        await set.waitForCatchUp();
        await set.promote(serverAt(0));
        upstream = serverAt(0).ownPort;
        const slow = { sql: 'select sleep(0.2)' };
        await Promise.all(Array.from({ length: 8 }, () => gateway.post('/v1/query', slow)));
        await eventually(
          'it is the first again',
          async () => (await readerOf(gateway, false)) === 1,
        );
        for (let left = 8; left > 0; left -= 1) assert.equal(await readerOf(gateway, false), 1);
      },
      { ...set.target, host },
    );
  } finally {
    await name.stop();
    workspace.remove();
    await set.follow(serverAt(1));
  }
});

test('a server that does not take a password is left out, and the log has the reason', async (t) => {
  if (!replicationHere(t)) return;
  const { user, password } = set.target;
  const change = (server: ReplicationServer, to: string) =>
    server.query(`set sql_log_bin = 0; alter user '${user}'@'127.0.0.1' identified by '${to}'`);
  const refusal = "the database server refuses the gateway's login (errno 1045)";
  try {
    await withSharedGateway(async (gateway) => {
      await change(serverAt(1), 'another');
      serverAt(1).link.cutAll();
      await rolesBecome(gateway, ['primary', 'unusable', 'replica']);
      assert.deepEqual(await readersOf(gateway, 6), [3]);
      // The line about its role has another reason if the cut met a question to the server.
      const reported = new RegExp(
        `(?:backend|address)=127.0.0.1:${serverAt(1).port} .*Access denied`,
      );
      await eventually('the log tells why', () => reported.test(gateway.log()));
      assert.ok(!gateway.log().includes(password));
      // The cut may have met an attempt to connect, whose reason is another one.
      for (const ask of [reasonsOf, readyReasonsOf]) {
        await eventually(`${ask.name} has the reason`, async () =>
          (await ask(gateway))[1]?.startsWith(refusal),
        );
      }
      await change(serverAt(1), password);
      await rolesBecome(gateway, ['primary', 'replica', 'replica']);

      await change(serverAt(0), 'another');
      serverAt(0).link.cutAll();
      await rolesBecome(gateway, ['unusable', 'replica', 'replica']);
      assert.deepEqual(await readersOf(gateway, 6), [2, 3]);
      const waiting = write(gateway, 4);
      await change(serverAt(0), password);
      assert.equal((await waiting).status, 200);
      await rolesBecome(gateway, ['primary', 'replica', 'replica']);

      for (const server of set.servers) {
        await change(server, 'another');
        server.link.cutAll();
      }
      await eventually('/readyz names the refusal', async () => {
        const { code, errno } = (await gateway.get('/readyz')).json<Record<string, unknown>>();
        return code === 'DATABASE_REFUSED' && errno === 1045;
      });
      for (const server of set.servers) await change(server, password);
      await rolesBecome(gateway, ['primary', 'replica', 'replica']);
    });
  } finally {
    for (const server of set.servers) await change(server, password);
  }
});

test('a gateway that starts before its servers serves as soon as one is up', async (t) => {
  if (!replicationHere(t)) return;
  for (const { link } of set.servers) {
    await link.listen(false);
    link.cutAll();
  }
  try {
    await withGateway({}, async (gateway) => {
      const ready = await gateway.get('/readyz');
      assert.deepEqual([ready.status, ready.json<{ code: string }>().code], [503, 'NO_SERVER']);
      const waiting = write(gateway, 5);
      for (const { link } of set.servers) await link.listen(true);
      assert.equal((await waiting).status, 200);
      await rolesBecome(gateway, ['primary', 'replica', 'replica']);
    });
  } finally {
    for (const { link } of set.servers) await link.listen(true);
  }
});

test('a replica with changes that were lost with the primary gets no reads, even from a gateway that starts during the failover', async (t) => {
  if (!replicationHere(t)) return;
  await withSharedGateway(async (before) => {
    const { holder, promoted } = await makeGhost(set, {
      lost: 'insert into written values (666)',
      after: 'insert into written values (6)',
    });
    await withGateway({ reads: 'replicas' }, async (later) => {
      for (const gateway of [before, later]) {
        await eventually('it is left out', async () => {
          const role = (await rolesOf(gateway))[set.servers.indexOf(holder)];
          return role === 'unusable';
        });
        assert.deepEqual(await readersOf(gateway, 8), [promoted.serverId]);
        assert.equal((await write(gateway, 7)).status, 200);
      }
    });
    assert.equal(await count(promoted, 7), 2);
    assert.equal(await count(holder, 666), 1);
  });
});
