// A lock file is a regular file of the same user, which others can neither open nor replace.
import assert from 'node:assert/strict';
import {
  chmodSync,
  closeSync,
  fstatSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { isStillAt, openLockFile } from '../../../../src/supervisor/claim/file-lock.ts';

const directory = mkdtempSync(join(tmpdir(), 'file-lock-'));
after(() => rmSync(directory, { recursive: true }));
const at = (name: string) => join(directory, name);

test('a lock file that others could open is closed to them', () => {
  writeFileSync(at('open'), '');
  chmodSync(at('open'), 0o666);
  for (const name of ['open', 'new']) {
    const fd = openLockFile(at(name));
    assert.equal(fstatSync(fd).mode & 0o777, 0o600, name);
    closeSync(fd);
  }
});

test('a link or a directory in the place of a lock file is not opened', () => {
  writeFileSync(at('elsewhere'), '');
  symlinkSync(at('elsewhere'), at('link'));
  assert.throws(() => openLockFile(at('link')), { code: 'ELOOP' });
  mkdirSync(at('folder'));
  assert.throws(() => openLockFile(at('folder')));
});

test('a file is still at its path until it is deleted or another one is put there', () => {
  const fd = openLockFile(at('lock'));
  assert.equal(isStillAt(at('lock'), fd), true);
  writeFileSync(at('other'), '');
  renameSync(at('other'), at('lock'));
  assert.equal(isStillAt(at('lock'), fd), false);
  rmSync(at('lock'));
  assert.equal(isStillAt(at('lock'), fd), false);
  closeSync(fd);
});
