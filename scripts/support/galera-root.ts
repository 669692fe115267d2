// A folder with all programs of Galera's nodes: the server, the library that replicates, and programs that copy a node's data to another
// one.
import { existsSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { unpackPackages } from '../compatibility/servers.ts';
import { openServerRoot, type ServerProgram } from './private-server.ts';

export type GaleraPrograms = {
  readonly server: ServerProgram;
  /** wsrep_provider. */
  readonly provider: string;
  /** PATH for the server, which runs scripts that run programs. */
  readonly path: string;
};

/** The release of Debian that has MariaDB 10.11 with Galera 4. */
const suite = 'bookworm';
const packages = ['mariadb-server', 'galera-4', 'rsync', 'lsof'];
/** Programs of the folder that the scripts run, with the folder's loader and libraries, as the server itself. */
const wrapped = ['rsync', 'my_print_defaults', 'lsof'];

/** Makes sure that the folder is there, and opens it. Takes a minute the first time. Throws if the packages cannot be had. */
export async function installGalera(root: string): Promise<GaleraPrograms> {
  if (!existsSync(root)) {
    const unfinished = `${root}.unfinished`;
    mkdirSync(join(root, '..'), { recursive: true });
    await unpackPackages(suite, packages, unfinished);
    // The files that are written into it contain its path.
    renameSync(unfinished, root);
    wrapPrograms(root);
  }
  const provider = join(root, 'usr/lib/galera/libgalera_smm.so');
  if (!existsSync(provider)) throw new Error(`no Galera in ${root}: delete it to fetch it again`);
  const path = `${join(root, 'usr/bin')}:${process.env.PATH}`;
  return { server: openServerRoot(root), provider, path };
}

/** The server looks for them beside its scripts before it uses PATH. */
function wrapPrograms(root: string): void {
  const [loader = '', ...libraries] = openServerRoot(root).command.slice(0, -1);
  const loaders = join(root, 'loaders');
  mkdirSync(loaders);
  for (const name of wrapped) {
    const program = join(root, 'usr/bin', name);
    renameSync(program, `${program}.real`);
    // The scripts find a process by its name, which is the name of the started file.
    symlinkSync(loader, join(loaders, name));
    const command = [join(loaders, name), ...libraries, `${program}.real`].join(' ');
    writeFileSync(program, `#!/bin/sh\n${prepare(name)}exec ${command} "$@"\n`, { mode: 0o755 });
  }
}

/** As root, rsync's daemon would run under the account `nobody`, which may not write a node's data. */
function prepare(name: string): string {
  if (name !== 'rsync') return '';
  const asOneself = '--dparam=uid=$(id -u) --dparam=gid=$(id -g)';
  return `case " $* " in *" --daemon "*) set -- "$@" ${asOneself};; esac\n`;
}
