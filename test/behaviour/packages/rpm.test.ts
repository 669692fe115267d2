// The package of rpm: what it says about itself, and its life in a folder that stands for a machine's root.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { useDatabase } from '../../support/use-gateway.ts';
import { createWorkspace } from '../../support/workspace.ts';
import {
  askInstalled,
  configure,
  createRoot,
  findObstacle,
  listOwnFiles,
  listStartedFiles,
  make,
  readUser,
  run,
} from './support/installed.ts';

const skip = findObstacle('rpm', 'rpmbuild', 'systemd-sysusers');
const workspace = createWorkspace('rpm', () => {});
const root = join(workspace.path, 'root');
const isInstalled = (name: string) => existsSync(join(root, name));
let path: string;
let next: string;
const database = useDatabase({
  ready: async () => {
    if (skip !== false) return;
    path = make('rpm', workspace.path, 1, listStartedFiles('rpm'));
    next = make('rpm', workspace.path, 2, listOwnFiles('rpm'));
  },
});
after(workspace.remove);

/** rpm in the root: its scripts run there, by chroot. */
function rpm(...args: readonly string[]): string {
  return run('rpm', '--root', root, '--dbpath', '/var/lib/rpm', '--nodeps', ...args);
}

test('it has the files of the other package, and needs a Node that runs it', { skip }, () => {
  const listed = run('rpm', '-qlp', path).trim().split('\n').sort();
  const expected = listStartedFiles('rpm').map((file) => file.path);
  const folders = listed.filter((name) => !expected.includes(name));
  assert.deepEqual(
    listed.filter((name) => expected.includes(name)),
    expected.sort(),
  );
  for (const name of folders) assert.match(name, /^\/usr\/(?:lib|share\/doc)\/dbhttpd(?:\/|$)/);
  const needs = run('rpm', '-qp', '--requires', path);
  assert.match(needs, /^\(nodejs\(engine\) >= 20\.19 or nodejs >= 2:20\.19\)$/m);
  const configuration = run('rpm', '-qcp', path).trim().split('\n');
  assert.deepEqual(configuration.sort(), ['/etc/dbhttpd.ini', '/etc/logrotate.d/dbhttpd']);
  assert.match(run('rpm', '-qp', '--qf', '%{BUILDHOST} %{ARCH}', path), /^localhost noarch$/);
});

test('the same files make the same bytes', { skip }, () => {
  const again = join(workspace.path, 'again');
  mkdirSync(again);
  assert.ok(readFileSync(make('rpm', again, 2, listOwnFiles('rpm'))).equals(readFileSync(next)));
});

test('it installs, starts as its unit does, keeps the configuration over an upgrade, and goes', {
  skip,
}, async () => {
  createRoot(root, ['sh', 'systemd-sysusers']);
  rpm('--install', path);
  const ini = join(root, 'etc/dbhttpd.ini');
  const { gid } = readUser(root);
  const rights = () => {
    const { mode, uid, gid: group } = statSync(ini);
    return [mode & 0o777, uid, group];
  };
  assert.deepEqual(rights(), [0o640, 0, gid]);
  assert.equal(rpm('--verify', 'dbhttpd'), '');

  configure(root, database);
  assert.equal(String(await askInstalled(root)), '7');

  const configured = readFileSync(ini, 'utf8');
  rpm('--upgrade', next);
  assert.equal(readFileSync(ini, 'utf8'), configured);
  assert.deepEqual(rights(), [0o640, 0, gid]);
  assert.ok(!isInstalled('usr/lib/dbhttpd/node_modules'), 'files of the former revision are gone');

  rpm('--erase', 'dbhttpd');
  for (const name of ['usr/bin/dbhttpd', 'usr/lib/dbhttpd', 'etc/dbhttpd.ini']) {
    assert.ok(!isInstalled(name), name);
  }
  assert.equal(readFileSync(`${ini}.rpmsave`, 'utf8'), configured);
});
