// --check shows who may do what, warns about clients that have little use, and refuses the same files as a start.
import assert from 'node:assert/strict';
import { createHash, generateKeyPairSync } from 'node:crypto';
import { appendFileSync, chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type Daemon, daemonFor, runCommand } from '../../support/daemon.ts';

const digestOf = (token: string) => createHash('sha256').update(token).digest('hex');

/** An instance without a reachable database, with this clients file and this JWK set. */
function prepare(t: TestContext, clients: string, keys: string | null = null): Daemon {
  const daemon = daemonFor(t);
  const path = (name: string) => join(daemon.directory, name);
  writeFileSync(path('clients.ini'), clients, { mode: 0o600 });
  if (keys !== null) writeFileSync(path('jwks.json'), keys);
  daemon.configure({
    token: 'of-the-section',
    clients: path('clients.ini'),
    ...(keys !== null && {
      jwt_keys: path('jwks.json'),
      ...{ jwt_issuer: 'https://id.example.com', jwt_audience: 'db' },
    }),
  });
  return daemon;
}

const { publicKey } = generateKeyPairSync('ed25519');
const key = { ...publicKey.export({ format: 'jwk' }), alg: 'EdDSA' };
const web = `[web]\nallow = sql\ntoken_sha256 = ${digestOf('web')}\n`;
const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10);
const dayMs = 24 * 60 * 60 * 1000;

/** The table of clients, without its indentation. */
function tableIn(stdout: string): readonly string[] {
  const [, text = ''] = /^clients of .*\n((?: {2}.*\n)*)/m.exec(stdout) ?? [];
  return text.split('\n').map((line) => line.slice(2));
}

test('--check prints who may do what, in lines of at most 100 characters', async (t) => {
  const clients = `[web]
allow            = transaction, sql, batch
token_sha256     = ${digestOf('one')}, ${digestOf('two')}
share            = 4
max_in_flight    = 8
expires          = 2099-01-01
[reports-of-the-finance-department-and-of-its-neighbours]
allow            = all
jwt              = realm_access.roles: reports
token_sha256     = ${digestOf('three')}
may_claim        = customer_id
sections         = shop
read_only        = on
max_result_bytes = 64MiB
max_wait         = 500ms
[anonymous]
allow            = named
queue            = 0
`;
  const daemon = prepare(t, clients, JSON.stringify({ keys: [key] }));
  appendFileSync(
    daemon.configPath,
    '[shop]\ndatabase = shop\nhost = 127.0.0.1\nport = 1\nuser = a\n',
  );
  const { stdout } = await daemon.run(['--check', '-m', 'shop']);
  assert.deepEqual(tableIn(stdout), [
    'client                 credentials  may                sections  limits                 expires',
    'default                1 token      all                all       –                      –',
    'web                    2 tokens     sql, batch,        all       share 4,               2099-01-01',
    '                                    transaction                  max_in_flight 8',
    'reports-of-the-financ  1 token,     all,               shop      read_only,             –',
    'e-department-and-of-i  JWT          claim customer_id            max_result_bytes',
    'ts-neighbours                                                    64MiB, max_wait 500ms',
    'anonymous              none         named              all       queue 0                –',
    '',
  ]);
  for (const line of tableIn(stdout)) assert.ok(line.length <= 98, line);
  assert.doesNotMatch(stdout, /^warning: the client/m);
  for (const secret of ['of-the-section', digestOf('one')]) assert.ok(!stdout.includes(secret));
});

test('--check without clients prints no table', async (t) => {
  const { stdout } = await daemonFor(t, { token: 'a' }).run(['--check']);
  assert.doesNotMatch(stdout, /clients of/);
});

test('--check warns of clients that expire within 14 days, and of permissions that open nothing', async (t) => {
  const soon = dayOf(Date.now() + 10 * dayMs);
  const daemon = prepare(
    t,
    `${web}expires = ${soon}
[late]
allow = batch, named, transaction
token_sha256 = ${digestOf('late')}
expires = ${dayOf(Date.now() + 16 * dayMs)}
[old]
allow = batch, metrics, transaction
token_sha256 = ${digestOf('old')}
expires = 2020-01-01
[anonymous]
allow = mcp
`,
  );
  const { stdout } = await daemon.run(['--check']);
  const warnings = stdout.split('\n').filter((line) => line.startsWith('warning: '));
  const opensNothing = 'which opens nothing without `sql` or `named`';
  assert.match(warnings[0] ?? '', new RegExp(`^warning: the client web expires on ${soon}T00:00`));
  assert.deepEqual(warnings.slice(1), [
    'warning: the client old expired on 2020-01-01T00:00:00.000Z',
    `warning: the client old has \`batch\`, ${opensNothing}`,
    `warning: the client old has \`transaction\`, ${opensNothing}`,
    `warning: the client anonymous has \`mcp\`, ${opensNothing}`,
  ]);
});

const unusable: Readonly<
  Record<string, readonly [clients: string, keys: string | null, faults: readonly string[]]>
> = {
  'a clients file with several faults': [
    `allow = all\n${web}alow = sql\n[Other]\nallow = sqll\n[web]\n`,
    null,
    [
      'clients.ini: allow (line 1): ',
      'clients.ini: [web] alow (line 5): ',
      'clients.ini: [Other] (line 6): ',
      'clients.ini: [Other] (line 6): ',
      'clients.ini: [Other] allow (line 7): ',
      'clients.ini: [web] (line 8): ',
    ],
  ],
  'a token of two clients': [
    `${web}[other]\nallow = sql\n# The same.\ntoken_sha256 = ${digestOf('web')}\n`,
    null,
    ['clients.ini: [other] token_sha256 (line 7): '],
  ],
  'a token of the section': [
    `[web]\nallow = sql\ntoken_sha256 = ${digestOf('of-the-section')}\n`,
    null,
    ['clients.ini: [web] token_sha256 (line 3): '],
  ],
  'a JWK set that is not JSON': [
    web,
    '{"keys": [\n  {"kty": "OKP",\n  oops}\n]}',
    ['jwks.json: (line 3): '],
  ],
  'a clients file and a JWK set that are empty': [
    '',
    '{"keys":[]}',
    ['clients.ini: describes no client', 'jwks.json: has no key for signatures'],
  ],
  'a clients file and a JWK set with several faults': [
    `${web}share = 0\n`,
    JSON.stringify({ keys: [{ ...key, alg: 'none' }, key, { ...key, kid: 'b', d: 'secret' }] }),
    ['clients.ini: [web] share (line 4): ', 'jwks.json: key 1: ', 'jwks.json: key 3 (b): '],
  ],
};
for (const [what, [clients, keys, faults]] of Object.entries(unusable)) {
  test(`${what}: --check and a start exit 78, with the same faults and their places`, async (t) => {
    const daemon = prepare(t, clients, keys);
    const checked = await daemon.run(['--check']);
    assert.equal(checked.status, 78);
    const lines = checked.stderr.trimEnd().split('\n');
    const { directory } = daemon;
    assert.equal(lines.length, faults.length, checked.stderr);
    for (const [index, place] of faults.entries()) {
      assert.ok(lines[index]?.startsWith(`dbhttpd: ${join(directory, place)}`), checked.stderr);
    }
    assert.equal((await daemon.start()).status, 78);
    const log = daemon.readLog();
    for (const line of lines)
      assert.ok(log.includes(line.slice('dbhttpd: '.length)), `${line}\n${log}`);
    assert.ok(!checked.stderr.includes('secret'));
  });
}

test('a clients file that others may read, and a JWK set that they may write, are faults for --check and a start', async (t) => {
  const daemon = prepare(t, web, JSON.stringify({ keys: [key] }));
  chmodSync(join(daemon.directory, 'clients.ini'), 0o644);
  chmodSync(join(daemon.directory, 'jwks.json'), 0o666);
  const { status, stderr } = await daemon.run(['--check']);
  assert.equal(status, 78);
  assert.match(stderr, /\[world\] clients: is open to others/);
  assert.match(stderr, /\[world\] jwt_keys: may be written by others/);
  assert.equal((await daemon.start()).status, 78);
});

test('--new-token prints a token of 256 bits, a different one each time, and a line that the clients file takes', async (t) => {
  const [first, second] = [await runCommand(['--new-token']), await runCommand(['--new-token'])];
  assert.deepEqual([first.status, first.stderr], [0, '']);
  const [, token = '', line = ''] = /^([\w-]{43})\n(token_sha256 = .*)\n$/.exec(first.stdout) ?? [];
  assert.equal(Buffer.from(token, 'base64url').length, 32);
  assert.equal(line, `token_sha256 = ${digestOf(token)}`);
  assert.notEqual(first.stdout, second.stdout);
  const daemon = prepare(t, `[web]\nallow = sql\n${line}\n`);
  assert.match((await daemon.run(['--check'])).stdout, /^ {2}web +1 token +sql /m);
});
