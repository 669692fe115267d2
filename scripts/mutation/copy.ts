// A copy of the checkout in which sources may be changed: it is built, and removed with the run's directory.
import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stop } from 'esbuild';
import { joinProgram } from '../support/program.ts';

/** The files that tests and build read. */
const copied = [
  'deploy',
  'dist',
  'docs',
  'scripts',
  'src',
  'test',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'README.md',
  'package.json',
  'tsconfig.json',
];

/** A copy. */
export type Copy = {
  readonly directory: string;
  readonly read: (file: string) => string;
  /** Writes a source and builds it. Rejects with the compiler's output. */
  readonly write: (file: string, source: string) => Promise<void>;
};

/** Copies a checkout that is built; packages are linked. */
export function createCopy(checkout: string, directory: string): Copy {
  mkdirSync(directory);
  for (const name of copied) {
    cpSync(join(checkout, name), join(directory, name), { recursive: true });
  }
  symlinkSync(join(checkout, 'node_modules'), join(directory, 'node_modules'));
  return {
    directory,
    read: (file) => readFileSync(join(directory, file), 'utf8'),
    write: async (file, source) => {
      writeFileSync(join(directory, file), source);
      await build(directory, file);
      await joinProgram(directory);
      // Its process would be taken for one that the tests have left.
      await stop();
    },
  };
}

/**
 * Compiles one source alone, to be fast: the rest is built already. It does not check types. A fault may leave a name unused, and the tests
 * must notice the fault.
 */
function build(directory: string, file: string): Promise<void> {
  const project = join(directory, 'tsconfig.mutated.json');
  const compilerOptions = { noCheck: true, noResolve: true, types: [] };
  const wish = { extends: './tsconfig.json', compilerOptions, include: [], files: [file] };
  writeFileSync(project, JSON.stringify(wish));
  const compiler = spawn(join(directory, 'node_modules/.bin/tsc'), ['-p', project], {
    cwd: directory,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let said = '';
  compiler.stdout.on('data', (bytes: Buffer) => {
    said += bytes;
  });
  return new Promise((resolve, reject) => {
    compiler.once('error', reject);
    compiler.once('close', (code) => {
      if (code === 0) resolve();
      else reject(new Error(`it cannot be built: ${said}`));
    });
  });
}
