// The package of Debian: what is in it, and its life in a folder that stands for a machine's root.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { useDatabase } from '../../support/use-gateway.ts';
import { createWorkspace } from '../../support/workspace.ts';
import {
  askInstalled,
  configure,
  createRoot,
  findObstacle,
  listOwnFiles,
  make,
  readUser,
  run,
} from './support/installed.ts';

const skip = findObstacle('dpkg', 'dpkg-deb', 'systemd-sysusers');
const workspace = createWorkspace('deb', () => {});
const root = join(workspace.path, 'root');
let path: string;
let next: string;
const database = useDatabase({
  ready: async () => {
    if (skip !== false) return;
    path = make('deb', workspace.path, 1);
    next = make('deb', workspace.path, 2, listOwnFiles('deb'));
  },
});
after(workspace.remove);

/** dpkg in the root, without chroot: its scripts get DPKG_ROOT. The packages that it depends on are not there. */
function dpkg(...args: readonly string[]): string {
  const log = `--log=${join(workspace.path, 'dpkg.log')}`;
  const forced = [
    '--force-script-chrootless',
    '--force-depends',
    '--force-confold',
    '--force-unsafe-io',
  ];
  return run('dpkg', `--root=${root}`, log, ...forced, ...args);
}

function createDebianRoot(): void {
  createRoot(root, []);
  for (const name of ['info', 'updates'])
    mkdirSync(join(root, 'var/lib/dpkg', name), { recursive: true });
  writeFileSync(join(root, 'var/lib/dpkg/status'), '');
}

type Listed = { readonly mode: string; readonly owner: string; readonly path: string };
const listContents = (): readonly Listed[] =>
  run('dpkg-deb', '--contents', path)
    .trim()
    .split('\n')
    .map((line) => {
      const [mode = '', owner = '', , , , name = ''] = line.split(/ +/);
      return { mode, owner, path: name.slice(1) };
    });

test('it belongs to root, is below /usr and /etc, and only its user may read the configuration', {
  skip,
}, () => {
  const entries = listContents();
  assert.ok(entries.length > 500);
  for (const { mode, owner, path: name } of entries) {
    assert.equal(owner, 'root/root', name);
    assert.match(name, /^\/(?:$|usr\/|etc\/)/);
    const expected =
      name === '/etc/dbhttpd.ini'
        ? /^-rw-r-----$/
        : /^(?:drwxr-xr-x|-rw-r--r--|-rwxr-xr-x|lrwx.*)$/;
    assert.match(mode, expected, name);
  }
  const executable = entries.filter(({ mode }) => mode === '-rwxr-xr-x').map((entry) => entry.path);
  assert.deepEqual(executable, [
    '/usr/lib/dbhttpd/dist/program/supervisor/main.js',
    '/usr/lib/dbhttpd/restart-instances',
  ]);
  const useless = entries.filter(
    (entry) =>
      /\.(?:map|[cm]?ts)$|(?<!LICENSE)\.md$/.test(entry.path) &&
      entry.path.includes('node_modules'),
  );
  assert.deepEqual(useless, []);
});

test('its control file says which Node it needs, and where that comes from', { skip }, () => {
  const control = run('dpkg-deb', '--field', path);
  assert.match(control, /^Architecture: all$/m);
  assert.match(control, /^Depends: nodejs \(>= 20\.19\), systemd \|/m);
  assert.match(
    control.replaceAll('\n ', ' '),
    /Node\.js 20 \(20\.19 or later\).*Debian 13 has it\. Debian 12.*NodeSource/,
  );
  const { engines } = JSON.parse(readFileSync('package.json', 'utf8')) as {
    engines: { node: string };
  };
  assert.match(engines.node, /^\^20\.19\.0 /);
});

test('the same files make the same bytes', { skip }, () => {
  const again = join(workspace.path, 'again');
  const once = readFileSync(next);
  assert.ok(readFileSync(make('deb', again, 2, listOwnFiles('deb'))).equals(once));
});

test('it installs, starts as its unit does, keeps the configuration over an upgrade, and goes without a trace', {
  skip,
}, async () => {
  createDebianRoot();
  dpkg('--install', path);
  const ini = join(root, 'etc/dbhttpd.ini');
  const { gid } = readUser(root);
  const rights = () => {
    const { mode, uid, gid: group } = statSync(ini);
    return [mode & 0o777, uid, group];
  };
  assert.deepEqual(rights(), [0o640, 0, gid]);
  const sums = readFileSync(join(root, 'var/lib/dpkg/info/dbhttpd.md5sums'), 'utf8')
    .trim()
    .split('\n');
  assert.ok(sums.length > 500);
  for (const line of sums) {
    const [sum, name = ''] = line.split('  ');
    // A machine may be configured to install no documents.
    if (!existsSync(join(root, name)) && name.startsWith('usr/share/')) continue;
    assert.equal(
      createHash('md5')
        .update(readFileSync(join(root, name)))
        .digest('hex'),
      sum,
      name,
    );
  }

  configure(root, database);
  assert.equal(String(await askInstalled(root)), '7');

  const configured = readFileSync(ini, 'utf8');
  dpkg('--install', next);
  assert.equal(readFileSync(ini, 'utf8'), configured);
  assert.deepEqual(rights(), [0o640, 0, gid]);
  assert.ok(
    !existsSync(join(root, 'usr/lib/dbhttpd/node_modules')),
    'files of the former revision are gone',
  );

  dpkg('--remove', 'dbhttpd');
  assert.equal(readFileSync(ini, 'utf8'), configured);
  assert.ok(!existsSync(join(root, 'usr/bin/dbhttpd')));
  mkdirSync(join(root, 'var/lib/dbhttpd'));
  dpkg('--purge', 'dbhttpd');
  const left = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
    (name) =>
      name.includes('dbhttpd') && name !== 'run/dbhttpd' && !name.startsWith('run/dbhttpd/'),
  );
  assert.deepEqual(left, []);
});

test('its manual is compressed without a time, and its changelog names the version', {
  skip,
}, () => {
  const tree = join(workspace.path, 'tree');
  run('dpkg-deb', '--extract', path, tree);
  const manual = readFileSync(join(tree, 'usr/share/man/man8/dbhttpd.8.gz'));
  assert.equal(manual.readUInt32LE(4), 0);
  assert.deepEqual(gunzipSync(manual), readFileSync('docs/reference/dbhttpd.8'));
  const documents = join(tree, 'usr/share/doc/dbhttpd');
  const changelog = gunzipSync(readFileSync(join(documents, 'changelog.Debian.gz'))).toString();
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
  assert.ok(changelog.startsWith(`dbhttpd (${version}-1) `), changelog);
  const rights = readFileSync(join(documents, 'copyright'), 'utf8');
  for (const name of ['mysql2', 'zod', 'prom-client'])
    assert.match(rights, new RegExp(`^  ${name} \\d`, 'm'));
});
