// deploy/systemd/dbhttpd-keys: its commands replace the keys of JSON Web Tokens by a set that the gateway takes, or change nothing.
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer as createPlainServer, type RequestListener } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo, Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { readJwtKeys } from '../../../../src/shared/config/access.ts';
import { createAuthority } from '../../../support/certificates.ts';
import { findBlocks } from '../../../support/pages/page-blocks.ts';

const service = readFileSync('deploy/systemd/dbhttpd-keys.service', 'utf8');
const page = readFileSync('docs/operate/clients.md', 'utf8');
const settingsOf = (name: string) =>
  [...service.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].map(([, value = '']) => value);
// systemd makes `$$` a `$`.
const commands = settingsOf('ExecStart').map((command) => command.replaceAll('$$', '$'));
/** The set that the page shows. */
const set = findBlocks(page).find(({ mark }) => mark === 'keys')?.text ?? '';

type Reply = { readonly status: number; readonly body: string; readonly location?: string };

/** A provider, and the directory into which the service fetches its keys. */
async function prepare(t: TestContext) {
  const directory = mkdtempSync(join(tmpdir(), 'dbhttpd-keys-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const authority = createAuthority(directory);
  const { cert, key } = authority.issue('provider');
  let reply: Reply = { status: 200, body: set };
  const answer: RequestListener = (_request, response) => {
    const { status, body, location } = reply;
    response.writeHead(status, location === undefined ? {} : { location }).end(body);
  };
  const listen = async (server: Server): Promise<number> => {
    t.after(() => server.close());
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return (server.address() as AddressInfo).port;
  };
  const tls = { cert: readFileSync(cert), key: readFileSync(key) };
  const url = `https://127.0.0.1:${await listen(createServer(tls, answer))}/jwks.json`;
  const plain = `http://127.0.0.1:${await listen(createPlainServer((_request, response) => response.end(set)))}/`;
  /** Runs the commands as systemd does: one after the other, until one fails. Returns whether all succeeded. */
  const fetchKeys = async (own: Reply, from = url, filter = '.'): Promise<boolean> => {
    reply = own;
    const env = { ...process.env, URL: from, FILTER: filter, CURL_CA_BUNDLE: authority.cert };
    const script = ['umask 0022; set -e', ...commands].join('\n');
    return promisify(execFile)('sh', ['-c', script], { cwd: directory, env }).then(
      () => true,
      () => false,
    );
  };
  const path = join(directory, 'jwks.json');
  return {
    fetchKeys,
    plain,
    path,
    read: () => (existsSync(path) ? readFileSync(path, 'utf8') : null),
  };
}

test('the service fetches a set of keys that the gateway takes', async (t) => {
  const { fetchKeys, path } = await prepare(t);
  assert.equal(await fetchKeys({ status: 200, body: set }), true);
  const { keys, faults } = readJwtKeys({ jwt_keys: path });
  assert.deepEqual(faults, []);
  assert.equal(keys?.length, 2);
});

test('the filters of the page make sets usable that the gateway refuses', async (t) => {
  const { fetchKeys, path } = await prepare(t);
  const filters = [...page.matchAll(/^ {4}Environment='FILTER=(.*)'$/gm)].map(
    ([, filter = '']) => filter,
  );
  const [adds = '', selects = ''] = filters.map((one) => one.replaceAll('RS256', 'ES256'));
  const { keys } = JSON.parse(set) as { keys: readonly Record<string, unknown>[] };
  const bare = keys.map(({ alg, ...key }) => key);
  const mixed = [...keys, { kty: 'EC', crv: 'P-384', alg: 'ES384', kid: 'other' }];
  for (const [refused, filter] of [
    [bare, adds],
    [mixed, selects],
  ] as const) {
    const reply = { status: 200, body: JSON.stringify({ keys: refused }) };
    assert.equal(await fetchKeys(reply), true);
    assert.equal(readJwtKeys({ jwt_keys: path }).keys, null);
    assert.equal(await fetchKeys(reply, undefined, filter), true);
    assert.equal(readJwtKeys({ jwt_keys: path }).keys?.length, keys.length);
  }
});

test('what is no set of keys, or comes without TLS, leaves the keys as they are', async (t) => {
  const { fetchKeys, plain, path, read } = await prepare(t);
  writeFileSync(path, 'the keys before');
  const ok = (body: string): Reply => ({ status: 200, body });
  for (const reply of [
    { status: 404, body: set },
    ok('<html>sign in</html>'),
    ok(''),
    ok('{}'),
    ok('{"keys":[]}'),
    ok('{"keys":"none"}'),
    ok(set.slice(0, -10)),
    { status: 302, body: '', location: plain },
  ]) {
    assert.equal(await fetchKeys(reply), false, JSON.stringify(reply));
    assert.equal(read(), 'the keys before');
  }
  assert.equal(await fetchKeys(ok(set), plain), false);
  assert.equal(await fetchKeys(ok(set)), true);
  assert.notEqual(read(), 'the keys before');
});

test('systemd accepts the service and its timer', (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'dbhttpd-keys-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const units = ['dbhttpd-keys.service', 'dbhttpd-keys.timer'].map((name) => {
    const copy = join(directory, name);
    copyFileSync(join('deploy/systemd', name), copy);
    return copy;
  });
  const { error, status, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', ...units], {
    encoding: 'utf8',
  });
  if (error !== undefined) return t.skip('systemd-analyze is not installed');
  assert.equal(stderr.replace(/^.*(Failed to (connect|open)|SO_PASSCRED).*$/gm, '').trim(), '');
  assert.equal(status, 0);
});

test('the file is where the page expects it, and belongs to a user of its own', () => {
  const [path = ''] = /^jwt_keys += (\S+)$/m.exec(page)?.slice(1) ?? [];
  assert.equal(path, join(settingsOf('WorkingDirectory')[0] ?? '', 'jwks.json'));
  assert.equal(join('/var/lib', settingsOf('StateDirectory')[0] ?? '', 'jwks.json'), path);
  assert.match(commands.at(-1) ?? '', / jwks\.json$/);
  assert.deepEqual(settingsOf('User'), ['dbhttpd-keys']);
  assert.match(settingsOf('Environment')[0] ?? '', /^URL=https:\/\/id\.example\.com\//);
});
