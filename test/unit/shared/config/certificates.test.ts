// Usable certificates, unusable ones, and those that are only expired or not valid yet.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import {
  findAuthoritiesFault,
  findExpiry,
  findLapse,
  findPairFault,
  listCertificates,
} from '../../../../src/shared/config/certificates.ts';
import { createAuthority, type PairFiles } from '../../../support/certificates.ts';

const directory = mkdtempSync(join(tmpdir(), 'dbhttpd-certificates-'));
after(() => rmSync(directory, { recursive: true }));

const authority = createAuthority(directory);
const read = (path: string) => readFileSync(path, 'utf8');
const readPair = ({ cert, key }: PairFiles) => ({ cert: read(cert), key: read(key) });
const good = readPair(authority.issue('good'));
const past = readPair(authority.issue('past', { when: 'past' }));
const future = readPair(authority.issue('future', { when: 'future' }));
const broken = good.cert.replace(/\n(\w{4})/, '\nAAAA');

test('a pair is a certificate that can be read and its own key', () => {
  assert.equal(findPairFault(good.cert, good.key), null);
  assert.equal(findPairFault(good.cert + read(authority.cert), good.key), null);
  assert.equal(findPairFault(past.cert, past.key), null);
  const faults: [cert: string, key: string, half: string, problem: RegExp][] = [
    ['', good.key, 'certificate', /no PEM certificate/],
    [good.key, good.key, 'certificate', /no PEM certificate/],
    [broken, good.key, 'certificate', /broken certificate/],
    [good.cert + broken, good.key, 'certificate', /broken certificate/],
    [good.cert, 'garbage', 'key', /no PEM private key/],
    [good.cert, good.cert, 'key', /no PEM private key/],
    [good.cert, past.key, 'certificate', /do not belong together/],
  ];
  for (const [cert, key, half, problem] of faults) {
    const fault = findPairFault(cert, key);
    assert.equal(fault?.half, half);
    assert.match(fault?.problem ?? '', problem);
  }
});

test('a key with a passphrase is reported as such', () => {
  const encrypted = join(directory, 'encrypted.key');
  const args = ['ec', '-aes128', '-passout', 'pass:hunter2', '-out', encrypted];
  execFileSync('openssl', args, { input: good.key, stdio: 'pipe' });
  assert.match(findPairFault(good.cert, read(encrypted))?.problem ?? '', /is encrypted/);
});

test('authorities are certificates, all of which can be read', () => {
  assert.equal(findAuthoritiesFault(read(authority.cert)), null);
  assert.equal(findAuthoritiesFault(read(authority.cert) + good.cert), null);
  assert.match(findAuthoritiesFault('garbage') ?? '', /no PEM certificate/);
  assert.match(findAuthoritiesFault(read(authority.cert) + broken) ?? '', /broken/);
});

test("a certificate's dates count: the first one's of a pair, any of those to trust", () => {
  const now = Date.parse('2030-01-01');
  assert.equal(findLapse(good.cert, now, 'first'), null);
  assert.equal(findLapse(past.cert, now, 'first'), 'expired on 2020-01-02T00:00:00.000Z');
  assert.equal(
    findLapse(future.cert, now, 'first'),
    'is not valid before 2048-01-01T00:00:00.000Z',
  );
  assert.equal(findLapse(good.cert + past.cert, now, 'first'), null);
  assert.notEqual(findLapse(past.cert + good.cert, now, 'first'), null);
  assert.equal(findLapse(past.cert + good.cert, now, 'any'), null);
  assert.notEqual(findLapse(past.cert + future.cert, now, 'any'), null);
  assert.equal(findLapse('garbage', now, 'any'), null);
});

test('expires with the first one of a pair, or with the last one of those to trust', () => {
  const [early, late] = [Date.parse('2020-01-02'), Date.parse('2049-12-31T23:59:59Z')];
  assert.equal(findExpiry(past.cert + good.cert, 'first'), early);
  assert.equal(findExpiry(past.cert + good.cert, 'any'), late);
  assert.equal(findExpiry(broken + past.cert, 'any'), early);
  for (const none of ['', 'garbage', broken]) assert.equal(findExpiry(none, 'any'), null);
});

test('lists what each section uses by its key, and the certificate for HTTPS once', () => {
  const httpsTexts = { cert: past.cert };
  const used = listCertificates(
    [
      { section: 'a', tlsTexts: { ca: null, cert: null }, httpsTexts },
      { section: 'b', tlsTexts: { ca: good.cert, cert: future.cert }, httpsTexts },
      { section: 'c', tlsTexts: null, httpsTexts: null },
    ],
    Date.parse('2030-01-01'),
  );
  const shown = used.map(({ section, key, lapse }) => `${section} ${key} ${lapse?.slice(0, 12)}`);
  assert.deepEqual(shown, [
    'a https_cert expired on 2',
    'b tls_ca undefined',
    'b tls_cert is not valid',
  ]);
});
