// The report about all workers' statements: sums, shares, order; the right ones on top, even among a hundred thousand distinct ones.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type ListedStatement,
  StatementSums,
} from '../../../../src/shared/observe/statement-sums.ts';
import { StatementTotals } from '../../../../src/supervisor/observe/statement-totals.ts';
import { StatementTable } from '../../../../src/worker/observe/statement-table.ts';
import { cases, seed } from '../../../support/property.ts';
import { createRandom } from '../../../support/random.ts';

const linesOf = (totals: StatementTotals): readonly ListedStatement[] => totals.list().statements;

function part(runs: readonly number[], requestId: string, error: string | null = null) {
  const sums = new StatementSums();
  for (const databaseMs of runs) sums.addRun(1, databaseMs, error, requestId);
  sums.lastSeenMs = 1000;
  return sums.report();
}

test('sums over workers, and sorts by share of the time', () => {
  const totals = new StatementTotals(1_000_000);
  const fast = {
    section: 'world',
    client: 'default',
    named: null,
    digest: 'select ?',
    sums: part([1, 1, 1], 'fast'),
  };
  const slow = {
    section: 'world',
    client: 'default',
    named: null,
    digest: 'select slow',
    sums: part([60], 'slow'),
  };
  totals.add({ statements: [fast, slow], other: null });
  totals.add({ statements: [fast], other: part([34], 'rest', 'DEADLINE_RUNNING') });
  const lines = linesOf(totals);
  assert.deepEqual(
    lines.map(({ digest, count, total_ms, share }) => [digest, count, total_ms, share]),
    [
      ['select slow', 1, 60, 0.6],
      ['select ?', 6, 6, 0.06],
      ['other', 1, 34, 0.34],
    ],
  );
  assert.equal(lines[1]?.section, 'world');
  assert.equal(lines[1]?.example_id, 'fast');
  assert.equal(lines[1]?.last_seen, '1970-01-01T00:00:01.000Z');
  assert.equal(lines[2]?.errors, 1);
  assert.deepEqual(lines[2]?.errors_by, { DEADLINE_RUNNING: 1 });
  assert.ok(!('section' in (lines[2] as ListedStatement)));
});

test('reports nothing that was not seen', () => {
  const [other, ...more] = linesOf(new StatementTotals(1_000_000));
  assert.equal(more.length, 0);
  assert.deepEqual(other, {
    digest: 'other',
    count: 0,
    errors: 0,
    errors_by: {},
    rows: 0,
    total_ms: 0,
    share: 0,
    p50_ms: null,
    p95_ms: null,
    p99_ms: null,
    last_seen: null,
    example_id: null,
    history: null,
  });
});

test('a statement that suddenly takes long comes to the top, though thousands have taken more before', () => {
  const totals = new StatementTotals(1_000_000);
  const tell = (digest: string, ms: number) =>
    totals.add({
      statements: [
        { section: 'world', client: 'default', named: null, digest, sums: part([ms], 'r') },
      ],
      other: null,
    });
  for (let number = 0; number < 3000; number += 1) tell(`select old${number}`, 50_000);
  for (let second = 0; second < 300; second += 1) {
    for (let number = 0; number < 100; number += 1) tell(`select new${second}_${number}`, 1);
    if (second >= 200) tell('select sudden', 1000);
  }
  const { digest, count } = linesOf(totals)[0] as ListedStatement;
  assert.deepEqual([digest, count], ['select sudden', 100]);
});

test('reports the last ten minutes of the statements with the most time in them, in points', () => {
  const totals = new StatementTotals(1_000_000);
  const tell = (digest: string, runs: readonly number[]) =>
    totals.add({
      statements: [
        { section: 'world', client: 'default', named: null, digest, sums: part(runs, 'r') },
      ],
      other: null,
    });
  for (let number = 0; number < 1000; number += 1) tell(`select old${number}`, [50_000]);
  for (let point = 1; point <= 100; point += 1) {
    totals.beginPoint(1_000_000 + 10_000 * point);
    if (point > 97) tell('select new', [1, 2]);
    else tell('select before', [1]);
  }
  const { history, statements } = totals.list();
  assert.equal(history.interval_seconds, 10);
  assert.deepEqual([history.at.length, history.at[0], history.at.at(-1)], [60, 1410, 2000]);
  assert.equal(statements.length, 501);
  const pastOf = (name: string) => statements.find(({ digest }) => digest === name)?.history;
  const late = (old: number, new_: number) => history.at.map((_, at) => (at < 57 ? old : new_));
  assert.deepEqual(pastOf('select new'), { count: late(0, 2), total_ms: late(0, 3) });
  assert.deepEqual(pastOf('select before'), { count: late(1, 0), total_ms: late(1, 0) });
  assert.equal(pastOf('select old0'), null);
});

test('a hundred thousand distinct statements: 500 are reported, the longest are right, and nothing is lost', () => {
  const distinct = cases(100_000);
  const totals = new StatementTotals(1_000_000);
  const workers = [new StatementTable(), new StatementTable()];
  const random = createRandom(seed);
  const expected = new Map<string, number>();
  let [wholeMs, requests] = [0, 0];
  const summary = { ...ran, sql: '', databaseMs: 0 };
  const run = (sql: string, databaseMs: number) => {
    Object.assign(summary, { sql, databaseMs });
    workers[requests % 2]?.observe({ kind: 'statements finished', summary });
    requests += 1;
    wholeMs += databaseMs;
  };
  for (let number = 0; number < distinct; number += 1) {
    run(`select a${number}`, 1);
    // Forty that count: each a few times a second, one longer than the other.
    if (number % 50 === 0) {
      const which = Math.floor(random() * 40);
      const ms = 1 + which / 4;
      run(`select hot${which} from t where id = ${number}`, ms);
      const digest = `select hot${which} from t where id = ?`;
      expected.set(digest, (expected.get(digest) ?? 0) + ms);
    }
    if (number % 10_000 === 0) for (const worker of workers) tell(worker, totals);
  }
  for (const worker of workers) while (tell(worker, totals));
  const lines = linesOf(totals);
  assert.equal(lines.length, 501);
  assert.equal(lines.at(-1)?.digest, 'other');
  const sum = (measure: (line: ListedStatement) => number) =>
    lines.reduce((sofar, line) => sofar + measure(line), 0);
  assert.equal(
    sum(({ count }) => count),
    requests,
  );
  assert.ok(Math.abs(sum(({ total_ms }) => total_ms) - wholeMs) < 1);
  const best = [...expected].sort(([, one], [, other]) => other - one).slice(0, 30);
  for (const [at, [digest, ms]] of best.entries()) {
    const line = lines.find((one) => one.digest === digest);
    assert.ok(line !== undefined && lines.indexOf(line) < 40, `${at}: ${digest}`);
    assert.ok(line.total_ms > 0.95 * ms, `${digest}: ${line.total_ms} of ${ms} ms`);
  }
});

const ran = {
  requestId: 'r',
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
  rows: 0,
  bytes: 0,
  queueMs: 0,
  durationMs: 0,
} as const;

function tell(worker: StatementTable, totals: StatementTotals): boolean {
  const report = worker.take();
  // The same form as after the channel.
  if (report !== null) totals.add(JSON.parse(JSON.stringify(report)));
  return report !== null;
}
