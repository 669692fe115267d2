// Packages from npm in the versions of a lock file, in a cache outside of the repository.
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { run } from '../compatibility/commands.ts';

/** Packages that are not in the repository's own package.json. */
export type CachedPackages = {
  /** The name for people, and of the folder below `~/.cache/dbhttpd`. */
  readonly name: string;
  /** The folder of package.json and package-lock.json. */
  readonly wanted: string;
  /** The variable that names another cache. */
  readonly variable: string;
  readonly npmOptions: readonly string[];
};

/** The folder of packages. Installs them if they are missing or of other versions. Rejects with npm's output. */
export async function installCached(
  { name, wanted, variable, npmOptions }: CachedPackages,
  say: (line: string) => void,
): Promise<string> {
  const { XDG_CACHE_HOME, [variable]: chosen } = process.env;
  const cache = chosen || join(XDG_CACHE_HOME || join(homedir(), '.cache'), 'dbhttpd', name);
  const packages = join(cache, 'node_modules');
  if (isInstalled(wanted, cache, packages)) return packages;
  say(`- ${name}, from npm into ${cache}`);
  rmSync(packages, { recursive: true, force: true });
  mkdirSync(cache, { recursive: true });
  for (const file of ['package.json', 'package-lock.json']) {
    copyFileSync(join(wanted, file), join(cache, file));
  }
  await run('npm', ['ci', '--no-audit', '--no-fund', ...npmOptions], cache);
  return packages;
}

/** npm writes the list of installed packages at the very end. */
function isInstalled(wanted: string, cache: string, packages: string): boolean {
  if (!existsSync(join(packages, '.package-lock.json'))) return false;
  const read = (directory: string) => readFileSync(join(directory, 'package-lock.json'), 'utf8');
  return read(cache) === read(wanted);
}
