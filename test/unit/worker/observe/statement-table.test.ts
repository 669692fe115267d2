// A worker's report about its statements: each by its digest, all that were executed, in bounded memory.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { StatementsReport } from '../../../../src/shared/observe/statement-sums.ts';
import type { ExchangeSummary } from '../../../../src/worker/observe/observation.ts';
import { StatementTable } from '../../../../src/worker/observe/statement-table.ts';

const ran = (sql: string | null, more: Partial<ExchangeSummary> = {}): ExchangeSummary => ({
  requestId: 'some-request',
  traceId: null,
  connectingMs: 0,
  firstRowMs: 0,
  section: 'world',
  named: null,
  client: 'default',
  user: null,
  status: 200,
  outcome: 'ok',
  code: null,
  errno: null,
  wasCut: false,
  clientGone: false,
  tool: null,
  isRead: true,
  rows: 1,
  bytes: 10,
  queueMs: 0,
  databaseMs: 2,
  durationMs: 3,
  sql,
  ...more,
});
const countIn = (table: StatementTable) => (summary: ExchangeSummary) =>
  table.observe({ kind: 'statements finished', summary });
const find = (report: StatementsReport | null, digest: string) =>
  report?.statements.find((one) => one.digest === digest)?.sums;

test('sums up statements that differ only in literals, once', () => {
  const table = new StatementTable();
  const count = countIn(table);
  count(ran("select 'secret', 1", { databaseMs: 2, requestId: 'short' }));
  count(ran("select 'it''s', 22", { databaseMs: 40, requestId: 'long', rows: 5 }));
  const sums = find(table.take(), 'select ?');
  assert.equal(sums?.count, 2);
  assert.equal(sums?.rows, 6);
  assert.equal(sums?.totalMs, 42);
  assert.equal(sums?.exampleId, 'long');
  assert.deepEqual(sums?.errors, {});
  assert.equal(table.take(), null);
  count(ran('select 3'));
  assert.equal(find(table.take(), 'select ?')?.count, 1);
});

test('keeps sections apart, and leaves out texts that are not a statement', () => {
  const table = new StatementTable();
  const count = countIn(table);
  count(ran('select 1', { section: 'one' }));
  count(ran('select 2', { section: 'two' }));
  count(ran(null, { section: 'three' }));
  const sections = table.take()?.statements.map(({ section }) => section);
  assert.deepEqual(sections?.toSorted(), ['one', 'two']);
});

test("counts errors by MySQL's names and by codes; a statement that never reached MySQL has no latency", () => {
  const table = new StatementTable();
  const count = countIn(table);
  count(ran('select 1', { outcome: 'error', errno: 1146 }));
  count(ran('select 1', { outcome: 'failed', code: 'DEADLINE_RUNNING', databaseMs: 500 }));
  count(ran('select 1', { outcome: 'not_executed', code: 'QUEUE_FULL', databaseMs: 0 }));
  const sums = find(table.take(), 'select ?');
  assert.equal(sums?.count, 3);
  assert.deepEqual(sums?.errors, { ER_NO_SUCH_TABLE: 1, DEADLINE_RUNNING: 1, QUEUE_FULL: 1 });
  const counted = sums?.latencies.filter((_, at) => at % 2 === 1);
  assert.equal(
    counted?.reduce((sum, one) => sum + one, 0),
    2,
  );
});

test('nothing is lost and reports are bounded, however many statements come at once', () => {
  const table = new StatementTable();
  const count = countIn(table);
  const [distinct, often] = [20_000, 10];
  for (let number = 0; number < distinct; number += 1) {
    count(ran(`select a${number} from t`, { databaseMs: 1 }));
    if (number % (distinct / often) === 0) count(ran('select slow', { databaseMs: 500 }));
  }
  let [reported, slow, reports] = [0, 0, 0];
  for (let report = table.take(); report !== null; report = table.take()) {
    reports += 1;
    assert.ok(report.statements.length <= 500);
    assert.ok(JSON.stringify(report).length < 2 ** 20);
    for (const { digest, sums } of report.statements) {
      reported += sums.count;
      if (digest === 'select slow') slow += sums.count;
    }
    reported += report.other?.count ?? 0;
  }
  assert.equal(reported, distinct + often);
  assert.equal(slow, often);
  assert.ok(reports <= 4, `${reports} reports`);
});
