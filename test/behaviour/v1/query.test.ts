// The promises of /v1/query in JSON: shapes, statuses, strictness, the same safety as /db.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createNumbers } from '../../support/database/numbers.ts';
import { openRaw } from '../../support/http.ts';
import { enterPipeline } from '../../support/pipeline.ts';
import { useGateway } from '../../support/use-gateway.ts';

const { gateway } = useGateway(
  { workers: 1, max_rows: 900, compress: 'off' },
  {
    prepare: async (database) => {
      await createNumbers(database);
      await database.query(`
        create table orders (id bigint primary key, total decimal(12,2), name varchar(40), parent bigint,
          foreign key (parent) references orders (id)) engine = innodb;
        insert into orders values (9007199254740993, 12.30, 'a "quoted" name', null), (2, null, '', null);
        create table made (id int auto_increment primary key, n int unique) engine = innodb;
        create procedure two() begin select 'x' as a; select 'y' as b; end;
        create procedure none() begin end;
        create procedure half() begin insert into made (n) values (50); insert into made (n) values (50); end`);
    },
  },
);

const query = (body: object | string, headers = {}) => gateway.post('/v1/query', body, { headers });

type Problem = {
  readonly status: number;
  readonly code: string;
  readonly outcome: string;
  readonly retryable: boolean;
  readonly detail: string;
  readonly errno?: number;
  readonly sqlstate?: string;
  readonly offset?: number;
  readonly request_id: string;
};

async function problemOf(body: object | string, headers = {}): Promise<Problem> {
  const reply = await query(body, headers);
  assert.equal(reply.headers['content-type'], 'application/problem+json', reply.text);
  const problem = reply.json<Problem>();
  assert.equal(problem.status, reply.status);
  assert.equal(problem.request_id, reply.headers['x-request-id']);
  return problem;
}

test('a query: described columns, exact numbers as strings, and facts about the whole result', async () => {
  const reply = await query({
    sql: 'select id, total, name from orders where id = :id',
    params: { id: '9007199254740993' },
  });
  assert.equal(reply.status, 200);
  assert.equal(reply.headers['content-type'], 'application/json; charset=utf-8');
  assert.equal(reply.headers['content-length'], String(reply.body.length));
  assert.match(String(reply.headers['server-timing']), /^queue;dur=\d+\.\d, db;dur=\d+\.\d$/);
  const { columns, ...rest } = reply.json<{ columns: { name: string; type: string }[] }>();
  assert.deepEqual(
    columns.map(({ name, type }) => [name, type]),
    [
      ['id', 'BIGINT'],
      ['total', 'DECIMAL'],
      ['name', 'VARCHAR'],
    ],
  );
  assert.deepEqual(rest, {
    rows: [['9007199254740993', '12.30', 'a "quoted" name']],
    row_count: 1,
    truncated: false,
    warnings: 0,
    request_id: reply.headers['x-request-id'],
    section: gateway.section,
  });
});

test('raw numbers are JSON numbers with all their digits', async () => {
  const reply = await query({ sql: 'select id, total from orders where id > 2', numbers: 'raw' });
  assert.match(reply.text, /"rows":\[\[9007199254740993,12\.30\]\]/);
});

test('a write: rows, id as a string, warnings; no id if there is none', async () => {
  const made = await query({ sql: 'insert into made (n) values (?)', params: [5] });
  const { request_id, ...rest } = made.json<Record<string, unknown>>();
  assert.deepEqual(rest, {
    affected_rows: 1,
    insert_id: '1',
    warnings: 0,
    section: gateway.section,
  });
  assert.equal(request_id, made.headers['x-request-id']);
  const changed = await query({ sql: 'update made set n = 6' });
  assert.equal(changed.json<{ insert_id: unknown }>().insert_id, null);
});

test('a read: the number of its warnings, alone, pipelined and in a held transaction', async () => {
  const sql = "select cast('12abc' as signed), cast('x' as signed)";
  const warningsOf = async (body: object) => (await query(body)).json<{ warnings: number }>();
  for (let asked = 0; asked < 5; asked += 1) {
    assert.equal((await warningsOf({ sql })).warnings, 2);
  }
  assert.equal((await warningsOf({ sql: 'select 1' })).warnings, 0);
  const transaction = await beginTransaction();
  assert.equal((await warningsOf({ sql, transaction })).warnings, 2);
  await gateway.post('/v1/transaction/rollback', { transaction });
  const batch = await gateway.post('/v1/batch', { statements: [{ sql }] });
  assert.equal(batch.json<{ results: { warnings: number }[] }>().results[0]?.warnings, 2);
});

test('a CALL has all its results', async () => {
  const { results } = (await query({ sql: 'call two()' })).json<{ results: object[] }>();
  assert.equal(results.length, 3);
  assert.deepEqual(
    results.map((result) => ('rows' in result ? result.rows : 'no rows')),
    [[['x']], [['y']], 'no rows'],
  );
  const none = (await query({ sql: 'call none()' })).json<{ affected_rows: number }>();
  assert.equal(none.affected_rows, 0);
});

test('max_rows cuts and reports it; the section limits what a request may choose', async () => {
  const sql = 'select seq from numbers where seq <= 2000';
  const cut = (await query({ sql, max_rows: 3 })).json<{ rows: unknown[] }>();
  assert.deepEqual(cut, { ...cut, row_count: 3, truncated: true });
  assert.equal(cut.rows.length, 3);
  for (const max_rows of [0, 5000]) {
    const most = (await query({ sql, max_rows })).json<{ row_count: number; truncated: boolean }>();
    assert.deepEqual([most.row_count, most.truncated], [900, true]);
  }
});

test('QUERY is the same and only reads', async () => {
  const method = 'QUERY';
  const reply = await gateway.post('/v1/query', { sql: "select 'x' as one" }, { method });
  assert.deepEqual(reply.json<{ rows: unknown }>().rows, [['x']]);
  const write = await gateway.post('/v1/query', { sql: 'delete from made' }, { method });
  assert.deepEqual([write.status, write.json<Problem>().code], [403, 'READ_ONLY']);
});

test("MySQL's errors have its names and real statuses", async () => {
  const cases: readonly (readonly [string, number, string, number])[] = [
    ['select * from nope', 422, 'ER_NO_SUCH_TABLE', 1146],
    ['selec 1', 422, 'ER_PARSE_ERROR', 1064],
    ['insert into orders (id) values (2)', 409, 'ER_DUP_ENTRY', 1062],
    ['insert into orders (id, parent) values (3, 77)', 409, 'ER_NO_REFERENCED_ROW_2', 1452],
  ];
  for (const [sql, status, code, errno] of cases) {
    const problem = await problemOf({ sql });
    assert.deepEqual(
      [problem.status, problem.code, problem.errno, problem.outcome, problem.retryable],
      [status, code, errno, 'failed', false],
    );
    assert.match(String(problem.sqlstate), /^[0-9A-Z]{5}$/);
  }
});

test('a CALL that fails may have applied a part: no reply claims that it did not', async () => {
  const problem = await problemOf({ sql: 'call half()' });
  assert.deepEqual(
    [problem.status, problem.code, problem.outcome, problem.retryable],
    [409, 'ER_DUP_ENTRY', 'partial', false],
  );
});

test('an invalid field is refused by name, and nothing is run', async () => {
  const sql = 'insert into made (n) values (99)';
  const cases: readonly (readonly [object | string, number, string, RegExp])[] = [
    ['{', 400, 'BAD_JSON', /JSON/],
    [[], 400, 'BAD_JSON', /object/],
    [{ sql, SQL: 'x' }, 400, 'UNKNOWN_FIELD', /"SQL".*sql/],
    [{ sql, rows: 'list' }, 400, 'BAD_KEY', /rows.*"array" or "object"/],
    [{ sql, max_rows: 1.5 }, 400, 'BAD_KEY', /max_rows/],
    [{ sql, section: 'other' }, 400, 'WRONG_SERVER', /section/],
    [{ sql: ' ' }, 400, 'NO_SQL', /sql/],
    [{}, 400, 'NO_SQL', /sql/],
    [{ sql, params: [1] }, 400, 'PARAMS_COUNT', /./],
    [{ sql: `${sql}; ${sql}` }, 400, 'SEVERAL_STATEMENTS', /character 34/],
  ];
  for (const [body, status, code, detail] of cases) {
    const problem = await problemOf(body);
    assert.deepEqual([problem.status, problem.code], [status, code], JSON.stringify(body));
    assert.equal(problem.outcome, 'not_executed');
    assert.match(problem.detail, detail);
  }
  const several = await problemOf({ sql: 'select 1; select 2' });
  assert.equal(several.offset, 10);
  assert.deepEqual(
    await Promise.all([
      problemOf({ sql }, { 'Idempotency-Key': 'k' }),
      problemOf({ sql }, { Accept: 'image/png' }),
      problemOf({ sql }, { 'Content-Type': 'text/plain' }),
    ]).then((problems) => problems.map(({ status, code }) => [status, code])),
    [
      [400, 'IDEMPOTENCY_OFF'],
      [406, 'NOT_ACCEPTABLE'],
      [415, 'UNSUPPORTED_MEDIA_TYPE'],
    ],
  );
  const made = (await query({ sql: 'select count(*) from made where n = 99' })).json();
  assert.deepEqual((made as { rows: unknown }).rows, [['0']]);
});

test('a request whose deadline is over when it has been decoded never reaches MySQL', async () => {
  const params = [Array.from({ length: 60_000 }, (_, n) => n)];
  const sql = 'insert into made (n) select 98 from dual where 1 in (?)';
  const problem = await problemOf({ sql, params, timeout_ms: 1 });
  assert.deepEqual(
    [problem.status, problem.code, problem.outcome, problem.retryable],
    [503, 'DEADLINE_WAITING', 'not_executed', true],
  );
  assert.equal((await query({ sql, params })).status, 200);
  const made = (await query({ sql: 'select count(*) from made where n = 98' })).json();
  assert.deepEqual((made as { rows: unknown }).rows, [['1']]);
});

test('a statement that only affects its session is refused, with what works instead', async () => {
  const cases: readonly (readonly [string, RegExp])[] = [
    ['begin', /\/v1\/batch, or begin one with POST \/v1\/transaction\.$/],
    ['start transaction', /\/v1\/transaction/],
    ['commit', /\/v1\/transaction/],
    ['rollback', /\/v1\/transaction/],
    ['savepoint a', /\/v1\/transaction/],
    ['set autocommit = 0', /\/v1\/transaction/],
    ['set @a = 1', /\/v1\/batch together with .* init_sql\.$/],
    ['set names latin1', /always UTF-8 \(utf8mb4\) here: leave the statement out\.$/],
    ['set sql_mode = ansi', /The key init_sql sets it for every session/],
    ['lock tables orders write', /FOR UPDATE/],
    ['flush tables with read lock', /lock of a backup, connect to MySQL without the gateway\.$/],
    ["xa start 'a'", /without the gateway/],
    ['handler orders open', /SELECT\.$/],
    ['use information_schema', /db\.table/],
    ["prepare p from 'select 1'", /in params\.$/],
    ['create temporary table t (id int)', /a procedure that creates and uses/],
  ];
  for (const [sql, way] of cases) {
    for (const read_only of [false, true]) {
      const problem = await problemOf({ sql, read_only });
      const { status, code, outcome, retryable } = problem;
      assert.deepEqual(
        [status, code, outcome, retryable],
        [400, 'SESSION_STATEMENT', 'not_executed', false],
        sql,
      );
      assert.match(problem.detail, way);
    }
    // It would wait for the statements of all clients, and let others wait.
    if (sql.startsWith('flush')) continue;
    const old = await gateway.db({ SQL: sql });
    assert.equal(old.status, 200);
    assert.doesNotMatch(old.text, /SESSION_STATEMENT/);
  }
  const token = await beginTransaction();
  assert.equal((await query({ sql: 'set @a = 1', transaction: token })).status, 200);
  assert.equal((await query({ sql: 'savepoint a', transaction: token })).status, 200);
  const ended = await gateway.post('/v1/transaction/rollback', { transaction: token });
  assert.equal(ended.status, 200);
});

async function beginTransaction(): Promise<string> {
  const begun = await gateway.post('/v1/transaction', {});
  return begun.json<{ transaction: string }>().transaction;
}

test('paths and methods that there are not have problems too', async () => {
  for (const [path, method, status, code] of [
    ['/v1/nothing', 'GET', 404, 'NOT_FOUND'],
    ['/v1/query', 'GET', 405, 'METHOD_NOT_ALLOWED'],
  ] as const) {
    const reply = await gateway.request(path, { method });
    assert.equal(reply.headers['content-type'], 'application/problem+json');
    assert.deepEqual([reply.status, reply.json<Problem>().code], [status, code]);
  }
  const misspelt = await gateway.post('/v1/querry', { sql: 'select 1' });
  assert.match(misspelt.json<Problem>().detail, /Did you mean \/v1\/query\?$/);
  assert.equal((await gateway.get('/nothing')).json<{ CODE: string }>().CODE, 'NOT_FOUND');
});

test('the deadline is in the words of a problem', async () => {
  const problem = await problemOf({ sql: 'select sleep(20)', timeout_ms: 3000 });
  assert.deepEqual(
    [problem.status, problem.code, problem.outcome, problem.retryable],
    [504, 'DEADLINE_RUNNING', 'failed', true],
  );
});

test('quick reads are pipelined, and say the same as by themselves', async () => {
  const sql = 'select name from orders where id = 2';
  await enterPipeline(gateway, sql);
  const alone = await query({ sql: `${sql} ` });
  const replies = await Promise.all(Array.from({ length: 8 }, () => query({ sql })));
  for (const reply of replies) {
    const { request_id, ...rest } = reply.json<Record<string, unknown>>();
    const { request_id: _other, ...expected } = alone.json<Record<string, unknown>>();
    assert.deepEqual(rest, expected);
    assert.equal(request_id, reply.headers['x-request-id']);
  }
});

test('an error of MySQL after rows have left resets the connection', async () => {
  const client = await openRaw(gateway.port);
  try {
    // The cast fails at its last row, beyond what is held back.
    const sql =
      "select repeat('x', 1000), (select n from made where seq = 850 union select 1 from dual where seq = 850 union select 2 from dual where seq = 850) from numbers where seq <= 900";
    const body = JSON.stringify({ sql });
    client.send(
      `POST /v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    assert.equal(await client.ended(), 'reset');
    const received = client.received();
    assert.match(received, /^HTTP\/1\.1 200 OK/);
    assert.ok(!received.endsWith('0\r\n\r\n'), 'the reply looks whole');
  } finally {
    client.socket.destroy();
  }
});

test('compress = off: nothing is', async () => {
  const headers = { 'Accept-Encoding': 'gzip' };
  const reply = await query({ sql: "select repeat('x', 2000)" }, headers);
  assert.equal(reply.headers['content-encoding'], undefined);
  assert.equal(reply.status, 200);
});
