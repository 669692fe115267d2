// The source of packages for scripts/matrix: the mirror and the keys that this machine's own sources name. Fetches nothing.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findArchive } from '../../../../scripts/compatibility/archive.ts';

const paragraphs = `Types: deb
# a remark
URIs: http://security.example/debian-security
Suites: bookworm-security
Components: main
Signed-By: /keys/security.gpg

Types: deb deb-src
URIs:
 http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /keys/debian.gpg
`;

test('finds the mirror of the own release, with its keys, among paragraphs', () => {
  const files = [{ name: 'debian.sources', text: paragraphs }];
  assert.deepEqual(findArchive(files, 'bookworm'), {
    uri: 'http://mirror.example/debian',
    keyring: '/keys/debian.gpg',
  });
  assert.equal(findArchive(files, 'trixie'), null);
});

test('and among lines', () => {
  const text = `# deb http://old.example/debian bookworm main
deb-src http://mirror.example/debian bookworm main
deb [arch=amd64 signed-by=/keys/other.gpg] https://other.example/apt stable main
deb http://mirror.example/debian bookworm main contrib
`;
  const files = [{ name: 'sources.list', text }];
  assert.deepEqual(findArchive(files, 'bookworm'), {
    uri: 'http://mirror.example/debian',
    keyring: null,
  });
  assert.equal(findArchive(files, 'stable')?.keyring, '/keys/other.gpg');
});

test('a source that is switched off is none; a key in the field itself is left to apt', () => {
  const off = paragraphs.replaceAll('Types:', 'Enabled: no\nTypes:');
  assert.equal(findArchive([{ name: 'a.sources', text: off }], 'bookworm'), null);
  const inline = paragraphs.replace('/keys/debian.gpg', '\n -----BEGIN PGP PUBLIC KEY BLOCK-----');
  assert.equal(findArchive([{ name: 'a.sources', text: inline }], 'bookworm')?.keyring, null);
});
