// The verdicts of the long runs: flatness, lateness, faults by plan, the kernel's table, options. Runs nothing.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FaultLog, planFaults } from '../../../../scripts/endurance/faults.ts';
import { parseOrder } from '../../../../scripts/endurance/options.ts';
import { readCommand } from '../../../../scripts/support/command-line.ts';
import { mean } from '../../../../scripts/support/statistics.ts';
import { Findings, judgeFlat, judgeQuick } from '../../../../scripts/support/verdicts.ts';
import { parseSockets } from '../../../support/kernel-sockets.ts';

const runMs = 100_000;
/** A sample each second; noisy ones count only when they are quiet. */
const samples = (valueAt: (second: number) => number, isQuiet = (_second: number) => true) =>
  Array.from({ length: 100 }, (_, second) => ({
    atMs: second * 1000,
    quiet: isQuiet(second),
    value: valueAt(second),
  }));
const keptBy = (...[valueAt, isQuiet]: Parameters<typeof samples>) =>
  judgeFlat('fds', samples(valueAt, isQuiet), runMs, 0.05).kept;

test('a figure that is as large in the last quarter as in the second is flat, whatever the first was', () => {
  assert.equal(
    keptBy((second) => (second < 25 ? second : 100)),
    true,
  );
  assert.equal(
    keptBy((second) => (second < 75 ? 100 : 104)),
    true,
  );
  assert.equal(
    keptBy((second) => (second < 75 ? 100 : 80)),
    true,
  );
});

test('a figure that grows by more is a leak', () => {
  assert.equal(
    keptBy((second) => 100 + second),
    false,
  );
  assert.equal(
    keptBy((second) => (second < 75 ? 100 : 106)),
    false,
  );
});

test('of small whole numbers the mean is compared: one more now and then is no leak, one more throughout is', () => {
  const kept = (valueAt: (second: number) => number) =>
    judgeFlat('connections', samples(valueAt), runMs, 0.05, mean).kept;
  assert.equal(
    kept((second) => (second >= 75 && second % 5 < 3 ? 19 : 18)),
    true,
  );
  assert.equal(
    kept((second) => (second < 75 ? 18 : 19)),
    false,
  );
});

test('moments of faults do not count, nor single peaks', () => {
  assert.equal(
    keptBy((second) => (second % 10 === 0 ? 900 : 100)),
    true,
  );
  const stormy = (second: number) => second % 2 === 0;
  assert.equal(
    keptBy(
      (second) => (stormy(second) && second > 75 ? 900 : 100),
      (at) => !stormy(at),
    ),
    true,
  );
});

test('a run without enough quiet moments is not judged', () => {
  assert.equal(
    keptBy(
      () => 1,
      (second) => second < 78,
    ),
    null,
  );
});

test('one late answer of a hundred is the machine, two are not', () => {
  const times = (late: number) => Array.from({ length: 100 }, (_, n) => (n < late ? 1500 : 5));
  assert.equal(judgeQuick('it answers', times(1), 1000, 0.01).kept, true);
  assert.equal(judgeQuick('it answers', times(2), 1000, 0.01).kept, false);
});

test('one breach breaks a promise, and the first examples are printed', () => {
  const findings = new Findings(['a', 'b']);
  for (let index = 0; index < 9; index += 1) findings.breach('b', `no ${index}`);
  const [kept, broken] = findings.verdicts();
  assert.equal(kept?.kept, true);
  assert.equal(broken?.kept, false);
  assert.match(broken?.found ?? '', /^9 times: no 0 .* no 4$/);
  assert.throws(() => findings.breach('c', ''));
});

test('each quarter of a run has the same faults at the same places', () => {
  for (const minutes of [0.5, 3, 10]) {
    const quarterMs = minutes * 15_000;
    const plan = planFaults(minutes * 60_000);
    const quarter = (number: number) =>
      plan
        .filter(({ atMs }) => Math.floor(atMs / quarterMs) === number)
        .map(({ atMs }) => Math.round(atMs - number * quarterMs));
    for (const number of [1, 2, 3]) assert.deepEqual(quarter(number), quarter(0));
  }
  assert.ok(planFaults(180_000).some(({ kind }) => kind === 'stop'));
});

test('a fault excuses what overlaps with it, and the time until it has settled is not quiet', () => {
  const log = new FaultLog();
  const over = log.begin('kill', 1_000);
  assert.deepEqual(log.excusesFor(0, 999), { worker: false, database: false });
  assert.deepEqual(log.excusesFor(500, 90_000), { worker: true, database: false });
  over(2_000);
  assert.deepEqual(log.excusesFor(3_000, 4_000), { worker: false, database: false });
  assert.deepEqual(
    [900, 5_900, 6_100].map((at) => log.isQuiet(at)),
    [true, false, true],
  );
});

test("the kernel's table shows which clients are connected, which are accepted, and what is unread", () => {
  const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 100 1 0 100 0 0 10 0
   1: 0100007F:1F90 0100007F:C000 01 00000000:0000001B 00:00000000 00000000     0        0 4711 1 0 20 4 30 10 -1
   2: 0100007F:1F90 0100007F:C001 01 00000000:00000000 00:00000000 00000000     0        0 0 1 0 20 4 30 10 -1
   3: 0100007F:C000 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0 20 4 30 10 -1
`;
  assert.deepEqual(parseSockets(table, 8080), [
    { clientPort: 49152, inode: '4711', unreadBytes: 27 },
    { clientPort: 49153, inode: '0', unreadBytes: 0 },
  ]);
});

test('the command line names one mode and its length', () => {
  const order = (...argv: string[]) => parseOrder(argv);
  assert.deepEqual(order(), { mode: 'mixed', minutes: 10 });
  assert.deepEqual(order('--minutes', '0.5'), { mode: 'mixed', minutes: 0.5 });
  assert.deepEqual(order('restarts', '--cycles', '5'), { mode: 'restarts', cycles: 5 });
  assert.deepEqual(order('kills'), { mode: 'kills', seconds: 60 });
  assert.deepEqual(order('exports'), { mode: 'exports', rows: 2_000_000, cuts: 5 });
  const keys = { mode: 'keys', batches: 500, seed: 7 };
  assert.deepEqual(order('keys', '--batches', '500', '--seed', '7'), keys);
  assert.deepEqual(order('http'), { mode: 'http', requests: 1_000_000, seed: 1 });
  const http = { mode: 'http', requests: 1, seed: 117_644 };
  assert.deepEqual(order('http', '--requests', '1', '--seed', '117644'), http);
  const explore = { mode: 'explore', minutes: 30, seed: null, only: '' };
  assert.deepEqual(order('explore'), explore);
  const repeated = { mode: 'explore', minutes: 2, seed: 7, only: 'history' };
  const argv = ['explore', '--minutes', '2', '--seed', '7', '--only', 'history'];
  assert.deepEqual(order(...argv), repeated);
  for (const wrong of [
    ['--minutes', '0'],
    ['explore', '--seed', 'x'],
    ['exports', '--cuts', '1001'],
    ['storm'],
    ['kills', 'slow'],
    ['--hours', '1'],
  ]) {
    const command = readCommand(() => ({ kind: 'run', order: order(...wrong) }));
    assert.equal(command.kind, 'fault');
  }
});
