// Makes the client's package in dist/client: one module for every runtime, its types, and what npm shows of it.
// Run after `tsc -p src/client`, which writes the types.
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { build } from 'esbuild';

/** The fields of package.json that both packages have. */
type Manifest = Readonly<Record<'version' | 'license', string>> & Readonly<Record<string, unknown>>;

const root = resolve(import.meta.dirname, '../..');
const built = join(root, 'dist/src/client');
const folder = join(root, 'dist/client');
/** The name under which npm has it. */
const packageName = 'dbhttpd-client';

/** The manifest of the client's package. It has the version and the addresses of the gateway's. */
function composeManifest(text: string): string {
  const { version, license, author, homepage, repository, bugs } = JSON.parse(text) as Manifest;
  const fields = {
    name: packageName,
    version,
    description:
      'The client of dbhttpd: SQL over HTTP, typed, for Node, browsers and edge runtimes',
    keywords: ['dbhttpd', 'mysql', 'mariadb', 'sql', 'http', 'fetch', 'client'],
    license,
    author,
    homepage,
    repository,
    bugs,
    type: 'module',
    sideEffects: false,
    // For resolvers that read no `exports`.
    main: './client.js',
    types: './client.d.ts',
    exports: {
      '.': { types: './client.d.ts', default: './client.js' },
      './package.json': './package.json',
    },
    files: ['*.js', '*.d.ts'],
    publishConfig: { access: 'public', provenance: true },
  };
  return `${JSON.stringify(fields, null, 2)}\n`;
}

/** Types name their neighbours as the compiler's sources do (`./batch.ts`). Other compilers look for what runs (`./batch.js`). */
function nameCompiledFiles(types: string): string {
  return types.replace(/(\bfrom |\bimport\()(['"])(\.\/[\w-]+)\.ts\2/g, '$1$2$3.js$2');
}

rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
const manifest = readFileSync(join(root, 'package.json'), 'utf8');
const { version, license } = JSON.parse(manifest) as Manifest;
await build({
  entryPoints: [join(built, 'client.js')],
  outfile: join(folder, 'client.js'),
  bundle: true,
  format: 'esm',
  target: 'es2022',
  banner: { js: `// ${packageName} ${version}, ${license}` },
  logLevel: 'warning',
});
for (const name of readdirSync(built).filter((file) => file.endsWith('.d.ts'))) {
  const types = nameCompiledFiles(readFileSync(join(built, name), 'utf8'));
  writeFileSync(join(built, name), types);
  writeFileSync(join(folder, name), types);
}
writeFileSync(join(folder, 'package.json'), composeManifest(manifest));
copyFileSync(join(root, 'src/client/README.md'), join(folder, 'README.md'));
copyFileSync(join(root, 'LICENSE'), join(folder, 'LICENSE'));
