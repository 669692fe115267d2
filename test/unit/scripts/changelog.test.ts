// CHANGELOG.md has the form of Keep a Changelog, and each release says what to do before an upgrade to it.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

const [, ...parts] = readFileSync('CHANGELOG.md', 'utf8').split(/^## /m);
const releases = parts.map((part) => {
  const [heading = ''] = part.split('\n');
  const sections = [...part.matchAll(/^### (.*)$/gm)].map(([, name = '']) => name);
  return { heading, sections };
});

test('releases come with their version and their day, the newest first, below what is not released', () => {
  const [first, ...released] = releases.map(({ heading }) => heading);
  assert.equal(first, 'Unreleased');
  assert.ok(released.length > 1);
  for (const heading of released) assert.match(heading, /^\d+\.\d+\.\d+ - \d{4}-\d\d-\d\d$/);
  const order = (heading: string) => heading.split('.').map((part) => Number.parseInt(part, 10));
  const sorted = [...released].sort((one, other) => {
    const [a = [], b = []] = [order(one), order(other)];
    const at = a.findIndex((part, index) => part !== b[index]);
    return (b[at] ?? 0) - (a[at] ?? 0);
  });
  assert.deepEqual(released, sorted);
});

test("package.json's version has its section", () => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
  assert.ok(releases.some(({ heading }) => heading.startsWith(`${version} - `)));
});

test('each release begins with its upgrade, and has only the sections of the form, once each', () => {
  const known = ['Upgrade', 'Added', 'Changed', 'Deprecated', 'Removed', 'Fixed', 'Security'];
  for (const { heading, sections } of releases) {
    assert.equal(sections[0], 'Upgrade', heading);
    assert.deepEqual(
      sections,
      known.filter((name) => sections.includes(name)),
      heading,
    );
  }
});
