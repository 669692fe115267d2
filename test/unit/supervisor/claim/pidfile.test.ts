// The pidfile is always complete, and only the process that it names removes it.
import assert from 'node:assert/strict';
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { publishPidfile } from '../../../../src/supervisor/claim/pidfile.ts';

const directory = mkdtempSync(join(tmpdir(), 'pidfile-'));
const path = join(directory, 'world.pid');
after(() => rmSync(directory, { recursive: true }));

test('a pidfile holds the process id and a newline, may be read by others, and goes with its process', () => {
  const pidfile = publishPidfile(path);
  assert.equal(readFileSync(path, 'utf8'), `${process.pid}\n`);
  assert.equal(statSync(path).mode & 0o777, 0o644);
  assert.deepEqual(readdirSync(directory), ['world.pid']);
  pidfile.release();
  pidfile.release();
  assert.equal(existsSync(path), false);
});

test('a pidfile that names a successor remains when its former owner exits', () => {
  const pidfile = publishPidfile(path);
  writeFileSync(path, '1\n');
  pidfile.release();
  assert.equal(readFileSync(path, 'utf8'), '1\n');
});
