// The gateway's package, as npm packs it: without ballast, and sound for every resolver.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { createWorkspace } from '../../support/workspace.ts';
import { lint, pack, run, type Tarball } from './support/packing.ts';

const workspace = createWorkspace('server-package', () => {});
let tarball: Tarball;
before(async () => {
  tarball = await pack(resolve('.'), workspace.path);
});
after(workspace.remove);

const kilobyte = 1000;

test('it is below 700 KB, without large pictures and what only contributors read', () => {
  assert.ok(tarball.bytes < 700 * kilobyte, `${tarball.bytes} bytes after \`npm run build\``);
  const ballast = tarball.files.filter(
    ({ path, size }) =>
      (path.endsWith('.png') && size > 100 * kilobyte) || path.startsWith('docs/contributing/'),
  );
  assert.deepEqual(ballast, []);
});

test('a stack trace of its code names functions, and leads to a short line below the name of the module', async () => {
  const { readSection } = (await import(resolve('dist/program/shared/config/ini-section.js'))) as {
    readSection: (...args: unknown[]) => unknown;
  };
  assert.throws(
    () => readSection(undefined, 'world', () => true),
    ({ stack = '' }: Error) => {
      const [, path = '', line] =
        /at readSection \(file:\/\/(.*):(\d+):\d+\)\n/.exec(stack) ?? assert.fail(stack);
      const above = readFileSync(path, 'utf8').split('\n').slice(0, Number(line)).join('\n');
      const modules = [...above.matchAll(/\/\*! (\S+) \*\//g)].map(([, name]) => name);
      assert.ok(modules.includes('shared/config/ini-section.js'), stack);
      return true;
    },
  );
  const own = tarball.files
    .map(({ path }) => path)
    .filter((path) => path.endsWith('.js') && !path.endsWith('/uplot.js'));
  const long = own.filter((path) =>
    readFileSync(path, 'utf8')
      .split('\n')
      .some((line) => line.length > 2000),
  );
  assert.deepEqual(long, []);
});

test('it has the license of the charts that it contains', () => {
  assert.ok(tarball.files.some(({ path }) => path === 'dist/program/console/uplot-license.txt'));
});

test('publint and the types of every resolver have nothing to say about it', async () => {
  for (const findings of await lint(tarball.path)) assert.equal(findings, '');
});

test('programs find the descriptions of /v1 and of the configuration by the name of the package', async () => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
  await run('tar', ['-xzf', tarball.path], workspace.path);
  const read = (name: string) =>
    JSON.parse(readFileSync(join(workspace.path, 'package/dist', name), 'utf8'));
  assert.equal(read('openapi.json').info.version, version);
  assert.ok(read('configuration.schema.json').$defs.section.properties.database);
  const { exports } = JSON.parse(
    readFileSync(join(workspace.path, 'package/package.json'), 'utf8'),
  ) as { exports: Readonly<Record<string, unknown>> };
  assert.equal(exports['./openapi.json'], './dist/openapi.json');
  assert.equal(exports['./configuration.schema.json'], './dist/configuration.schema.json');
});
