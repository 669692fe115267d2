// A configuration is valid, or every fault is reported at once, and no report contains a secret.
import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { Config, Sections } from '../../../../src/shared/config/config.ts';
import { describeConfig, describeOptions } from '../../../../src/shared/config/describe.ts';
import { formatFault, type Loaded, loadConfig } from '../../../../src/shared/config/load-config.ts';
import type { Place } from '../../../../src/shared/config/machine-defaults.ts';
import { optionKeys } from '../../../../src/shared/config/options.ts';

const directory = mkdtempSync(join(tmpdir(), 'dbhttpd-config-'));
after(() => rmSync(directory, { recursive: true }));

const file = join(directory, 'dbhttpd.ini');
const place: Place = {
  uid: 1000,
  home: '/home/x',
  temporary: '/tmp',
  isDirectory: (path) => path === '/home/x',
  mayWrite: () => true,
};
const minimal = 'database = world\nhost = 127.0.0.1\nuser = app\n';

/** The sections of the file, the first one the instance's. */
function target(...sections: readonly [string, ...string[]]) {
  return { configPath: file, sections, beside: [] };
}

function load(body: string, { section = 'world', mode = 0o600, env = {} } = {}) {
  writeFileSync(file, /^\uFEFF?\[/.test(body) ? body : `[${section}]\n${body}`);
  chmodSync(file, mode);
  return loadConfig(target(section), env, place);
}

function sectionsOf(loaded: Loaded): Sections {
  const problem = loaded.kind === 'invalid' ? loaded.faults.map(formatFault).join('\n') : '';
  assert.equal(loaded.kind, 'ok', problem);
  return (loaded as { sections: Sections }).sections;
}

function valid(body: string, options = {}): Config {
  return sectionsOf(load(body, options))[0];
}

function faultsOf(body: string, options = {}): readonly string[] {
  const loaded = load(body, options);
  assert.equal(loaded.kind, 'invalid');
  return loaded.kind === 'invalid' ? loaded.faults.map(formatFault) : [];
}

test('three keys are a working configuration', () => {
  const config = valid(minimal);
  assert.deepEqual(config.listen, { kind: 'tcp', host: '127.0.0.1', port: 9090 });
  assert.deepEqual(config.candidates, [{ host: '127.0.0.1', port: 3306, socket: null }]);
  assert.equal(config.statementTimeoutMs, 30_000);
  assert.equal(config.bufferBytes, 65_536);
  assert.equal(config.log, '/home/x/.local/state/dbhttpd/dbhttpd-world.log');
  assert.equal(config.pidfile, '/home/x/.local/state/dbhttpd/dbhttpd-world.pid');
  assert.equal(config.stateDir, '/home/x/.local/state/dbhttpd');
  assert.deepEqual(config.allowHosts, ['localhost', '127.0.0.1', '[::1]']);
  assert.ok(config.workers >= 1 && config.workers <= 8);
  assert.ok(Object.isFrozen(config));
});

test('durations take ms, s, m and h', () => {
  for (const [written, ms] of [
    ['250ms', 250],
    ['90s', 90_000],
    ['5m', 300_000],
    ['2h', 7_200_000],
  ] as const) {
    assert.equal(valid(`${minimal}statement_timeout = ${written}\n`).statementTimeoutMs, ms);
  }
});

test('the table of idempotency keys is named with or without its database, and a read-only section has none', () => {
  assert.equal(valid(minimal).idempotencyTable, null);
  assert.equal(valid(`${minimal}idempotency_table = keys\n`).idempotencyKeepMs, 86_400_000);
  assert.equal(valid(`${minimal}idempotency_table = a.keys\n`).idempotencyTable, 'a.keys');
  for (const wrong of ['`keys`', 'a.b.keys', '.keys', 'keys.']) {
    assert.match(
      faultsOf(`${minimal}idempotency_table = ${wrong}\n`).join(),
      /idempotency_table .*: must be a table/,
    );
  }
  assert.match(
    faultsOf(`${minimal}idempotency_table = keys\nread_only = on\n`).join(),
    /idempotency_table.*: is written to/,
  );
  assert.match(faultsOf(`${minimal}idempotency_keep = 1h\n`).join(), /idempotency_keep.*: needs/);
  const keep = (time: string) =>
    `${minimal}idempotency_table = keys\nidempotency_keep = ${time}\nstatement_timeout = 1m\n`;
  assert.match(faultsOf(keep('59s')).join(), /idempotency_keep.*: is shorter than/);
  assert.equal(valid(keep('60s')).idempotencyKeepMs, 60_000);
});

test('a section may be named with dots, and others do not matter', () => {
  const text = `[a]\nnonsense\n[a.b]\n${minimal}[a.b.c]\nport = x\n`;
  assert.equal(valid(text, { section: 'a.b' }).section, 'a.b');
});

test('a value is a text, whatever it looks like', () => {
  const config = valid('database = true\nhost = null\nuser = 123\npassword = "false"\n');
  assert.equal(config.database, 'true');
  assert.equal(config.candidates[0].host, 'null');
  assert.equal(config.user, '123');
  assert.equal(config.password, 'false');
  assert.equal(valid(`${minimal}password = '123'\n`).password, '123');
});

test('a quoted value keeps every character, and a comment may follow an ordinary one', () => {
  assert.equal(valid(`${minimal}password = "p#1;x"\n`).password, 'p#1;x');
  assert.equal(valid(`${minimal}password = 'a\\b"c;'\n`).password, 'a\\b"c;');
  assert.equal(valid(`${minimal}password = "a\\\\b\\"c"\n`).password, 'a\\b"c');
  assert.equal(valid(`${minimal}password =\n`).password, '');
  assert.equal(valid(`${minimal}port = 3307 ; ours\n`).candidates[0].port, 3307);
  assert.equal(valid(`\uFEFF[world]\r\n${minimal.replaceAll('\n', '\r\n')}`).user, 'app');
});

for (const secret of [
  'p#1;x',
  'p;x',
  '#hunter',
  'p ; x',
  'a\\;b',
  '"hun" ; x',
  '"hun\\qter"',
  '"hun',
  "'h' x",
]) {
  test(`a secret that would be cut or changed is a fault: ${secret}`, () => {
    const faults = faultsOf(`${minimal}password = ${secret}\n`);
    assert.equal(faults.length, 1);
    assert.match(faults[0] ?? '', /dbhttpd\.ini: \[world\] password \(line 5\): /);
    assert.ok(!(faults[0] ?? '').includes('hun'));
  });
}

test('every fault is reported at once, with file, section, key and line', () => {
  const faults = faultsOf(
    [
      'database = world',
      'host = a',
      'host = b',
      'colour = red',
      'hunter2',
      'port = 99999',
      'socket = relative.sock',
      'tls = maybe',
      'statement_timeout = 30',
      'buffer = 64kb',
      'read_only = yes',
      'listen = example.org:80',
      'workers = 0',
      'listen_mode = 9',
      'token = a,,b',
    ].join('\n'),
  );
  const keys = faults.map((fault) => /\[world\](?: (\w+))?(?: \(line \d+\))?: /.exec(fault)?.[1]);
  const expected = [
    ...['buffer', 'colour', 'host', 'listen', 'listen_mode', 'port', 'read_only', 'socket'],
    ...['statement_timeout', 'tls', 'token', 'user', 'workers', 'a line without key'],
  ];
  assert.deepEqual(keys.map((key) => key ?? 'a line without key').sort(), expected.sort());
  assert.ok(!faults.join().includes('hunter2'));
});

const conflicts: readonly (readonly [string, string])[] = [
  ['https_cert', 'https_cert = /nowhere.pem'],
  ['tls_ca', 'tls_ca = /dev/null'],
  ['tls_ca', 'tls = required\ntls_ca = /dev/null'],
  ['tls_cert', 'tls = verify\ntls_cert = /dev/null'],
  ['listen', 'listen = *:9090'],
  ['listen', 'listen = 0.0.0.0:9090'],
  ['listen', 'listen = [::]:9090'],
  ['listen_mode', 'listen_mode = 0600'],
  ['socket', 'socket = /run/mysqld.sock'],
  ['password_file', 'password = x\npassword_file = /dev/null'],
  ['token_file', 'token = x\ntoken_file = /nowhere'],
  ['token', 'token = "sp ace"'],
  ['allow_origins', 'allow_origins = *'],
  ['allow_hosts', 'allow_hosts = a:80'],
  ['allow_hosts', 'allow_hosts = localhost, db.example'],
  ['allow_hosts', 'allow_hosts = 127.0.0.1.example'],
  ['allow_hosts', 'allow_hosts = *'],
  ['allow_hosts', 'listen = /run/x.sock\nallow_hosts = db.example'],
  ['allow_origins', 'allow_origins = null'],
  ['pidfile', 'pidfile = /tmp/x\nlog = /tmp/x'],
  ['pidfile', 'pidfile = /tmp/x\nlog = /tmp/x.commits'],
  ['listen', 'pidfile = /tmp/x\nlisten = /tmp/x.commits'],
  ['log', `log = ${file}`],
  ['pidfile', `pidfile = ${file}`],
  ['listen', `listen = ${file}`],
  ['pidfile', 'pidfile = /tmp/key\nhttps_key = /tmp/key.lock'],
  ['log', 'log = /tmp/key\ntls_key = /tmp/key'],
  ['log', 'log = /tmp/clients\nclients = /tmp/clients'],
  ['pidfile', 'pidfile = /tmp/keys\njwt_keys = /tmp/keys.lock'],
  ['jwt_keys', 'jwt_keys = /nowhere\njwt_issuer = i\njwt_audience = a'],
  ['jwt_keys', 'clients = /nowhere\njwt_keys = /nowhere\njwt_audience = a'],
  ['jwt_keys', 'clients = /nowhere\njwt_keys = /nowhere\njwt_issuer = i'],
  ['jwt_issuer', 'clients = /nowhere\njwt_issuer = i'],
  ['jwt_audience', 'clients = /nowhere\njwt_audience = a'],
  ['drivers', 'drivers = planetscale'],
  ['url', 'url = https://db.example'],
  ['url', 'mcp = on\nurl = https://db.example/gateway'],
  ['url', 'mcp = on\nurl = db.example'],
];
for (const [key, lines] of conflicts) {
  test(`an impossible combination is a fault of ${key}: ${lines.replaceAll('\n', ', ')}`, () => {
    assert.ok(faultsOf(`${minimal}${lines}\n`).some((fault) => fault.includes(`] ${key}: `)));
  });
}

test('listening beyond loopback needs a token or the word insecure', () => {
  assert.equal(valid(`${minimal}listen = *:80\ninsecure = on\n`).allowHosts, null);
  assert.deepEqual(valid(`${minimal}listen = [::]:80\ntoken = a, b\n`).tokens, ['a', 'b']);
  assert.equal(valid(`${minimal}listen = [::1]:80\n`).listen.kind, 'tcp');
  assert.equal(valid(`${minimal}listen = /run/x.sock\n`).allowHosts, null);
});

test('names other than loopback need a token, HTTPS or the word insecure', () => {
  for (const guard of ['token = a', 'insecure = on']) {
    assert.deepEqual(valid(`${minimal}allow_hosts = db.example\n${guard}\n`).allowHosts, [
      'db.example',
    ]);
  }
  const faults = faultsOf(
    `${minimal}allow_hosts = db.example\nhttps_cert = /nowhere\nhttps_key = /nowhere\n`,
  );
  assert.ok(!faults.some((fault) => fault.includes('allow_hosts')));
  valid(`${minimal}allow_hosts = localhost, app.localhost, 127.0.0.1, 127.9.9.9, [::1]\n`);
});

test('a socket replaces host and port', () => {
  const [candidate] = valid('database = d\nuser = u\nsocket = /run/m.sock\n').candidates;
  assert.equal(candidate.socket, '/run/m.sock');
});

test('a file with a secret must not be open to others; its group may read it', () => {
  assert.equal(faultsOf(`${minimal}password = x\n`, { mode: 0o644 }).length, 1);
  assert.equal(faultsOf(`${minimal}token = x\n`, { mode: 0o604 }).length, 1);
  valid(`${minimal}password = x\n`, { mode: 0o640 });
  valid(minimal, { mode: 0o644 });
});

test('secrets come from files, and the environment overrides them', () => {
  const secret = join(directory, 'secret');
  writeFileSync(secret, 'from-file\n', { mode: 0o600 });
  assert.equal(valid(`${minimal}password_file = ${secret}\n`).password, 'from-file');
  assert.deepEqual(valid(`${minimal}token_file = ${secret}\n`).tokens, ['from-file']);
  const env = { DBHTTPD_PASSWORD: 'from-env', DBHTTPD_TOKEN: 'a,b' };
  const config = valid(`${minimal}password_file = ${secret}\ntoken_file = ${secret}\n`, { env });
  assert.equal(config.password, 'from-env');
  assert.deepEqual(config.tokens, ['a', 'b']);
  assert.equal(faultsOf(`${minimal}token = x\n`, { env: { DBHTTPD_TOKEN: '' } }).length, 1);
  chmodSync(secret, 0o644);
  assert.equal(faultsOf(`${minimal}password_file = ${secret}\n`).length, 1);
  assert.equal(faultsOf(`${minimal}password_file = /nowhere\n`).length, 1);
});

test('a key before the first section and a section that is not closed are faults with their lines', () => {
  const wanted = `[world]\n${minimal}`;
  const faults = (text: string) => {
    writeFileSync(file, text);
    const loaded = loadConfig(target('world'), {}, place);
    return loaded.kind === 'invalid' ? loaded.faults.map(formatFault) : [loaded.kind];
  };
  const early = 'is before the first [section], so no section would use it';
  assert.deepEqual(faults(`; secrets\ntoken = hunter2\nwhat\n${wanted}`), [
    `${file}: token (line 2): ${early}`,
    `${file}: (line 3): ${early}`,
  ]);
  const unclosed = 'begins a section with [ and does not close it with ]';
  assert.deepEqual(faults(`${wanted}\n[moon\nhost = 10.0.0.1\n`), [
    `${file}: (line 6): ${unclosed}`,
  ]);
  assert.deepEqual(faults(`[world ; ours\n${minimal}`), [
    `${file}: (line 1): ${unclosed}`,
    `${file}: [world]: the file has no such section`,
  ]);
  assert.deepEqual(faults(`[world\n${minimal}`), [`${file}: (line 1): ${unclosed}`]);
  assert.deepEqual(faults(`[moon] host = 10.0.0.1\n${wanted}`), [
    `${file}: (line 1): has text after the ] of a section, which must be on a line of its own`,
  ]);
  assert.deepEqual(faults(`\uFEFF# comment\n\n[moon] ; a comment\n${wanted}`), ['ok']);
});

test('a missing file is unreadable; a missing section, a strange name and bad UTF-8 are faults', () => {
  assert.equal(
    loadConfig({ ...target('world'), configPath: '/nowhere.ini' }, {}, place).kind,
    'unreadable',
  );
  load(minimal);
  for (const section of ['other', '../x', 'a/b', '', '.x']) {
    assert.equal(loadConfig(target(section), {}, place).kind, 'invalid');
  }
  writeFileSync(file, Buffer.from([0x5b, 0x61, 0x5d, 0x0a, 0xe9]));
  assert.equal(loadConfig(target('a'), {}, place).kind, 'invalid');
});

test('the effective settings mask every secret and name every other key', () => {
  const lines = describeConfig(valid(`${minimal}password = hunter2\ntoken = hunter3,hunter4\n`));
  const text = lines.join('\n');
  assert.ok(!text.includes('hunter'));
  for (const key of optionKeys) {
    if (key !== 'password_file' && key !== 'token_file')
      assert.match(text, new RegExp(`^${key} `, 'm'));
  }
  assert.match(text, /^statement_timeout\s+= 30s$/m);
  assert.match(text, /^buffer\s+= 64KiB$/m);
  assert.match(text, /^listen_mode\s+= 0660$/m);
});

test('the reference has one row for each key', () => {
  const rows = describeOptions()
    .split('\n')
    .filter((line) => line.startsWith('| `'));
  assert.equal(rows.length, optionKeys.length);
});

test('no part of a secret is shown, neither its beginning nor its length', () => {
  const lines = describeConfig(valid(`${minimal}password = qx\ntoken = zw9-abcdefghijkl,zw8\n`));
  const shown = (key: string) => lines.find((line) => line.startsWith(`${key} `))?.split('= ')[1];
  assert.equal(shown('password'), '********');
  assert.equal(shown('token'), '********, ********');
  assert.doesNotMatch(lines.join('\n'), /zw[89]|qx/);
});

test('a file with a secret that others may write to is rejected, even if they may not read it', () => {
  assert.equal(faultsOf(`${minimal}password = x\n`, { mode: 0o602 }).length, 1);
  const secret = join(directory, 'writable');
  writeFileSync(secret, 'from-file\n');
  chmodSync(secret, 0o602);
  assert.equal(faultsOf(`${minimal}password_file = ${secret}\n`).length, 1);
  chmodSync(secret, 0o660);
  assert.equal(valid(`${minimal}password_file = ${secret}\n`).password, 'from-file');
});
