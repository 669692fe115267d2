// The demo's files: a start takes no files that another program made, and `scripts/demo remove` deletes no others.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import {
  ensureState,
  findPlaces,
  type Places,
  removeFiles,
} from '../../../../scripts/demonstration/state.ts';
import { createWorkspace, type Workspace } from '../../../support/workspace.ts';

let workspace: Workspace;
let places: Places;
beforeEach(() => {
  workspace = createWorkspace('demo', () => {});
  places = findPlaces({ DBHTTPD_DEMO_DIR: join(workspace.path, 'demo') });
});
afterEach(() => workspace.remove());

/** Creates the files of a demo that was stopped. */
function createFiles(): void {
  ensureState(places);
  mkdirSync(join(places.database, 'data'), { recursive: true });
  for (const path of [places.config, places.log, `${places.pidfile}.lock`]) writeFileSync(path, '');
}

test('all files of a demo go, and so does its directory', () => {
  createFiles();
  assert.equal(removeFiles(places), `removed ${places.directory}`);
  assert.ok(!existsSync(places.directory));
  assert.equal(removeFiles(places), `there is no demo in ${places.directory}`);
});

test("a file that is not the demo's remains, and the answer names it", () => {
  createFiles();
  const mine = join(places.directory, 'notes.txt');
  writeFileSync(mine, '');
  assert.equal(removeFiles(places), `removed the demo's files; these remain: ${mine}`);
  assert.deepEqual(readdirSync(places.directory), ['notes.txt']);
});

test('nothing goes from a directory in which no demo was started', () => {
  const own = ['db', 'dbhttpd.ini', 'dbhttpd.log'];
  mkdirSync(join(places.directory, 'db'), { recursive: true });
  for (const name of own.slice(1)) writeFileSync(join(places.directory, name), '');
  assert.equal(removeFiles(places), `there is no demo in ${places.directory}`);
  assert.deepEqual(readdirSync(places.directory).sort(), own);
});

test('a start refuses a directory in which another program has files of these names', () => {
  for (const name of ['db', 'dbhttpd.ini', 'state.json']) {
    const path = join(places.directory, name);
    mkdirSync(path, { recursive: true });
    assert.throws(() => ensureState(places), new RegExp(`has not made these files: ${path}\n`));
    assert.deepEqual(readdirSync(places.directory), [name]);
    rmdirSync(path);
  }
});

test("another program's state.json is no sign of a demo", () => {
  mkdirSync(join(places.directory, 'db'), { recursive: true });
  writeFileSync(join(places.directory, 'state.json'), '{"version":4}');
  assert.throws(() => ensureState(places), /has not made these files: /);
  assert.equal(removeFiles(places), `there is no demo in ${places.directory}`);
  assert.deepEqual(readdirSync(places.directory), ['db', 'state.json']);
});

test('a start that was interrupted is continued by the next one', () => {
  const first = ensureState(places);
  mkdirSync(places.database);
  assert.deepEqual(ensureState(places), first);
});
