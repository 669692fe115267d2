// The keys of JSON Web Tokens are read again for an unknown one, at most every ten seconds, and only they.
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, type TestContext, test } from 'node:test';
import type { SectionCredentials } from '../../../src/shared/config/credentials.ts';
import { loadConfig } from '../../../src/shared/config/load-config.ts';
import type { Log, LogFields } from '../../../src/shared/process/log.ts';
import { Renewal } from '../../../src/supervisor/renewal.ts';

const directory = mkdtempSync(join(tmpdir(), 'dbhttpd-keys-'));
after(() => rmSync(directory, { recursive: true }));

const [configPath, clients, keys] = ['dbhttpd.ini', 'clients.ini', 'keys.json'].map((name) =>
  join(directory, name),
) as [string, string, string];
const place = {
  uid: 1000,
  home: '/home/x',
  temporary: '/tmp',
  isDirectory: (path: string) => path === '/home/x',
  mayWrite: () => true,
};
const jwk = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' });
const writeKeys = (kid: string) =>
  writeFileSync(keys, JSON.stringify({ keys: [{ ...jwk, alg: 'EdDSA', kid }] }), { mode: 0o600 });
const writeClients = (name: string) =>
  writeFileSync(clients, `[${name}]\nallow = sql\njwt = a: b\n`, { mode: 0o600 });

function begin(t: TestContext) {
  writeKeys('first');
  writeClients('app');
  const jwt = `jwt_keys = ${keys}\njwt_issuer = i\njwt_audience = a\n`;
  writeFileSync(
    configPath,
    `[world]\ndatabase = d\nuser = u\nhost = h\npassword = p\nclients = ${clients}\n${jwt}`,
    { mode: 0o600 },
  );
  const loaded = loadConfig({ configPath, sections: ['world'], beside: [] }, {}, place);
  assert.ok(loaded.kind === 'ok', JSON.stringify(loaded));
  let nowMs = 1_000_000;
  t.mock.method(performance, 'now', () => nowMs);
  const lines: string[] = [];
  const note = (message: string, fields?: LogFields) =>
    void lines.push(`${message} ${JSON.stringify(fields)}`);
  const log: Log = { warn: note, error: note, info: note, debug: null, reopen: () => {} };
  const handed: SectionCredentials[] = [];
  const renewal = new Renewal(loaded.sections, log, ({ credentials }) => {
    if (credentials !== null) handed.push(credentials);
  });
  const wait = (ms: number) => {
    nowMs += ms;
  };
  const kidOf = (credentials: SectionCredentials | undefined) =>
    credentials?.[0].access?.jwtKeys[0]?.kid;
  return { renewal, wait, lines, handed, kidOf };
}

test('hands new keys to the workers, and nothing else, at most every ten seconds', (t) => {
  const { renewal, wait, lines, handed, kidOf } = begin(t);
  writeKeys('second');
  writeClients('other');
  assert.equal(renewal.keys(), true);
  assert.deepEqual(handed.map(kidOf), ['second']);
  assert.equal(handed[0]?.[0].access?.clients.clients[0]?.name, 'app');
  assert.equal(handed[0]?.[0].password, 'p');
  assert.match(lines.splice(0).join(), /jwt_keys read again for an unknown kid {"keys":1}/);

  writeKeys('third');
  wait(9999);
  assert.equal(renewal.keys(), false);
  wait(1);
  assert.equal(renewal.keys(), true);
  assert.deepEqual(handed.map(kidOf), ['second', 'third']);
  assert.equal(renewal.sections[0].access?.jwtKeys[0]?.kid, 'third');

  // Keys that are the same as before are handed to no worker.
  lines.splice(0);
  wait(10_000);
  assert.equal(renewal.keys(), true);
  assert.deepEqual([handed.length, lines], [2, []]);
});

test('keeps the keys if the file has a fault, which is logged once and shown until the file is in order', (t) => {
  const { renewal, wait, lines, handed } = begin(t);
  writeFileSync(keys, '{"keys":[]}');
  for (let reading = 0; reading < 3; reading += 1) {
    assert.equal(renewal.keys(), true);
    wait(10_000);
  }
  const fault = {
    section: 'world',
    key: 'jwt_keys',
    at: keys,
    problem: 'has no key for signatures',
  };
  assert.deepEqual(renewal.faults(), [fault]);
  assert.equal(lines.length, 1);
  assert.match(lines[0] ?? '', /^a file cannot be used: what it held before stays in use /);
  assert.deepEqual(handed, []);
  // SIGHUP reports it again, though it has been reported.
  renewal.all();
  assert.equal(lines.length, 3);
  assert.deepEqual(renewal.faults(), [fault]);
  writeKeys('second');
  renewal.all();
  assert.deepEqual(renewal.faults(), []);
});

test('forgets a fault of a SIGHUP once the file is read in order for an unknown key, and says that the clients need another SIGHUP', (t) => {
  const { renewal, wait, lines, handed, kidOf } = begin(t);
  const listed = () => renewal.faults().map(({ key, problem }) => `${key} ${problem}`);
  writeClients('other');
  writeFileSync(keys, '{"keys":[]}');
  renewal.all();
  assert.deepEqual(listed(), ['jwt_keys has no key for signatures']);
  writeFileSync(keys, 'no JSON');
  renewal.keys();
  assert.equal(listed().length, 1);
  assert.doesNotMatch(listed().join(), /no key for signatures/);

  writeKeys('second');
  lines.splice(0);
  wait(10_000);
  assert.equal(renewal.keys(), true);
  assert.equal(kidOf(handed.at(-1)), 'second');
  assert.equal(handed.at(-1)?.[0].access?.clients.clients[0]?.name, 'app');
  const unread =
    'clients was not used at the last SIGHUP, and neither were the named statements, because jwt_keys was faulty: send SIGHUP again';
  assert.deepEqual(listed(), [unread]);
  assert.match(lines[0] ?? '', /^a file cannot be used.*"key":"clients"/);
  renewal.all();
  assert.deepEqual(listed(), []);
  assert.equal(handed.at(-1)?.[0].access?.clients.clients[0]?.name, 'other');

  // The clients were used at the last SIGHUP.
  writeFileSync(keys, '{"keys":[]}');
  wait(10_000);
  renewal.keys();
  writeKeys('third');
  wait(10_000);
  renewal.keys();
  assert.deepEqual(listed(), []);
});
