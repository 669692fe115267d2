// The findings of the judge of partitions, in histories that break one promise each.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  judgePartitions,
  type PartitionFound,
  partitionPromises,
} from '../../../../scripts/endurance/partition-judge.ts';
import type { Reported } from '../../../support/histories/reported.ts';

const times = { fromMs: 10, toMs: 20 };
const reply = (status: number, code: string | null, outcome: string | null): Reported => ({
  ...times,
  kind: 'reply',
  status,
  text: '',
  isReplayed: false,
  code,
  outcome,
});
const success = reply(200, null, null);
const refused = reply(503, 'NO_PRIMARY', 'not_executed');
const unknown = reply(502, 'CONNECTION_LOST', 'unknown');
const row = { id: 1, serverId: 1, atMs: 100 };
const reigns = [
  { serverId: 1, fromMs: 0, toMs: 200 },
  { serverId: 2, fromMs: 210, toMs: null },
];

function judge(
  reported: readonly Reported[],
  found: Partial<PartitionFound> = {},
): readonly string[] {
  const writes = [{ id: 1, way: '/db', reported } as const];
  const all = { writes, reigns, quiets: [], rows: [], strays: [], keys: [], ...found };
  return judgePartitions(all).map(({ promise }) => promise);
}

test('a run without faults breaks nothing', () => {
  assert.deepEqual(judge([success], { rows: [row] }), []);
  assert.deepEqual(judge([refused]), []);
  assert.deepEqual(judge([unknown], { strays: [row] }), []);
});

test('a row that was acknowledged and is missing is found', () => {
  assert.deepEqual(judge([success]), [partitionPromises.kept]);
  assert.deepEqual(judge([success], { strays: [row] }), [partitionPromises.kept]);
});

test('a duplicate row is found', () => {
  assert.deepEqual(judge([success], { rows: [row, row] }), [partitionPromises.once]);
  const errant = { ...row, atMs: 205 };
  assert.deepEqual(judge([success], { rows: [row], strays: [errant] }), [
    partitionPromises.alone,
    partitionPromises.once,
  ]);
});

test('a row of a write that was reported as not executed is found, on any server', () => {
  assert.deepEqual(judge([refused], { rows: [row] }), [partitionPromises.honest]);
  assert.deepEqual(judge([refused], { strays: [row] }), [partitionPromises.honest]);
});

test('a row that a server wrote while another one was the primary is found', () => {
  const late = { ...row, atMs: 205 };
  assert.deepEqual(judge([unknown], { strays: [late] }), [partitionPromises.alone]);
  assert.deepEqual(judge([success], { rows: [late] }), [partitionPromises.alone]);
});

test('a failure counts only in a quiet time', () => {
  assert.deepEqual(judge([refused], { quiets: [{ fromMs: 15, toMs: 30 }] }), []);
  assert.deepEqual(judge([refused], { quiets: [{ fromMs: 5, toMs: 30 }] }), [
    partitionPromises.quiet,
  ]);
});

test('a key without its row, and a row without its key, are found', () => {
  const writes = [{ id: 1, way: 'batch with key', reported: [success] } as const];
  assert.deepEqual(judge([], { writes, rows: [row] }), [partitionPromises.whole]);
  assert.deepEqual(judge([], { writes, rows: [row], keys: [1] }), []);
});

test('a keyed client without an outcome is found, and an outcome that does not exist', () => {
  const silent = { ...times, kind: 'silence' } as const;
  const writes = [{ id: 1, way: 'batch with key', reported: [silent] } as const];
  assert.deepEqual(judge([], { writes }), [partitionPromises.reported, partitionPromises.known]);
});
