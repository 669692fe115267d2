// The files in deploy/ are accepted by the tools that they are for, as far as these are here, and agree with the program.
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import { formatFault, loadConfig } from '../../../../src/shared/config/load-config.ts';
import {
  currentPlace,
  fallbackLog,
  logDirectory,
  runDirectory,
} from '../../../../src/shared/config/machine-defaults.ts';
import { exitCodes } from '../../../../src/shared/process/exit-codes.ts';
import { parseArguments } from '../../../../src/supervisor/arguments.ts';
import { accessLogPath } from '../../../../src/worker/observe/access-log.ts';
import { checkSettings, deployedSettings, hasHaproxy } from '../../../support/clusters/haproxy.ts';

const directory = mkdtempSync(join(tmpdir(), 'dbhttpd-deploy-'));
after(() => rmSync(directory, { recursive: true }));
const read = (path: string) => readFileSync(join('deploy', path), 'utf8');

const units = ['dbhttpd@.service', 'dbhttpd-forking@.service'] as const;

function settingsOf(unit: string): ReadonlyMap<string, string> {
  const lines = read(`systemd/${unit}`).split('\n');
  return new Map(
    lines
      .filter((line) => /^[A-Z]\w+=/.test(line))
      .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  );
}

for (const unit of units) {
  test(`${unit} is accepted by systemd`, (t) => {
    // The command is not installed here, so another program takes its place.
    const copy = join(directory, unit.replace('@', '@world'));
    const text = read(`systemd/${unit}`).replace('ExecStart=dbhttpd', 'ExecStart=/bin/true');
    writeFileSync(copy, text);
    const { error, status, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', copy], {
      encoding: 'utf8',
    });
    if (error !== undefined) return t.skip('systemd-analyze is not installed');
    assert.equal(stderr.replace(/^.*(Failed to (connect|open)|SO_PASSCRED).*$/gm, '').trim(), '');
    assert.equal(status, 0);
  });

  test(`${unit} starts the command of the program, and waits as long as it takes`, () => {
    const settings = settingsOf(unit);
    const [, ...args] = (settings.get('ExecStart') ?? '').split(' ');
    const kind = settings.get('Type') === 'notify' ? 'foreground' : 'start';
    assert.equal(parseArguments(args).kind, kind);
    assert.ok(Number(settings.get('TimeoutStartSec')) > 15);
    assert.ok(Number(settings.get('TimeoutStopSec')) > 32);
    assert.equal(settings.get('KillMode'), 'mixed');
    assert.equal(settings.get('ExecReload'), '/bin/kill -HUP $MAINPID');
    assert.equal(settings.get('MemoryDenyWriteExecute'), 'no');
    const known = new Set<number>(Object.values(exitCodes));
    const prevented = settings.get('RestartPreventExitStatus')?.split(' ').map(Number) ?? [];
    assert.ok(prevented.length > 0 && prevented.every((status) => known.has(status)));
  });
}

test('systemd-sysusers makes the user of the units', (t) => {
  const root = join(directory, 'root');
  mkdirSync(join(root, 'etc'), { recursive: true });
  const file = resolve('deploy/systemd/dbhttpd-sysusers.conf');
  const { error, status, stderr } = spawnSync('systemd-sysusers', [`--root=${root}`, file], {
    encoding: 'utf8',
  });
  if (error !== undefined) return t.skip('systemd-sysusers is not installed');
  assert.equal(status, 0, stderr);
  assert.match(readFileSync(join(root, 'etc/passwd'), 'utf8'), /^dbhttpd:.*nologin$/m);
  for (const unit of units) assert.equal(settingsOf(unit).get('User'), 'dbhttpd');
});

test('systemd accepts the socket unit with its service, and hands over one socket', (t) => {
  const service = read(`systemd/${units[0]}`).replace('ExecStart=dbhttpd', 'ExecStart=/bin/true');
  const socket = read('systemd/dbhttpd@.socket');
  writeFileSync(join(directory, 'dbhttpd@world.service'), service);
  const copy = join(directory, 'dbhttpd@world.socket');
  writeFileSync(copy, socket);
  assert.equal(socket.match(/^ListenStream=/gm)?.length, 1);
  assert.match(socket, /^Accept=no$/m);
  const { error, status, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', copy], {
    encoding: 'utf8',
  });
  if (error !== undefined) return t.skip('systemd-analyze is not installed');
  assert.equal(stderr.replace(/^.*(Failed to (connect|open)|SO_PASSCRED).*$/gm, '').trim(), '');
  assert.equal(status, 0);
});

test("haproxy's settings are accepted by haproxy, and send nothing twice", (t) => {
  const text = readFileSync(deployedSettings, 'utf8');
  assert.deepEqual(text.match(/^ *retry-on .*$/gm), ['    retry-on conn-failure']);
  assert.match(text, /^ *option httpchk GET \/readyz$/m);
  if (!hasHaproxy()) return t.skip('haproxy is not installed');
  assert.equal(checkSettings(deployedSettings), '');
});

test("nginx's settings are accepted by nginx, send no write twice, and stream", (t) => {
  const text = read('nginx/dbhttpd.conf');
  assert.deepEqual(text.match(/^ *proxy_next_upstream .*$/gm), [
    '        proxy_next_upstream error;',
  ]);
  assert.match(text, /^ *proxy_buffering off;$/m);
  const main = join(directory, 'nginx.conf');
  const included = join(process.cwd(), 'deploy/nginx/dbhttpd.conf');
  const pid = join(directory, 'nginx.pid');
  writeFileSync(
    main,
    `pid ${pid}; error_log stderr; events {} http { access_log off; include ${included}; }`,
  );
  const { error, status, stderr } = spawnSync('nginx', ['-t', '-p', directory, '-c', main], {
    encoding: 'utf8',
    env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin` },
  });
  if (error !== undefined) return t.skip('nginx is not installed');
  assert.equal(status, 0, stderr);
  assert.doesNotMatch(stderr, /\[(?:warn|emerg)\]/);
});

test('both units are hardened alike', () => {
  const hardening = (unit: string) =>
    [...settingsOf(unit)].filter(([key]) =>
      /^(Protect|Private|Restrict[A-Z]|System|Capab|NoNew|Lock)/.test(key),
    );
  assert.deepEqual(hardening(units[0]), hardening(units[1]));
});

test('the rotation covers the default paths of root: log, access log, pidfile', () => {
  const text = read('logrotate/dbhttpd');
  const root = { ...currentPlace(), uid: 0, isDirectory: () => true };
  const log = join(logDirectory(root), 'dbhttpd-world.log');
  const globs = /^(\/.*) \{$/m.exec(text)?.[1]?.split(' ') ?? [];
  const covers = (path: string) =>
    globs.some((glob) =>
      new RegExp(`^${glob.replaceAll('.', '\\.').replaceAll('*', '[^/]*')}$`).test(path),
    );
  assert.ok(covers(log) && covers(accessLogPath(log)) && covers(fallbackLog(root)));
  assert.ok(text.includes(join(runDirectory(root), 'dbhttpd-*.pid')));
});

test('the rotation is accepted by logrotate, and its script by sh', (t) => {
  const script = /postrotate\n([\s\S]*)endscript/.exec(read('logrotate/dbhttpd'))?.[1] ?? '';
  assert.equal(spawnSync('sh', ['-n', '-c', script]).status, 0);
  const copy = join(directory, 'rotation');
  writeFileSync(copy, read('logrotate/dbhttpd'), { mode: 0o644 });
  const state = join(directory, 'state');
  const path = `${process.env.PATH}:/usr/sbin`;
  const { error, status, stderr } = spawnSync('logrotate', ['-d', '-s', state, copy], {
    encoding: 'utf8',
    env: { ...process.env, PATH: path },
  });
  if (error !== undefined) return t.skip('logrotate is not installed');
  assert.equal(status, 0, stderr);
  assert.doesNotMatch(stderr, /error/);
});

test('the image runs the command of the package, not as root, in exec form, from files that exist', () => {
  const text = read('docker/Dockerfile');
  const bin = (JSON.parse(readFileSync('package.json', 'utf8')) as { bin: { dbhttpd: string } }).bin
    .dbhttpd;
  const instruction = (name: string) =>
    [...text.matchAll(new RegExp(`^${name} (.*)$`, 'gm'))].at(-1)?.[1] ?? '';
  const [node, main, ...args] = JSON.parse(instruction('ENTRYPOINT')) as string[];
  assert.equal(node, 'node');
  assert.equal(main, `/opt/dbhttpd/${bin}`);
  assert.equal(
    parseArguments([...args, ...(JSON.parse(instruction('CMD')) as string[])]).kind,
    'foreground',
  );
  assert.equal(instruction('USER'), 'node');
  const health = JSON.parse(/^HEALTHCHECK .*CMD (\[.*\])$/m.exec(text)?.[1] ?? '[]') as string[];
  assert.deepEqual(health, ['node', '/opt/dbhttpd/health.js']);
  for (const [, sources = ''] of text.matchAll(/^COPY (?!--from)(.*) \S+$/gm)) {
    for (const source of sources.split(' ')) assert.ok(existsSync(source), source);
  }
});

test('the image is of one Node, with a release line that is supported for long, on Debian', () => {
  const bases = [...read('docker/Dockerfile').matchAll(/^FROM (\S+)/gm)].map(([, base]) => base);
  assert.equal(bases.length, 2);
  assert.equal(new Set(bases).size, 1);
  const major = Number(/^node:(\d+)-slim$/.exec(bases[0] ?? '')?.[1]);
  assert.ok(major >= 24 && major % 2 === 0, bases[0]);
});

/** Pages to read before an installation, and for contributors. They are in the repository: the package stays below 700 KB without them. */
const beforeInstallation =
  /^docs\/(?:contributing\/|start\/(?:overview\/|(?:comparison|quickstart|table-to-api|tutorial)\.md)|explain\/performance\.md)/;

test('the package holds everything that it runs, deploy/, and every document that the README names for people who have installed it', () => {
  const packing = ['pack', '--dry-run', '--json', '--ignore-scripts'];
  const { stdout } = spawnSync('npm', packing, { encoding: 'utf8' });
  const [pack] = JSON.parse(stdout) as [{ files: { path: string }[] }];
  const packed = new Set(pack.files.map(({ path }) => path));
  const readme = readFileSync('README.md', 'utf8');
  const documents = [...readme.matchAll(/\bdocs\/[\w./-]+\.(?:md|svg|json)\b/g)].map(
    ([path]) => path,
  );
  const read = documents.filter((path) => !beforeInstallation.test(path));
  assert.ok(read.length > 5);
  const deployed = readdirSync('deploy', { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  const run = ['supervisor', 'worker'].map((side) => `dist/program/${side}/main.js`);
  for (const path of [...read, ...deployed, ...run, 'dist/program/worker/encode/rows.wasm']) {
    assert.ok(packed.has(path), path);
  }
  assert.deepEqual(
    [...packed].filter((path) =>
      /^(?:test|scripts|src|dist\/(?!program\/|src\/client\/|\w+(?:\.schema)?\.json$))/.test(path),
    ),
    [],
  );
});

test('the health check accepts 200 and nothing else', async () => {
  let status = 200;
  const server = createServer((_request, response) => response.writeHead(status).end());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const env = { ...process.env, DBHTTPD_HEALTH_URL: `http://127.0.0.1:${port}/livez` };
  const check = () =>
    promisify(execFile)(process.execPath, ['deploy/docker/health.js'], { env }).then(
      () => 0,
      (error: { code: number }) => error.code,
    );
  assert.equal(await check(), 0);
  status = 503;
  assert.equal(await check(), 1);
  server.close();
  server.closeAllConnections();
  assert.equal(await check(), 1);
});

test('the example of a configuration is accepted once its semicolons are removed', () => {
  const text = readFileSync('deploy/dbhttpd.ini', 'utf8');
  assert.doesNotMatch(text, /^[^;\n]/m);
  const password = join(directory, 'password');
  writeFileSync(password, 'secret\n', { mode: 0o600 });
  const example = text
    .replace(/^;(?=\[|\w+ = )/gm, '')
    .replace('/etc/dbhttpd.password', password)
    .replace('/run/dbhttpd/', `${directory}/`);
  const configPath = join(directory, 'dbhttpd.ini');
  writeFileSync(configPath, example, { mode: 0o600 });
  const target = { configPath, sections: ['world'], beside: [] } as const;
  const loaded = loadConfig(target, {}, currentPlace());
  assert.equal(
    loaded.kind,
    'ok',
    loaded.kind === 'invalid' ? loaded.faults.map(formatFault).join() : '',
  );
});
