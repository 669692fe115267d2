// Packages of Debian and rpm in a folder that stands for a machine's root: made, installed without touching the machine, started.
import { execFileSync, spawn } from 'node:child_process';
import {
  accessSync,
  appendFileSync,
  chmodSync,
  cpSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  writeFileSync,
} from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import {
  listFiles,
  type PackagedFile,
  type PackageKind,
} from '../../../../scripts/packaging/files.ts';
import { makePackage } from '../../../../scripts/packaging/package.ts';
import type { Database } from '../../../support/database/mariadb.ts';
import { eventually } from '../../../support/eventually.ts';

/** Why the tests cannot run here; false: they can. Owners and another root need root's rights. */
export function findObstacle(...programs: readonly string[]): string | false {
  if (process.getuid?.() !== 0) return 'only root may install into another root';
  const missing = programs.filter((name) => findProgram(name) === null);
  return missing.length > 0 && `not installed: ${missing.join(', ')}`;
}

function findProgram(name: string): string | null {
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/sbin'];
  return folders.map((folder) => join(folder, name)).find(isExecutable) ?? null;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, 1);
    return true;
  } catch {
    return false;
  }
}

/** Runs a command, and returns what it printed. Throws with that if it fails. */
export function run(command: string, ...args: readonly string[]): string {
  return execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

/** The files of a package except npm's packages and the documents: quick to pack, and all that scripts and configuration need. */
export function listOwnFiles(kind: PackageKind): readonly PackagedFile[] {
  return listFiles(kind).filter(({ path }) => !/\/node_modules\/|^\/usr\/share\/doc\//.test(path));
}

/** The files that a start reads, without the documents and the packages that are loaded later. */
export function listStartedFiles(kind: PackageKind): readonly PackagedFile[] {
  const later = /\/node_modules\/(?:zod|@modelcontextprotocol)\/|^\/usr\/share\/doc\//;
  return listFiles(kind).filter(({ path }) => !later.test(path));
}

/** Packs the build, without strong compression. */
export function make(
  kind: PackageKind,
  out: string,
  revision: number,
  files?: readonly PackagedFile[],
): string {
  const order = { kind, out, revision, effort: 'low' } as const;
  return makePackage(files === undefined ? order : { ...order, files });
}

/** Makes an empty root that other users may enter, with the programs that a package's scripts run in it. */
export function createRoot(root: string, programs: readonly string[]): void {
  for (const folder of ['etc', 'dev', 'tmp', 'run/dbhttpd', 'usr/bin', 'usr/lib', 'usr/lib64']) {
    mkdirSync(join(root, folder), { recursive: true });
  }
  chmodSync(dirname(root), 0o755);
  writeFileSync(join(root, 'etc/passwd'), 'root:x:0:0::/:/bin/sh\n');
  writeFileSync(join(root, 'etc/group'), 'root:x:0:\n');
  if (programs.length === 0) return;
  writeFileSync(join(root, 'dev/null'), '', { mode: 0o666 });
  for (const folder of ['bin', 'lib', 'lib64'])
    run('ln', '-s', `usr/${folder}`, join(root, folder));
  for (const name of programs) {
    const path = findProgram(name);
    if (path === null) throw new Error(`not installed: ${name}`);
    cpSync(realpathSync(path), join(root, 'usr/bin', name));
    for (const [library] of run('ldd', path).matchAll(/\/\S+/g)) {
      const copy = join(root, library.replace(/^\/lib/, '/usr/lib'));
      mkdirSync(dirname(copy), { recursive: true });
      cpSync(realpathSync(library), copy);
    }
  }
}

/** The ids of the user that the package has created in this root. */
export function readUser(root: string): { readonly uid: number; readonly gid: number } {
  const [, uid, gid] =
    /^dbhttpd:x:(\d+):(\d+):/m.exec(readFileSync(join(root, 'etc/passwd'), 'utf8')) ?? [];
  if (uid === undefined) throw new Error('the package has created no user');
  return { uid: Number(uid), gid: Number(gid) };
}

/** Appends a section for this database to the installed configuration, as an administrator does. */
export function configure(root: string, database: Database): void {
  const section = `
[world]
database = ${database.name}
host = ${database.host}
port = ${database.port}
user = ${database.user}
password = "${database.password}"
listen = 127.0.0.1:0
workers = 1
pidfile = ${root}/run/dbhttpd/world.pid
`;
  appendFileSync(join(root, 'etc/dbhttpd.ini'), section);
}

/**
 * Runs the command of the installed unit as the unit's user, until every worker listens, and asks it for one row. Resolves to the answer, once
 * the command has ended with 0.
 */
export async function askInstalled(root: string): Promise<unknown> {
  const unit = readFileSync(join(root, 'usr/lib/systemd/system/dbhttpd@.service'), 'utf8');
  const [, line = ''] = /^ExecStart=(.*)$/m.exec(unit) ?? [];
  const [command = '', ...args] = line.split(' ').map((word) => word.replace('%i', 'world'));
  const { uid, gid } = readUser(root);
  run('chown', `${uid}:${gid}`, join(root, 'run/dbhttpd'));
  const child = spawn(
    join(root, 'usr/bin', command),
    args.map((word) => word.replace(/^\/etc\//, `${root}/etc/`)),
    {
      uid,
      gid,
      cwd: '/',
      env: { PATH: `${dirname(process.execPath)}:/usr/bin:/bin` },
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  );
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    log += text;
  });
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  const answer = askOne(() => {
    if (child.exitCode !== null) throw new Error(log);
    return / listening (\S+)$/m.exec(log)?.[1];
  });
  const outcome = await answer.catch((error: unknown) => error);
  child.kill('SIGTERM');
  const status = await ended;
  if (status !== 0) throw new Error(`exit ${status}\n${log}`);
  if (outcome instanceof Error) throw outcome;
  return outcome;
}

async function askOne(findAddress: () => string | undefined): Promise<unknown> {
  const address = await eventually('it listens', findAddress);
  const reply = await fetch(`http://${address}/v1/query`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ sql: 'select 7 as n' }),
  });
  const { rows } = (await reply.json()) as { rows: unknown };
  return rows;
}
