// Unpacks a database server and its dependencies into a folder, beside the system's and without touching it.
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { findMariadb, openServerRoot, type ServerProgram } from '../support/private-server.ts';
import { type Archive, findArchive } from './archive.ts';
import { run } from './commands.ts';
import type { Product } from './products.ts';

/** A server that is here. */
export type Installed = {
  readonly version: string;
  /** The folder that it was unpacked into; null: the system's own. */
  readonly root: string | null;
};

/** The folder that servers and Nodes are unpacked into, from DBHTTPD_MATRIX_DIR and XDG_CACHE_HOME. */
export function chooseCache(env: NodeJS.ProcessEnv): string {
  return (
    env.DBHTTPD_MATRIX_DIR ||
    join(env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'dbhttpd/matrix')
  );
}

/** Makes sure that the server is here: the system's, or one below `cache`. Throws if it cannot be had. */
export async function installServer(
  product: Product,
  cache: string,
  say: (line: string) => void,
): Promise<Installed> {
  const own = findMariadb(process.env.PATH ?? '');
  const ownVersion = own === null ? '' : await readVersion(own);
  if (ownVersion.startsWith(product.version)) return { version: ownVersion, root: null };
  const root = join(cache, product.name);
  if (!existsSync(root)) {
    say(`- ${product.name}: packages of ${product.suite}`);
    await unpackPackages(product.suite, [product.package], root);
  }
  const version = await readVersion(openServerRoot(root));
  if (version.startsWith(product.version)) return { version, root };
  throw new Error(`${root} holds version ${version}; delete it to fetch ${product.name} again.
If Debian ${product.suite} has no ${product.version}* any more, scripts/compatibility/products.ts must follow`);
}

async function readVersion(program: ServerProgram): Promise<string> {
  const [command = '', ...args] = program.command;
  const said = await run(command, [...args, '--no-defaults', '--version'], '/');
  return /Ver (\d+\.\d+\.\d+)/.exec(said)?.[1] ?? 'unknown';
}

/** Unpacks packages of a release of Debian and their dependencies into a new folder. Takes a minute or two. */
export async function unpackPackages(
  suite: string,
  packages: readonly string[],
  root: string,
): Promise<void> {
  const work = `${root}.work`;
  rmSync(work, { recursive: true, force: true });
  for (const folder of ['root', 'packages', 'lists/partial', 'archives/partial']) {
    mkdirSync(join(work, folder), { recursive: true });
  }
  const configuration = writeConfiguration(work, suite);
  const apt = (...args: string[]) =>
    run('apt-get', ['-q', '-c', configuration, ...args], join(work, 'packages'));
  await apt('update');
  const plan = await apt('-s', 'install', ...packages);
  const needed = [...plan.matchAll(/^Inst (\S+)/gm)].map((match) => match[1] ?? '');
  await apt('download', ...needed);
  for (const name of readdirSync(join(work, 'packages'))) {
    await run('dpkg-deb', ['-x', join(work, 'packages', name), join(work, 'root')], work);
  }
  renameSync(join(work, 'root'), root);
  rmSync(work, { recursive: true });
}

/** Settings of apt for a separate tree, which knows one suite and no installed package. apt reads them after the system's. */
function writeConfiguration(directory: string, suite: string): string {
  const { uri, keyring } = findSystemArchive();
  const path = (name: string) => join(directory, name);
  const trust = keyring === null ? '' : `[signed-by=${keyring}] `;
  writeFileSync(path('sources.list'), `deb ${trust}${uri} ${suite} main\n`);
  writeFileSync(path('status'), '');
  const settings: Record<string, string> = {
    'Dir::Etc::sourcelist': path('sources.list'),
    'Dir::Etc::sourceparts': '-',
    'Dir::Etc::preferences': '-',
    'Dir::Etc::preferencesparts': '-',
    'Dir::State': directory,
    'Dir::State::status': path('status'),
    'Dir::Cache': directory,
    'Acquire::Check-Valid-Until': 'false',
    'Acquire::Languages': 'none',
    'APT::Install-Recommends': 'false',
    ...(process.getuid?.() === 0 ? { 'APT::Sandbox::User': 'root' } : {}),
  };
  const lines = Object.entries(settings).map(([name, value]) => `${name} "${value}";`);
  // The hooks that the system runs after an update of its own lists must not run here.
  lines.push('#clear APT::Update::Post-Invoke;', '#clear APT::Update::Post-Invoke-Success;');
  writeFileSync(path('apt.conf'), `${lines.join('\n')}\n`);
  return path('apt.conf');
}

function findSystemArchive(): Archive {
  const parts = '/etc/apt/sources.list.d';
  const names = existsSync(parts) ? readdirSync(parts).sort() : [];
  const files = ['/etc/apt/sources.list', ...names.map((name) => join(parts, name))]
    .filter((name) => /\.(list|sources)$/.test(name) && existsSync(name))
    .map((name) => ({ name, text: readFileSync(name, 'utf8') }));
  const release = existsSync('/etc/os-release') ? readFileSync('/etc/os-release', 'utf8') : '';
  const codename = /^VERSION_CODENAME="?([^"\n]+)/m.exec(release)?.[1];
  const isDebian = /^ID=debian$/m.test(release);
  const archive = isDebian && codename !== undefined ? findArchive(files, codename) : null;
  if (archive === null) throw new Error("servers come from Debian's archive: this is no Debian");
  return archive;
}
