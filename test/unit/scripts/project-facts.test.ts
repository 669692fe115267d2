// Facts that only a person can give: what is made of them once they are known, and that nothing is made up before.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import {
  completeLicense,
  completePackage,
  describeImageSource,
  describeReporting,
  describeSource,
  listUnknownFacts,
  parseProjectFacts,
  readProjectFacts,
} from '../../../scripts/support/project-facts.ts';

const unknown = { repository: '', securityContact: '', maintainer: '', licenseHolder: '' };
const known = {
  repository: 'https://github.com/owner/dbhttpd',
  securityContact: 'a@b.example',
  maintainer: 'A Name <a@b.example>',
  licenseHolder: 'A Company',
};

test("package.json and LICENSE have what follows from this checkout's facts, and nothing else", () => {
  const compare = (name: string, complete: typeof completePackage) => {
    const text = readFileSync(name, 'utf8');
    assert.equal(text, complete(text, readProjectFacts()), 'run: npm run reference');
  };
  compare('package.json', completePackage);
  compare('LICENSE', completeLicense);
});

test('each fact that is not known has its name', () => {
  const all = ['repository', 'security_contact', 'maintainer', 'license_holder'];
  assert.deepEqual(listUnknownFacts(unknown), all);
  assert.deepEqual(listUnknownFacts({ ...unknown, maintainer: known.maintainer }), [
    'repository',
    'security_contact',
    'license_holder',
  ]);
  assert.deepEqual(listUnknownFacts(known), []);
});

test('the licence names the holder of the rights once that is known, and the authors before', () => {
  const text = 'MIT License\n\nCopyright (c) 2026 the dbhttpd authors\n\nPermission\n';
  const held = completeLicense(text, known);
  assert.equal(held, 'MIT License\n\nCopyright (c) 2026 A Company\n\nPermission\n');
  assert.equal(completeLicense(held, unknown), text);
});

test('while no fact is known, no text names an address', () => {
  const texts = [describeReporting, describeSource, describeImageSource].map((of) => of(unknown));
  for (const text of texts) assert.doesNotMatch(text, /https?:|@|<>|undefined/);
  assert.match(describeReporting(unknown), /names no address for reports\. Report in private to /);
  const fields = JSON.parse(
    completePackage(JSON.stringify({ bugs: 'x', author: 'x', name: 'n' }), unknown),
  );
  assert.deepEqual(fields, { name: 'n' });
});

test('known facts are in each text, and in the package', () => {
  assert.equal(
    describeReporting(known),
    'To report a fault, write to <a@b.example>, or use [*Report a vulnerability*](https://github.com/owner/dbhttpd/security/advisories/new) on GitHub.',
  );
  assert.equal(
    describeSource(known),
    '    git clone https://github.com/owner/dbhttpd && cd dbhttpd',
  );
  assert.equal(
    describeImageSource(known),
    'LABEL org.opencontainers.image.source="https://github.com/owner/dbhttpd"',
  );
  const text = completePackage('{"license":"MIT","type":"module"}', known);
  assert.deepEqual(JSON.parse(text), {
    license: 'MIT',
    author: 'A Name <a@b.example>',
    homepage: 'https://github.com/owner/dbhttpd#readme',
    repository: { type: 'git', url: 'git+https://github.com/owner/dbhttpd.git' },
    bugs: 'https://github.com/owner/dbhttpd/issues',
    type: 'module',
  });
  assert.equal(completePackage(text, known), text);
  assert.deepEqual(JSON.parse(completePackage(text, unknown)), { license: 'MIT', type: 'module' });
});

test('a repository elsewhere offers no form of GitHub', () => {
  const elsewhere = { ...known, repository: 'https://git.example/team/dbhttpd' };
  assert.equal(describeReporting(elsewhere), 'To report a fault, write to <a@b.example>.');
  assert.match(describeReporting({ ...elsewhere, securityContact: '' }), /names no address/);
});

test('a fact that is malformed, missing or unknown is an error', () => {
  const facts = { repository: '', security_contact: '', maintainer: '', license_holder: '' };
  for (const wrong of [
    { ...facts, repository: 'github.com/owner/dbhttpd' },
    { ...facts, repository: 'http://git.example/team/dbhttpd' },
    { ...facts, security_contact: 'write to us' },
    { ...facts, maintainer: 'A Name' },
    { ...facts, license_holder: ' ' },
    { repository: '' },
    { ...facts, owner: 'x' },
  ]) {
    assert.throws(() => parseProjectFacts(JSON.stringify(wrong)), /project-facts\.json/);
  }
  assert.deepEqual(parseProjectFacts(JSON.stringify(facts)), unknown);
});
