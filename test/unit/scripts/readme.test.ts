// README.md and docs/ say what the program's own tables say, and their links lead somewhere.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { test } from 'node:test';
import { pages, withReference } from '../../../scripts/reference.ts';

/** Every page for people, by its path from the repository's root. */
const documents = [
  ...readdirSync('.').filter((name) => name.endsWith('.md')),
  ...readdirSync('docs', { encoding: 'utf8', recursive: true })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name)),
  ...readdirSync('.github')
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('.github', name)),
  'test/README.md',
].filter((path) => existsSync(path));

const read = (path: string): string => readFileSync(path, 'utf8');

for (const page of Object.keys(pages) as (keyof typeof pages)[]) {
  test(`${page}: its generated parts are the program's own`, () => {
    assert.equal(read(page), withReference(page, read(page)), 'run: npm run reference');
  });
}

test('every part that is marked as generated is generated', () => {
  for (const path of documents) {
    const marked = [...read(path).matchAll(/^<!-- (\w+): generated -->$/gm)].map(
      ([, name]) => name,
    );
    const known: readonly string[] = pages[path as keyof typeof pages] ?? [];
    assert.deepEqual(marked.sort(), [...known].sort(), path);
  }
});

test('the README is short', () => {
  assert.ok(read('README.md').split('\n').length <= 150);
});

/** A sample's medians, as far as the README quotes them. */
type Medians = {
  readonly perSecond: number;
  readonly firstByteMs: number;
  readonly growthMb: number;
};

test("the README's figures are those of the benchmark of that day", () => {
  const readme = read('README.md');
  const [, day = ''] = /^Medians of five rounds on (\S+),/m.exec(readme) ?? [];
  const { cells } = JSON.parse(read(`docs/contributing/benchmarks/${day}.json`)) as {
    cells: readonly { cell: string; peer: string; median: Medians }[];
  };
  const rows: readonly [row: string, cell: string, gateway: string, figure: keyof Medians][] = [
    ['point query', 'point/64', 'gateway-v1', 'perSecond'],
    ['100,000 rows', 'bulk/1', 'gateway', 'firstByteMs'],
    ['the same to 8 readers', 'bulk/8', 'gateway', 'growthMb'],
  ];
  for (const [row, cell, gateway, figure] of rows) {
    const medianOf = (peer: string) =>
      cells.find((one) => one.cell === cell && one.peer === peer)?.median[figure] ?? Number.NaN;
    const line = readme.split('\n').find((text) => text.startsWith(`| ${row}`)) ?? '';
    const [, , ...quoted] = line.split(/[|()]/).map((text) => text.trim().replaceAll(',', ''));
    const measured = [gateway, 'fastify', 'fastify-tuned'].map(medianOf);
    for (const [index, value] of measured.entries()) {
      const places = quoted[index]?.split('.')[1]?.length ?? 0;
      assert.equal(quoted[index], value.toFixed(places), `${line}: ${value}`);
    }
  }
});

test('the picture of the README is the same in light and in dark', () => {
  const drawing = (name: string) =>
    read(`docs/start/overview/${name}.svg`).replace(/\.paper[\s\S]*?^text/m, 'text');
  assert.equal(drawing('light'), drawing('dark'));
  assert.notEqual(read('docs/start/overview/light.svg'), read('docs/start/overview/dark.svg'));
});

/** A page without its code, in which nothing is a link. */
function prose(text: string): string {
  return text
    .replace(/^```[\s\S]*?^```$/gm, '')
    .replace(/^ {4}.*$/gm, '')
    .replace(/`[^`\n]*`/g, '');
}

/** The anchors of a page's headings, as GitHub makes them. */
function anchorsOf(text: string): ReadonlySet<string> {
  const seen = new Map<string, number>();
  const headings = text.replace(/^```[\s\S]*?^```$/gm, '').matchAll(/^#{1,6} (.+)$/gm);
  return new Set(
    [...headings].map(([, heading = '']) => {
      const plain = heading.toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, '');
      const anchor = plain.trim().replaceAll(' ', '-');
      const before = seen.get(anchor) ?? 0;
      seen.set(anchor, before + 1);
      return before === 0 ? anchor : `${anchor}-${before}`;
    }),
  );
}

/** The targets of a page's links and pictures, in Markdown and in HTML. */
function targetsOf(text: string): readonly string[] {
  const found = text.matchAll(/\]\(([^)\s]+)\)|\b(?:src|srcset|href)="([^"]+)"/g);
  return [...found].map(([, link, attribute]) => link ?? attribute ?? '');
}

/** Tells whether a file exists and, if an anchor is named, has a heading with this anchor. */
function isThere(path: string, anchor?: string): boolean {
  return existsSync(path) && (anchor === undefined || anchorsOf(read(path)).has(anchor));
}

test('every relative link, and every anchor, leads somewhere', () => {
  let links = 0;
  const dead: string[] = [];
  for (const path of documents) {
    for (const target of targetsOf(prose(read(path)))) {
      if (/^[a-z]+:/.test(target)) continue;
      links += 1;
      const [file = '', anchor] = target.split('#');
      const place = file === '' ? path : normalize(join(dirname(path), file));
      if (!isThere(place, anchor)) dead.push(`${path}: ${target}`);
    }
  }
  assert.deepEqual(dead, []);
  assert.ok(links > 20, `${links} links`);
});

test('code, settings and pages name only pages and headings that exist', () => {
  const sources = ['src', 'scripts', 'test', 'deploy'].flatMap((folder) =>
    readdirSync(folder, { encoding: 'utf8', recursive: true })
      .map((name) => join(folder, name))
      .filter((path) => statSync(path).isFile() && !path.endsWith('.png')),
  );
  assert.ok(sources.includes('deploy/prometheus/alerts.yml') && sources.includes('scripts/prisma'));
  assert.deepEqual(missing([...sources, ...documents], /\bdocs\/[\w/-]+\.md\b(?:#[\w-]+)?/g), []);
});

test('the index of the documents names every page', () => {
  const index = 'docs/README.md';
  const named = [...read(index).matchAll(/\]\(([^)\s#]+)/g)].map(([, target = '']) =>
    normalize(join('docs', target)),
  );
  const pages = documents.filter((path) => path.startsWith('docs/') && path !== index);
  assert.deepEqual(
    pages.filter((path) => !named.includes(path)),
    [],
  );
});

test('every page begins with its readers, and what they have by its end', () => {
  const index = 'docs/README.md';
  const pages = documents.filter((path) => path.startsWith('docs/') && path !== index);
  const start =
    /^# .+\n\nThis page is for [^.]+\. (?:By the end|At the end|It (?:has|lists|says|describes)) /;
  assert.deepEqual(
    pages.filter((path) => !start.test(read(path).replaceAll(/(?<!\n)\n(?!\n)/g, ' '))),
    [],
  );
});

test('pages name only source files that exist', () => {
  const isOfNow = (path: string) => path !== 'CHANGELOG.md';
  const files = /(?<!dist\/)\b(?:src|scripts|test|deploy)\/[\w/-]+\.(?:test\.ts|ts|sh|js)\b/g;
  assert.deepEqual(missing(documents.filter(isOfNow), files), []);
});

/** The files that these files name and that do not exist. */
function missing(paths: readonly string[], name: RegExp): readonly string[] {
  return paths.flatMap((path) =>
    [...read(path).matchAll(name)]
      .filter(([named]) => !isThere(...(named.split('#') as [string, string?])))
      .map(([named]) => `${path}: ${named}`),
  );
}
