// A private database server: its program, its data directory, its arguments.
import { spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';

/** A directory that holds one server: data, temporary tables, socket, pidfile, log. */
export type ServerFiles = {
  readonly data: string;
  readonly tmp: string;
  readonly socket: string;
  readonly pidfile: string;
  readonly log: string;
};

/** The files of a server in `directory`. Throws if the socket's path would be too long. */
export function serverFiles(directory: string): ServerFiles {
  const socket = join(directory, 's.sock');
  if (Buffer.byteLength(socket) > 106) throw new Error(`too long for a unix socket: ${socket}`);
  return {
    data: join(directory, 'data'),
    tmp: join(directory, 'tmp'),
    socket,
    pidfile: join(directory, 'm.pid'),
    log: join(directory, 'server.log'),
  };
}

/** A server that can be run here. */
export type ServerProgram = {
  readonly flavour: 'mariadb' | 'mysql';
  /** The program, and the words before its arguments. */
  readonly command: readonly string[];
  /** Arguments with the paths of a server's own files, outside the system's directories. */
  readonly places: readonly string[];
  /** The folder with the description of MariaDB's system tables. */
  readonly share: string;
};

/** The system's MariaDB, even if it is not on an ordinary user's PATH; null if it is not installed. */
export function findMariadb(path: string): ServerProgram | null {
  const directories = [...path.split(':'), '/usr/sbin', '/usr/local/sbin', '/usr/libexec'];
  const mariadbd = directories
    .map((directory) => join(directory || '.', 'mariadbd'))
    .find(isExecutable);
  const share = ['/usr/share/mysql', '/usr/share/mariadb', '/usr/local/share/mysql'].find(
    (directory) => findSystemTables(directory) !== undefined,
  );
  if (mariadbd === undefined || share === undefined) return null;
  return { flavour: 'mariadb', command: [mariadbd], places: [], share };
}

/**
 * The server whose packages and dependencies were unpacked into `root`. It runs with the loader and the libraries of that folder, so that
 * it may be of another release than the system. Throws if there is none.
 */
export function openServerRoot(root: string): ServerProgram {
  const mysqld = join(root, 'usr/sbin/mysqld');
  const mariadbd = join(root, 'usr/sbin/mariadbd');
  const flavour = existsSync(mariadbd) ? 'mariadb' : 'mysql';
  const program = flavour === 'mariadb' ? mariadbd : mysqld;
  const share = ['usr/share/mariadb', 'usr/share/mysql']
    .map((directory) => join(root, directory))
    .find((directory) => existsSync(join(directory, 'charsets')));
  if (!existsSync(program) || share === undefined) throw new Error(`no server in ${root}`);
  return {
    flavour,
    command: [...findLoader(root), program],
    places: [
      `--basedir=${join(root, 'usr')}`,
      `--plugin-dir=${join(root, 'usr/lib/mysql/plugin')}`,
      `--lc-messages-dir=${share}`,
      `--character-sets-dir=${join(share, 'charsets')}`,
    ],
    share,
  };
}

/** The dynamic loader of a root with the path of its libraries, whether or not /lib is /usr/lib there. */
function findLoader(root: string): string[] {
  const list = (directory: string) =>
    existsSync(directory) ? readdirSync(directory).map((name) => join(directory, name)) : [];
  const isLoader = (path: string) => /\/ld-linux-[^/]+\.so\.\d+$/.test(path);
  const isTriplet = (path: string) => /-linux-gnu[^/]*$/.test(path);
  const loader = ['lib64', 'usr/lib64', 'lib', 'usr/lib']
    .flatMap((directory) => list(join(root, directory)))
    .find(isLoader);
  const libraries = ['lib', 'usr/lib']
    .flatMap((directory) => list(join(root, directory)))
    .filter(isTriplet);
  if (loader === undefined) throw new Error(`no dynamic loader in ${root}`);
  return [loader, '--library-path', libraries.join(':')];
}

/** A TCP port of the loopback address that was free a moment ago: `wish` if it was, else any. */
export function freePort(wish = 0): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', (error) => (wish === 0 ? reject(error) : resolve(freePort())));
    probe.listen(wish, '127.0.0.1', () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === 'object' && address ? address.port : 0));
    });
  });
}

/** Systems give clients' connections ports from 32768 on. */
const lastingPorts = { from: 20_000, to: 32_767 };

/** A TCP port of the loopback address that was free a moment ago, and that the system does not assign to clients. */
export async function freeLastingPort(): Promise<number> {
  for (;;) {
    const wish = randomInt(lastingPorts.from, lastingPorts.to);
    if ((await freePort(wish)) === wish) return wish;
  }
}

/** The arguments of every private server: small, durable across a kill of the process, no binary log. */
export function serverArguments(
  program: ServerProgram,
  files: ServerFiles,
  runAs: string | null,
): string[] {
  return [
    '--no-defaults',
    ...program.places,
    `--datadir=${files.data}`,
    `--tmpdir=${files.tmp}`,
    '--innodb-buffer-pool-size=64M',
    '--innodb-flush-log-at-trx-commit=2',
    '--skip-log-bin',
    '--skip-name-resolve',
    '--performance-schema=OFF',
    ...(program.flavour === 'mariadb'
      ? ['--innodb-log-file-size=4M', '--innodb-undo-tablespaces=0']
      : [
          '--innodb-redo-log-capacity=8M',
          '--innodb-flush-method=nosync',
          '--mysqlx=OFF',
          '--secure-file-priv=',
        ]),
    ...(runAs === null ? [] : [`--user=${runAs}`]),
  ];
}

/** Arguments that make a server offer no TLS. */
export function withoutTlsArguments({ flavour }: ServerProgram): string[] {
  return [flavour === 'mariadb' ? '--skip-ssl' : '--tls-version='];
}

/** Arguments for the addresses of a server: its unix socket and one TCP port of the loopback address. */
export function listenArguments(files: ServerFiles, port: number): string[] {
  return [
    `--socket=${files.socket}`,
    `--pid-file=${files.pidfile}`,
    '--bind-address=127.0.0.1',
    `--port=${port}`,
  ];
}

/**
 * Fills an empty data directory with the system tables, one root account (socket and loopback, with
 * `rootPassword`) and nothing else. Takes a third of a second, MySQL two. Throws with the server's words on failure.
 */
export function createDataDirectory(server: {
  readonly program: ServerProgram;
  readonly files: ServerFiles;
  readonly rootPassword: string;
  readonly runAs: string | null;
}): void {
  for (const directory of [server.files.data, server.files.tmp]) {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
  }
  const { program, files, runAs } = server;
  const password = `'${server.rootPassword.replaceAll("'", "''")}'`;
  const args = serverArguments(program, files, runAs);
  if (program.flavour === 'mariadb') {
    const bootstrap = ['--bootstrap', '--silent-startup', '--enforce-storage-engine='];
    runToItsEnd(program, [...args, ...bootstrap], mariadbSql(program.share, password));
    return;
  }
  const accounts = `${files.data}.sql`;
  writeFileSync(accounts, rootAccounts(password), { mode: 0o600 });
  try {
    runToItsEnd(program, [...args, '--initialize-insecure', `--init-file=${accounts}`], '');
  } finally {
    rmSync(accounts);
  }
}

function runToItsEnd(program: ServerProgram, args: readonly string[], input: string): void {
  const [command = '', ...first] = program.command;
  const ended = spawnSync(command, [...first, ...args], {
    input,
    encoding: 'utf8',
    timeout: 60_000,
  });
  if (ended.status === 0) return;
  throw new Error(`cannot create a data directory: ${command} ${args.join(' ')}
${ended.error?.message ?? ''}${ended.stderr}`);
}

/** MariaDB 11 has renamed the files. */
function findSystemTables(share: string): readonly string[] | undefined {
  return ['mysql', 'mariadb']
    .map((prefix) =>
      ['system_tables', 'performance_tables', 'system_tables_data'].map((part) =>
        join(share, `${prefix}_${part}.sql`),
      ),
    )
    .find((paths) => paths.every((path) => existsSync(path)));
}

function mariadbSql(share: string, password: string): string {
  const paths = findSystemTables(share);
  if (paths === undefined) throw new Error(`no description of MariaDB's system tables in ${share}`);
  return `create database if not exists mysql;
use mysql;
set @auth_root_socket=NULL;
${paths.map((path) => readFileSync(path, 'utf8')).join('\n')}
flush privileges;
delete from global_priv where User = 'root' and Host <> 'localhost';
flush privileges;
${rootAccounts(password)}`;
}

function rootAccounts(password: string): string {
  return `alter user 'root'@'localhost' identified by ${password};
create user 'root'@'127.0.0.1' identified by ${password};
grant all on *.* to 'root'@'127.0.0.1' with grant option;
`;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
