// Idempotency keys: a request with one is executed once, however often, wherever and whenever it is repeated.
import assert from 'node:assert/strict';
import { after, beforeEach, test } from 'node:test';
import {
  describeCreation,
  parseIdempotencyTable,
} from '../../../src/shared/database/idempotency-table.ts';
import type { Reply } from '../../support/ask.ts';
import { closeGate, createGate } from '../../support/database/gate.ts';
import { createNumbers } from '../../support/database/numbers.ts';
import { openProcesslist, type Processlist } from '../../support/database/processlist.ts';
import { eventually } from '../../support/eventually.ts';
import { startGateway } from '../../support/gateway.ts';
import { useGateway } from '../../support/use-gateway.ts';

let processlist: Processlist;
const { gateway, database } = useGateway(
  { workers: 2, pool: 4, idempotency_table: 'request_keys', statement_timeout: '20s' },
  {
    prepare: async (fresh) => {
      await createNumbers(fresh);
      await createGate(fresh);
      await fresh.query(`
        create table t (id int auto_increment primary key, v varchar(100)) engine = innodb;
        create table long_rows (v varchar(1000)) engine = innodb;
        create procedure ends() begin insert into t (v) values ('ended'); commit; end;
        create procedure begins_again() begin insert into t (v) values ('again'); commit; start transaction; end;
        create procedure swallows() begin
          declare continue handler for sqlexception begin end;
          insert into t (v) values ('kept');
          insert into t (id, v) values (1, 'twice'), (1, 'twice');
        end`);
      await fresh.query(describeCreation(parseIdempotencyTable('request_keys', fresh.name)));
      processlist = await openProcesslist(fresh);
    },
  },
);
after(() => processlist?.close());
beforeEach(async () => {
  await database.query('delete from t; delete from request_keys');
});

const insert = (v: string) => ({ sql: 'insert into t (v) values (?)', params: [v] });
const query = (key: string, body: object) =>
  gateway.post('/v1/query', body, { headers: { 'Idempotency-Key': key } });
const batch = (key: string, body: object) =>
  gateway.post('/v1/batch', body, { headers: { 'Idempotency-Key': key } });

async function values(): Promise<unknown[]> {
  return (await database.query('select v from t order by id')).map(({ v }) => v);
}
const keys = async () =>
  Number((await database.query('select count(*) n from request_keys'))[0]?.n);

/** Sends until one of the other worker waits in the server, while those of the first wait for their turn. */
async function sendUntilOneWaits(send: () => Promise<Reply>): Promise<Promise<Reply>[]> {
  const sent: Promise<Reply>[] = [];
  await eventually('another worker waits for the key', async () => {
    for (let more = 0; more < 4; more += 1) sent.push(send());
    return (await processlist.running(`INSERT INTO \`${database.name}`)).length > 0;
  });
  return sent;
}

const isReplayed = ({ headers }: Reply) => headers['idempotency-replayed'] === 'true';
const problem = (reply: Reply) => {
  const { status, code, outcome, retryable } = reply.json<Record<string, unknown>>();
  return [reply.status, status, code, outcome, retryable];
};

test('a write with a key is executed once; its repetition gets the first reply, from any worker', async () => {
  const first = await query('one', insert('a'));
  assert.equal(first.status, 200);
  assert.equal(isReplayed(first), false);
  assert.equal(first.json<{ affected_rows: number }>().affected_rows, 1);
  // Each request has a new connection, so both workers get some.
  for (let again = 0; again < 12; again += 1) {
    const repeated = await query('one', insert('a'));
    assert.equal(repeated.status, 200);
    assert.equal(repeated.text, first.text);
    assert.equal(repeated.headers['content-type'], first.headers['content-type']);
    assert.ok(isReplayed(repeated));
  }
  assert.deepEqual(await values(), ['a']);
});

test('a key is that of its section: another gateway of it gives the first reply, another section executes', async () => {
  const first = await query('shared', insert('a'));
  assert.equal(first.status, 200);
  const settings = { workers: 1, idempotency_table: 'request_keys' };
  const headers = { 'Idempotency-Key': 'shared' };
  const same = await startGateway({
    database,
    settings,
    section: gateway.section,
    beside: { moon: { database, settings: { idempotency_table: 'request_keys' } } },
  });
  try {
    const repeated = await same.post('/v1/query', insert('a'), { headers });
    assert.ok(isReplayed(repeated));
    assert.equal(repeated.text, first.text);
    assert.deepEqual(await values(), ['a']);
    for (const wanted of [false, true]) {
      const asked = { ...insert('b'), section: 'moon' };
      const reply = await same.post('/v1/query', asked, { headers });
      assert.deepEqual([reply.status, isReplayed(reply)], [200, wanted], reply.text);
    }
  } finally {
    await same.stop();
  }
  assert.deepEqual(await values(), ['a', 'b']);
});

test('a batch with a key is executed once, results and all', async () => {
  const body = {
    statements: [
      insert('a'),
      { sql: "select v, if(last_insert_id() > 0, 'yes', 'no') as has_id from t" },
      { sql: "update t set v = 'b'", expect: { affected_rows: 1 } },
    ],
  };
  const first = await batch('two', body);
  assert.equal(first.status, 200, first.text);
  const results = first.json<{ results: { rows?: unknown[] }[] }>().results;
  assert.deepEqual(results[1]?.rows, [['a', 'yes']]);
  const repeated = await batch('two', body);
  assert.equal(repeated.text, first.text);
  assert.ok(isReplayed(repeated));
  assert.deepEqual(await values(), ['b']);
});

test('the same request is the same whatever its time, its retries and the order of its members', async () => {
  const asked = { ...insert('a'), expect: { affected_rows: { min: 1 } } };
  const first = await batch('same', { statements: [asked], retry: 1, timeout_ms: 9000 });
  const other =
    '{"timeout_ms":5000,"retry":null,"isolation":null,"statements":[ {"params":["a"],"sql":"insert into t (v) values (?)",' +
    '"expect":{"row_count":null,"affected_rows":{"max":null,"min":1}}} ]}';
  const repeated = await gateway.post('/v1/batch', other, {
    headers: { 'Idempotency-Key': 'same' },
  });
  assert.equal(repeated.text, first.text);
  assert.deepEqual(await values(), ['a']);
});

test('a key of another request is refused, and nothing is executed', async () => {
  await query('taken', insert('a'));
  for (const reply of [
    await query('taken', insert('b')),
    await query('taken', { ...insert('a'), rows: 'object' }),
    await batch('taken', { statements: [insert('a')] }),
    await query('taken', {
      sql: 'insert into t (v) values (?)',
      params: [12345678901234567890n.toString()],
    }),
  ]) {
    assert.deepEqual(problem(reply), [422, 422, 'IDEMPOTENCY_KEY_REUSED', 'not_executed', false]);
  }
  const exact = (digits: string) =>
    gateway.post('/v1/query', `{"sql":"insert into t (v) values (?)","params":[${digits}]}`, {
      headers: { 'Idempotency-Key': 'digits' },
    });
  assert.equal((await exact('9007199254740993')).status, 200);
  assert.equal((await exact('9007199254740992')).status, 422);
  assert.deepEqual(await values(), ['a', '9007199254740993']);
});

test('a failed batch that was rolled back left no row: another request may use the key again', async () => {
  const failing = [
    batch('free', {
      statements: [insert('a'), { sql: 'insert into t (id, v) values (1, 1), (1, 1)' }],
    }),
    batch('free', { statements: [{ ...insert('b'), expect: { affected_rows: 2 } }] }),
    query('free', { sql: 'insert into nowhere values (1)' }),
    query('free', { sql: "insert into t (v) values ('c'), ('d')", max_affected: 1 }),
  ];
  const expected = [
    [409, 409, 'ER_DUP_ENTRY', 'rolled_back', false],
    [409, 409, 'EXPECTATION_FAILED', 'rolled_back', false],
    [422, 422, 'ER_NO_SUCH_TABLE', 'rolled_back', false],
  ];
  const replies = await Promise.all(failing);
  assert.deepEqual(replies.slice(0, 3).map(problem), expected);
  assert.equal(replies[3]?.json<{ code: string }>().code, 'TOO_MANY_ROWS');
  assert.deepEqual([await values(), await keys()], [[], 0]);
  assert.equal((await query('free', insert('e'))).status, 200);
  assert.deepEqual(await values(), ['e']);
});

test('repetitions while the first still runs wait for it, in every worker, and get its reply', async () => {
  const gate = await closeGate(database);
  const body = { statements: [insert('a'), { sql: `select ${gate.zero} as zero` }] };
  const first = batch('at-once', body);
  let others: Promise<Reply>[];
  try {
    await processlist.started(gate.zero);
    others = await sendUntilOneWaits(() => batch('at-once', body));
  } finally {
    await gate.open();
  }
  const { text } = await first;
  const replies = await Promise.all(others);
  assert.deepEqual(new Set(replies.map((reply) => reply.text)), new Set([text]));
  assert.ok(replies.every(isReplayed));
  assert.deepEqual(await values(), ['a']);
});

test('of several that wait for one that rolls back, one is executed', async () => {
  const gate = await closeGate(database);
  const failing = batch('second', {
    statements: [
      insert('a'),
      { sql: `select ${gate.zero}` },
      { sql: 'insert into nowhere values (1)' },
    ],
  });
  let others: Promise<Reply>[];
  try {
    await processlist.started(gate.zero);
    others = await sendUntilOneWaits(() =>
      batch('second', { statements: [insert('b')], retry: 0 }),
    );
  } finally {
    await gate.open();
  }
  assert.equal((await failing).status, 422);
  const replies = await Promise.all(others);
  assert.deepEqual(new Set(replies.map(({ status }) => status)), new Set([200]));
  assert.equal(replies.filter((reply) => !isReplayed(reply)).length, 1);
  assert.equal(new Set(replies.map(({ text }) => text)).size, 1);
  assert.deepEqual(await values(), ['b']);
});

test('a deadline while another request has the key: unknown, and it may be repeated', async () => {
  const gate = await closeGate(database);
  const statements = [insert('a'), { sql: `select ${gate.zero}` }];
  const first = batch('late', { statements });
  try {
    await processlist.started(gate.zero);
    const replies = await Promise.all(
      [1, 2, 3, 4].map(() => batch('late', { statements, timeout_ms: 2_000 })),
    );
    for (const reply of replies) {
      assert.deepEqual(problem(reply), [504, 504, 'DEADLINE_RUNNING', 'unknown', true], reply.text);
    }
  } finally {
    await gate.open();
  }
  assert.equal((await batch('late', { statements })).text, (await first).text);
  assert.deepEqual(await values(), ['a']);
});

test('a procedure that ends the transaction leaves a key that is never executed again', async () => {
  for (const [name, procedure] of [
    ['ends', 'ends'],
    ['begins', 'begins_again'],
  ] as const) {
    const body = { statements: [insert('x'), { sql: `call ${procedure}()` }] };
    const first = await batch(name, body);
    assert.deepEqual(problem(first), [409, 409, 'TRANSACTION_ENDED', 'partial', false], first.text);
    const written = await values();
    const repeated = await batch(name, body);
    assert.deepEqual(problem(repeated), [409, 409, 'TRANSACTION_ENDED', 'partial', false]);
    assert.deepEqual(await values(), written);
  }
});

test('a statement that removes the key itself: nothing is committed without its key', async () => {
  const body = { statements: [insert('x'), { sql: 'delete from request_keys' }] };
  const reply = await batch('removed', body);
  assert.deepEqual(problem(reply).slice(0, 3), [409, 409, 'TRANSACTION_ENDED'], reply.text);
  assert.deepEqual([await values(), await keys()], [[], 0]);
});

test('a procedure that leaves the transaction alone is one of its statements', async () => {
  const body = { statements: [{ sql: 'call swallows()' }, insert('b')] };
  const first = await batch('call', body);
  assert.equal(first.status, 200, first.text);
  assert.equal((await batch('call', body)).text, first.text);
  assert.deepEqual(await values(), ['kept', 'b']);
});

test('a reply that is too long to be kept is repeated without its rows, and reports that', async () => {
  await database.query(
    "insert into long_rows select repeat('x', 1000) from numbers where seq <= 100",
  );
  const body = {
    statements: [
      insert('a'),
      { sql: 'select * from long_rows' },
      { sql: 'select v from t' },
      { sql: 'call swallows()' },
    ],
  };
  const first = await batch('long', body);
  assert.equal(first.status, 200, first.text.slice(0, 300));
  assert.equal(first.json<{ results: { rows: unknown[] }[] }>().results[1]?.rows.length, 100);
  const repeated = (await batch('long', body)).json<Record<string, unknown>>();
  const { rows_omitted: isOmitted, results, ...rest } = repeated;
  assert.equal(isOmitted, true);
  const whole = first.json<{ results: Record<string, unknown>[] }>();
  const withoutRows = whole.results.map((result) =>
    'rows' in result ? { ...result, rows: [] } : result,
  );
  assert.deepEqual({ ...rest, results }, { ...whole, results: withoutRows });
  // A reply without rows has nothing to leave out.
  const many = { statements: Array.from({ length: 2000 }, () => insert('b')) };
  const { text } = await batch('many', many);
  assert.ok(text.length > 70_000);
  assert.equal((await batch('many', many)).text, text);
  await database.query('delete from long_rows');
});

test('a key with a request that cannot have one is refused, and nothing is executed', async () => {
  const unfit = [400, 400, 'IDEMPOTENCY_UNFIT', 'not_executed', false];
  assert.deepEqual(problem(await query('no', { sql: 'select 1' })), unfit);
  assert.deepEqual(problem(await query('no', { ...insert('a'), dry_run: true })), unfit);
  assert.deepEqual(problem(await batch('no', { statements: [insert('a')], atomic: false })), unfit);
  assert.deepEqual(
    problem(await batch('no', { statements: [{ sql: 'select 1' }], read_only: true })),
    unfit,
  );
  const read = await gateway.request('/v1/query', {
    method: 'QUERY',
    headers: { 'Content-Type': 'application/json', 'Idempotency-Key': 'no' },
    body: JSON.stringify({ sql: 'select 1' }),
  });
  assert.deepEqual(problem(read), unfit);
  const ddl = await query('no', { sql: 'create table other (a int)' });
  assert.deepEqual(problem(ddl), [400, 400, 'NOT_IN_TRANSACTION', 'not_executed', false]);
  const inLines = await gateway.post('/v1/query', insert('a'), {
    headers: { Accept: 'application/x-ndjson', 'Idempotency-Key': 'no' },
  });
  assert.deepEqual(problem(inLines), [406, 406, 'NOT_ACCEPTABLE', 'not_executed', false]);
  for (const key of ['', ' ', 'a b', 'ä', 'x'.repeat(256)]) {
    const reply = await query(key, insert('a'));
    assert.deepEqual(problem(reply).slice(1, 4), [400, 'IDEMPOTENCY_KEY', 'not_executed'], key);
  }
  assert.equal((await query('x'.repeat(255), insert('long key'))).status, 200);
  assert.deepEqual(await values(), ['long key']);
});

test('keys that only look alike are not the same', async () => {
  for (const key of ['k', 'K', '"k"', 'k,k'])
    assert.equal((await query(key, insert(key))).status, 200);
  assert.equal((await values()).length, 4);
});

test('changes of a client to its session affect neither the key nor its reply', async () => {
  const body = {
    statements: [
      { sql: "set sql_mode = 'NO_BACKSLASH_ESCAPES,ANSI_QUOTES', timestamp = 1, names latin1" },
      insert('ä\\\'"'),
      { sql: 'select v from t' },
    ],
  };
  const first = await batch('session', body);
  if (first.status === 200) {
    assert.equal((await batch('session', body)).text, first.text);
  } else {
    assert.equal(first.json<{ code: string }>().code, 'NOT_IN_TRANSACTION', first.text);
  }
  const plain = { statements: [insert('ä\\\'"'), { sql: 'select v from t' }] };
  const other = await batch('session_2', plain);
  assert.equal((await batch('session_2', plain)).text, other.text);
  const [row] = await database.query(
    'select timestampdiff(second, created, utc_timestamp()) age from request_keys limit 1',
  );
  assert.ok(Math.abs(Number(row?.age)) < 60);
});
