// The default places of pidfile, log and state: the user's own.
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import {
  currentPlace,
  logDirectory,
  makeDefaultDirectory,
  makeStateDirectory,
  type Place,
  runDirectory,
  stateDirectory,
} from '../../../../src/shared/config/machine-defaults.ts';

const directory = mkdtempSync(join(tmpdir(), 'dbhttpd-places-'));
after(() => rmSync(directory, { recursive: true }));

function placeWith(there: readonly string[], uid = 1000, mayWrite = true): Place {
  return {
    uid,
    home: '/home/x',
    temporary: '/tmp',
    isDirectory: (path) => there.includes(path) || path === '/',
    mayWrite: () => mayWrite,
  };
}

const state = '/home/x/.local/state/dbhttpd';

test('a home that cannot be reached is no directory, and no exception', () => {
  const loop = join(directory, 'loop');
  symlinkSync(loop, loop);
  const place: Place = { ...currentPlace(), uid: 1000, home: join(loop, 'x') };
  assert.equal(logDirectory(place), join(place.temporary, 'dbhttpd-1000'));
});

test('root has the system directories, or a private one for logs', () => {
  const root = placeWith(['/var/log', '/home/x'], 0);
  assert.deepEqual([runDirectory(root), logDirectory(root)], ['/run', '/var/log']);
  assert.equal(logDirectory(placeWith(['/home/x'], 0)), '/tmp/dbhttpd-0');
});

test("a user has /run/user, else the home's state directory, else a private temporary one", () => {
  const own = placeWith(['/run/user/1000', '/home/x', '/var/log']);
  assert.deepEqual([runDirectory(own), logDirectory(own)], ['/run/user/1000', state]);
  assert.equal(runDirectory(placeWith(['/home/x'])), state);
  assert.equal(runDirectory(placeWith([])), '/tmp/dbhttpd-1000');
  assert.equal(runDirectory(placeWith(['/home/x'], 1000, false)), '/tmp/dbhttpd-1000');
});

test('state that must survive a reboot is below /var/lib for root, and in the state directory of a home', () => {
  assert.equal(stateDirectory(placeWith(['/home/x'], 0)), '/var/lib/dbhttpd');
  assert.equal(stateDirectory(placeWith(['/run/user/1000', '/home/x'])), state);
  assert.equal(stateDirectory(placeWith([])), '/tmp/dbhttpd-1000');
});

test('a directory of state is made for its user alone, and not used where others may write', () => {
  const place: Place = { ...placeWith([], process.getuid?.() ?? 0), temporary: directory };
  const own = join(directory, 'var', 'state');
  makeStateDirectory(own, place);
  assert.equal(statSync(own).mode & 0o777, 0o700);
  makeStateDirectory(own, place);
  chmodSync(own, 0o722);
  assert.throws(() => makeStateDirectory(own, place), /others may write to /);
  chmodSync(own, 0o1777);
  makeStateDirectory(own, place);
});

test('the private directory is made for its user alone, and never taken from another', () => {
  const uid = process.getuid?.() ?? 0;
  const place: Place = { ...placeWith([], uid), temporary: directory };
  const own = join(directory, `dbhttpd-${uid}`);
  assert.equal(uid === 0 ? logDirectory(place) : runDirectory(place), own);
  makeDefaultDirectory(own, place);
  assert.equal(statSync(own).mode & 0o777, 0o700);
  chmodSync(own, 0o777);
  makeDefaultDirectory(own, place);
  assert.equal(statSync(own).mode & 0o777, 0o700);
  rmSync(own, { recursive: true });
  symlinkSync(directory, own);
  assert.throws(() => makeDefaultDirectory(own, place), /is not a directory/);
  rmSync(own);
  mkdirSync(join(directory, `dbhttpd-${uid + 1}`));
  const stranger = { ...place, uid: uid + 1 };
  assert.throws(
    () => makeDefaultDirectory(join(directory, `dbhttpd-${uid + 1}`), stranger),
    /belongs to another user/,
  );
});
