// The file of `session_key_file`: every byte belongs to the key, and a file that others may read is rejected.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { readSessionKey } from '../../../../src/shared/config/credentials.ts';
import { createWorkspace } from '../../../support/workspace.ts';

const workspace = createWorkspace('session-key', () => undefined);
after(() => workspace.remove());

function write(bytes: Buffer, mode = 0o600): string {
  const path = join(workspace.path, randomBytes(6).toString('hex'));
  writeFileSync(path, bytes);
  chmodSync(path, mode);
  return path;
}

test('a key of 32 bytes or more is read unchanged, even if its bytes are not text', () => {
  for (const bytes of [
    randomBytes(32),
    Buffer.alloc(32, 0xff),
    Buffer.from(`${'k'.repeat(40)}\n`),
  ]) {
    const read = readSessionKey(write(bytes));
    assert.deepEqual(read, { ok: true, key: bytes.toString('base64') });
  }
});

test('a short key, a readable file and no file are faults, and none contains the key', () => {
  const secret = Buffer.from('a-secret-of-the-test-that-is-never-sent');
  for (const [path, problem] of [
    [write(secret.subarray(0, 31)), /fewer than 32 bytes/],
    [write(secret, 0o644), /open to others/],
    [write(secret, 0o602), /open to others/],
    [workspace.path, /cannot be read/],
    [join(workspace.path, 'none'), /ENOENT/],
  ] as const) {
    const read = readSessionKey(path);
    assert.ok(!read.ok);
    assert.match(read.problem, problem);
    assert.doesNotMatch(read.problem, /a-secret/);
  }
});
