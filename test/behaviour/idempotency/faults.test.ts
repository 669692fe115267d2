// Idempotency keys on bad days: connections lost at each step, a server that is gone or restarted, a table that is not what it must be.
import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import type { RowDataPacket } from 'mysql2';
import {
  describeCreation,
  parseIdempotencyTable,
} from '../../../src/shared/database/idempotency-table.ts';
import type { Reply } from '../../support/ask.ts';
import type { Fault } from '../../support/database/fault-proxy.ts';
import { closeGate, createGate } from '../../support/database/gate.ts';
import { type Database, ownServerOnly, startDatabase } from '../../support/database/mariadb.ts';
import { createNumbers } from '../../support/database/numbers.ts';
import { openProcesslist } from '../../support/database/processlist.ts';
import { startProxiedDatabase } from '../../support/database/proxied-database.ts';
import { eventually } from '../../support/eventually.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { openRaw } from '../../support/http.ts';
import type { Settings } from '../../support/ini-text.ts';
import { useProxiedGateway } from '../../support/use-gateway.ts';

const { gateway, database, proxy } = useProxiedGateway(
  { workers: 1, pool: 4, idempotency_table: 'request_keys', statement_timeout: '20s' },
  {
    // The server's session of a lost connection would hold its key for as long as this.
    serverArguments: ['--innodb-lock-wait-timeout=300'],
    prepare: async (fresh) => {
      await createNumbers(fresh);
      await fresh.query('create table t (id int primary key, v int) engine = innodb');
      await fresh.query(`
        create table plain (n int) engine = myisam;
        create table spilling (n int) engine = innodb;
        create trigger spills before insert on spilling for each row insert into plain values (new.n);
        create table logged (n int) engine = innodb;
        create trigger logs before insert on logged for each row insert into t values (new.n, new.n);
        create view seen as select id, v from t;
        create function notes() returns int begin insert into plain values (1); return 1; end;
        create procedure writes() begin insert into plain values (1); end;
        create procedure adds() begin insert into t values (2, 2); select v from t; end`);
      await createGate(fresh);
      await fresh.query('create procedure waits() select count(*) + sleep(0) from gate');
      await fresh.query(describeKeys(fresh));
    },
  },
);

/** The statement that creates the table of keys. */
function describeKeys({ name }: Pick<Database, 'name'>, table = 'request_keys'): string {
  return describeCreation(parseIdempotencyTable(table, name));
}

beforeEach(async () => {
  await database.query('delete from t; delete from request_keys');
});

const statements = [
  { sql: 'insert into t values (1, 0)' },
  { sql: 'update t set v = v + 1', expect: { affected_rows: 1 } },
];

const batch = (key: string, body: object = {}): Promise<Reply> =>
  gateway.post('/v1/batch', { statements, ...body }, { headers: { 'Idempotency-Key': key } });

async function values(): Promise<unknown[]> {
  return (await database.query('select id, v from t order by id')).map(({ id, v }) => [id, v]);
}
const once = [[1, 1]];

const problem = (reply: Reply) => {
  const { status, code, outcome, retryable } = reply.json<Record<string, unknown>>();
  return [reply.status, status, code, outcome, retryable];
};

/** From the first matching statement on, which still reaches the server, the server sends nothing. */
function thenSilence(matches: RegExp): (statement: string) => boolean {
  return (statement) => {
    const isIt = matches.test(statement);
    if (isIt) proxy.partition();
    return isIt;
  };
}

const cuts: readonly Fault[] = [
  { kind: 'cut-request' },
  { kind: 'cut-request', afterBytes: 2 },
  { kind: 'cut-after-request' },
  { kind: 'abandon' },
  { kind: 'cut-reply', afterBytes: 0 },
  { kind: 'cut-reply', afterBytes: 5, how: 'fin' },
];

const steps = [/INSERT INTO/, /update t/, /RELEASE SAVEPOINT/, /^COMMIT$/];
const levels = ['read uncommitted', 'read committed', 'repeatable read', 'serializable'];

test('a connection that is lost at any step does not matter: the batch is executed, and once', async () => {
  let key = 0;
  for (const matches of steps) {
    for (const fault of cuts) {
      const isolation = levels[key % levels.length];
      key += 1;
      await database.query('delete from t');
      const rule = proxy.on(matches, fault, { times: 1 });
      const reply = await batch(`lost-${key}`, { isolation });
      const what = `${matches} ${JSON.stringify(fault)} ${isolation} ${reply.text}`;
      assert.equal(rule.hits(), 1, what);
      rule.remove();
      assert.equal(reply.status, 200, what);
      assert.equal(reply.headers['idempotency-replayed'], undefined, what);
      assert.deepEqual(await values(), once, what);
      const repeated = await batch(`lost-${key}`, { isolation });
      assert.equal(repeated.headers['idempotency-replayed'], 'true', what);
      assert.equal(repeated.text, reply.text, what);
    }
  }
});

test('connections that are lost around COMMIT again and again change nothing about that', async () => {
  const rule = proxy.on(/^COMMIT$/, { kind: 'cut-request' }, { times: 6 });
  const reply = await batch('again', { retry: 0 });
  assert.deepEqual([reply.status, rule.hits()], [200, 6], reply.text);
  rule.remove();
  assert.deepEqual(await values(), once);
});

test('an answer to COMMIT never comes: the gateway looks the key up in time', async () => {
  const rule = proxy.on(/^COMMIT$/, { kind: 'drop-reply' }, { times: 1 });
  const reply = await batch('dropped', { timeout_ms: 4000 });
  assert.deepEqual([reply.status, rule.hits()], [200, 1], reply.text);
  rule.remove();
  assert.deepEqual(await values(), once);
});

test('a database that is not heard before the deadline: unknown, and the key answers later', async () => {
  const rule = proxy.on(thenSilence(/^COMMIT$/), { kind: 'drop-reply' }, { times: 1 });
  const reply = await batch('silent', { timeout_ms: 2000 });
  assert.equal(rule.hits(), 1);
  rule.remove();
  proxy.heal();
  assert.deepEqual(problem(reply), [504, 504, 'DEADLINE_RUNNING', 'unknown', true]);
  const repeated = await batch('silent');
  assert.deepEqual([repeated.status, repeated.headers['idempotency-replayed']], [200, 'true']);
  assert.deepEqual(await values(), once);
});

test('a lost session is ended when the database answers again, and the key has its result', async () => {
  const rule = proxy.on(thenSilence(/update t/), { kind: 'abandon' }, { times: 1 });
  const reply = await batch('held', { timeout_ms: 2000 });
  assert.equal(rule.hits(), 1);
  rule.remove();
  proxy.heal();
  assert.deepEqual(problem(reply), [504, 504, 'DEADLINE_RUNNING', 'unknown', true]);
  assert.equal((await batch('held')).status, 200);
  assert.deepEqual(await values(), once);
});

/** Each writes to a table without transactions. */
const plainWrites = [
  'insert into plain values (1)',
  'insert into t values (9, notes())',
  'insert into spilling values (1)',
  'call writes()',
];

const lastly = /^COMMIT$/;

test('a change outside of transactions is neither reported as rolled back nor run again, however often it is repeated', async () => {
  for (const [at, sql] of plainWrites.entries()) {
    for (const matches of [/^UPDATE/, lastly]) {
      await database.query('delete from plain; delete from t');
      const key = `plain-${at}-${matches === lastly}`;
      const rule = proxy.on(matches, { kind: 'cut-request' }, { times: 1 });
      const reply = await batch(key, { statements: [{ sql }] });
      rule.remove();
      assert.deepEqual(problem(reply), [502, 502, 'CONNECTION_LOST', 'unknown', false], sql);
      for (const _time of [1, 2]) {
        const again = await batch(key, { statements: [{ sql }] });
        assert.deepEqual(problem(again), [409, 409, 'TRANSACTION_ENDED', 'partial', false], sql);
      }
      assert.equal((await database.query('select n from plain')).length, 1, sql);
    }
  }
});

test('a committed batch is reported, although it wrote outside of transactions too', async () => {
  await database.query('delete from plain');
  const rule = proxy.on(/^COMMIT$/, { kind: 'cut-reply', afterBytes: 0 }, { times: 1 });
  const body = { statements: [{ sql: 'insert into plain values (1)' }, ...statements] };
  const reply = await batch('plain-and-committed', body);
  rule.remove();
  assert.equal(reply.status, 200, reply.text);
  assert.deepEqual(await values(), once);
  assert.equal((await database.query('select n from plain')).length, 1);
});

test('views, triggers and procedures over tables with transactions are run again, also while the gateway does not know its tables', async () => {
  const processlist = await openProcesslist(database);
  const gate = await closeGate(database);
  // A CALL may change tables. The gateway learns which ones only when it has ended.
  const call = gateway.dbPost({ SQL: 'call waits()' });
  try {
    await processlist.started('from gate');
    for (const sql of [
      'insert into seen values (2, 2)',
      'insert into logged values (2)',
      'call adds()',
    ]) {
      await database.query('delete from t; delete from logged');
      const rule = proxy.on(/^COMMIT$/, { kind: 'cut-request' }, { times: 1 });
      const reply = await batch(sql.replaceAll(/\W/g, '_'), { statements: [{ sql }] });
      rule.remove();
      assert.equal(reply.status, 200, `${sql}: ${reply.text}`);
      assert.deepEqual(await values(), [[2, 2]], sql);
    }
  } finally {
    await gate.open();
    await call;
    processlist.close();
  }
});

/** Writes whose words before a parenthesis might be calls; each has the effect of the other ones. */
const ofBoth = [
  "insert into t select n, n from json_table('[2]', '$[*]' columns (n int(11) path '$')) as j",
  'insert into t select 2, 2 from dual where 2 = any (select 2)',
  'insert into t with c as (select 2 as n) select n, n from c',
  'insert into t value (2, 2)',
];
const ofMysql = [
  'insert into t values row(2, 2)',
  'insert into t select c.n, d.m from (select 2 as n) as c, lateral (select c.n as m) as d',
  "insert into t values (json_value('[2]', '$[0]' returning decimal(4)), 2)",
];

test('a word of the grammar before a parenthesis does not keep a batch from being run again', async () => {
  const all = database.flavour === 'mysql' ? [...ofBoth, ...ofMysql] : ofBoth;
  for (const [at, sql] of all.entries()) {
    await database.query('delete from t');
    const rule = proxy.on(/^COMMIT$/, { kind: 'cut-request' }, { times: 1 });
    const reply = await batch(`grammar-${at}`, { statements: [{ sql }] });
    rule.remove();
    assert.equal(reply.status, 200, `${sql}: ${reply.text}`);
    assert.deepEqual(await values(), [[2, 2]], sql);
  }
});

test('a deadlock behind a write outside of transactions is not run again', async () => {
  await database.query('delete from plain; insert into t values (1, 0), (2, 0)');
  const other = await database.connect();
  try {
    // InnoDB ends the one that has less to undo, unless that one alone has written outside of transactions.
    await other.query('begin');
    await other.query('insert into plain values (2)');
    await other.query('insert into t select seq + 10, 0 from numbers where seq <= 500');
    await other.query('update t set v = 1 where id = 1');
    const body = {
      statements: [
        { sql: 'insert into plain values (1)' },
        { sql: 'update t set v = 2 where id = 2' },
        { sql: 'update t set v = 2 where id = 1' },
      ],
    };
    const asked = batch('deadlock', body);
    const isWaiting = async () => {
      const [row] = await database.query(
        "select count(*) as count from information_schema.innodb_trx where trx_state = 'LOCK WAIT'",
      );
      return Number(row?.count) > 0;
    };
    // InnoDB reads this table again only if there was no query for it for 0.1 s.
    await eventually('it waits', isWaiting, { everyMs: 150 });
    await other.query('update t set v = 1 where id = 2');
    assert.deepEqual(problem(await asked), [409, 409, 'ER_LOCK_DEADLOCK', 'partial', false]);
    await other.query('rollback');
  } finally {
    other.destroy();
  }
  assert.deepEqual(await database.query('select n from plain order by n'), [{ n: 1 }, { n: 2 }]);
});

test('statements that end their connection each time are given up, and the outcome is known: nothing was committed', async () => {
  const rule = proxy.on(/update t/, { kind: 'abandon' });
  const reply = await batch('deadly');
  rule.remove();
  assert.deepEqual(problem(reply), [502, 502, 'CONNECTION_LOST', 'rolled_back', true]);
  assert.deepEqual(await values(), []);
  assert.equal((await batch('deadly')).status, 200);
  assert.deepEqual(await values(), once);
});

test('a connection that is lost during the rollback: the batch reports its error, and nothing is committed', async () => {
  const rule = proxy.on(/^ROLLBACK TO/, { kind: 'cut-request' }, { times: 1 });
  const failing = [...statements, { sql: 'insert into t values (1, 0)' }];
  const reply = await batch('undone', { statements: failing });
  assert.equal(rule.hits(), 1);
  rule.remove();
  assert.deepEqual(problem(reply), [409, 409, 'ER_DUP_ENTRY', 'rolled_back', false]);
  assert.deepEqual(await values(), []);
});

test('a client that leaves before COMMIT leaves neither rows nor a key', async () => {
  const processlist = await openProcesslist(database);
  const client = await openRaw(gateway.port);
  const gate = await closeGate(database);
  const waiting = { sql: `select ${gate.zero}` };
  const body = JSON.stringify({ statements: [...statements, waiting] });
  client.send(
    `POST /v1/batch HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: leaves\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  try {
    await processlist.started('from gate');
    client.close();
    await processlist.ended('from gate');
  } finally {
    await gate.open();
    processlist.close();
  }
  assert.deepEqual(await values(), []);
  assert.equal((await batch('leaves')).status, 200);
  assert.deepEqual(await values(), once);
});

test('a server that crashes at COMMIT and starts again: executed once, and reported', async (t) => {
  if (!ownServerOnly(t)) return;
  const rule = proxy.on(/^COMMIT$/, { kind: 'stall' }, { times: 1 });
  const reply = batch('crash');
  await eventually('COMMIT is under way', () => rule.hits() === 1);
  await database.halt('SIGKILL');
  await database.resume();
  rule.remove();
  assert.equal((await reply).status, 200, (await reply).text);
  assert.deepEqual(await values(), once);
});

test('a server that loses commits in a crash: keys and work agree, and lost work is executed again', async (t) => {
  if (!ownServerOnly(t)) return;
  // Until it is started again, the server forgets on a crash what it has committed within the last second.
  await database.query('set global innodb_flush_log_at_trx_commit = 0');
  const ids = Array.from({ length: 100 }, (_, id) => id);
  const ask = (id: number) =>
    gateway.post(
      '/v1/query',
      { sql: 'insert into t values (?, 0)', params: [id] },
      { headers: { 'Idempotency-Key': `flush-${id}` } },
    );
  const askAll = () => Promise.all(ids.map(ask));
  assert.ok((await askAll()).every(({ status }) => status === 200));
  await database.halt('SIGKILL');
  await database.resume();
  await eventually('it is served again', async () => (await gateway.get('/readyz')).status === 200);
  const standing = (await database.query('select id from t')).map(({ id }) => Number(id));
  const [kept] = await database.query('select count(*) n from request_keys');
  assert.equal(Number(kept?.n), standing.length);
  t.diagnostic(`${ids.length - standing.length} of ${ids.length} were forgotten`);
  const replies = await askAll();
  assert.deepEqual(new Set(replies.map(({ status }) => status)), new Set([200]));
  const replayed = ids.filter((id) => replies[id]?.headers['idempotency-replayed'] === 'true');
  assert.deepEqual(new Set(replayed), new Set(standing));
  assert.equal((await database.query('select id from t')).length, ids.length);
});

test('a key of a request that found no database, or no place to wait, may be used afterwards', async () => {
  const far = await startProxiedDatabase(database);
  far.refuse(true);
  const own = await startGateway({
    database: far.target,
    settings: { workers: 1, pool: 1, queue: 0, idempotency_table: 'request_keys' },
  });
  const ask = () =>
    own.post('/v1/batch', { statements }, { headers: { 'Idempotency-Key': 'early' } });
  try {
    const early = await Promise.all([ask(), ask(), ask()]);
    for (const reply of early) assert.deepEqual(problem(reply).slice(0, 2), [503, 503], reply.text);
    far.refuse(false);
    await eventually('it is executed', async () => (await ask()).status === 200);
    assert.deepEqual(await values(), once);
    // With a queue of 0 no request waits: neither for its lock, nor for the only session while another request has it.
    await database.query('delete from t; delete from request_keys');
    await eventually('one of those that come together is executed', async () => {
      const replies = await Promise.all([ask(), ask(), ask(), ask()]);
      for (const { status, text } of replies) assert.ok(status === 200 || status === 503, text);
      return replies.some(({ status }) => status === 200);
    });
    assert.deepEqual(await values(), once);
  } finally {
    await own.stop();
    await far.stop();
  }
});

test('a table that is missing or of another shape is reported before anything runs, and used once it is right', async () => {
  const creation = describeKeys(database);
  const wrong: readonly string[] = [
    'do 0',
    `${creation.replace('InnoDB', 'MyISAM')}`,
    `drop table request_keys; ${creation.replace('mediumblob', 'blob')}`,
    `drop table request_keys; ${creation.replace('PRIMARY KEY (id)', 'KEY (id)')}`,
    'drop table request_keys; create view request_keys as select 1 as id',
  ];
  // A start does not check it.
  await database.query('drop table request_keys');
  const own = await startGateway({
    database,
    settings: { workers: 1, idempotency_table: `${database.name}.request_keys` },
  });
  const ask = () =>
    own.post('/v1/batch', { statements }, { headers: { 'Idempotency-Key': 'table' } });
  try {
    for (const sql of wrong) {
      await database.query(sql);
      const reply = await ask();
      assert.deepEqual(problem(reply), [503, 503, 'IDEMPOTENCY_TABLE', 'not_executed', true], sql);
      assert.equal(reply.headers['retry-after'], '1');
    }
    await eventually('the log tells of it', () =>
      /idempotency_table cannot be used/.test(own.log()),
    );
    assert.deepEqual(await values(), []);
    await database.query(`drop view request_keys; ${creation}`);
    assert.equal((await ask()).status, 200);
    assert.deepEqual(await values(), once);
    // Known to be good, and of another engine all the same.
    await database.query('delete from t; delete from request_keys');
    await database.query('alter table request_keys engine = MyISAM');
    assert.deepEqual(problem(await ask()), [503, 503, 'IDEMPOTENCY_TABLE', 'not_executed', true]);
    assert.deepEqual(await values(), []);
    assert.deepEqual(await database.query('select 1 from request_keys'), []);
    await database.query('alter table request_keys engine = InnoDB');
    assert.equal((await ask()).status, 200);
    // Known to be good, and gone all the same.
    await database.query('drop table request_keys; delete from t');
    assert.deepEqual(problem(await ask()), [503, 503, 'IDEMPOTENCY_TABLE', 'not_executed', true]);
    assert.deepEqual(await values(), []);
  } finally {
    await database.query(`drop table if exists request_keys; ${creation}`);
    await own.stop();
  }
});

test('a revoked right on the table does not count as a fault of the client, and nothing is executed', async () => {
  const user = `keys_${database.name.slice(-8)}`;
  const name = `'${user}'@'%'`;
  await database.query(`
    create user ${name} identified by 'Secret-4711';
    grant select, insert, update, delete on ${database.name}.t to ${name};
    grant insert, delete on ${database.name}.request_keys to ${name}`);
  const account = { ...database, user, password: 'Secret-4711' };
  const own = await startGateway({
    database: { ...account, host: database.host, port: database.port, name: database.name },
    settings: { workers: 1, idempotency_table: 'request_keys' },
  });
  const ask = () =>
    own.post('/v1/batch', { statements }, { headers: { 'Idempotency-Key': 'rights' } });
  const grant = (change: string) =>
    database.query(change.replace('ON', `on ${database.name}.request_keys`));
  const refused = [503, 503, 'IDEMPOTENCY_TABLE', 'not_executed', true];
  try {
    await grant(`grant select, update ON to ${name}`);
    assert.equal((await ask()).status, 200);
    await grant(`revoke select ON from ${name}`);
    assert.deepEqual(problem(await ask()), refused, 'the reply cannot be looked up');
    await database.query('delete from t; delete from request_keys');
    for (const [right, change] of [
      ['select', 'revoke update ON from'],
      ['update', 'revoke select ON from'],
    ] as const) {
      await grant(`grant select, update ON to ${name}`);
      await grant(`${change} ${name}`);
      assert.deepEqual(problem(await ask()), refused, `with ${right} alone`);
      assert.deepEqual(await values(), []);
    }
    await grant(`grant select, update ON to ${name}`);
    assert.equal((await ask()).status, 200);
  } finally {
    await own.stop();
    await database.query(`drop user ${name}`);
  }
});

test('/db takes no key', async () => {
  const headers = { 'Idempotency-Key': 'db' };
  const SQL = 'insert into t values (1, 0)';
  const replies = [
    await gateway.post('/db', { SQL }, { headers }),
    await gateway.get(`/db?${encodeURIComponent(JSON.stringify({ SQL }))}`, { headers }),
  ];
  for (const reply of replies) {
    assert.equal(reply.status, 400, reply.text);
    assert.equal(reply.json<{ CODE: string }>().CODE, 'IDEMPOTENCY_UNFIT');
  }
  assert.deepEqual(await values(), []);
});

describe('keys are forgotten after idempotency_keep', () => {
  const settings = { statement_timeout: '4s', idempotency_keep: '4s' };
  let byStatement: Database;
  let own: Gateway;
  before(async () => {
    byStatement = await startDatabase({
      args: ['--log-bin', '--binlog-format=STATEMENT', '--server-id=1'],
    });
    await byStatement.query(
      `create table t (id int primary key, v int) engine = innodb; ${describeKeys(byStatement, 'keys_3')}`,
    );
    for (const table of ['keys_1', 'keys_2']) await database.query(describeKeys(database, table));
    const section = (target: Database, table: string, more: Settings = {}) => ({
      database: target,
      settings: { ...settings, idempotency_table: table, ...more },
    });
    own = await startGateway({
      ...section(database, 'keys_1', { workers: 2, init_sql: 'SET autocommit = 1' }),
      beside: {
        without: section(database, 'keys_2', { init_sql: 'SET autocommit = 0' }),
        statements: section(byStatement, 'keys_3'),
      },
    });
  });
  after(async () => {
    await own?.stop();
    await byStatement?.stop();
  });

  /** Old keys, more than are forgotten at once. */
  const oldKeys = (table: string, numbers: string) =>
    `insert into ${table} (id, request, attempt, created)
     select unhex(sha2(seq, 256)), unhex(sha2(seq, 256)), unhex(left(sha2(seq, 256), 32)), utc_timestamp() - interval 1 day
     from ${numbers}`;
  const count = async (server: Database, table: string) =>
    Number((await server.query(`select count(*) n from ${table}`))[0]?.n);

  for (const [autocommit, section, table] of [
    [1, undefined, 'keys_1'],
    [0, 'without', 'keys_2'],
  ] as const) {
    test(`new ones do not wait for that: autocommit=${autocommit}`, async () => {
      const headers = { 'Idempotency-Key': 'kept' };
      const ask = () => own.post('/v1/batch', { statements, section }, { headers });
      await database.query(oldKeys(table, 'numbers where seq <= 3000'));
      assert.equal((await ask()).status, 200);
      await eventually('all are gone', async () => (await count(database, table)) === 0);
      await database.query('delete from t');
      assert.equal((await ask()).headers['idempotency-replayed'], undefined);
      assert.deepEqual(await values(), once);
    });
  }

  test('also where the binary log holds statements', async () => {
    await byStatement.query(oldKeys('keys_3', '(select 1 as seq union select 2 union select 3) n'));
    await eventually('all are gone', async () => (await count(byStatement, 'keys_3')) === 0);
    assert.doesNotMatch(own.log(), /could not be removed/);
  });
});

/** Sends a batch whose COMMIT reaches the server and is never answered. Meanwhile something happens, then all connections are lost. */
async function losingCommit(key: string, ask: typeof batch, meanwhile: () => Promise<unknown>) {
  const rule = proxy.on(/^COMMIT$/, { kind: 'stall' }, { times: 1 });
  const asked = ask(key);
  await eventually('it is committed', async () => (await values()).length > 0);
  await meanwhile();
  proxy.cutAll();
  const reply = await asked;
  rule.remove();
  return reply;
}

const notKnownYet = [502, 502, 'CONNECTION_LOST', 'unknown', true];

test('the table of keys is gone when the key is looked up: not known yet, and never reported as not executed', async () => {
  const reply = await losingCommit('no-table', batch, () =>
    database.query('rename table request_keys to request_keys_away'),
  );
  await database.query('rename table request_keys_away to request_keys');
  assert.deepEqual(problem(reply), notKnownYet, reply.text);
  assert.deepEqual(await values(), once);
  assert.equal((await batch('no-table')).headers['idempotency-replayed'], 'true');
});

test('the server is read-only when the key is looked up: not known yet, and never reported as undone', async (t) => {
  if (!ownServerOnly(t)) return;
  await database.query(
    `create user ordinary@'%' identified by 'ordinary'; grant all on ${database.name}.* to ordinary@'%'`,
  );
  const own = await startGateway({
    database: { ...proxy.target, user: 'ordinary', password: 'ordinary' },
    settings: { workers: 1, idempotency_table: 'request_keys' },
  });
  const ask: typeof batch = (key) =>
    own.post('/v1/batch', { statements }, { headers: { 'Idempotency-Key': key } });
  try {
    const reply = await losingCommit('read-only', ask, () =>
      database.query('set global read_only = 1'),
    );
    await database.query('set global read_only = 0');
    assert.deepEqual(problem(reply), notKnownYet, reply.text);
    assert.deepEqual(await values(), once);
    assert.equal((await ask('read-only')).headers['idempotency-replayed'], 'true');
  } finally {
    await database.query('set global read_only = 0');
    await own.stop();
  }
});

test('a COMMIT that KILL QUERY ends: the gateway finds out its outcome', async (t) => {
  if (!ownServerOnly(t)) return;
  const keeper = await database.connect();
  keeper.on('error', () => undefined);
  await keeper.query('set lock_wait_timeout = 60');
  const rule = proxy.on(/^COMMIT$/, { kind: 'hold' }, { times: 1 });
  const asked = batch('killed');
  await eventually('COMMIT is under way', () => rule.hits() === 1);
  await keeper.query('flush tables with read lock');
  proxy.release();
  const findCommits = async () => {
    const [rows] = await keeper.query<RowDataPacket[]>(
      "select id from information_schema.processlist where info = 'COMMIT' and command = 'Query'",
    );
    return rows.map(({ id }) => Number(id));
  };
  await eventually('COMMIT waits', async () => (await findCommits()).length > 0);
  for (const id of await findCommits()) await keeper.query(`kill query ${id}`);
  await eventually('it has ended', async () => (await findCommits()).length === 0);
  await keeper.query('unlock tables');
  keeper.destroy();
  rule.remove();
  const reply = await asked;
  assert.equal(reply.status, 200, reply.text);
  assert.deepEqual(await values(), once);
});
