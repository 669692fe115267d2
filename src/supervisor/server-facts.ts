// One short connection to MySQL: what kind of server it is and how many connections it admits.
// Must not know what is done with the answer; for --check alone.
import {
  type Connection,
  type ConnectionOptions,
  createConnection,
  type RowDataPacket,
} from 'mysql2/promise';
import type { Config } from '../shared/config.ts';
import { findBlindSpots, type Sight } from './blind-spots.ts';

/** What a server says of itself. */
export type ServerFacts = {
  readonly flavour: 'MySQL' | 'MariaDB';
  readonly version: string;
  readonly maxConnections: number;
  /** Why `init_sql` was refused; null when it was not, or there is none. */
  readonly initSqlProblem: string | null;
  /** Grants whose lack keeps `session_reset = auto` from knowing views and triggers, as warnings; none under `always`. */
  readonly blindSpots: readonly string[];
};

/** What the server said, or why it could not be asked. */
export type Asked = { readonly ok: true; readonly facts: ServerFacts } | Unanswered;

/** `isRefused`: the server is there, and its own words say why it will not have us. */
export type Unanswered = {
  readonly ok: false;
  readonly isRefused: boolean;
  readonly reason: string;
};

const boundMs = 5000;

/** Connects as a worker would, asks, and leaves. The reason never holds the password. */
export async function askServer(config: Config): Promise<Asked> {
  try {
    const connection = await createConnection(connectionOptions(config));
    // A server that dies under a query reports only to the connection; the bound below covers the query.
    connection.on('error', () => {});
    const timer = setTimeout(() => connection.destroy(), boundMs);
    try {
      const [rows] = await connection.query<RowDataPacket[]>(
        'select version() as version, @@max_connections as maxConnections',
      );
      const sight = await fetchSight(connection, config.database);
      const initSqlProblem =
        config.initSql === null ? null : await tryOut(connection, config.initSql);
      const version = String(rows[0]?.version);
      const flavour = /mariadb/i.test(version) ? 'MariaDB' : 'MySQL';
      return {
        ok: true,
        facts: {
          flavour,
          version,
          maxConnections: Number(rows[0]?.maxConnections),
          initSqlProblem,
          blindSpots:
            sight === null || config.sessionReset === 'always' ? [] : findBlindSpots(sight),
        },
      };
    } finally {
      clearTimeout(timer);
      connection.destroy();
    }
  } catch (error) {
    return describeError(error);
  }
}

const hiddenViewsQuery = `
  select table_name as name from information_schema.views
   where table_schema = database() and (view_definition is null or view_definition = '')`;

async function fetchSight(connection: Connection, database: string): Promise<Sight | null> {
  try {
    const [[account]] = await connection.query<RowDataPacket[]>('select current_user() as name');
    const [grants] = await connection.query<RowDataPacket[]>('show grants');
    const [views] = await connection.query<RowDataPacket[]>(hiddenViewsQuery);
    return {
      database,
      account: String(account?.name),
      grants: grants.map((row) => String(Object.values(row)[0])),
      hiddenViews: views.map(({ name }) => String(name)),
    };
  } catch {
    // A server that answers everything else is no fault because of this.
    return null;
  }
}

async function tryOut(connection: Connection, sql: string): Promise<string | null> {
  try {
    await connection.query(sql);
    return null;
  } catch (error) {
    return nameOf(error);
  }
}

function describeError(error: unknown): Unanswered {
  const { code, errno, message } = error as { code?: string; errno?: number; message?: string };
  // Numbers above 0 are MySQL's own; the system's are below.
  if (errno !== undefined && errno > 0) {
    return { ok: false, isRefused: true, reason: `${message ?? code} (${errno})` };
  }
  return { ok: false, isRefused: false, reason: code ?? 'connection lost' };
}

/** An error by its code and number: the message of a statement's error quotes the statement. */
function nameOf(error: unknown): string {
  const { code, errno } = error as { code?: string; errno?: number };
  const number = errno !== undefined && errno > 0 ? ` (${errno})` : '';
  return `${code ?? 'connection lost'}${number}`;
}

function connectionOptions(config: Config): ConnectionOptions {
  const { socket, host, port, user, password, database, tls } = config;
  const { ca, cert, key } = config.tlsTexts;
  const isVerified = tls === 'verify';
  const ssl = {
    rejectUnauthorized: isVerified,
    verifyIdentity: isVerified,
    ...(ca === null ? {} : { ca }),
    ...(cert === null ? {} : { cert }),
    ...(key === null ? {} : { key }),
  };
  return {
    ...(socket === null ? { host, port } : { socketPath: socket }),
    user,
    password,
    database,
    connectTimeout: boundMs,
    disableEval: true,
    multipleStatements: true,
    flags: ['-FOUND_ROWS', '-IGNORE_SPACE', '-LOCAL_FILES', '-ODBC'],
    ...(tls === 'off' ? {} : { ssl }),
  };
}
