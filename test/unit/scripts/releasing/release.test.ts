// A release: a dry run publishes nothing, and an order to publish is refused while something is missing.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { listSums, settleParts } from '../../../../scripts/releasing/parts.ts';
import { type Checkout, type Command, release } from '../../../../scripts/releasing/plan.ts';
import { readProjectFacts } from '../../../../scripts/support/project-facts.ts';

const directory = mkdtempSync(join(tmpdir(), 'dbhttpd-release-'));
after(() => rmSync(directory, { recursive: true }));

const ready: Checkout = {
  version: '1.2.0',
  changelog: '# Changelog\n\n## Unreleased\n\n## 1.2.0 - 2026-11-26\n\n### Upgrade\n\n- Nothing.\n',
  facts: {
    repository: 'https://github.com/owner/dbhttpd',
    securityContact: 'a@b.example',
    maintainer: 'A Name <a@b.example>',
    licenseHolder: 'A Company',
  },
  changed: [],
  tags: ['v1.1.0'],
};
const artefacts = {
  folder: 'out',
  npm: ['dbhttpd-1.2.0.tgz', 'dbhttpd-client-1.2.0.tgz'],
  files: ['dbhttpd_1.2.0-1_all.deb', 'SHA256SUMS'],
};

function attempt(change: Partial<Checkout>, isPublished: boolean) {
  const executed: Command[] = [];
  const execute = (command: Command) => void executed.push(command);
  const { isReady, lines } = release({ ...ready, ...change }, artefacts, { isPublished, execute });
  return { isReady, text: lines.join('\n'), executed };
}

test('a dry run names all files and commands, and runs none', () => {
  const { isReady, text, executed } = attempt({}, false);
  assert.ok(isReady);
  assert.deepEqual(executed, []);
  for (const name of [...artefacts.npm, ...artefacts.files]) assert.ok(text.includes(name), name);
  assert.match(text, /nothing is published\. These commands would:\n {2}git tag .* v1\.2\.0/);
  assert.match(text, /^ {2}npm publish out\/dbhttpd-client-1\.2\.0\.tgz$/m);
});

test('an order to publish runs the commands: npm comes last, because that cannot be taken back', () => {
  const { executed } = attempt({}, true);
  assert.deepEqual(
    executed.map(([command, what]) => `${command} ${what}`),
    ['git tag', 'git push', 'gh release', 'npm publish', 'npm publish'],
  );
  const elsewhere = { ...ready.facts, repository: 'https://git.example/team/dbhttpd' };
  const commands = attempt({ facts: elsewhere }, true).executed.map(([command]) => command);
  assert.ok(!commands.includes('gh'));
});

test('nothing is published while a fact, the section of the changelog or a commit is missing', () => {
  const { facts } = ready;
  const wrong: readonly (readonly [Partial<Checkout>, RegExp])[] = [
    [{ facts: { ...facts, repository: '' } }, /repository is empty, and only a person/],
    [{ facts: { ...facts, securityContact: '' } }, /security_contact is empty/],
    [{ facts: { ...facts, maintainer: '' } }, /maintainer is empty/],
    [{ facts: { ...facts, licenseHolder: '' } }, /license_holder is empty/],
    [{ changelog: '## Unreleased\n\n## 1.1.0 - 2026-01-01\n' }, /no section "1\.2\.0 - <day>"/],
    [{ changelog: '## Unreleased\n\n- New.\n\n## 1.2.0 - 2026-01-01\n' }, /lines below Unreleased/],
    [{ changed: [' M package.json'] }, /1 files are not committed/],
    [{ tags: ['v1.2.0'] }, /the tag v1\.2\.0 exists already/],
  ];
  for (const [change, reason] of wrong) {
    const { isReady, text, executed } = attempt(change, true);
    assert.match(text, /^nothing is published/m);
    assert.match(text.slice(text.indexOf('not ready:')), reason);
    assert.deepEqual({ isReady, executed }, { isReady: false, executed: [] });
  }
});

test('a command that fails ends the release before the next one', () => {
  const executed: Command[] = [];
  const execute = (command: Command) => {
    executed.push(command);
    throw new Error('it failed');
  };
  assert.throws(() => release(ready, artefacts, { isPublished: true, execute }), /it failed/);
  assert.equal(executed.length, 1);
});

test('the list of parts is the same for the same sources, in every folder and at every time', () => {
  const list = (name: string, timestamp: string) => ({
    serialNumber: `urn:uuid:${name}`,
    metadata: { timestamp, component: { type: 'library', name } },
    components: [{ name: 'ini' }],
  });
  const time = new Date('2026-11-26T00:00:00Z');
  const one = settleParts(list('checkout', '2026-11-26T01:00:00Z'), 'dbhttpd', time);
  const other = settleParts(list('copy', '2026-11-27T01:00:00Z'), 'dbhttpd', time);
  assert.deepEqual(one, other);
  assert.equal(one.metadata.component.name, 'dbhttpd');
  assert.match(
    one.serialNumber,
    /^urn:uuid:[\da-f]{8}-[\da-f]{4}-8[\da-f]{3}-a[\da-f]{3}-[\da-f]{12}$/,
  );
});

test('the checksums are in the form of sha256sum', () => {
  writeFileSync(join(directory, 'a'), 'abc');
  assert.equal(
    listSums(directory, ['a']),
    'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a\n',
  );
});

test('the facts of this checkout are given or empty: none is invented', () => {
  const { maintainer, licenseHolder } = readProjectFacts();
  if (licenseHolder === '') assert.match(readFileSync('LICENSE', 'utf8'), / the dbhttpd authors$/m);
  if (maintainer === '') assert.doesNotMatch(readFileSync('package.json', 'utf8'), /"author"/);
});
