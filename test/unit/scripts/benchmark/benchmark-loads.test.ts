// The reports of the load generators, and which of them are errors.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listCells } from '../../../../scripts/benchmark/cells.ts';
import { isWhole } from '../../../../scripts/benchmark/download.ts';
import { isRight } from '../../../../scripts/benchmark/probe.ts';
import { composeRequest, fillIn } from '../../../../scripts/benchmark/request.ts';
import { parseFetches, parseSysbench } from '../../../../scripts/benchmark/sysbench.ts';
import {
  namedStatements,
  type Workload,
  workloads,
} from '../../../../scripts/benchmark/workloads.ts';
import { parseWrk } from '../../../../scripts/benchmark/wrk.ts';
import { parseFile } from '../../../../src/shared/named/parse-file.ts';

const summary = {
  requests: 1000,
  durationUs: 2_000_000,
  bytes: 400_000,
  p50Us: 512,
  p99Us: 7580,
  connect: 0,
  read: 0,
  write: 0,
  timeout: 0,
  status: 0,
};

const wrkOutput = (changes: Partial<typeof summary>) =>
  `Running 2s test\nSUMMARY ${JSON.stringify({ ...summary, ...changes })}\n`;

test("wrk's summary becomes an outcome", () => {
  assert.deepEqual(parseWrk(wrkOutput({}), 400), {
    requests: 1000,
    seconds: 2,
    p50Ms: 0.512,
    p99Ms: 7.58,
    errors: 0,
    firstByteMs: null,
    bytes: 400_000,
  });
});

test('refused connections, timeouts and bad statuses are errors', () => {
  const output = wrkOutput({ connect: 1, read: 2, write: 3, timeout: 4, status: 5 });
  assert.equal(parseWrk(output, 400).errors, 15);
});

test('replies too small on average are errors, though their status is 200', () => {
  assert.ok(parseWrk(wrkOutput({ bytes: 200_000 }), 400).errors > 0);
  assert.ok(parseWrk(wrkOutput({ requests: 0 }), 400).errors > 0);
});

test("wrk's output without a summary is refused", () => {
  assert.throws(() => parseWrk('unable to connect', 400), /no summary/);
});

test("sysbench's report becomes an outcome with percentiles from its histogram", () => {
  const output = `Latency histogram (values are in milliseconds)
       value  ------------- distribution ------------- count
       0.065 |****                                     10
       0.130 |**************************************** 88
       2.340 |                                         2

SQL statistics:
    ignored errors:                      0      (0.00 per sec.)
General statistics:
    total time:                          2.0005s
    total number of events:              100
`;
  const { seconds, ...rest } = parseSysbench(output);
  assert.equal(seconds, 2.0005);
  assert.deepEqual(rest, {
    requests: 100,
    p50Ms: 0.13,
    p99Ms: 2.34,
    errors: 0,
    firstByteMs: null,
    bytes: null,
  });
});

test('a fetch that lacks rows is an error', () => {
  const output = `FETCH {"rows":10,"firstMs":0.5,"totalMs":30}
FETCH {"rows":9,"firstMs":0.7,"totalMs":31}
    total time:                          0.0615s
`;
  const outcome = parseFetches(output, 10);
  assert.equal(outcome.requests, 2);
  assert.equal(outcome.errors, 1);
  assert.equal(outcome.firstByteMs, 0.5);
});

test('a large reply is whole by its length or by its last chunk', () => {
  const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n';
  assert.ok(isWhole(chunked, 9, '2\r\n{}\r\n0\r\n\r\n'));
  assert.ok(!isWhole(chunked, 9, '2\r\n{}\r\n'));
  const counted = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n';
  assert.ok(isWhole(counted, 2, '{}'));
  assert.ok(!isWhole(counted, 1, '{'));
  assert.ok(!isWhole('HTTP/1.1 503 Service Unavailable\r\nContent-Length: 2\r\n', 2, '{}'));
});

test('an answer is right when it has all rows with all columns, or success', () => {
  const query: Workload = {
    name: 'q',
    title: 'q',
    kind: 'statement',
    statement: '',
    span: 1,
    rows: 1,
  };
  assert.ok(isRight(query, '{"RESULT":{"HEADER":["a"],"ROWS":[[1]]}}'));
  assert.ok(!isRight(query, '{"RESULT":{"HEADER":["a","b"],"ROWS":[[1]]}}'));
  assert.ok(!isRight(query, '{"RESULT":{"ROWS":[]}}'));
  assert.ok(!isRight(query, '{"MYSQL_ERRNO":1146}'));
  assert.ok(isRight({ ...query, rows: null }, '{"RESULT":{"SUCCESS":true}}'));
  assert.ok(isRight(query, '{"columns":[{"name":"a"}],"rows":[[1]]}'));
  assert.ok(!isRight(query, '{"columns":[{"name":"a"}],"rows":[]}'));
  assert.ok(isRight(query, '{"columns":[{"name":"a"}],"rows":[{"a":1}]}'));
  assert.ok(!isRight(query, '{"columns":[{"name":"a"},{"name":"b"}],"rows":[{"a":1}]}'));
  assert.ok(isRight({ ...query, rows: null }, '{"affected_rows":1}'));
  const batch = { ...query, kind: 'batch', rows: null } as const;
  const each = '{"affected_rows":1}';
  assert.ok(isRight(batch, `{"committed":true,"results":[${each},${each},${each}]}`));
  assert.ok(!isRight(batch, `{"committed":true,"results":[${each},${each}]}`));
  assert.ok(!isRight(batch, `{"committed":false,"results":[${each},${each},${each}]}`));
});

const place = (speaks: 'db' | 'v1' | 'v1-keys' | 'v1-named') => ({
  port: 1,
  path: () => '/db',
  speaks,
});

test('every request of /db has one statement, with a number in it', () => {
  for (const cell of listCells().filter(({ workload }) => workload.kind === 'statement')) {
    const request = composeRequest(cell, place('db'));
    assert.deepEqual([request.least, request.most], [1, cell.workload.span]);
    const text = fillIn(request, 7);
    const [, url = ''] = text.split(' ');
    const { SQL } = JSON.parse(decodeURIComponent(url.slice('/db?'.length))) as { SQL: string };
    assert.equal(SQL, cell.workload.statement.replace('{id}', '7'));
    assert.equal(text.includes('Connection: close'), cell.load.close);
    assert.ok(text.endsWith('\r\n\r\n'));
  }
});

test('every request of /v1 has the announced length, whatever its number', () => {
  for (const speaks of ['v1', 'v1-keys', 'v1-named'] as const) {
    for (const cell of listCells()) {
      const request = composeRequest(cell, place(speaks));
      for (const id of [request.least, request.most]) {
        const [head = '', body = ''] = fillIn(request, id).split('\r\n\r\n');
        assert.equal(/^Content-Length: (\d+)$/m.exec(head)?.[1], String(body.length));
        assert.equal(/^Idempotency-Key: \S+$/m.test(head), speaks === 'v1-keys');
        const { sql, statements, params } = JSON.parse(body) as {
          sql?: string;
          statements?: unknown[];
          params?: unknown;
        };
        if (cell.workload.kind === 'batch') assert.equal(statements?.length, 3);
        else if (speaks === 'v1-named') {
          assert.ok(head.startsWith(`POST /v1/named/${cell.workload.name} HTTP/1.1`), head);
          assert.deepEqual(params, { id });
        } else assert.equal(sql, cell.workload.statement.replace('{id}', String(id)));
      }
      assert.ok(request.most <= cell.workload.span && request.most >= request.least);
    }
  }
});

test('the named statements are the same texts, with a parameter in the place of the number', () => {
  const parsed = parseFile(namedStatements(workloads), 'workloads.sql', {
    hasIdempotencyTable: false,
  });
  assert.ok(parsed.ok, JSON.stringify(parsed));
  for (const { name, kind, parts } of parsed.statements) {
    const workload = workloads.find((one) => one.name === name);
    assert.equal(parts[0]?.sql.replace(':id', '{id}'), workload?.statement);
    assert.equal(kind, workload?.rows === null ? 'exec' : 'many');
  }
  assert.equal(parsed.statements.length, workloads.length - 1, 'all that are one statement');
});
