// The memory of COMMITs over several instances: one notes an ending, the next one knows it, and an unusable file does no harm.
import assert from 'node:assert/strict';
import {
  appendFileSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { openCommitMemory } from '../../../../src/supervisor/workers/commit-memory.ts';

const nameOf = (serial: number, incarnation = '00112233aabbccdd') => ({ incarnation, serial });

let directory: string;
let pidfile: string;
let faults: unknown[];
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'commits-'));
  pidfile = join(directory, 'world.pid');
  faults = [];
});
afterEach(() => rmSync(directory, { recursive: true }));

const open = () => openCommitMemory(pidfile, (error) => faults.push(error));

test('a successor has the same key, and knows everything noted before it and meanwhile', () => {
  const first = open();
  first.note(nameOf(1), 'unknown');
  first.note(nameOf(2), 'unknown');
  first.note(nameOf(2), 'committed');
  const second = open();
  assert.equal(second.key, first.key);
  assert.equal(Buffer.from(first.key, 'base64').length, 32);
  first.note(nameOf(3), 'unknown');
  const reported = [1, 2, 3, 4].map((serial) => second.of(nameOf(serial)));
  assert.deepEqual(reported, ['unknown', 'committed', 'unknown', 'over']);
  first.note(nameOf(3), 'over');
  assert.equal(second.of(nameOf(3)), 'over');
  assert.deepEqual(faults, []);
  assert.equal(statSync(`${pidfile}.commits`).mode & 0o777, 0o600);
});

test('the file remains short, and forgotten endings are unknown', () => {
  const first = open();
  for (let serial = 1; serial <= 16_000; serial += 1) first.note(nameOf(serial), 'committed');
  assert.ok(statSync(`${pidfile}.commits`).size < 1_000_000);
  const reported = [1, 15_999, 16_001].map((serial) => open().of(nameOf(serial)));
  assert.deepEqual(reported, ['unknown', 'committed', 'over']);
  assert.deepEqual(faults, []);
});

test('malformed lines are ignored, and a file without a key is rewritten', () => {
  open().note(nameOf(1), 'unknown');
  appendFileSync(`${pidfile}.commits`, 'nonsense\n00112233aabbccdd 2 comm');
  open().note(nameOf(3), 'committed');
  assert.deepEqual([open().of(nameOf(1)), open().of(nameOf(3))], ['unknown', 'committed']);
  writeFileSync(`${pidfile}.commits`, '00112233aabbccdd 7 committed\n');
  const { key } = open();
  assert.equal(open().key, key);
  assert.equal(open().of(nameOf(7)), 'committed');
  assert.deepEqual(faults, []);
});

test('if the file cannot be used, it reports so once, and remembers until the end of the instance', () => {
  const elsewhere = join(directory, 'elsewhere');
  writeFileSync(elsewhere, '');
  symlinkSync(elsewhere, `${pidfile}.commits`);
  const memory = open();
  memory.note(nameOf(1), 'unknown');
  memory.note(nameOf(2), 'committed');
  assert.deepEqual([memory.of(nameOf(1)), memory.of(nameOf(2))], ['unknown', 'committed']);
  assert.equal(faults.length, 1);
  assert.equal(readFileSync(elsewhere, 'utf8'), '');
});
