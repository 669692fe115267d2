// The promises of /v1/batch: all or nothing, expectations, rejections, replies.
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { createNumbers } from '../../support/database/numbers.ts';
import { useGateway } from '../../support/use-gateway.ts';

const { gateway, database } = useGateway(
  { workers: 1, max_rows: 900 },
  {
    prepare: async (database) => {
      await createNumbers(database);
      await database.query(`
        create table orders (id int auto_increment primary key, user int) engine = innodb;
        create table items (order_id int, sku varchar(20)) engine = innodb;
        create table stock (sku varchar(20) primary key, n int) engine = innodb;
        create table plain (n int) engine = myisam;
        create table audited (n int primary key) engine = innodb;
        create trigger audit after insert on audited for each row insert into plain values (new.n);
        create procedure two() begin select 'x' as a; select 'y' as b; end;
        create procedure commits() begin insert into orders (user) values (70); commit; end;
        create procedure restarts() begin insert into orders (user) values (71); commit; start transaction; end;
        create procedure adds(u int) begin insert into orders (user) values (u); end`);
    },
  },
);
beforeEach(async () => {
  await database.query(`
    delete from orders; delete from items; delete from stock; delete from plain; delete from audited;
    alter table orders auto_increment = 1;
    insert into stock values ('A', 5), ('B', 0)`);
});

type Statement = string | Readonly<Record<string, unknown>>;
type Results = {
  readonly committed: boolean;
  readonly retries: number;
  readonly results: readonly Readonly<Record<string, unknown>>[];
};
type Problem = {
  readonly status: number;
  readonly code: string;
  readonly errno?: number;
  readonly outcome: string;
  readonly retryable: boolean;
  readonly detail: string;
  readonly statement?: number;
};

const post = (statements: readonly Statement[], options = {}, headers = {}) =>
  gateway.post(
    '/v1/batch',
    {
      statements: statements.map((one) => (typeof one === 'string' ? { sql: one } : one)),
      ...options,
    },
    { headers },
  );

async function committed(statements: readonly Statement[], options = {}): Promise<Results> {
  const reply = await post(statements, options);
  assert.equal(reply.status, 200, reply.text);
  return reply.json<Results>();
}

async function problemOf(statements: readonly Statement[], options = {}): Promise<Problem> {
  const reply = await post(statements, options);
  assert.equal(reply.headers['content-type'], 'application/problem+json', reply.text);
  const problem = reply.json<Problem>();
  assert.equal(problem.status, reply.status);
  return problem;
}

const reported = ({ status, code, outcome, statement }: Problem) => [
  status,
  code,
  outcome,
  statement,
];

async function count(table: string): Promise<number> {
  return Number((await database.query(`select count(*) as n from ${table}`))[0]?.n);
}

const order = "insert into items (order_id, sku) values (last_insert_id(), 'A')";

test('statements run in order in one transaction, and each has its result', async () => {
  const reply = await post([
    { sql: 'insert into orders (user) values (?)', params: [7] },
    {
      sql: 'insert into items (order_id, sku) values (last_insert_id(), :sku)',
      params: { sku: 'A' },
    },
    {
      sql: 'update stock set n = n - 1 where sku = ? and n > 0',
      params: ['A'],
      expect: { affected_rows: 1 },
    },
    { sql: 'select order_id, sku from items;' },
  ]);
  assert.equal(reply.status, 200, reply.text);
  assert.equal(reply.headers['content-length'], String(reply.body.length));
  const { results, ...rest } = reply.json<Results>();
  assert.deepEqual(rest, {
    committed: true,
    retries: 0,
    request_id: reply.headers['x-request-id'],
    section: gateway.section,
  });
  assert.deepEqual(results[0], { affected_rows: 1, insert_id: '1', warnings: 0 });
  assert.deepEqual(results[2], { affected_rows: 1, insert_id: null, warnings: 0 });
  const { columns, ...rows } = results[3] as { columns: { name: string; type: string }[] };
  assert.deepEqual(
    columns.map(({ name, type }) => [name, type]),
    [
      ['order_id', 'INT'],
      ['sku', 'VARCHAR'],
    ],
  );
  assert.deepEqual(rows, { rows: [[1, 'A']], row_count: 1, truncated: false, warnings: 0 });
  assert.deepEqual(await database.query("select n from stock where sku = 'A'"), [{ n: 4 }]);
});

test('a CALL has all its results, between others', async () => {
  const { results } = await committed(["select 'v'", 'call two()', 'call adds(4)', "select 'w'"]);
  const rowsOf = (result: unknown) => (result as { rows?: unknown }).rows ?? 'no rows';
  assert.deepEqual(results.map(rowsOf), [[['v']], 'no rows', 'no rows', [['w']]]);
  assert.deepEqual((results[1] as { results: unknown[] }).results.map(rowsOf), [
    [['x']],
    [['y']],
    'no rows',
  ]);
  assert.equal((results[2] as { affected_rows: number }).affected_rows, 1);
  assert.equal(await count('orders'), 1);
});

test('an error undoes all and reports which statement', async () => {
  const problem = await problemOf([
    'insert into orders (user) values (1)',
    order,
    "insert into stock values ('A', 1)",
  ]);
  assert.deepEqual(reported(problem), [409, 'ER_DUP_ENTRY', 'rolled_back', 2]);
  assert.equal(problem.errno, 1062);
  assert.equal(problem.retryable, false);
  assert.deepEqual([await count('orders'), await count('items')], [0, 0]);
});

test('a failed expectation leaves no trace, in any place', async () => {
  const write = { sql: 'insert into orders (user) values (1), (2)' };
  const cases: readonly (readonly [Statement[], number])[] = [
    [[{ ...write, expect: { affected_rows: 1 } }], 0],
    [
      [
        write,
        {
          sql: "update stock set n = n - 1 where sku = 'B' and n > 0",
          expect: { affected_rows: 1 },
        },
        write,
      ],
      1,
    ],
    [[{ ...write, expect: { affected_rows: { min: 3 } } }, write], 0],
    [[{ ...write, expect: { affected_rows: { max: 1 } } }, write], 0],
    [[write, { sql: 'select * from stock', expect: { row_count: { min: 0, max: 1 } } }], 1],
    [[write, { sql: 'select * from stock', expect: { affected_rows: 2 } }], 1],
    [[{ ...write, expect: { row_count: 0 } }], 0],
    [[{ sql: 'call adds(1)', expect: { affected_rows: 2 } }, write], 0],
  ];
  for (const [statements, statement] of cases) {
    const problem = await problemOf(statements);
    assert.deepEqual(
      reported(problem),
      [409, 'EXPECTATION_FAILED', 'rolled_back', statement],
      problem.detail,
    );
    assert.equal(await count('orders'), 0);
  }
});

test('expectations that hold, a count of rows beyond max_rows among them', async () => {
  const { results } = await committed([
    {
      sql: 'insert into orders (user) values (1), (2)',
      expect: { affected_rows: { min: 2, max: 2 } },
    },
    { sql: 'select seq from numbers where seq <= 2000', expect: { row_count: 2000 } },
    { sql: 'call adds(3)', expect: { affected_rows: { min: 1 } } },
    { sql: 'select * from stock where false', expect: { row_count: 0 } },
  ]);
  assert.deepEqual([results[1]?.row_count, results[1]?.truncated], [900, true]);
  assert.equal(await count('orders'), 3);
});

test('a statement that might end the transaction is refused before anything runs', async () => {
  const write = 'insert into orders (user) values (1)';
  const refused = [
    'create table made (n int)',
    'commit',
    'begin',
    'set autocommit = 0',
    '/*!commit*/',
    'savepoint dbhttpd_1',
  ];
  for (const sql of refused) {
    const problem = await problemOf([write, sql]);
    assert.deepEqual(reported(problem), [400, 'NOT_IN_TRANSACTION', 'not_executed', 1], sql);
  }
  assert.deepEqual(reported(await problemOf([write, 'select 1; select 2'])), [
    400,
    'SEVERAL_STATEMENTS',
    'not_executed',
    1,
  ]);
  assert.deepEqual(reported(await problemOf([write, { sql: 'select ?', params: [] }])), [
    400,
    'PARAMS_COUNT',
    'not_executed',
    1,
  ]);
  assert.equal(await count('orders'), 0);
});

test('a temporary table is refused, and works in a procedure and in one request of /db', async () => {
  const create = 'create temporary table sums as select 2 as n';
  for (const sql of [
    create,
    'create or replace temporary table sums (n int)',
    'drop temporary table sums',
  ]) {
    const problem = await problemOf([sql, 'select n from sums']);
    assert.deepEqual(reported(problem), [400, 'NOT_IN_TRANSACTION', 'not_executed', 0], sql);
    assert.match(problem.detail, /a procedure that creates and uses the temporary table\.$/);
  }
  await database.query(`create procedure sums() begin ${create}; select n from sums; end`);
  const called = await post(['insert into orders (user) values (1)', 'call sums()']);
  assert.match(called.text, /"committed":true.*"rows":\[\[2\]\]/);
  const together = await gateway.dbPost({ SQL: `${create}; select n from sums` });
  assert.match(together.text, /"ROWS":\[\[2\]\]/);
  const later = await gateway.dbPost({ SQL: 'select n from sums' });
  assert.match(later.text, /"MYSQL_ERRNO":1146/);
});

test('the reply to an invalid request names the mistake', async () => {
  const one = { sql: 'select 1' };
  const cases: readonly (readonly [object, string, RegExp, number | undefined])[] = [
    [{}, 'NO_SQL', /statements/, undefined],
    [{ statements: [] }, 'BAD_KEY', /statements/, undefined],
    [{ statements: [one], nope: 1 }, 'UNKNOWN_FIELD', /"nope"/, undefined],
    [{ statements: [one, { ...one, nope: 1 }] }, 'UNKNOWN_FIELD', /"nope"/, 1],
    [{ statements: [one, 'select 1'] }, 'BAD_KEY', /statements\[1\]: it must be .*\{"sql":/, 1],
    [{ statements: [{ sql: ' ' }] }, 'NO_SQL', /sql/, 0],
    [{ statements: [{ ...one, expect: { rows: 1 } }] }, 'UNKNOWN_FIELD', /"rows"/, 0],
    [{ statements: [{ ...one, expect: {} }] }, 'BAD_KEY', /expect/, 0],
    [
      { statements: [{ ...one, expect: { row_count: 1, affected_rows: 1 } }] },
      'BAD_KEY',
      /expect/,
      0,
    ],
    [{ statements: [{ ...one, expect: { row_count: -1 } }] }, 'BAD_KEY', /row_count/, 0],
    [
      { statements: [{ ...one, expect: { row_count: { least: 1 } } }] },
      'UNKNOWN_FIELD',
      /"least"/,
      0,
    ],
    [{ statements: [one], isolation: 'chaos' }, 'BAD_KEY', /isolation/, undefined],
    [{ statements: [one], atomic: false, retry: 1 }, 'BAD_KEY', /retry/, undefined],
    [{ statements: [one], section: 'moon' }, 'WRONG_SERVER', /section/, undefined],
  ];
  for (const [body, code, detail, statement] of cases) {
    const reply = await gateway.post('/v1/batch', body);
    const problem = reply.json<Problem>();
    assert.deepEqual(
      reported(problem),
      [400, code, 'not_executed', statement],
      JSON.stringify(body),
    );
    assert.match(problem.detail, detail);
  }
  const keyed = await post(['select 1'], {}, { 'Idempotency-Key': 'a' });
  assert.deepEqual([keyed.status, keyed.json<Problem>().code], [400, 'IDEMPOTENCY_OFF']);
  const csv = await post(['select 1'], {}, { Accept: 'text/csv' });
  assert.deepEqual([csv.status, csv.json<Problem>().code], [406, 'NOT_ACCEPTABLE']);
});

test('a procedure that ends the transaction is noticed at once: partial, and nothing after it runs', async () => {
  for (const [name, user] of [
    ['commits', 70],
    ['restarts', 71],
  ] as const) {
    const write = 'insert into orders (user) values (1)';
    for (const statements of [
      [write, `call ${name}()`, write],
      [write, `call ${name}()`],
    ]) {
      await database.query('delete from orders');
      assert.deepEqual(reported(await problemOf(statements)), [
        409,
        'TRANSACTION_ENDED',
        'partial',
        1,
      ]);
      assert.deepEqual(
        (await database.query('select user from orders order by user')).map((row) => row.user),
        [1, user],
      );
    }
  }
});

test('changes outside of transactions are never reported as rolled back', async () => {
  const fails = "insert into stock values ('A', 1)";
  for (const sql of ['insert into plain values (1)', 'insert into audited values (1)']) {
    const problem = await problemOf(['insert into orders (user) values (1)', sql, fails]);
    assert.deepEqual(reported(problem), [409, 'ER_DUP_ENTRY', 'partial', 2], sql);
  }
  const unmet = await problemOf([
    { sql: 'insert into plain values (1)', expect: { affected_rows: 2 } },
  ]);
  assert.deepEqual(reported(unmet), [409, 'EXPECTATION_FAILED', 'partial', 0]);
  assert.deepEqual([await count('orders'), await count('plain')], [0, 3]);
});

test('without a transaction, executed statements remain and are reported', async () => {
  const write = 'insert into orders (user) values (1)';
  const fails = "insert into stock values ('A', 1)";
  assert.equal((await committed([write, write], { atomic: false })).results.length, 2);
  assert.deepEqual(reported(await problemOf([write, fails, write], { atomic: false })), [
    409,
    'ER_DUP_ENTRY',
    'partial',
    1,
  ]);
  assert.deepEqual(reported(await problemOf([fails, write], { atomic: false })), [
    409,
    'ER_DUP_ENTRY',
    'failed',
    0,
  ]);
  const unmet = await problemOf([{ sql: write, expect: { affected_rows: 2 } }, write], {
    atomic: false,
  });
  assert.deepEqual(reported(unmet), [409, 'EXPECTATION_FAILED', 'partial', 0]);
  assert.equal(await count('orders'), 4);
});

test('isolation and read_only are those of the transaction, and of nothing after it', async () => {
  const refused = await problemOf(['delete from stock'], { read_only: true });
  assert.deepEqual(reported(refused), [403, 'READ_ONLY', 'not_executed', 0]);
  const keeper = await database.connect();
  try {
    await keeper.query("begin; insert into stock values ('C', 1)");
    const seen = async (options: object) => {
      const { results } = await committed(['select sku from stock'], options);
      return results[0]?.row_count;
    };
    assert.equal(await seen({ isolation: 'read uncommitted', read_only: true }), 3);
    for (let at = 0; at < 4; at += 1) {
      assert.equal(await seen({}), 2);
      await committed(['insert into orders (user) values (1)']);
    }
  } finally {
    keeper.destroy();
  }
});

test("savepoints of the client's outlive a CALL behind them", async () => {
  const insert = 'insert into orders (user) values (1)';
  await committed(['savepoint here', 'call adds(2)', insert, 'rollback to here', insert]);
  assert.equal(await count('orders'), 1);
  await committed(['savepoint here', 'call adds(2)', 'release savepoint here']);
  assert.equal(await count('orders'), 2);
});

test('savepoints of the client go, and variables do not outlive the batch', async () => {
  await committed([
    'set @a = 5, foreign_key_checks = 0',
    'insert into orders (user) values (@a)',
    'savepoint here',
    'insert into orders (user) values (6)',
    'rollback to here',
    'release savepoint here',
  ]);
  assert.deepEqual(await database.query('select user from orders'), [{ user: 5 }]);
  for (let at = 0; at < 4; at += 1) {
    const { results } = await committed(['select @a, @@foreign_key_checks']);
    assert.deepEqual(results[0]?.rows, [[null, '1']]);
  }
});

test('a comment at the end of a statement ends there', async () => {
  const { results } = await committed([
    "select 'a' -- one",
    "select 'b' # two",
    "select 'c' /* three */;",
  ]);
  assert.deepEqual(
    results.map(({ rows }) => rows),
    [[['a']], [['b']], [['c']]],
  );
});

test('results beyond the buffer undo the batch', async () => {
  const problem = await problemOf([
    'insert into orders (user) values (1)',
    "select repeat('x', 1000000) from numbers where seq <= 30",
    'select seq, repeat("x", 1000) from numbers',
  ]);
  assert.deepEqual(reported(problem), [422, 'RESULT_TOO_LARGE', 'rolled_back', undefined]);
  assert.equal(await count('orders'), 0);
});

test('a result that cannot be written undoes the batch', async () => {
  const statements = ['insert into orders (user) values (1)', 'select 1 as a, 2 as a'];
  const problem = await problemOf(statements, { rows: 'object' });
  assert.deepEqual(reported(problem), [400, 'DUPLICATE_COLUMNS', 'rolled_back', undefined]);
  assert.equal(await count('orders'), 0);
});

test('a write in a batch is not refused for duplicate names, and neither is any statement without a transaction', async (t) => {
  if (database.flavour !== 'mariadb') return t.skip('no RETURNING here');
  const insert = 'insert into orders (user) values (1) returning user, user';
  const ask = async (atomic: boolean, ...statements: string[]) => {
    const body = { rows: 'object', atomic, statements: statements.map((sql) => ({ sql })) };
    const reply = await gateway.post('/v1/batch', body);
    assert.equal(reply.status, 200, reply.text);
    return reply.json<{ results: { rows: unknown }[] }>().results.map(({ rows }) => rows);
  };
  const [row] = [{ user: 1, user_2: 1 }];
  assert.deepEqual(await ask(true, insert, insert), [[row], [row]]);
  const plain = await ask(false, insert, 'select 1 as a, 2 as a');
  assert.deepEqual(plain, [[row], [{ a: 1, a_2: 2 }]]);
  assert.equal(await count('orders'), 3);
});

test('many statements, and long ones, are one transaction', async () => {
  const long = 'x'.repeat(150_000);
  const statements = [
    ...Array.from({ length: 1000 }, (_, user) => ({
      sql: 'insert into orders (user) values (?)',
      params: [user],
    })),
    ...Array.from({ length: 4 }, () => ({ sql: 'select concat(length(?))', params: [long] })),
  ];
  const { results } = await committed(statements);
  assert.equal(results.length, 1004);
  assert.deepEqual(results[1003]?.rows, [['150000']]);
  assert.equal(await count('orders'), 1000);
});

test('thousands of statements whose numbers have fractions delay no other request', async () => {
  const statement = `{"sql":"do ${Array(10).fill('?')}","params":[${Array(10).fill(1.5)}]}`;
  // If the gateway read the body again for each number, this would take minutes, and the test would not wait so long for its reply.
  const body = `{"statements":[${Array(2000).fill(statement)}]}`;
  assert.equal((await gateway.post('/v1/batch', body)).status, 200);
});

// dry_run and max_affected of /v1/query: a batch of one.

const query = (body: object) => gateway.post('/v1/query', body);

test('a dry run reports what would be done, and leaves no trace', async () => {
  const write = await query({ sql: 'insert into orders (user) values (1), (2)', dry_run: true });
  const { request_id, section, ...rest } = write.json<Record<string, unknown>>();
  assert.deepEqual(rest, { affected_rows: 2, insert_id: '1', warnings: 0, rolled_back: true });
  assert.equal(await count('orders'), 0);
  const read = await query({ sql: 'select n from stock order by n', dry_run: true });
  const { rows, rolled_back } = read.json<Record<string, unknown>>();
  assert.deepEqual([rows, rolled_back], [[[0], [5]], true]);
});

test('a write that touches too many rows is undone', async () => {
  const most = (max_affected: number) => query({ sql: 'update stock set n = n + 1', max_affected });
  const refused = (await most(1)).json<Problem>();
  assert.deepEqual(reported(refused), [409, 'TOO_MANY_ROWS', 'rolled_back', 0]);
  assert.deepEqual(await database.query("select n from stock where sku = 'A'"), [{ n: 5 }]);
  const reply = (await most(2)).json<Record<string, unknown>>();
  assert.deepEqual([reply.affected_rows, reply.rolled_back], [2, undefined]);
  assert.deepEqual(await database.query("select n from stock where sku = 'A'"), [{ n: 6 }]);
});

test('a write that gives back its rows is counted by them', async (t) => {
  if (database.flavour === 'mysql') {
    t.skip('MySQL has no RETURNING');
    return;
  }
  const wish = { sql: 'delete from stock returning sku' };
  const refused = (await query({ ...wish, max_affected: 1 })).json<Problem>();
  assert.deepEqual(reported(refused), [409, 'TOO_MANY_ROWS', 'rolled_back', 0]);
  assert.equal(await count('stock'), 2);
  const reply = await query({ ...wish, max_affected: 2 });
  assert.equal(reply.json<{ row_count: number }>().row_count, 2);
  assert.equal(await count('stock'), 0);
  // A statement that only reads affects no rows.
  const read = await query({ sql: 'select 1 union select 2', max_affected: 1 });
  assert.equal(read.status, 200);
});

test('a statement that may not be undoable is refused before it runs', async () => {
  const refused = [
    'create table made (n int)',
    'call adds(1)',
    'insert into plain values (1)',
    'insert into audited values (1)',
    'insert into nowhere values (1)',
    'set @a = 1',
  ];
  for (const sql of refused) {
    for (const wish of [{ dry_run: true }, { max_affected: 5 }]) {
      const problem = (await query({ sql, ...wish })).json<Problem>();
      assert.deepEqual(
        [problem.status, problem.code, problem.outcome],
        [400, 'NOT_UNDOABLE', 'not_executed'],
        sql,
      );
    }
  }
  assert.deepEqual([await count('orders'), await count('plain')], [0, 0]);
});
