// Why the database will not have the gateway: in the server's own words in the log and in --check, by a number for /readyz.

import assert from 'node:assert/strict';
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import type { Stats } from '../../../src/shared/observe/stats.ts';
import { createAsk } from '../../support/ask.ts';
import { createAuthority } from '../../support/certificates.ts';
import { createDaemon, runCommand } from '../../support/daemon.ts';
import { endConnections } from '../../support/database/end-connections.ts';
import { startFakeMysql } from '../../support/database/fake-mysql.ts';
import { closeGate, createGate } from '../../support/database/gate.ts';
import { type Database, isServerGiven, startDatabase } from '../../support/database/mariadb.ts';
import { errorPacket } from '../../support/database/mysql-answer.ts';
import { openProcesslist } from '../../support/database/processlist.ts';
import {
  type ProxiedDatabase,
  startProxiedDatabase,
} from '../../support/database/proxied-database.ts';
import { keySettings } from '../../support/database/server-key.ts';
import { eventually } from '../../support/eventually.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { getReport } from '../../support/reports.ts';
import { readMetric } from '../../support/scrape.ts';
import { createWorkspace } from '../../support/workspace.ts';

const options = isServerGiven()
  ? { skip: 'DBHTTPD_TEST_MYSQL names a server that these tests may not configure' }
  : {};
const workspace = createWorkspace('failures', () => {});
const authority = createAuthority(workspace.path);
const stranger = createAuthority(workspace.path, 'stranger');
const served = {
  cert: join(workspace.path, 'served.pem'),
  key: join(workspace.path, 'served.key'),
};
const right = authority.issue('right');
/** A request to /readyz makes the gateway try to connect, and a handshake with TLS costs more than the request. */
const look = { everyMs: 100 };
const account = { user: 'app', password: 'pw1secret' };

let database: Database;
let proxy: ProxiedDatabase;
/** Gateways that verify the server's certificate: for the name `localhost`, and for the address 127.0.0.1, through the proxy. */
let named: Gateway;
let numbered: Gateway;

before(async () => {
  if (isServerGiven()) return;
  show(right);
  // Its own authority too: MySQL makes itself one, and looks whether the certificate is of it.
  const args = [
    `--ssl-ca=${authority.cert}`,
    `--ssl-cert=${served.cert}`,
    `--ssl-key=${served.key}`,
  ];
  database = await startDatabase({ args });
  await database.query(`create user app identified by 'pw1secret'; create database refused`);
  await createGate(database);
  await makeWell();
  proxy = await startProxiedDatabase(database);
  const settings = { workers: 1, tls: 'verify', tls_ca: authority.cert };
  const target = { ...proxy.target, ...account, name: 'refused' };
  numbered = await startGateway({ database: target, settings });
  named = await startGateway({
    database: { ...target, host: 'localhost', port: database.port },
    settings,
  });
});
after(async () => {
  await named?.stop();
  await numbered?.stop();
  await proxy?.stop();
  await database?.stop();
  workspace.remove();
});
beforeEach(async () => {
  if (isServerGiven()) return;
  proxy.heal();
  await makeWell();
  for (const gateway of [named, numbered]) {
    await eventually(
      'it is ready, and its log has the end of the outage before',
      async () => (await gateway.get('/readyz')).status === 200 && isOutageOver(gateway),
      look,
    );
  }
});

/** The log has each reason once in an outage, so a test must not begin in that of another one. */
function isOutageOver(gateway: Gateway): boolean {
  const log = gateway.log();
  const [begun, ended] = ['cannot connect to the database', 'the database is back'];
  return log.lastIndexOf(ended) >= log.lastIndexOf(begun);
}

function show({ cert, key }: typeof served): void {
  copyFileSync(cert, served.cert);
  copyFileSync(key, served.key);
}

/** Shows this certificate to new connections from now on. */
async function present(files: typeof served): Promise<void> {
  show(files);
  await database.query(database.flavour === 'mariadb' ? 'flush ssl' : 'alter instance reload tls');
}

/** The database takes the gateways as they are configured. */
async function makeWell(): Promise<void> {
  await present(right);
  await database.query(`
    create database if not exists refused;
    alter user app identified by 'pw1secret' require none; alter user app account unlock;
    grant all on refused.* to app; grant all on ${database.name}.* to app`);
}

/** Runs --check with the gateway's own configuration. */
function check({ configPath, section }: Gateway) {
  return runCommand(['-c', configPath, '-s', section, '--check']);
}

/** The report of --check about the database, and the line of the log about it, after the log's first `logBefore` characters. */
async function failureOf(
  gateway: Gateway,
  words: RegExp,
  logBefore: number,
): Promise<{ checked: string; logged: string }> {
  const { status, stderr } = await check(gateway);
  assert.equal(status, 69, stderr);
  assert.match(stderr, words);
  const logged = await eventually(
    'a line',
    async () => {
      // The probe makes the gateway try again, less and less often while no request comes.
      await gateway.get('/readyz');
      const lines = gateway.log().slice(logBefore).split('\n');
      return lines.find(
        (line) => line.includes('cannot connect to the database') && words.test(line),
      );
    },
    look,
  );
  return { checked: stderr, logged };
}

/** Resolves once the gateway says that it is not ready, and why. */
async function unready(gateway: Gateway, code: string, errno: number | null): Promise<void> {
  await eventually(
    `${code} ${errno}`,
    async () => {
      const ready = await gateway.get('/readyz');
      assert.equal(ready.status, 503);
      assert.deepEqual(ready.json(), { ready: false, code, errno });
      return true;
    },
    look,
  );
}

/** Resolves once requests are refused for this reason, as nothing that was executed. */
async function refusedTo(gateway: Gateway, code: string, meaning: string): Promise<void> {
  const sentence = `${meaning.charAt(0).toUpperCase()}${meaning.slice(1)}. Nothing was executed; it is safe to try again.`;
  const reply = await eventually(sentence, async () => {
    const one = await gateway.post('/v1/query', { sql: 'select 1' });
    return one.json<{ detail: string }>().detail === sentence && one;
  });
  assert.deepEqual([reply.status, reply.headers['retry-after']], [503, '1']);
  const reported = reply.json<Record<string, unknown>>();
  assert.deepEqual(
    [reported.code, reported.outcome, reported.retryable],
    [code, 'not_executed', true],
  );
  const old = (await gateway.db({ SQL: 'select 1' })).json<Record<string, unknown>>();
  assert.deepEqual([old.ERROR, old.CODE, old.OUTCOME], [sentence, code, 'not_executed']);
}

const refusesLogin = "the database server refuses the gateway's login";

const accounts: readonly (readonly [
  what: string,
  prepare: string,
  errno: number | { readonly mariadb: number; readonly mysql: number },
  words: RegExp,
  hint: string,
])[] = [
  [
    'a locked account',
    'alter user app account lock',
    { mariadb: 4151, mysql: 3118 },
    /Access denied, this account is locked|Access denied for user 'app'@'\S+'\. Account is locked\./,
    'the account is locked',
  ],
  [
    'an expired password',
    'alter user app password expire',
    // MariaDB lets such an account in, and refuses every statement; MySQL does not let it in.
    { mariadb: 1820, mysql: 1862 },
    /a setting of the session was refused|You must SET PASSWORD before|Your password has expired/,
    'the password of the account has expired',
  ],
  [
    'an account that requires a client certificate',
    'alter user app require x509',
    1045,
    /Access denied for user 'app'@'\S+' \(using password: YES\)/,
    'or it requires a client certificate (REQUIRE X509), and `tls_cert` is not set',
  ],
  [
    'a wrong password',
    "alter user app identified by 'pw2secret'",
    1045,
    /Access denied for user 'app'@'\S+' \(using password: YES\)/,
    'the user or the password is wrong, or the account is for other hosts',
  ],
  [
    'a database that does not exist',
    'drop database refused',
    1049,
    /Unknown database 'refused'/,
    'the database does not exist',
  ],
  [
    'an account without rights on the database',
    'revoke all on refused.* from app',
    1044,
    /Access denied for user 'app'@'%' to database 'refused'/,
    'the account has no rights on it',
  ],
];
for (const [what, prepare, number, words, hint] of accounts) {
  test(`${what} is reported with the server's own number and message`, options, async () => {
    const errno = typeof number === 'number' ? number : number[database.flavour];
    // The gateway may meet the failure as soon as the database is changed.
    const logBefore = numbered.log().length;
    await database.query(prepare);
    await endConnections(database, 'app');
    const { checked, logged } = await failureOf(numbered, words, logBefore);
    assert.ok(checked.includes(`(${errno})`), checked);
    const where = `address=${proxy.host}:${proxy.port} account=app errno=${errno} `;
    assert.ok(logged.includes(where), logged);
    assert.ok(checked.includes(hint), checked);
    assert.ok(logged.includes(hint), logged);
    await unready(numbered, 'DATABASE_REFUSED', errno);
    await refusedTo(numbered, 'DATABASE_REFUSED', refusesLogin);
    assert.equal(await readMetric(numbered, 'dbhttpd_connect_errno'), errno);
    const stats = await getReport(numbered, '/v1/stats');
    assert.equal(stats.json<Stats>().backends[0]?.connect_errno, errno);
    assert.doesNotMatch(checked + numbered.log(), /pw[12]secret/);
  });
}

test('an account that requires TLS: the hint says that `tls` is off', options, async () => {
  const target = { ...proxy.target, ...account, name: 'refused', serverKey: database.serverKey };
  const plain = await startGateway({ database: target, settings: { workers: 1 } });
  try {
    await eventually('ready', async () => (await plain.get('/readyz')).status === 200, look);
    const logBefore = plain.log().length;
    await database.query('alter user app require ssl');
    await endConnections(database, 'app');
    const { checked, logged } = await failureOf(plain, /\(using password: YES\)/, logBefore);
    const hint = 'or it requires TLS (REQUIRE SSL, require_secure_transport), and `tls` is off';
    assert.ok(checked.includes(hint), checked);
    assert.ok(logged.includes(hint), logged);
    await unready(plain, 'DATABASE_REFUSED', 1045);
  } finally {
    await plain.stop();
  }
});

test('a server without a connection left is no refusal of the login; one that blocks the host is', async () => {
  const server = await startFakeMysql();
  const gateway = await startGateway({ database: server.target, settings: { workers: 1 } });
  const isReady = async () => (await gateway.get('/readyz')).status === 200;
  const numberOf = () => readMetric(gateway, 'dbhttpd_connect_errno');
  try {
    for (const [errno, reason, code, meaning] of [
      [
        1040,
        'DATABASE_UNAVAILABLE',
        'DATABASE_UNREACHABLE',
        'the database server accepts no connection now',
      ],
      [1129, 'DATABASE_REFUSED', 'DATABASE_REFUSED', refusesLogin],
      [1130, 'DATABASE_REFUSED', 'DATABASE_REFUSED', refusesLogin],
    ] as const) {
      server.behave({ greet: (client) => client.send([errorPacket(errno, 'no')], 0) });
      for (const { socket } of server.clients) socket.destroy();
      await unready(gateway, reason, errno);
      await refusedTo(gateway, code, meaning);
      assert.equal(await numberOf(), errno);
      server.behave({});
      await eventually('ready', isReady, look);
      await eventually('no number', async () => (await numberOf()) === 0);
    }
  } finally {
    await gateway.stop();
    await server.stop();
  }
});

const tlsFailures: readonly (readonly [
  what: string,
  issue: () => typeof served,
  gateway: () => Gateway,
  words: RegExp,
])[] = [
  [
    'an authority that is not known',
    () => stranger.issue('unknown'),
    () => named,
    // The last where the server shows its authority's certificate beside its own.
    /unable to verify the first certificate|unable to get local issuer certificate|self-signed certificate in certificate chain/,
  ],
  ['a self-signed certificate', () => stranger, () => named, /self-signed/],
  [
    'an expired certificate',
    () => authority.issue('expired', { when: 'past' }),
    () => named,
    /certificate has expired/,
  ],
  [
    'a certificate of another name',
    () => authority.issue('other', { names: 'DNS:elsewhere.example' }),
    () => named,
    /does not match certificate's altnames: .*elsewhere\.example/,
  ],
  [
    'a certificate of another address',
    () => authority.issue('nameonly', { names: 'DNS:localhost' }),
    () => numbered,
    /does not match certificate's altnames/,
  ],
];
/** MySQL checks a certificate against its authority and the clock before it loads it. */
const unloadable = new Set(['an authority that is not known', 'an expired certificate']);
for (const [what, issue, gateway, words] of tlsFailures) {
  test(`${what} is reported as the reason why TLS failed`, options, async (t) => {
    if (database.flavour === 'mysql' && unloadable.has(what)) {
      t.skip('MySQL does not load such a certificate');
      return;
    }
    await present(issue());
    const logBefore = gateway().log().length;
    await endConnections(database, 'app');
    await failureOf(gateway(), words, logBefore);
    await unready(gateway(), 'DATABASE_TLS', null);
  });
}

test('a certificate for the name or the address that is configured is taken', options, async () => {
  for (const [gateway, names] of [
    [named, 'DNS:localhost'],
    [numbered, 'IP:127.0.0.1'],
  ] as const) {
    await present(authority.issue('fitting', { names }));
    await endConnections(database, 'app');
    const checked = await check(gateway);
    assert.equal(checked.status, 0, checked.stderr);
    assert.equal((await gateway.db({ SQL: 'select 1' })).status, 200);
    const ready = async () => (await gateway.get('/readyz')).json<{ ready: boolean }>();
    await eventually('ready', async () => (await ready()).ready);
    assert.deepEqual(await ready(), { ready: true });
  }
});

test('a server without TLS is reported as such', async () => {
  const server = await startFakeMysql();
  const settings = { workers: 1, tls: 'required' };
  const gateway = await startGateway({ database: server.target, settings });
  try {
    const { checked, logged } = await failureOf(gateway, /TLS: the server speaks no TLS/, 0);
    assert.match(checked, /: TLS: the server speaks no TLS$/m);
    assert.match(logged, /reason="TLS: the server speaks no TLS"/);
  } finally {
    await gateway.stop();
    await server.stop();
  }
});

test('a server that does not answer is reported within a second', options, async () => {
  proxy.partition();
  proxy.cutAll();
  let longestMs = 0;
  await eventually('silent', async () => {
    const from = performance.now();
    const ready = await numbered.get('/readyz');
    longestMs = Math.max(longestMs, performance.now() - from);
    assert.deepEqual(ready.json(), { ready: false, code: 'DATABASE_SILENT', errno: null });
    return true;
  });
  // Four times the promise: what the machine adds is not the gateway's.
  assert.ok(longestMs < 4000, `${longestMs} ms`);
});

test(
  'an account at its limit: the probe uses a session of the pool, and --check counts it',
  options,
  async () => {
    await database.query("create user few identified by 'pw' with max_user_connections 2");
    await database.query(`grant all on ${database.name}.* to few`);
    const { name, host, port } = database;
    const reached = { database: name, host, port: String(port) };
    const daemon = createDaemon({
      ...reached,
      ...{ user: 'few', password: 'pw', pool: '3', ...keySettings(database) },
    });
    const gate = await closeGate(database);
    const processlist = await openProcesslist(database);
    try {
      const { status, stdout } = await daemon.run(['--check']);
      assert.equal(status, 0);
      assert.match(
        stdout,
        / = 5 of max_connections \d+ and the account's max_user_connections 2$/m,
      );
      assert.match(stdout, /^warning: the account does not admit that many connections/m);
      assert.equal((await daemon.start()).status, 0);
      const ask = createAsk(`http://${daemon.address()}`);
      const isReady = async () => (await ask.get('/readyz')).status === 200;
      // Control and probe may come first: then the probe must make room for a client's session.
      await eventually('ready', isReady);
      await eventually('it serves', async () => {
        await isReady();
        return (await ask.db({ SQL: 'select 1' })).status === 200;
      });
      await eventually('ready beside it', isReady);
      // A busy pool is ready too, although no connection is free for a probe.
      const busy = ask.db({ SQL: `select ${gate.zero}` });
      await processlist.started('from gate');
      const from = performance.now();
      const answers: boolean[] = [];
      await eventually('an answer older than the second for which it counts', async () => {
        answers.push(await isReady());
        return performance.now() - from > 1200;
      });
      assert.ok(!answers.includes(false));
      await gate.open();
      assert.equal((await busy).status, 200);
    } finally {
      processlist.close();
      await gate.open();
      await daemon.dispose();
    }
  },
);

test('readiness and its reason are gauges', options, async () => {
  const closed = await startProxiedDatabase(database);
  await closed.listen(false);
  const gateway = await startGateway({ database: closed.target, settings: { workers: 1 } });
  try {
    const reason = (code: string) => `dbhttpd_unready{section="world",slot="0",reason="${code}"}`;
    const away = await eventually('the reason is known', async () => {
      const { text } = await gateway.get('/metrics');
      return text.includes(`${reason('DATABASE_UNREACHABLE')} 1`) && text;
    });
    assert.match(away, /^dbhttpd_ready\{section="world",slot="0"\} 0$/m);
    assert.ok(away.includes(`${reason('DATABASE_REFUSED')} 0`));
    await closed.listen(true);
    await eventually('ready', async () => (await gateway.get('/readyz')).status === 200);
    const near = await eventually('its gauge', async () => {
      const { text } = await gateway.get('/metrics');
      return /^dbhttpd_ready\{section="world",slot="0"\} 1$/m.test(text) && text;
    });
    assert.doesNotMatch(near, /^dbhttpd_unready\{.*\} 1$/m);
  } finally {
    await gateway.stop();
    await closed.stop();
  }
});
