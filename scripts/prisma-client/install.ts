// Prisma from npm, in the versions of the lock file in this folder, in a cache outside of the repository.
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { run } from '../compatibility/commands.ts';

const wanted = 'scripts/prisma-client';
/** The packages' install scripts do not run: they would download engines that the client does not use. */
const npmArguments = [
  'ci',
  '--ignore-scripts',
  '--omit=optional',
  '--omit=peer',
  '--no-audit',
  '--no-fund',
];

/** The folder that Prisma is installed into, from DBHTTPD_PRISMA_DIR and XDG_CACHE_HOME. */
function chooseCache(env: NodeJS.ProcessEnv): string {
  return (
    env.DBHTTPD_PRISMA_DIR ||
    join(env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'dbhttpd/prisma')
  );
}

/** The folder of packages. Installs them if they are missing or of other versions. Rejects with npm's output. */
export async function installPrisma(say: (line: string) => void): Promise<string> {
  const cache = chooseCache(process.env);
  const packages = join(cache, 'node_modules');
  if (isInstalled(cache, packages)) return packages;
  say(`- prisma, from npm into ${cache}`);
  rmSync(packages, { recursive: true, force: true });
  mkdirSync(cache, { recursive: true });
  for (const name of ['package.json', 'package-lock.json']) {
    copyFileSync(join(wanted, name), join(cache, name));
  }
  await run('npm', npmArguments, cache);
  return packages;
}

/** npm writes the list of installed packages at the very end. */
function isInstalled(cache: string, packages: string): boolean {
  if (!existsSync(join(packages, '.package-lock.json'))) return false;
  const read = (directory: string) => readFileSync(join(directory, 'package-lock.json'), 'utf8');
  return read(cache) === read(wanted);
}
