// Installs a version of Node into a folder, from npm's package `node`.
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { run } from './commands.ts';

/** A Node that is here. */
export type InstalledNode = {
  readonly version: string;
  /** The directory to put first on the PATH. */
  readonly directory: string;
};

/** Makes sure that a Node of this major version is here: this one, or one below `cache`. Throws if it cannot be had. */
export async function installNode(
  major: number,
  cache: string,
  say: (line: string) => void,
): Promise<InstalledNode> {
  const here = process.versions.node;
  if (here.startsWith(`${major}.`)) return { version: here, directory: dirname(process.execPath) };
  const folder = join(cache, `node-${major}`);
  if (!existsSync(folder)) {
    say(`- node-${major}: npm's package`);
    const work = `${folder}.work`;
    rmSync(work, { recursive: true, force: true });
    mkdirSync(work, { recursive: true });
    // Without it npm would look for a package.json further up.
    writeFileSync(join(work, 'package.json'), '{"private":true}\n');
    await run('npm', ['install', '--no-audit', '--no-fund', `node@${major}`], work);
    renameSync(work, folder);
  }
  const directory = join(folder, 'node_modules/node/bin');
  const said = await run(join(directory, 'node'), ['--version'], folder);
  return { version: said.trim().slice(1), directory };
}
