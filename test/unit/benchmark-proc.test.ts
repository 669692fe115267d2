// What the benchmark reads from /proc: times, memory, trees of processes.
// Must not know which processes are measured.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { descendants, parseStat, parseStatus, readUsage } from '../../scripts/benchmark/proc.ts';

test('a process whose name holds spaces and parentheses is read right', () => {
  const text =
    '4711 (a) R 1 (b c) S 42 4711 4711 0 -1 4194304 100 0 0 0 250 50 7 3 20 0 11 0 1000 1 2 3';
  assert.deepEqual(parseStat(text), { pid: 4711, parent: 42, ticks: 300, childTicks: 10 });
});

test('memory is read in bytes', () => {
  const text = 'Name:\tnode\nVmPeak:\t  900000 kB\nVmHWM:\t   60000 kB\nVmRSS:\t   50000 kB\n';
  assert.deepEqual(parseStatus(text), { residentBytes: 51_200_000, peakBytes: 61_440_000 });
});

test('a process without memory of its own holds none', () => {
  assert.deepEqual(parseStatus('Name:\tkthreadd\n'), { residentBytes: 0, peakBytes: 0 });
});

test('a tree is the root with children and grandchildren, and no one else', () => {
  const of = (pid: number, parent: number) => ({ pid, parent, ticks: 0, childTicks: 0 });
  const processes = [of(1, 0), of(10, 1), of(11, 10), of(12, 11), of(13, 1)];
  assert.deepEqual(descendants(10, processes), [10, 11, 12]);
});

test('this process uses memory, and its CPU time never goes back', () => {
  const before = readUsage(process.pid);
  const after = readUsage(process.pid);
  assert.ok(before.residentBytes > 1e6);
  assert.ok(after.cpuUs >= before.cpuUs);
});
