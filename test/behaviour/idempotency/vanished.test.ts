// A gateway whose host vanishes without a FIN keeps neither its keys nor its locks, and a server that vanishes keeps no session of the pool.
// Waits 10 s: the server ends a transaction in which nothing runs, and the gateway gives up a removal of keys. Both need little of the processor.
import assert from 'node:assert/strict';
import { after, describe, type TestContext, test } from 'node:test';
import {
  describeCreation,
  parseIdempotencyTable,
} from '../../../src/shared/database/idempotency-table.ts';
import { startProxiedDatabase } from '../../support/database/proxied-database.ts';
import { eventually } from '../../support/eventually.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { beginHeld } from '../../support/held.ts';
import { useProxiedGateway } from '../../support/use-gateway.ts';

const settings = { workers: 1, pool: 4, idempotency_table: 'request_keys' };
let other: Gateway;
after(() => other?.stop());
const { gateway, database, proxy } = useProxiedGateway(
  { ...settings, transaction_idle_timeout: '3s' },
  {
    prepare: async (fresh) => {
      await fresh.query(`
        create table t (id int primary key, v int) engine = innodb;
        insert into t values (1, 0), (2, 0), (3, 0);
        ${describeCreation(parseIdempotencyTable('request_keys', fresh.name))}`);
    },
    ready: async () => {
      other = await startGateway({ database, settings });
    },
  },
);

/** A gateway with one connection, through a proxy of its own. It looks for old keys about once a second. */
async function startPurging(t: TestContext) {
  await database.query(describeCreation(parseIdempotencyTable('short_keys', database.name)));
  const silent = await startProxiedDatabase(database);
  t.after(silent.stop);
  const purging = await startGateway({
    database: silent.target,
    settings: {
      workers: 1,
      pool: 1,
      idempotency_table: 'short_keys',
      idempotency_keep: '8s',
      statement_timeout: '8s',
    },
  });
  t.after(purging.stop);
  return { silent, purging };
}

describe('hosts that vanish', { concurrency: true }, () => {
  test('a repetition through another gateway is executed, and others get the rows that it had locked', async () => {
    const headers = { 'Idempotency-Key': 'vanished' };
    const update = (id: number) => `update t set v = v + 1 where id = ${id}`;
    const keyed = { statements: [{ sql: update(1), expect: { affected_rows: 1 } }] };
    const held = await beginHeld(gateway);
    assert.equal((await held.query(update(2))).status, 200);
    const rules = [1, 3].map((id) =>
      proxy.on(new RegExp(`where id = ${id}`), { kind: 'drop-reply' }, { times: 1 }),
    );
    const asked = [
      gateway.post('/v1/batch', { ...keyed, timeout_ms: 20_000 }, { headers }),
      gateway.post('/v1/batch', { statements: [{ sql: update(3) }], timeout_ms: 20_000 }),
    ];
    await eventually('all are at work', () => rules.every((rule) => rule.hits() === 1));
    proxy.partition();
    const rows = await Promise.all([
      other.post('/v1/batch', keyed, { headers }),
      ...[2, 3].map((id) => other.post('/v1/query', { sql: update(id) })),
    ]);
    for (const reply of rows) assert.equal(reply.status, 200, reply.text);
    assert.equal(rows[0]?.headers['idempotency-replayed'], undefined);
    proxy.heal();
    await Promise.all(asked);
    const left = await database.query('select v from t order by id');
    assert.deepEqual(
      left.map(({ v }) => v),
      [1, 1, 1],
    );
  });

  test('a connection on which old keys cannot be removed is given up, and its place is free', async (t) => {
    const { silent, purging } = await startPurging(t);
    const rule = silent.on(/innodb_lock_wait_timeout/, { kind: 'stall' }, { times: 1 });
    await eventually('the removal has begun', () => rule.hits() === 1);
    const ask = () => purging.post('/v1/query', { sql: 'select 1' });
    await eventually('a request is answered', async () => (await ask()).status === 200);
  });
});
