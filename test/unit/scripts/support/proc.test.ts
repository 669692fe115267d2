// Reading /proc: times, memory, trees of processes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { countOthers, parseMachine, warnOfOthers } from '../../../../scripts/benchmark/others.ts';
import {
  descendants,
  parseStat,
  parseStatus,
  readUsage,
} from '../../../../scripts/support/proc.ts';

test('a process whose name holds spaces and parentheses is parsed rightly', () => {
  const text =
    '4711 (a) R 1 (b c) S 42 4711 4711 0 -1 4194304 100 0 0 0 250 50 7 3 20 0 11 0 1000 1 2 3';
  assert.deepEqual(parseStat(text), { pid: 4711, parent: 42, ticks: 300, childTicks: 10 });
});

test('memory is read in bytes', () => {
  const text = 'Name:\tnode\nVmPeak:\t  900000 kB\nVmHWM:\t   60000 kB\nVmRSS:\t   50000 kB\n';
  assert.deepEqual(parseStatus(text), { residentBytes: 51_200_000, peakBytes: 61_440_000 });
});

test('a process without memory holds none', () => {
  assert.deepEqual(parseStatus('Name:\tkthreadd\n'), { residentBytes: 0, peakBytes: 0 });
});

test('a tree is the root with children and grandchildren, and no one else', () => {
  const of = (pid: number, parent: number) => ({ pid, parent, ticks: 0, childTicks: 0 });
  const processes = [of(1, 0), of(10, 1), of(11, 10), of(12, 11), of(13, 1)];
  assert.deepEqual(descendants([10], processes), [10, 11, 12]);
});

test('a tree within another counts once', () => {
  const of = (pid: number, parent: number) => ({ pid, parent, ticks: 0, childTicks: 0 });
  const processes = [of(1, 0), of(10, 1), of(11, 10)];
  assert.deepEqual(descendants([10, 1], processes).toSorted(), [1, 10, 11]);
});

test('the machine is busy with processes, or its time is stolen; interrupts do not count', () => {
  const text = 'cpu  100 1 20 5000 300 7 8 40 0 0\ncpu0 50 0 10 2500 150 3 4 20 0 0\n';
  assert.deepEqual(parseMachine(text), { busy: 121, stolen: 40 });
});

test('the use of others is the use of the machine without ours', () => {
  const begun = { machineUs: 5e6, oursUs: 1e6, atMs: 100 };
  const at = (machineUs: number, oursUs: number) => ({ machineUs, oursUs, atMs: 2100 });
  assert.equal(countOthers(begun, at(9e6, 2e6)), 1.5);
  // Two clocks of 10 ms each do not always agree.
  assert.equal(countOthers(begun, at(6e6, 2.01e6)), 0);
});

test('only disturbed measurements are warned of', () => {
  assert.equal(warnOfOthers([0, 0.1]), '');
  assert.match(warnOfOthers([0, 1.26, 0.3]), /2 of 3 measurements \(up to 1\.3 cores\)/);
});

test('this process uses memory, and its CPU time never goes back', () => {
  const before = readUsage(process.pid);
  const after = readUsage(process.pid);
  assert.ok(before.residentBytes > 1e6);
  assert.ok(after.cpuUs >= before.cpuUs);
});
