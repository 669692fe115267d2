// The database of a test: on a private server, or a separate one on the server that the run was given.
import { randomBytes } from 'node:crypto';
import type { TestContext } from 'node:test';
import mysql from 'mysql2/promise';
import { blackBox } from '../black-box.ts';
import { freeze } from '../processes.ts';
import { type ServerProcess, startServerProcess } from './server-process.ts';

/** Rows as objects; numbers that JavaScript cannot hold, dates and times come as the server's text. */
export type Row = Readonly<Record<string, unknown>>;

/** A database and the server that it lives on. The caller must stop it. */
export type Database = {
  readonly host: string;
  readonly port: number;
  readonly socket: string | null;
  readonly user: string;
  readonly password: string;
  /** The name of the database: empty, utf8mb4, dropped by `stop`. */
  readonly name: string;
  readonly flavour: 'mariadb' | 'mysql';
  readonly version: string;
  /** The server's RSA key, PEM: what a gateway that reaches MySQL over TCP needs for its password. Null: it has none, as MariaDB. */
  readonly serverKey: string | null;
  /** Whether the server was started for this handle alone. Only then may a test freeze or stop it. */
  readonly own: boolean;
  /** The pid of the server's process. Throws when the server is not this handle's own. */
  readonly pid: () => number;
  /** Runs one statement, or several, on a new connection, in this database. */
  readonly query: (sql: string, values?: readonly unknown[]) => Promise<Row[]>;
  /** Opens a connection of mysql2, in this database; one that the caller does not end ends with `stop`. */
  readonly connect: (options?: mysql.ConnectionOptions) => Promise<mysql.Connection>;
  /** SIGSTOP: the server's sockets stay open without an answer. */
  readonly freeze: () => void;
  readonly thaw: () => void;
  /** Ends the server and keeps its data; SIGKILL is the crash. */
  readonly halt: (signal?: 'SIGTERM' | 'SIGKILL') => Promise<void>;
  readonly resume: () => Promise<void>;
  readonly restart: () => Promise<void>;
  readonly stop: () => Promise<void>;
};

/** The address and the account of a server. */
export type Login = Pick<Database, 'host' | 'port' | 'user' | 'password'>;

type Server = {
  readonly host: string;
  readonly port: number;
  readonly socket: string | null;
  readonly user: string;
  readonly password: string;
  readonly process: ServerProcess | null;
};

const externalVariable = 'DBHTTPD_TEST_MYSQL';
const sharedVariable = 'DBHTTPD_TEST_SHARED';

/** Tells whether all tests use a server that already runs. */
export function isServerGiven(): boolean {
  return process.env[externalVariable] !== undefined;
}

/**
 * Tells whether tests may stop, freeze or configure the server. If not, skips the test with the reason. Use: `if (!ownServerOnly(t))
 * return;`
 */
export function ownServerOnly(t: TestContext): boolean {
  if (!isServerGiven()) return true;
  t.skip(`${externalVariable} names a server that this test may not stop, freeze or configure`);
  return false;
}

/**
 * Opens a database for a test file. The server is, in this order: that of DBHTTPD_TEST_MYSQL; a private one, if `own` or `args` require it;
 * the one that the run shares; a private one.
 */
export async function startDatabase(
  wish: {
    readonly args?: readonly string[];
    readonly own?: boolean;
    /** False: a private server that offers none. */
    readonly tls?: boolean;
  } = {},
): Promise<Database> {
  const isPrivate = wish.own === true || wish.args !== undefined || wish.tls === false;
  const given =
    process.env[externalVariable] ?? (isPrivate ? undefined : process.env[sharedVariable]);
  const server =
    given === undefined ? await startServer(wish.args ?? [], wish.tls) : parseServer(given);
  const name = `dbhttpd_test_${process.pid}_${randomBytes(4).toString('hex')}`;
  const opened = new Set<mysql.Connection>();
  const connect = async (options: mysql.ConnectionOptions = {}) => {
    const connection = await openConnection(server, name, options);
    opened.add(connection);
    return connection;
  };
  const query = (sql: string, values: readonly unknown[] = []) =>
    queryOnce(server, name, sql, values);
  await queryOnce(server, undefined, `create database ${name} character set utf8mb4`);
  const version = String((await query('select version() as version'))[0]?.version);
  blackBox.add({ name: `the process list of ${name}`, show: () => describeThreads(server, name) });
  return {
    ...server,
    name,
    version,
    serverKey: await fetchServerKey(query),
    flavour: version.includes('MariaDB') ? 'mariadb' : 'mysql',
    connect,
    query,
    ...powerOver(server.process),
    stop: async () => {
      for (const connection of opened) connection.destroy();
      if (server.process !== null) await server.process.remove();
      else await query(`drop database if exists ${name}`);
    },
  };
}

/** A server's RSA key; null: it has none. */
export async function fetchServerKey(
  query: (sql: string) => Promise<readonly Row[]>,
): Promise<string | null> {
  const [row] = await query("show status like 'Caching_sha2_password_rsa_public_key'");
  return row === undefined ? null : String(row.Value);
}

/** The server's threads for this database, one on each line. */
async function describeThreads(server: Login, name: string): Promise<string> {
  const bound = new Promise<never>((_, reject) => {
    setTimeout(() => reject(new Error('the server does not answer')), 2000).unref();
  });
  const threads = await Promise.race([queryOnce(server, undefined, threadsOf, [name]), bound]);
  return threads.map((thread) => JSON.stringify(thread)).join('\n');
}

const threadsOf =
  'select id, user, command, time, state, left(info, 300) as info from information_schema.processlist where db = ?';

/** The address of a server as DBHTTPD_TEST_SHARED has it, for the processes of one run. */
export function describeServer(server: Database): Record<string, string> {
  const url = new URL(`mysql://${server.host}:${server.port}`);
  url.username = server.user;
  url.password = server.password;
  if (server.socket !== null) url.searchParams.set('socket', server.socket);
  return { [sharedVariable]: url.href };
}

function powerOver(process_: ServerProcess | null) {
  const own = () => {
    if (process_ === null) throw new Error('this server is shared: ask for one of your own');
    return process_;
  };
  return {
    own: process_ !== null,
    pid: () => own().pid(),
    freeze: () => freeze(own().pid()),
    thaw: () => void process.kill(own().pid(), 'SIGCONT'),
    halt: (signal?: 'SIGTERM' | 'SIGKILL') => own().halt(signal),
    resume: () => own().resume(),
    restart: async () => {
      await own().halt();
      await own().resume();
    },
  };
}

async function startServer(args: readonly string[], tls = true): Promise<Server> {
  const started = await startServerProcess(args, { tls });
  const { port, socket, password } = started;
  return { host: '127.0.0.1', port, socket, user: 'root', password, process: started };
}

function parseServer(address: string): Server {
  const url = new URL(address);
  return {
    host: url.hostname,
    port: Number(url.port || 3306),
    socket: url.searchParams.get('socket'),
    user: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
    process: null,
  };
}

/** Opens a connection of mysql2 that takes several statements and keeps every digit. The caller must end it. */
export function openConnection(
  server: Login,
  database: string | undefined,
  options: mysql.ConnectionOptions,
): Promise<mysql.Connection> {
  return mysql.createConnection({
    host: server.host,
    port: server.port,
    user: server.user,
    password: server.password,
    ...(database === undefined ? {} : { database }),
    multipleStatements: true,
    supportBigNumbers: true,
    bigNumberStrings: true,
    dateStrings: true,
    jsonStrings: true,
    disableEval: true,
    ...options,
  });
}

/** Runs one statement, or several, on a new connection. */
export function queryOnce(
  server: Login,
  database: string | undefined,
  sql: string,
  values: readonly unknown[] = [],
): Promise<Row[]> {
  return withConnection(
    () => openConnection(server, database, {}),
    async (connection) => {
      const [rows] = await connection.query(sql, [...values]);
      return rows as Row[];
    },
  );
}

async function withConnection<Result>(
  open: () => Promise<mysql.Connection>,
  use: (connection: mysql.Connection) => Promise<Result>,
): Promise<Result> {
  const connection = await open();
  try {
    return await use(connection);
  } finally {
    connection.destroy();
  }
}
