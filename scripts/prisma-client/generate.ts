// A directory with a generated client and the programs that use it, compiled against the client's types.
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { run } from '../compatibility/commands.ts';

/** Without this, prisma would download an engine before it generates anything, although it does not start the engine then. */
const noEngine = { PRISMA_SCHEMA_ENGINE_BINARY: '/bin/true', CHECKPOINT_DISABLE: '1' };

/**
 * Makes the directory, generates the client that `schema` describes, and compiles it with the sources to `out/` in it. Resolves to that
 * folder. Rejects with the output of prisma or the compiler.
 * @param packages the node_modules that has prisma
 * @param sources TypeScript to be copied into the directory's root
 */
export async function generateClient(wish: {
  readonly directory: string;
  readonly packages: string;
  readonly schema: string;
  readonly sources: readonly string[];
}): Promise<string> {
  const { directory, packages, schema, sources } = wish;
  const path = (name: string) => join(directory, name);
  mkdirSync(directory);
  symlinkSync(packages, path('node_modules'));
  writeFileSync(path('package.json'), '{"type":"module"}');
  writeFileSync(path('schema.prisma'), schema);
  for (const source of sources) {
    writeFileSync(path(source.slice(source.lastIndexOf('/') + 1)), readFileSync(source));
  }
  writeFileSync(path('tsconfig.json'), JSON.stringify(compilerOptions()));
  const environment = Object.entries(noEngine).map(([name, value]) => `${name}=${value}`);
  const prisma = [process.execPath, path('node_modules/prisma/build/index.js')];
  await run('env', [...environment, ...prisma, 'generate', '--schema', 'schema.prisma'], directory);
  await run(resolve('node_modules/.bin/tsc'), ['-p', directory], directory);
  return path('out');
}

/** The repository's options, for files outside of it. */
function compilerOptions(): object {
  return {
    extends: resolve('tsconfig.json'),
    compilerOptions: {
      rootDir: '.',
      outDir: 'out',
      typeRoots: [resolve('node_modules/@types')],
      noUnusedLocals: false,
    },
    include: ['**/*.ts'],
    exclude: ['node_modules', 'out'],
  };
}
