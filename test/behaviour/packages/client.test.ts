// The client's package, installed from its tarball: typed in strict projects, and running in every runtime that is installed.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { openBrowser } from '../../support/browser.ts';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { createWorkspace } from '../../support/workspace.ts';
import { findProgram, installInto, lint, pack, run, type Tarball } from './support/packing.ts';

const workspace = createWorkspace('client-package', () => {});
const project = join(workspace.path, 'project');
const page = `<!doctype html><title>asking</title><script type="module">
  import { connect, DbhttpdError } from '/node_modules/dbhttpd-client/client.js';
  const db = connect({ url: new URLSearchParams(location.search).get('url') });
  const { n } = await db.one\`select \${7n} as n\`;
  const error = await db.query('select nonsense from nowhere', []).catch((cause) => cause);
  document.title = \`\${n} \${error instanceof DbhttpdError} \${error.code}\`;
</script>`;

let tarball: Tarball;
let site: Server;
let database: Database;
let gateway: Gateway;
before(async () => {
  tarball = await pack(resolve('dist/client'), workspace.path);
  await installInto(project, tarball.path);
  site = createServer(({ url = '/' }, response) => {
    const isPage = url.startsWith('/?');
    const file = join(project, url);
    response.setHeader('Content-Type', isPage ? 'text/html' : 'text/javascript');
    if (isPage) response.end(page);
    else if (existsSync(file)) response.end(readFileSync(file));
    else response.writeHead(404).end();
  });
  await new Promise<void>((listening) => site.listen(0, '127.0.0.1', listening));
  database = await startDatabase();
  const settings = { workers: 1, allow_origins: originOf(site) };
  gateway = await startGateway({ database, settings });
});
after(async () => {
  await gateway?.stop();
  await database?.stop();
  site?.close();
  workspace.remove();
});

function originOf(server: Server): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test('the tarball has the bundle, types and texts, and nothing else', () => {
  const names = tarball.files.map(({ path }) => path).filter((path) => !path.endsWith('.d.ts'));
  assert.deepEqual(names.sort(), ['LICENSE', 'README.md', 'client.js', 'package.json']);
  assert.ok(tarball.files.some(({ path }) => path === 'client.d.ts'));
});

test('it has no dependencies, the version of the gateway, and one module without imports', () => {
  const read = (path: string) => JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>;
  const manifest = read(join(project, 'node_modules/dbhttpd-client/package.json'));
  assert.equal(manifest.version, read('package.json').version);
  assert.deepEqual(
    Object.keys(manifest).filter((name) => /dependencies|scripts|bin/i.test(name)),
    [],
  );
  const bundle = readFileSync(join(project, 'node_modules/dbhttpd-client/client.js'), 'utf8');
  assert.doesNotMatch(bundle, /^\s*import\b|\bimport\(|\brequire\(/m);
});

test('publint and the types of every resolver have nothing to say about it', async () => {
  for (const findings of await lint(tarball.path)) assert.equal(findings, '');
});

/** A module of a project. Each wrong line must be an error, so that no type has become `any`. */
const program = `
import { type Client, connect, DbhttpdError, Seen, sql } from 'dbhttpd-client';

type City = { id: string; name: string | null };
export const db: Client = connect({ url: 'http://127.0.0.1:9090', token: 'x', fetch });

export async function ask(id: bigint): Promise<string | null> {
  const open = sql\`closed is null\`;
  const { rows, insertId } = await db.query<City>\`select id, name from city where id = \${id} and \${open}\`;
  // @ts-expect-error an id may be missing
  const wrong: string = insertId;
  for await (const { name } of db.stream<City>\`select id, name from city\`) {
    // @ts-expect-error a name is text or null
    const alsoWrong: number = name;
    void [wrong, alsoWrong];
  }
  await db.with({ seen: new Seen(), signal: AbortSignal.timeout(1000) }).batch([{ sql: 'select 1' }]);
  await db.transaction(async (transaction) => {
    await transaction.query\`select 1\`;
  });
  return rows[0]?.name ?? null;
}

export function outcomeOf(error: unknown): string {
  // @ts-expect-error there is no such outcome
  if (error instanceof DbhttpdError && error.outcome === 'lost') return error.code;
  return error instanceof DbhttpdError ? error.outcome : 'other';
}
`;

const resolutions = {
  NodeNext: { module: 'nodenext', moduleResolution: 'nodenext' },
  bundler: { module: 'esnext', moduleResolution: 'bundler' },
  node10: { module: 'esnext', moduleResolution: 'node10' },
} as const;
type Resolution = keyof typeof resolutions;

/** Each compiler with the resolutions that it has. */
const compilers: Readonly<Record<string, readonly Resolution[]>> = {
  'typescript-5.4': ['NodeNext', 'bundler', 'node10'],
  'typescript-5.9': ['NodeNext', 'bundler', 'node10'],
  typescript: ['NodeNext', 'bundler'],
};

/** The declarations that a project has for `fetch`. They do not depend on how modules are resolved. */
const surroundings = {
  "the browser's types": {},
  "Node's types": { lib: ['es2022'], types: ['node'], typeRoots: [resolve('node_modules/@types')] },
} as const;
type Surrounding = keyof typeof surroundings;

/** Each resolution and each surrounding. The compiler checks all of Node's types in each program that has them, so one program does. */
const combinations: readonly (readonly [Resolution, Surrounding])[] = [
  ['NodeNext', "Node's types"],
  ['bundler', "the browser's types"],
  ['node10', "the browser's types"],
];

/** A CommonJS module of the same project. The client is an ES module, which compilers with this resolution may require since 5.8. */
const requiring = program.replace(
  /^import \{ type Client, (.*) \} from (.*);$/m,
  (_all, names, from) =>
    [
      `import type { Client } from ${from};`,
      `import client = require(${from});`,
      `const { ${names} } = client;`,
    ].join('\n'),
);
const canRequire = ['typescript-5.9', 'typescript'];

/** Compiles files in a folder of their own in the project, and returns what the compiler reports. */
async function compile(
  compiler: string,
  name: string,
  files: Readonly<Record<string, string>>,
  options: object,
) {
  const folder = join(project, `${compiler} ${name}`.replace(/\W+/g, '-'));
  mkdirSync(folder);
  for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, file), text);
  writeFileSync(join(folder, 'package.json'), '{"private":true,"type":"module"}\n');
  const compilerOptions = {
    strict: true,
    noEmit: true,
    skipLibCheck: false,
    // The compiler's own declarations of the language and of browsers need no check here.
    skipDefaultLibCheck: true,
    target: 'es2022',
    ...options,
  };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions }));
  const tsc = resolve('node_modules', compiler, 'bin/tsc');
  return await run(process.execPath, [tsc, '-p', '.'], folder);
}

for (const [compiler, known] of Object.entries(compilers)) {
  for (const [name, around] of combinations.filter(([resolution]) => known.includes(resolution))) {
    const requires = name === 'NodeNext' && canRequire.includes(compiler);
    const modules = requires ? ', with `import` and with `require`,' : '';
    test(`${compiler}: a strict project with ${name} and ${around}${modules} compiles without skipLibCheck`, async () => {
      const files = { 'main.ts': program, ...(requires ? { 'required.cts': requiring } : {}) };
      const all = { ...resolutions[name], ...surroundings[around] };
      const { status, stdout } = await compile(compiler, `${name} ${around}`, files, all);
      assert.equal(status, 0, stdout);
    });
  }
}

const asking = (head: string) => `${head}
const db = connect({ url: process.argv[2] });
db.one\`select \${7n} as n\`.then(({ n }) => console.log(n));
`;
const imported = asking("import { connect } from 'dbhttpd-client';");
const required = asking("const { connect } = require('dbhttpd-client');");

/** Runs a program of the project that prints what the gateway answers. */
async function answerIn(command: string, args: readonly string[], file: string, text: string) {
  writeFileSync(join(project, file), text);
  const ended = await run(command, [...args, file, gateway.url], project);
  assert.equal(ended.status, 0, ended.stderr);
  return ended.stdout;
}

test('Node imports it', async () => {
  assert.equal(await answerIn(process.execPath, [], 'imported.mjs', imported), '7\n');
});

test('Node requires it', async () => {
  assert.equal(await answerIn(process.execPath, [], 'required.cjs', required), '7\n');
});

for (const [name, args] of Object.entries({ bun: [], deno: ['run', '--allow-net'] })) {
  const found = findProgram(name);
  const options = found === null ? { skip: `${name} is not installed` } : {};
  test(`${name} imports it`, options, async () => {
    assert.equal(
      await answerIn(
        found ?? name,
        args,
        `in-${name}.mjs`,
        asking("import process from 'node:process';\nimport { connect } from 'dbhttpd-client';"),
      ),
      '7\n',
    );
  });
}

test('a page in Chromium imports the one file', async () => {
  const browser = await openBrowser();
  try {
    const tab = await browser.newPage();
    const files: string[] = [];
    tab.on('request', (request) => {
      if (request.url().startsWith(originOf(site))) files.push(new URL(request.url()).pathname);
    });
    await tab.goto(`${originOf(site)}/?url=${encodeURIComponent(gateway.url)}`);
    await tab.waitForFunction("document.title !== 'asking'");
    assert.equal(await tab.title(), '7 true ER_NO_SUCH_TABLE');
    const modules = files.filter((path) => path.endsWith('.js'));
    assert.deepEqual(modules, ['/node_modules/dbhttpd-client/client.js']);
  } finally {
    await browser.close();
  }
});
