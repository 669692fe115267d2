// Several sections of one file: some list more servers, some are served beside the first; every fault names its own.
import assert from 'node:assert/strict';
import { chmodSync, copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { formatCandidate } from '../../../../src/shared/config/addresses.ts';
import type { Sections } from '../../../../src/shared/config/config.ts';
import { renewCredentials, withCredentials } from '../../../../src/shared/config/credentials.ts';
import { describeConfig } from '../../../../src/shared/config/describe.ts';
import { formatFault, loadConfig } from '../../../../src/shared/config/load-config.ts';
import { createAuthority, type PairFiles } from '../../../support/certificates.ts';

const directory = mkdtempSync(join(tmpdir(), 'dbhttpd-sections-'));
after(() => rmSync(directory, { recursive: true }));

const configPath = join(directory, 'dbhttpd.ini');
const place = {
  uid: 1000,
  home: '/home/x',
  temporary: '/tmp',
  isDirectory: (path: string) => path === '/home/x',
  mayWrite: () => true,
};
const first = '[a]\ndatabase = d\nuser = app\nhost = h1\n';

/** @param served what follows -s @param beside what follows -m */
function load(text: string, served: string, beside = '', env = {}) {
  writeFileSync(configPath, text, { mode: 0o600 });
  const [name = '', ...listed] = served.split(':');
  const others = beside === '' ? [] : beside.split(':');
  return loadConfig({ configPath, sections: [name, ...listed], beside: others }, env, place);
}

function valid(...args: Parameters<typeof load>): Sections {
  const loaded = load(...args);
  assert.ok(loaded.kind === 'ok', JSON.stringify(loaded));
  return loaded.sections;
}

function faultsOf(...args: Parameters<typeof load>): readonly string[] {
  const loaded = load(...args);
  assert.ok(loaded.kind === 'invalid', 'it is valid');
  return loaded.faults.map((fault) => formatFault(fault).slice(configPath.length + 2));
}

function writeSecret(name: string, secret: string): string {
  const path = join(directory, name);
  writeFileSync(path, `${secret}\n`, { mode: 0o600 });
  return path;
}

test('sections of -s list servers of the first one, in their order, and nothing else of them counts', () => {
  const text =
    `${first}port = 3310\npool = 3\n[b]\nhost = h2, h3:3307\npool = 7\nlisten = *:80\n` +
    '[c]\nsocket = /run/m.sock\nuser = app\ndatabase = d\ntls_ca = /nowhere\n';
  const [config, ...others] = valid(text, 'a:b:c');
  assert.deepEqual(others, []);
  const names = ['h1:3310', 'h2:3306', 'h3:3307', '/run/m.sock'];
  assert.deepEqual(config.candidates.map(formatCandidate), names);
  assert.equal(config.pool, 3);
  assert.ok(Object.isFrozen(config) && Object.isFrozen(config.candidates));
  const lines = describeConfig(config).join('\n');
  assert.match(lines, /^host\s+= h1:3310, h2:3306, h3:3307, \/run\/m\.sock$/m);
  assert.doesNotMatch(lines, /^(port|socket)\s/m);
});

test('another database, account or password in a section of -s is a fault of its key, without its value', () => {
  const secret = writeSecret('listed', 'hunter2');
  const text = `${first}password = hunter1\n[b]\nhost = h2\nuser = x\ndatabase = e\n`;
  const whose = 'differs from that of [a], whose servers are listed here';
  for (const [lines, key] of [
    ['password = hunter2\n', 'password'],
    [`password_file = ${secret}\n`, 'password_file'],
  ] as const) {
    assert.deepEqual(
      faultsOf(text + lines, 'a:b'),
      ['database', 'user', key].map((one) => `[b] ${one}: ${whose}`),
    );
  }
  const same = `${first}password = hunter2\n[b]\nhost = h2\npassword_file = ${secret}\n`;
  valid(same, 'a:b');
  // The environment overrides the first section's, and so all that are listed with it.
  valid(`${first}[b]\nhost = h2\npassword = hunter2\n`, 'a:b', '', { DBHTTPD_PASSWORD: 'x' });
});

test('a server that is listed twice is a fault of the second place', () => {
  assert.deepEqual(faultsOf(`${first}[b]\nhost = h2, H1:3306\n`, 'a:b'), [
    '[b] host: H1:3306 is a server of a section before it',
  ]);
  assert.deepEqual(faultsOf('[a]\ndatabase = d\nuser = u\nhost = h1, h1:3306\n', 'a'), [
    '[a] host: names h1:3306 more than once',
  ]);
});

test('a section of -m has its own database, and shares the first section’s values of the daemon', () => {
  const text =
    `${first}listen = 127.0.0.1:1\nworkers = 2\ntoken = t\nlog = /tmp/a.log\ngateways = 3\n` +
    '[b]\ndatabase = e\nuser = other\nhost = h9\npool = 4\nreads = replicas\nmax_lag = 2s\nfailover_wait = 5s\n' +
    'listen = *:80\nlog = /tmp/b.log\npidfile = /tmp/b.log\nworkers = 9\nhttps_cert = /nowhere\n';
  const [config, other] = valid(text, 'a', 'b', { DBHTTPD_PASSWORD: 'of-env' });
  assert.ok(other !== undefined);
  assert.deepEqual([other.section, other.database, other.user, other.pool], ['b', 'e', 'other', 4]);
  assert.deepEqual([other.reads, other.maxLagMs, other.failoverWaitMs], ['replicas', 2000, 5000]);
  assert.deepEqual(
    [config.reads, config.maxLagMs, config.failoverWaitMs],
    ['primary', 10_000, null],
  );
  for (const key of [
    'listen',
    'workers',
    'gateways',
    'tokens',
    'log',
    'pidfile',
    'httpsTexts',
  ] as const) {
    assert.deepEqual(other[key], config[key], key);
  }
  assert.deepEqual([config.password, other.password], ['of-env', '']);
});

test('all faults of all sections are reported together, each with its section', () => {
  const secret = writeSecret('open', 'x');
  chmodSync(secret, 0o644);
  const text = `[a]\ndatabase = d\nhost = h1\n[b]\nhost = h2\ncolour = red\n[c]\nhost = h3\nuser = u\npassword_file = ${secret}\n`;
  assert.deepEqual(
    faultsOf(text, 'a:b', 'c:d').map((fault) => fault.replace(/:.*/, '')),
    ['[a] user', '[b] colour (line 6)', '[c] database', '[c] password_file', '[d]'],
  );
  assert.deepEqual(
    faultsOf(text, 'x:b', 'c:d').map((fault) => fault.replace(/:.*/, '')),
    ['[x]', '[b] colour (line 6)', '[d]'],
  );
});

test('a secret of any section keeps the file from being open to others', () => {
  const text = `${first}[b]\nhost = h2\n[c]\nhost = h3\ndatabase = d\nuser = u\npassword = x\n`;
  writeFileSync(configPath, text);
  chmodSync(configPath, 0o644);
  const target = { configPath, sections: ['a', 'b'], beside: ['c'] } as const;
  const loaded = loadConfig(target, {}, place);
  assert.ok(loaded.kind === 'invalid');
  assert.deepEqual(
    loaded.faults.map(({ section, key }) => [section, key]),
    [['c', 'password']],
  );
});

test('passwords of all sections are read again, tokens once for all, and a faulty file changes nothing', () => {
  const [one, two, tokens] = [
    writeSecret('one', 'p1'),
    writeSecret('two', 'p2'),
    writeSecret('tokens', 't1'),
  ];
  const text = `${first}password_file = ${one}\ntoken_file = ${tokens}\n[b]\nhost = h2\ndatabase = d\nuser = u\npassword_file = ${two}\ntoken_file = /nowhere\n`;
  const before = valid(text, 'a', 'b');
  const secretsOf = (sections: Sections) => sections.map(({ password }) => password);
  assert.deepEqual(secretsOf(before), ['p1', 'p2']);
  for (const [path, secret] of [
    [one, 'p3'],
    [two, 'p4'],
    [tokens, 't2'],
  ] as const) {
    writeFileSync(path, secret);
  }
  chmodSync(one, 0o644);
  const { credentials, faults } = renewCredentials(before);
  assert.deepEqual(
    faults.map(({ section, key }) => [section, key]),
    [['a', 'password_file']],
  );
  const renewed = withCredentials(before, credentials);
  assert.deepEqual(secretsOf(renewed), ['p1', 'p4']);
  assert.deepEqual(
    renewed.map((config) => config.tokens),
    [['t2'], ['t2']],
  );
});

test('a certificate towards MySQL that is not valid now replaces none, and one in use is no fault', () => {
  const authority = createAuthority(directory, 'renewed');
  const good = authority.issue('renewed-good');
  const past = authority.issue('renewed-past', { when: 'past' });
  const used = {
    cert: join(directory, 'renewed-used.pem'),
    key: join(directory, 'renewed-used.key'),
  };
  const install = ({ cert, key }: PairFiles) => {
    copyFileSync(cert, used.cert);
    copyFileSync(key, used.key);
  };
  const text = `${first}tls = verify\ntls_ca = ${authority.cert}\ntls_cert = ${used.cert}\ntls_key = ${used.key}\n`;
  const renew = (sections: Sections) => {
    const { credentials, faults } = renewCredentials(sections);
    const [{ tlsTexts }] = withCredentials(sections, credentials);
    return { cert: tlsTexts.cert, faults };
  };
  const read = ({ cert }: PairFiles) => readFileSync(cert, 'utf8');
  install(good);
  const withGood = valid(text, 'a');
  install(past);
  const refused = renew(withGood);
  assert.equal(refused.cert, read(good));
  const problem = 'expired on 2020-01-02T00:00:00.000Z';
  assert.deepEqual(refused.faults, [{ section: 'a', key: 'tls_cert', problem, inside: null }]);
  assert.deepEqual(renew(valid(text, 'a')), { cert: read(past), faults: [] });
});
