// The image's health check finds the gateway at any address that its section listens on, and reports when it is gone.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import { freeLastingPort } from '../../../scripts/support/private-server.ts';
import { createAuthority } from '../../support/certificates.ts';
import { eventually } from '../../support/eventually.ts';

const directory = mkdtempSync(join(tmpdir(), 'dbhttpd-image-'));
after(() => rmSync(directory, { recursive: true }));
const pair = createAuthority(directory).issue('api.example', { names: 'DNS:api.example' });
copyFileSync('deploy/docker/health.js', join(directory, 'health.js'));
writeFileSync(join(directory, 'package.json'), '{"type":"module"}');
symlinkSync(resolve('dist'), join(directory, 'dist'));

const check = () =>
  promisify(execFile)(process.execPath, [join(directory, 'health.js')]).then(
    () => 0,
    (error: { code: number }) => error.code,
  );

/** Runs a gateway of that tree in the foreground; the database is away, and no matter of this check. */
async function whileRunning(settings: readonly string[], act: () => Promise<void>): Promise<void> {
  const home = mkdtempSync(join(directory, 'gateway-'));
  const ini = join(home, 'dbhttpd.ini');
  const common = ['database = d', 'host = 127.0.0.1', 'port = 1', 'user = u', 'workers = 1'];
  const lines = [...common, `pidfile = ${join(home, 'pid')}`, ...settings];
  writeFileSync(ini, `[world]\n${lines.join('\n')}\n`, { mode: 0o600 });
  const command = join(directory, 'dist/program/supervisor/main.js');
  const gateway = spawn(process.execPath, [command, '--foreground', '-c', ini, '-s', 'world'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let log = '';
  gateway.stderr.setEncoding('utf8').on('data', (text: string) => {
    log += text;
  });
  const exited = once(gateway, 'exit');
  try {
    const hasBegun = () => / listening /.test(log) || gateway.exitCode !== null;
    await eventually('it listens, or has ended', hasBegun, { timeoutMs: 60_000 });
    assert.equal(gateway.exitCode, null, log);
    await act();
  } finally {
    gateway.kill('SIGTERM');
    await exited;
  }
}

const ways: Readonly<Record<string, () => Promise<readonly string[]>>> = {
  'another port, on all addresses, with a token and hosts of its own': async () => [
    `listen = *:${await freeLastingPort()}`,
    'token = sesame',
    'allow_hosts = api.example',
  ],
  'HTTPS, under a name that the check does not use': async () => [
    `listen = 127.0.0.1:${await freeLastingPort()}`,
    `https_cert = ${pair.cert}`,
    `https_key = ${pair.key}`,
  ],
  'a unix socket': async () => [`listen = ${join(directory, 'http')}`],
};
test('is not healthy before there is a gateway', async () => assert.equal(await check(), 1));

for (const [way, settings] of Object.entries(ways)) {
  test(`well on ${way}`, async () => {
    await whileRunning(await settings(), async () => assert.equal(await check(), 0));
    assert.equal(await check(), 1);
  });
}
