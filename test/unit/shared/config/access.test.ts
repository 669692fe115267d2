// The files of clients and keys reach the settings whole, or every fault of them is reported; a renewal replaces both or none.
import assert from 'node:assert/strict';
import { createHash, generateKeyPairSync } from 'node:crypto';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { Sections } from '../../../../src/shared/config/config.ts';
import { renewCredentials, withCredentials } from '../../../../src/shared/config/credentials.ts';
import { formatFault, loadConfig } from '../../../../src/shared/config/load-config.ts';

const directory = mkdtempSync(join(tmpdir(), 'dbhttpd-access-'));
after(() => rmSync(directory, { recursive: true }));

const configPath = join(directory, 'dbhttpd.ini');
const clients = join(directory, 'clients.ini');
const keys = join(directory, 'keys.json');
const tokens = join(directory, 'tokens');
const place = {
  uid: 1000,
  home: '/home/x',
  temporary: '/tmp',
  isDirectory: (path: string) => path === '/home/x',
  mayWrite: () => true,
};
const digest = (token: string) => createHash('sha256').update(token).digest('hex');
const jwk = {
  ...generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' }),
  alg: 'EdDSA',
  kid: 'first',
};
const jwtLines = `jwt_keys = ${keys}\njwt_issuer = i\njwt_audience = a\n`;
const web = `[web]\nallow = sql\ntoken_sha256 = ${digest('web')}\n`;

function write(path: string, text: string, mode = 0o600): void {
  writeFileSync(path, text);
  chmodSync(path, mode);
}

const writeKeys = (...kids: readonly string[]) =>
  write(keys, JSON.stringify({ keys: kids.map((kid) => ({ ...jwk, kid })) }), 0o644);

/** @param lines of the first section, which is followed by [shop] */
function load(lines: string, clientsText: string, env = {}) {
  write(clients, clientsText);
  write(
    configPath,
    `[world]\ndatabase = d\nuser = u\nhost = h\nclients = ${clients}\n${lines}\n` +
      '[shop]\ndatabase = e\nuser = u\nhost = h\n',
  );
  return loadConfig({ configPath, sections: ['world'], beside: ['shop'] }, env, place);
}

function valid(...args: Parameters<typeof load>): Sections {
  const loaded = load(...args);
  assert.ok(loaded.kind === 'ok', JSON.stringify(loaded));
  return loaded.sections;
}

function faultsOf(...args: Parameters<typeof load>): readonly string[] {
  const loaded = load(...args);
  assert.ok(loaded.kind === 'invalid', 'it is valid');
  return loaded.faults.map((fault) => formatFault(fault).slice(directory.length + 1));
}

const namesOf = (sections: Sections) =>
  sections.map(({ access }) => access?.clients.clients.map(({ name }) => name).join());

test('clients and keys are settings of every section that is served', () => {
  writeKeys('first');
  const sections = valid(jwtLines, `${web}sections = shop\n[app]\nallow = sql\njwt = roles: app\n`);
  assert.deepEqual(namesOf(sections), ['web,app', 'web,app']);
  assert.deepEqual(sections[0].access?.jwtKeys, [jwk]);
  const { jwtIssuer, jwtAudience } = sections[0];
  assert.deepEqual([jwtIssuer, jwtAudience], ['i', 'a']);
  assert.deepEqual(valid('', web)[1]?.access?.jwtKeys, []);
});

test('each fault has the place in the file that has it', () => {
  write(keys, '{"keys":[{}]}', 0o644);
  assert.deepEqual(faultsOf(`${jwtLines}pool = x\n`, web.replace('allow', 'alow')), [
    'dbhttpd.ini: [world] pool (line 9): must be a whole number',
    'clients.ini: [web] allow (line 1): is required',
    'clients.ini: [web] alow (line 2): is not a key of a client: did you mean `allow`?',
    'keys.json: key 1: does not state its `alg`',
  ]);
});

test('a file of clients must not be readable or writable by others, and keys not writable', () => {
  writeKeys('first');
  valid(jwtLines, web);
  chmodSync(keys, 0o646);
  const load = () => loadConfig({ configPath, sections: ['world'], beside: [] }, {}, place);
  for (const mode of [0o604, 0o602]) {
    chmodSync(clients, mode);
    const loaded = load();
    assert.ok(loaded.kind === 'invalid');
    assert.deepEqual(
      loaded.faults.map(({ file, key, problem }) => [file, key, problem]),
      [
        [configPath, 'clients', 'is open to others: take their rights away (chmod o-rwx)'],
        [configPath, 'jwt_keys', 'may be written by others (chmod o-w)'],
      ],
    );
  }
});

test('a file that is missing, or is no text, is a fault of its key', () => {
  valid('', web);
  const lines = () => {
    const loaded = loadConfig({ configPath, sections: ['world'], beside: ['shop'] }, {}, place);
    assert.ok(loaded.kind === 'invalid');
    return loaded.faults.map((fault) => formatFault(fault).slice(directory.length + 1));
  };
  writeFileSync(clients, Buffer.from('[caf\xe9]\n', 'latin1'));
  assert.deepEqual(lines(), ['dbhttpd.ini: [world] clients: is not UTF-8 text']);
  rmSync(clients);
  assert.deepEqual(lines(), ['dbhttpd.ini: [world] clients: cannot be read (ENOENT)']);
});

test('a token of the first section is no token of a client, wherever it comes from', () => {
  write(tokens, 'web\n');
  for (const [lines, env] of [
    ['token = other, web\n', {}],
    [`token_file = ${tokens}\n`, {}],
    ['token = other\n', { DBHTTPD_TOKEN: 'web' }],
  ] as const) {
    assert.deepEqual(faultsOf(lines, web, env), [
      'clients.ini: [web] token_sha256 (line 3): has a token that the first section has, too',
    ]);
  }
  valid('token = web\n', web, { DBHTTPD_TOKEN: 'other' });
});

test('a file of clients counts as a token, unless requests without credentials may do more than `named` and `metrics`', () => {
  const anonymous = '[anonymous]\nallow = sql\n';
  for (const lines of ['listen = *:80\n', 'allow_hosts = db.example\n', 'allow_hosts = *\n']) {
    valid(lines, web);
    valid(lines, `${web}[anonymous]\nallow = named, metrics\n`);
    assert.match(
      faultsOf(lines, anonymous).join(),
      /^clients.ini: \[anonymous\] allow \(line 2\): opens more/,
    );
    valid(`${lines}insecure = on\n`, anonymous);
  }
  for (const lines of ['', 'listen = [::1]:80\n', `listen = ${directory}/socket\n`])
    valid(lines, anonymous);
});

test('drivers need a token, or a client that may use them and has one', () => {
  writeKeys('first');
  const drivers = `${jwtLines}drivers = planetscale\n`;
  const needs = /\[world\] drivers: needs `token`, `token_file` or a client with `drivers`/;
  assert.match(faultsOf(drivers, web).join(), needs);
  assert.match(faultsOf(drivers, '[a]\nallow = sql, drivers\njwt = a: b\n').join(), needs);
  valid(drivers, web.replace('sql', 'sql, drivers'));
  valid(drivers, web.replace('sql', 'all'));
  valid(`${drivers}token = other\n`, web);
  // A fault of the file is no second fault of `drivers`.
  assert.equal(faultsOf(drivers, web.replace('sql', 'drivers')).length, 1);
});

/** Reads the files again. */
function renew(sections: Sections) {
  const { credentials, faults } = renewCredentials(sections);
  const renewed = withCredentials(sections, credentials);
  return {
    sections: renewed,
    faults: faults.map(({ key, inside }) => `${key} ${inside?.line ?? '-'}`),
  };
}

test('a renewal takes both files in all sections, or none', () => {
  writeKeys('first');
  const before = valid(jwtLines, web);
  write(clients, `${web}[app]\nallow = sql\njwt = a: b\n`);
  writeKeys('second');
  const renewed = renew(before);
  assert.deepEqual([namesOf(renewed.sections), renewed.faults], [['web,app', 'web,app'], []]);
  assert.equal(renewed.sections[1]?.access?.jwtKeys[0]?.kid, 'second');

  write(clients, web.replace('sql', 'sqll'));
  writeKeys('third');
  const refused = renew(renewed.sections);
  assert.deepEqual(
    [namesOf(refused.sections), refused.faults],
    [['web,app', 'web,app'], ['clients 2']],
  );
  assert.equal(refused.sections[0].access?.jwtKeys[0]?.kid, 'second');

  write(clients, web);
  write(keys, '{', 0o644);
  const again = renew(refused.sections);
  assert.deepEqual(
    [namesOf(again.sections), again.faults],
    [['web,app', 'web,app'], ['jwt_keys 1']],
  );
});

test('a renewal makes no token that a client and the first section share', () => {
  write(tokens, 'section\n');
  const before = valid(`token_file = ${tokens}\n`, web);
  write(tokens, 'web\n');
  const refused = renew(before);
  assert.deepEqual(refused.faults, ['clients 3', 'token_file -']);
  assert.deepEqual(refused.sections[0].tokens, ['section']);
  // The token changes its owner if both files say so.
  write(clients, web.replace(digest('web'), digest('section')));
  const renewed = renew(before);
  assert.deepEqual([renewed.faults, renewed.sections[0].tokens], [[], ['web']]);
});
