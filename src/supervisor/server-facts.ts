// One short connection to MySQL: what kind of server it is and how many connections it admits.
// Must not know what is done with the answer; for --check alone.
import {
  type Connection,
  type ConnectionOptions,
  createConnection,
  type RowDataPacket,
} from 'mysql2/promise';
import { type ConnectFailure, describeConnectFailure } from '../shared/mysql/connect-failure.ts';
import { connectNamed } from '../shared/mysql/named-socket.ts';
import type { Config } from '../shared/settings/config.ts';
import { findBlindSpots, type Sight } from './blind-spots.ts';

/** What a server says of itself. */
export type ServerFacts = {
  readonly flavour: 'MySQL' | 'MariaDB';
  readonly version: string;
  readonly maxConnections: number;
  /** The most that the account may have at a time; null: it has no limit of its own. */
  readonly maxUserConnections: number | null;
  /** Why `init_sql` was refused; null when it was not, or there is none. */
  readonly initSqlProblem: string | null;
  /** Grants whose lack keeps `session_reset = auto` from knowing views and triggers, as warnings; none under `always`. */
  readonly blindSpots: readonly string[];
};

/** What the server said, or why it could not be asked. */
export type Asked = { readonly ok: true; readonly facts: ServerFacts } | Unanswered;

/** Why the server could not be asked. */
export type Unanswered = { readonly ok: false; readonly failure: ConnectFailure };

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
        'select version() as version, @@max_connections as maxConnections, ' +
          '@@session.max_user_connections as maxUserConnections',
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
          // 0 means none, and is what MariaDB and MySQL say where neither account nor server has one.
          maxUserConnections: Number(rows[0]?.maxUserConnections) || null,
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
    return { ok: false, failure: describeConnectFailure(error) };
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
    const { errno, sqlMessage } = error as { errno?: number; sqlMessage?: string };
    return sqlMessage === undefined ? 'the connection was lost' : `${sqlMessage} (${errno})`;
  }
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
    ...(tls === 'off' || socket !== null ? {} : { stream: () => connectNamed(host, port) }),
  };
}
