// How COMMITs ended, over the lives of instances: what one has noted the next one tells, and a file that is none is in nobody's way.
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

test('a successor has the same key, and knows what was noted before it and meanwhile', () => {
  const first = open();
  first.note(nameOf(1), 'unknown');
  first.note(nameOf(2), 'unknown');
  first.note(nameOf(2), 'committed');
  const second = open();
  assert.equal(second.key, first.key);
  assert.equal(Buffer.from(first.key, 'base64').length, 32);
  first.note(nameOf(3), 'unknown');
  const told = [1, 2, 3, 4].map((serial) => second.of(nameOf(serial)));
  assert.deepEqual(told, ['unknown', 'committed', 'unknown', 'over']);
  first.note(nameOf(3), 'over');
  assert.equal(second.of(nameOf(3)), 'over');
  assert.deepEqual(faults, []);
  assert.equal(statSync(`${pidfile}.commits`).mode & 0o777, 0o600);
});

test('it stays short, and what it had to forget stays unknown', () => {
  const first = open();
  for (let serial = 1; serial <= 16_000; serial += 1) first.note(nameOf(serial), 'committed');
  assert.ok(statSync(`${pidfile}.commits`).size < 1_000_000);
  const told = [1, 15_999, 16_001].map((serial) => open().of(nameOf(serial)));
  assert.deepEqual(told, ['unknown', 'committed', 'over']);
  assert.deepEqual(faults, []);
});

test('lines that are none are passed over, and a file without a key is written anew', () => {
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

test('where the file cannot be used it says so once, and remembers for its own life', () => {
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
