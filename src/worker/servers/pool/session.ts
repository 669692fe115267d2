// A connection's session: brought to the gateway's state, and back to it after somebody used it.
// Must not know who uses it, nor the pool.

import { commandCodes } from '../../../shared/mysql/command-packets.ts';
import {
  fetchRows,
  onePacketCommand,
  RefusedError,
  runTogether,
  statementCommand,
} from '../../../shared/mysql/commands.ts';
import type { Connection } from '../../../shared/mysql/connection.ts';
import { fetchIdentity, type ServerIdentity } from '../../../shared/mysql/identity.ts';
import { QueryCommand, type QueryEvents, type ResultSink } from '../../../shared/mysql/query.ts';
import { queryHeadBytes } from '../../../shared/mysql/query-attributes.ts';
import type { Indexed } from '../../indexed-set.ts';
import { prepare } from './bounded.ts';
import { fetchCommandLimit, mostTextBytes } from './packet-limit.ts';
import { boundTransactions } from './transaction-bound.ts';

/**
 * A session that was idle for this long may be gone without notice: closed by the server in this very moment (wait_timeout is a second
 * at least), or forgotten by a firewall. It is pinged before it is used.
 */
export const staleAfterMs = 500;

/** What every session starts from. */
export type SessionSettings = {
  readonly database: string;
  /** The operator's statements (init_sql), one command each. */
  readonly initStatements: readonly string[];
};

/**
 * What the gateway needs: its own character set; autocommit, because a global autocommit=0 would lose
 * writes at the next reset; no completion_type, because ROLLBACK and COMMIT would begin another transaction,
 * or end the connection; the session tracker, because its flag tells a session that was changed; a bound for transactions in which
 * nothing runs, which init_sql may change. While a client reads 1.3 MiB, a third of a send buffer, MySQL may be able to write nothing:
 * at 0.5 KB/s that takes 44 minutes. The gateway itself ends a reader that stalls.
 */
function gatewaySettings(connection: Connection): string {
  const bound = boundTransactions(connection);
  return `SET NAMES utf8mb4, autocommit=1, completion_type=0, session_track_state_change=1, net_write_timeout=3600, ${bound}`;
}

/** FOUND_ROWS() outlives COM_RESET_CONNECTION (seen on MariaDB 10.11); any SELECT sets it anew. */
export const forgetFoundRows = 'SELECT 1 LIMIT 0';

/** A prepared session. Whoever uses it says so; whoever wants it as it was resets it. */
export class Session implements Indexed {
  /** Of those that the pool has lent, or of those that are being reset. */
  index = -1;
  readonly connection: Connection;
  readonly identity: ServerIdentity;
  /** A command must be shorter than this (max_allowed_packet, fixed when the connection was made). */
  readonly commandLimitBytes: number;
  /** The longest text of a statement that the server takes. */
  readonly mostTextBytes: number;
  /** Whether nothing has run since it was prepared or reset. */
  isFresh = true;
  /** When the server was last heard on it (performance.now). */
  aliveAt = 0;
  /** Called when its connection is lost; set by whoever keeps it while nothing runs on it, who would not hear of that. */
  onLost: (() => void) | null = null;
  /** The settings that a reset sends again, in order. */
  readonly #statements: readonly string[];
  readonly #database: string;

  constructor(
    connection: Connection,
    { identity, commandLimitBytes }: Pick<Session, 'identity' | 'commandLimitBytes'>,
    database: string,
    statements: readonly string[],
  ) {
    this.connection = connection;
    this.identity = identity;
    this.commandLimitBytes = commandLimitBytes;
    this.mostTextBytes = mostTextBytes(commandLimitBytes, connection);
    this.#database = database;
    this.#statements = statements;
  }

  /**
   * The command of a statement of a request's.
   * @param traceparent null: the request is part of no trace. Else the server is told of it where it can be, and where no statement
   *   becomes too long by it
   */
  createQuery(
    sql: string,
    traceparent: string | null,
    sink: ResultSink,
    events: QueryEvents,
  ): QueryCommand {
    const told = traceparent !== null && this.#hasRoomFor(traceparent, sql) ? traceparent : null;
    return new QueryCommand(sql, this.connection, sink, events, told);
  }

  #hasRoomFor(traceparent: string, sql: string): boolean {
    const { hasQueryAttributes } = this.connection;
    const bytes = queryHeadBytes(hasQueryAttributes, traceparent) + Buffer.byteLength(sql);
    return bytes < this.commandLimitBytes;
  }

  /**
   * Takes the session back to the state after connecting. COM_RESET_CONNECTION leaves the database as
   * `USE` has set it, the role as `SET ROLE` has (seen on MariaDB 10.11), and brings the server's global
   * settings, so all are set again. One write.
   * Rejects when the connection is lost or a command refused: then it must be destroyed.
   */
  async reset(): Promise<void> {
    await runTogether(this.connection, [
      onePacketCommand(commandCodes.resetConnection, ''),
      onePacketCommand(commandCodes.initDb, this.#database),
      ...statementCommands(this.connection, this.#statements),
    ]);
    this.isFresh = true;
  }
}

/**
 * Prepares the session of a connection that has just been opened. A failure, or the abort of `signal`,
 * destroys the connection.
 */
export function prepareSession(
  connection: Connection,
  settings: SessionSettings,
  signal: AbortSignal,
): Promise<Session> {
  const statements = [gatewaySettings(connection), ...settings.initStatements, forgetFoundRows];
  return prepare(connection, signal, async () => {
    const [identity, commandLimitBytes, role] = await Promise.all([
      fetchIdentity(connection),
      fetchCommandLimit(connection),
      fetchRoleStatement(connection),
      runTogether(connection, statementCommands(connection, statements)),
    ]);
    const facts = { identity, commandLimitBytes };
    return new Session(connection, facts, settings.database, [...role, ...statements]);
  });
}

/** The statement that brings back the role in which the account has logged in; none before MySQL 8. */
async function fetchRoleStatement(connection: Connection): Promise<readonly string[]> {
  try {
    const [row] = await fetchRows(connection, 'SELECT CURRENT_ROLE()');
    const role = row?.[0] ?? 'NONE';
    // MySQL answers with a list as SET ROLE takes it, MariaDB with a bare name.
    const isBare = connection.flavour === 'mariadb' && role !== 'NONE';
    return [`SET ROLE ${isBare ? `\`${role.replaceAll('`', '``')}\`` : role}`];
  } catch (error) {
    if (error instanceof RefusedError) return [];
    throw error;
  }
}

function statementCommands(connection: Connection, statements: readonly string[]) {
  return statements.map((sql) => statementCommand(sql, connection));
}
