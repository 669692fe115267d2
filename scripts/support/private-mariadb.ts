// A MariaDB of our own: where the server is, how a data directory is made, with which arguments it runs.
// Must not know tests or the demo: both start their servers from here.
import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, mkdirSync, readFileSync } from 'node:fs';
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

/** The files of a server that lives in `directory`. Throws when the socket's path would be too long. */
export function serverFiles(directory: string): ServerFiles {
  const socket = join(directory, 's.sock');
  if (Buffer.byteLength(socket) > 106) throw new Error(`too long for a unix socket: ${socket}`);
  return {
    data: join(directory, 'data'),
    tmp: join(directory, 'tmp'),
    socket,
    pidfile: join(directory, 'm.pid'),
    log: join(directory, 'mariadb.log'),
  };
}

/** The path of mariadbd, also outside an ordinary user's PATH; null when it is not installed. */
export function findMariadbd(path: string): string | null {
  const directories = [...path.split(':'), '/usr/sbin', '/usr/local/sbin', '/usr/libexec'];
  for (const directory of directories) {
    const candidate = join(directory || '.', 'mariadbd');
    if (isExecutable(candidate)) return candidate;
  }
  return null;
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

/** What every server of ours is started with: small, durable across a kill of the process, no binary log. */
export function serverArguments(files: ServerFiles, runAs: string | null): string[] {
  return [
    '--no-defaults',
    `--datadir=${files.data}`,
    `--tmpdir=${files.tmp}`,
    '--innodb-log-file-size=4M',
    '--innodb-buffer-pool-size=64M',
    '--innodb-undo-tablespaces=0',
    '--innodb-flush-log-at-trx-commit=2',
    '--skip-log-bin',
    '--skip-name-resolve',
    '--performance-schema=OFF',
    ...(runAs === null ? [] : [`--user=${runAs}`]),
  ];
}

/** Where a started server listens: its unix socket and one TCP port of the loopback address. */
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
 * `rootPassword`) and nothing else. Takes a third of a second. Throws with the server's words on failure.
 */
export function createDataDirectory(server: {
  readonly mariadbd: string;
  readonly files: ServerFiles;
  readonly rootPassword: string;
  readonly runAs: string | null;
}): void {
  for (const directory of [server.files.data, server.files.tmp]) {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
  }
  const bootstrap = spawnSync(
    server.mariadbd,
    [
      ...serverArguments(server.files, server.runAs),
      '--bootstrap',
      '--silent-startup',
      '--enforce-storage-engine=',
    ],
    { input: bootstrapSql(server.rootPassword), encoding: 'utf8', timeout: 60_000 },
  );
  if (bootstrap.status === 0) return;
  throw new Error(`cannot create a MariaDB data directory in ${server.files.data}
${bootstrap.error?.message ?? ''}${bootstrap.stderr}`);
}

function bootstrapSql(rootPassword: string): string {
  const parts = [
    'mysql_system_tables.sql',
    'mysql_performance_tables.sql',
    'mysql_system_tables_data.sql',
  ];
  const share = ['/usr/share/mysql', '/usr/share/mariadb', '/usr/local/share/mysql'].find((path) =>
    existsSync(join(path, 'mysql_system_tables.sql')),
  );
  if (share === undefined) throw new Error('MariaDB is here, but mysql_system_tables.sql is not');
  const scripts = parts.map((part) => readFileSync(join(share, part), 'utf8'));
  const password = `'${rootPassword.replaceAll("'", "''")}'`;
  return `create database if not exists mysql;
use mysql;
set @auth_root_socket=NULL;
${scripts.join('\n')}
flush privileges;
delete from global_priv where User = 'root' and Host <> 'localhost';
flush privileges;
alter user 'root'@'localhost' identified by ${password};
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
