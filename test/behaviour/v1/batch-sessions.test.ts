// The changes of a batch to its session are gone before another request gets it. A batch that changes nothing costs no reset.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  describeCreation,
  parseIdempotencyTable,
} from '../../../src/shared/database/idempotency-table.ts';
import { readMetric } from '../../support/scrape.ts';
import { useGateway } from '../../support/use-gateway.ts';

const { gateway, database } = useGateway(
  { workers: 1, pool: 1, idempotency_table: 'request_keys' },
  {
    prepare: async (database) => {
      await database.query(`
        create table t (id int auto_increment primary key, v int) engine = innodb;
        create table watched (v int) engine = innodb;
        create trigger locks after insert on watched for each row set @found = get_lock('batch', 0);
        create procedure sets() begin set @found = 1; end;
        create function writes() returns int deterministic modifies sql data
          begin set @found = 1; return 1; end;
        create view hidden as select writes() as n;
        ${describeCreation(parseIdempotencyTable('request_keys', database.name))}`);
    },
  },
);

const batch = async (statements: readonly string[], options = {}, headers = {}) => {
  const body = { statements: statements.map((sql) => ({ sql })), ...options };
  return (await gateway.post('/v1/batch', body, { headers })).status;
};

/** Evaluates the expression in a separate request, on the only session. */
async function seen(expression: string): Promise<unknown> {
  const reply = await gateway.post('/v1/query', { sql: `select ${expression} as found` });
  return reply.json<{ rows: unknown[][] }>().rows[0]?.[0];
}

const resets = () => readMetric(gateway, 'dbhttpd_session_resets_total', { result: 'ok' });

test('no trace of a batch in its session reaches the next request', async () => {
  const leaving: readonly (readonly string[])[] = [
    ['set @found = 1'],
    ['select @found := 1'],
    ['call sets()'],
    ['select * from hidden'],
    ['do get_lock("batch", 0)'],
    ['insert into watched values (1)'],
    ["set time_zone = '+05:00'", 'set timestamp = 1'],
    ['insert into t (v) values (1)', 'select last_insert_id(77)'],
  ];
  for (const statements of leaving) {
    for (const headers of [
      {},
      { 'Idempotency-Key': `${statements.length}-${statements[0]?.length}` },
    ]) {
      assert.equal(await batch(['insert into t (v) values (0)', ...statements], {}, headers), 200);
      const what = JSON.stringify(statements);
      assert.equal(await seen('@found'), null, what);
      assert.equal(await seen("is_used_lock('batch')"), null, what);
      assert.equal(await seen('@@time_zone'), 'SYSTEM', what);
      assert.equal(Number(await seen('now() > 20000000000000')), 1, what);
      assert.equal(Number(await seen('last_insert_id()')), 0, what);
    }
  }
});

test('a batch that leaves its session as it was costs no reset', async () => {
  // The gateway knows by now what the statement names.
  assert.equal(await batch(['insert into t (v) values (0)']), 200);
  const costOf = async (round: number) => {
    const before_ = await resets();
    for (const isolation of ['read committed', 'serializable', null]) {
      const statements = [
        'insert into t (v) values (1)',
        'update t set v = v + 1',
        'select v from t',
      ];
      assert.equal(await batch(statements, { isolation }), 200);
      const headers = { 'Idempotency-Key': `${isolation}-${round}`.replace(' ', '-') };
      assert.equal(await batch(statements, { isolation }, headers), 200);
    }
    assert.equal(await batch(['select v from t'], { read_only: true }), 200);
    return (await resets()) - before_;
  };
  // Old keys are removed once a minute, which costs one: of two rounds it meets one at most.
  assert.ok((await costOf(1)) === 0 || (await costOf(2)) === 0);
  const before = await resets();
  assert.equal(await batch(['insert into t (v) values (9)']), 200);
  const isolation = database.flavour === 'mysql' ? '@@transaction_isolation' : '@@tx_isolation';
  assert.equal(await seen(isolation), 'REPEATABLE-READ');
  assert.equal(await batch(['insert into nowhere values (1)']), 422);
  await seen('1');
  assert.ok((await resets()) > before);
});
