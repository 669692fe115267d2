// The reported outcome of a statement is true, and no statement is ever sent twice.
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import type { Fault } from '../../support/database/fault-proxy.ts';
import { ownServerOnly } from '../../support/database/mariadb.ts';
import { openProcesslist } from '../../support/database/processlist.ts';
import { cellOf, documentOf, outcomeOf, resultsOf } from '../../support/db-results.ts';
import { eventually } from '../../support/eventually.ts';
import { useProxiedGateway } from '../../support/use-gateway.ts';

const { gateway, database, proxy } = useProxiedGateway(
  { workers: 1, pool: 1 },
  {
    prepare: async (own) => {
      await own.query('create table t (id int primary key) engine = InnoDB');
    },
  },
);

const ask = (SQL: string) => gateway.dbPost({ SQL });
const ids = async () =>
  (await database.query('select id from t order by id')).map(({ id }) => Number(id)).join(' ');
const timesSent = (text: string) => proxy.statements.filter((sql) => sql.includes(text)).length;

beforeEach(async () => {
  proxy.refuse(false);
  await eventually('it serves', async () => (await ask('select 1')).status === 200);
  await database.query('delete from t');
});

const cuts: Readonly<Record<string, { fault: Fault; applied: boolean }>> = {
  'the reply is dropped': { fault: { kind: 'cut-reply', afterBytes: 0 }, applied: true },
  'the reply is cut after a byte': { fault: { kind: 'cut-reply', afterBytes: 1 }, applied: true },
  'the reply is cut before its last byte': {
    fault: { kind: 'cut-reply', afterBytes: 8, how: 'fin' },
    applied: true,
  },
  'the request is cut in its middle': {
    fault: { kind: 'cut-request', afterBytes: 9 },
    applied: false,
  },
  'the request never leaves the network': { fault: { kind: 'cut-request' }, applied: false },
};

for (const [what, { fault, applied }] of Object.entries(cuts)) {
  test(`when ${what}: one 502 unknown, the write sent once, and the next request is served`, async () => {
    const sql = `insert into t values (1) /* ${what} */`;
    const rule = proxy.on((text) => text === sql, fault, { times: 1 });
    const reply = await ask(sql);
    assert.equal(outcomeOf(reply), '502 CONNECTION_LOST unknown');
    assert.doesNotMatch(reply.text, /127\.0\.0\.1|insert|root/);
    assert.equal(rule.hits(), 1);
    assert.equal(cellOf(await ask('select count(*) from t')), applied ? 1 : 0);
    assert.equal(await ids(), applied ? '1' : '');
    assert.equal(timesSent(what), 1);
    rule.remove();
  });
}

test('a reply dropped after an INSERT: one row, and one INSERT in the general log', async (t) => {
  if (!ownServerOnly(t)) return;
  await database.query("set global log_output = 'TABLE', global general_log = 1");
  try {
    const rule = proxy.on(/general/, { kind: 'drop-reply' }, { times: 1 });
    const SQL = 'insert into t values (5) /* general */';
    const reply = await gateway.dbPost({ SQL, TIMEOUT: 500 });
    rule.remove();
    assert.equal(outcomeOf(reply), '504 DEADLINE_RUNNING unknown');
    assert.equal(cellOf(await ask('select count(*) from t')), 1);
    const [row] = await database.query(
      "select count(*) as n from mysql.general_log where argument like 'insert%general */'",
    );
    assert.equal(Number(row?.n), 1);
  } finally {
    await database.query("set global general_log = 0, global log_output = 'FILE'");
  }
});

test('INSERT; INSERT (duplicate); INSERT: applied, refused, never run', async () => {
  const document = documentOf(
    await ask('insert into t values (1); insert into t values (1); insert into t values (2)'),
  );
  assert.equal(document.MYSQL_ERRNO, 1062);
  assert.deepEqual([document.OUTCOME, document.STATEMENT], ['partial', 1]);
  assert.equal(Array.isArray(document.RESULT) && document.RESULT.length, 1);
  assert.equal(await ids(), '1');
});

test('a connection lost between two statements is unknown for both', async () => {
  const mark = '/* two */';
  const SQL = `insert into t values (1) ${mark}; do sleep(0.2) ${mark}; insert into t values (2) ${mark}`;
  proxy.on(/sleep\(0\.2\)/, { kind: 'cut-reply', afterBytes: 5 }, { times: 1 });
  assert.equal(outcomeOf(await ask(SQL)), '502 CONNECTION_LOST unknown');
  // The server goes on with the rest.
  const processlist = await openProcesslist(database);
  await processlist.ended(mark);
  processlist.close();
});

test('a statement that never reached MySQL is reported as not_executed', async () => {
  const unbound = await gateway.dbPost({ SQL: 'insert into t values (?)', PARAMS: [] });
  assert.match(outcomeOf(unbound), /^400 \w+ not_executed$/);
  proxy.refuse(true);
  proxy.cutAll();
  const reply = await ask('insert into t values (3)');
  assert.equal(outcomeOf(reply), '503 DATABASE_UNREACHABLE not_executed');
  assert.ok(reply.headers['retry-after'] !== undefined);
  proxy.refuse(false);
});

test('after a refusal the service is back as soon as the database is', async () => {
  proxy.refuse(true);
  proxy.cutAll();
  assert.equal((await ask('insert into t values (4)')).status, 503);
  proxy.refuse(false);
  const from = performance.now();
  for (;;) {
    const reply = await ask('insert into t values (4)');
    if (reply.status === 200) break;
    assert.equal(reply.status, 503);
    // Two seconds, and four times as much on a busy machine.
    assert.ok(performance.now() - from < 8000, 'not back within 8 s');
  }
  resultsOf(await ask('select 1'));
  assert.equal(await ids(), '4');
});

test('a statement whose COMMIT failed is unknown, and a batch is rolled back', async () => {
  // The answer of a Galera node that loses its quorum meanwhile: the write may be committed all the same.
  await database.query(`
    create table uncertain (id int primary key) engine = InnoDB;
    create trigger commit_fails before insert on uncertain for each row
      signal sqlstate 'HY000' set mysql_errno = 1180, message_text = 'Got error 6 during COMMIT'`);
  const sql = 'insert into uncertain values (1)';
  const alone = (await ask(sql)).json<Record<string, unknown>>();
  assert.deepEqual([alone.MYSQL_ERRNO, alone.OUTCOME], [1180, 'unknown']);
  const second = (await ask(`insert into t values (1); ${sql}`)).json<Record<string, unknown>>();
  assert.deepEqual([second.MYSQL_ERRNO, second.OUTCOME], [1180, 'partial']);
  const undone = await gateway.dbPost({
    SQL: `begin; insert into t values (2); ${sql}`,
    ROLLBACK_ON_ERROR: true,
  });
  assert.equal(undone.json<{ OUTCOME: string }>().OUTCOME, 'partial');
  const reported = async (path: string, body: object) => {
    const { status, json } = await gateway.post(path, body);
    const { code, outcome, retryable } = json<Record<string, unknown>>();
    return [status, code, outcome, retryable];
  };
  const unknown = [422, 'ER_ERROR_DURING_COMMIT', 'unknown', false];
  assert.deepEqual(await reported('/v1/query', { sql }), unknown);
  assert.deepEqual(await reported('/v1/batch', { statements: [{ sql }], atomic: false }), unknown);
  // Within a transaction it is no COMMIT's, and all is undone.
  const [, , outcome] = await reported('/v1/batch', { statements: [{ sql }] });
  assert.equal(outcome, 'rolled_back');
  assert.equal(await ids(), '1');
});
