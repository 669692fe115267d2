// Why the database will not have the gateway: in the server's own words in the log and in --check, by a number for /readyz.
// Must not know how a connection is made.
import assert from 'node:assert/strict';
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { createAsk } from '../../support/ask.ts';
import { createAuthority } from '../../support/certificates.ts';
import { createDaemon, type Daemon, type Settings } from '../../support/daemon.ts';
import { type Database, ownServerOnly, startDatabase } from '../../support/database/mariadb.ts';
import { eventually } from '../../support/eventually.ts';

const directory = mkdtempSync(join(tmpdir(), 'dbhttpd-failures-'));
const authority = createAuthority(directory);
const stranger = createAuthority(directory, 'stranger');
const served = { cert: join(directory, 'served.pem'), key: join(directory, 'served.key') };

let plain: Database;
let secure: Database;
before(async () => {
  plain = await startDatabase({ tls: false });
  show(authority.issue('first'));
  // Its own authority too: MySQL makes itself one, and looks whether the certificate is of it.
  const args = [
    `--ssl-ca=${authority.cert}`,
    `--ssl-cert=${served.cert}`,
    `--ssl-key=${served.key}`,
  ];
  secure = await startDatabase({ args });
});
after(async () => {
  await plain?.stop();
  await secure?.stop();
  rmSync(directory, { recursive: true });
});
const daemons: Daemon[] = [];
afterEach(async () => {
  for (const daemon of daemons.splice(0)) await daemon.dispose();
});

function show({ cert, key }: typeof served): void {
  copyFileSync(cert, served.cert);
  copyFileSync(key, served.key);
}

function rereadCertificate(): Promise<unknown> {
  return secure.query(secure.flavour === 'mariadb' ? 'flush ssl' : 'alter instance reload tls');
}

function create(database: Database, settings: Settings): Daemon {
  const { name, host, port, user, password } = database;
  const reached = { database: name, host, port: String(port), user, password };
  const daemon = createDaemon({ ...reached, ...settings });
  daemons.push(daemon);
  return daemon;
}

/** What --check says of the database, and the one line that a gateway's log has for it. */
async function failureOf(daemon: Daemon): Promise<{ checked: string; logged: string }> {
  const { status, stderr } = await daemon.run(['--check']);
  assert.equal(status, 69, stderr);
  assert.equal((await daemon.start()).status, 0);
  const logged = await eventually('a line', () =>
    daemon
      .readLog()
      .split('\n')
      .find((line) => line.includes('cannot connect to the database')),
  );
  return { checked: stderr, logged };
}

const accounts: readonly (readonly [
  what: string,
  prepare: readonly string[],
  settings: Settings,
  errno: number | { readonly mariadb: number; readonly mysql: number },
  words: RegExp,
])[] = [
  [
    'a locked account',
    ["create user locked@'%' identified by 'pw1secret'", "alter user locked@'%' account lock"],
    { user: 'locked', password: 'pw1secret' },
    { mariadb: 4151, mysql: 3118 },
    /Access denied, this account is locked|Access denied for user 'locked'@'\S+'\. Account is locked\./,
  ],
  [
    'a wrong password',
    ["create user known@'%' identified by 'pw1secret'"],
    { user: 'known', password: 'pw2secret' },
    1045,
    /Access denied for user 'known'@'\S+' \(using password: YES\)/,
  ],
  [
    'a database that does not exist',
    [],
    { database: 'nowhere_to_be_found' },
    1049,
    /Unknown database 'nowhere_to_be_found'/,
  ],
  [
    'an account without rights on the database',
    ["create user poor@'%' identified by 'pw1secret'"],
    { user: 'poor', password: 'pw1secret', database: 'mysql' },
    1044,
    /Access denied for user 'poor'@'%' to database 'mysql'/,
  ],
];
for (const [what, prepare, settings, number, words] of accounts) {
  test(`${what} is told by the server's own number and words`, async (t) => {
    if (!ownServerOnly(t)) return;
    for (const sql of prepare) await plain.query(sql);
    const errno = typeof number === 'number' ? number : number[plain.flavour];
    const daemon = create(plain, settings);
    const { checked, logged } = await failureOf(daemon);
    assert.match(checked, words);
    assert.ok(checked.includes(`(${errno})`), checked);
    assert.match(logged, words);
    const account = settings.user ?? plain.user;
    const where = `address=${plain.host}:${plain.port} account=${account} errno=${errno} `;
    assert.ok(logged.includes(where), logged);
    const ready = await createAsk(`http://${daemon.address()}`).get('/readyz');
    assert.equal(ready.status, 503);
    assert.deepEqual(ready.json(), { ready: false, code: 'DATABASE_REFUSES', errno });
    assert.doesNotMatch(checked + daemon.readLog(), /pw[12]secret/);
  });
}

const ca = authority.cert;
const verified = { tls: 'verify', host: 'localhost' };
const tlsFailures: readonly (readonly [
  what: string,
  show: () => typeof served,
  settings: Settings,
  words: RegExp,
])[] = [
  [
    'an authority that is not known',
    () => authority.issue('unknown'),
    { ...verified, tls_ca: stranger.cert },
    // The last where the server shows its authority's certificate beside its own.
    /unable to verify the first certificate|unable to get local issuer certificate|self-signed certificate in certificate chain/,
  ],
  ['a self-signed certificate', () => stranger, { ...verified, tls_ca: ca }, /self-signed/],
  [
    'an expired certificate',
    () => authority.issue('expired', { when: 'past' }),
    { ...verified, tls_ca: ca },
    /certificate has expired/,
  ],
  [
    'a certificate of another name',
    () => authority.issue('other', { names: 'DNS:elsewhere.example' }),
    { ...verified, tls_ca: ca },
    /does not match certificate's altnames: .*elsewhere\.example/,
  ],
  [
    'a certificate of another address',
    () => authority.issue('nameonly', { names: 'DNS:localhost' }),
    { ...verified, host: '127.0.0.1', tls_ca: ca },
    /does not match certificate's altnames/,
  ],
];
for (const [what, issue, settings, words] of tlsFailures) {
  test(`${what} is told as the reason why TLS failed`, async (t) => {
    if (!ownServerOnly(t)) return;
    if (secure.flavour === 'mysql' && what === 'an expired certificate') {
      t.skip('MySQL does not load an expired certificate');
      return;
    }
    show(issue());
    await rereadCertificate();
    const daemon = create(secure, settings);
    const { checked, logged } = await failureOf(daemon);
    assert.match(checked, words);
    assert.match(logged, words);
    const ready = await createAsk(`http://${daemon.address()}`).get('/readyz');
    assert.deepEqual(ready.json(), { ready: false, code: 'DATABASE_TLS', errno: null });
  });
}

test('a server without TLS is told as such', async (t) => {
  if (!ownServerOnly(t)) return;
  const { checked, logged } = await failureOf(create(plain, { tls: 'required' }));
  assert.match(checked, /: TLS: the server speaks no TLS$/m);
  assert.match(logged, /reason="TLS: the server speaks no TLS"/);
});

test('a certificate for the name or the address that is configured is taken', async (t) => {
  if (!ownServerOnly(t)) return;
  for (const [host, names] of [
    ['localhost', 'DNS:localhost'],
    ['127.0.0.1', 'IP:127.0.0.1'],
  ] as const) {
    show(authority.issue('right', { names }));
    await rereadCertificate();
    const daemon = create(secure, { tls: 'verify', tls_ca: ca, host });
    const checked = await daemon.run(['--check']);
    assert.equal(checked.status, 0, checked.stderr);
    assert.equal((await daemon.start()).status, 0);
    const ask = createAsk(`http://${daemon.address()}`);
    assert.equal((await ask.db({ SQL: 'select 1' })).status, 200);
    assert.deepEqual((await ask.get('/readyz')).json(), { ready: true });
  }
});

test('a server that does not answer is told as such, and takes no longer than a second to be told', async () => {
  const { createServer } = await import('node:net');
  const silent = createServer(() => {}).listen(0, '127.0.0.1');
  await new Promise((resolve) => silent.once('listening', resolve));
  const { port } = silent.address() as { port: number };
  try {
    const daemon = create(plain, { port: String(port) });
    assert.equal((await daemon.start()).status, 0);
    const from = performance.now();
    const ready = await createAsk(`http://${daemon.address()}`).get('/readyz');
    assert.ok(performance.now() - from < 2000);
    assert.deepEqual(ready.json(), { ready: false, code: 'DATABASE_SILENT', errno: null });
  } finally {
    silent.close();
  }
});

test('an account at its limit: the probe asks on a session of the pool, and --check counts it', async (t) => {
  if (!ownServerOnly(t)) return;
  await plain.query("create user few@'%' identified by 'pw' with max_user_connections 2");
  await plain.query(`grant all on ${plain.name}.* to few@'%'`);
  const daemon = create(plain, { user: 'few', password: 'pw', pool: '3' });
  const { status, stdout } = await daemon.run(['--check']);
  assert.equal(status, 0);
  assert.match(stdout, / = 5 of max_connections \d+ and the account's max_user_connections 2$/m);
  assert.match(stdout, /^warning: the account does not admit that many connections/m);
  assert.equal((await daemon.start()).status, 0);
  const ask = createAsk(`http://${daemon.address()}`);
  const isReady = async () => (await ask.get('/readyz')).status === 200;
  const serves = async () => (await ask.db({ SQL: 'select 1' })).status === 200;
  // Control and probe may come first: then the probe must make room for a client's session.
  await eventually('ready', isReady);
  await eventually('it serves', async () => {
    await isReady();
    return serves();
  });
  await eventually('ready beside it', isReady);
  // A busy pool is ready too, though there is nothing to ask on.
  const busy = ask.db({ SQL: 'select sleep(3)' });
  await eventually(
    'it runs',
    async () =>
      (await plain.query("select 1 from information_schema.processlist where info like '%p(3)'"))
        .length === 1,
  );
  for (const from = performance.now(); performance.now() - from < 1500; ) {
    assert.equal(await isReady(), true);
  }
  assert.equal((await busy).status, 200);
});

test('readiness and its reason are gauges', async () => {
  const daemon = create(plain, { port: '1' });
  assert.equal((await daemon.start()).status, 0);
  const ask = createAsk(`http://${daemon.address()}`);
  const away = (await ask.get('/metrics')).text;
  assert.match(away, /^dbhttpd_ready\{section="world",slot="0"\} 0$/m);
  const reason = (code: string) => `dbhttpd_unready{section="world",slot="0",reason="${code}"}`;
  assert.ok(away.includes(`${reason('DATABASE_UNREACHABLE')} 1`), away);
  assert.ok(away.includes(`${reason('DATABASE_REFUSES')} 0`));
  const near = create(plain, {});
  assert.equal((await near.start()).status, 0);
  const text = (await createAsk(`http://${near.address()}`).get('/metrics')).text;
  assert.match(text, /^dbhttpd_ready\{section="world",slot="0"\} 1$/m);
  assert.doesNotMatch(text, /^dbhttpd_unready\{.*\} 1$/m);
});
