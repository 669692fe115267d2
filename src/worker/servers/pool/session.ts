// A connection's session: brought to the gateway's state, and reset to it after use. Its bounds: how long a command may be, and how long
// the server keeps an idle transaction.
import type { Indexed } from '../../../shared/indexed-set.ts';
import {
  commandBytes,
  commandCodes,
  queryHeadBytes,
} from '../../../shared/mysql/command-packets.ts';
import {
  fetchRows,
  onePacketCommand,
  RefusedError,
  runTogether,
  statementCommand,
} from '../../../shared/mysql/commands.ts';
import { ServerFault } from '../../../shared/mysql/connect-failure.ts';
import type { Connection } from '../../../shared/mysql/connection.ts';
import { fetchIdentity, type ServerIdentity } from '../../../shared/mysql/identity.ts';
import type { ServerError } from '../../../shared/mysql/packets.ts';
import { QueryCommand, type QueryEvents, type ResultSink } from '../../../shared/mysql/query.ts';
import { prepare } from './connecting.ts';
import type { PoolAccount } from './pool-accounts.ts';

/**
 * A session that was idle for this long may be gone without notice: closed by the server in this very moment (wait_timeout is a second
 * at least), or forgotten by a firewall. It is pinged before it is used.
 */
export const staleAfterMs = 500;

/** The settings with which every session starts. */
export type SessionSettings = {
  readonly database: string;
  /** The operator's statements (init_sql), one command each. */
  readonly initStatements: readonly string[];
};

const resetTimeoutMs = 5_000;

/**
 * The settings that the gateway needs: its own character set; autocommit, because a global autocommit=0 would lose
 * writes at the next reset; no completion_type, because ROLLBACK and COMMIT would begin another transaction,
 * or end the connection; the session tracker, because its flag tells a session that was changed; a bound for idle transactions, which
 * init_sql may change. While a client reads 1.3 MiB, a third of a send buffer, MySQL may be able to write nothing: at 0.5 KB/s that takes
 * 44 minutes. The gateway itself ends a reader that stalls.
 */
function gatewaySettings(connection: Connection): string {
  const bound = boundTransactions(connection);
  return `SET NAMES utf8mb4, autocommit=1, completion_type=0, session_track_state_change=1, net_write_timeout=3600, ${bound}`;
}

/** FOUND_ROWS() outlives COM_RESET_CONNECTION (seen on MariaDB 10.11); any SELECT sets it again. */
export const forgetFoundRows = 'SELECT 1 LIMIT 0';

/**
 * A statement between these two empties the list of SHOW PROFILES, which is cut to its size after each statement that is profiled. The list
 * has the texts of statements and outlives COM_RESET_CONNECTION, and profiling goes on after it (seen on MariaDB 10.11).
 */
const forgetProfiles = {
  before: 'SET profiling=1, profiling_history_size=0',
  after: 'SET profiling=0, profiling_history_size=DEFAULT',
};

/** A prepared session. */
export class Session implements Indexed {
  /** Among the sessions that the pool has lent, or those that are being reset. */
  index = -1;
  readonly connection: Connection;
  readonly identity: ServerIdentity;
  /** A command must be shorter than this (max_allowed_packet, fixed when the connection was made). */
  readonly commandLimitBytes: number;
  /** The longest text of a statement that the server takes. */
  readonly maxTextBytes: number;
  /** Whether nothing has run since it was prepared or reset. Its user sets it to false. */
  isFresh = true;
  /** When the server last answered on it (performance.now). */
  aliveAt = 0;
  /** The client whose request has it; null: it is lent to none. Only the pool changes it. */
  holder: PoolAccount | null = null;
  /** Since when the holder has it (performance.now). */
  heldSince = 0;
  /** Called when its connection is lost. A user that keeps it while nothing runs on it sets this. */
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
    this.maxTextBytes = maxTextBytes(commandLimitBytes, connection);
    this.#database = database;
    this.#statements = statements;
  }

  /**
   * The command for a request's statement.
   * @param traceparent sent along if the server takes it and the statement does not become too long by it; null: the request is part of no trace
   */
  createQuery(
    sql: string,
    traceparent: string | null,
    sink: ResultSink,
    events: QueryEvents,
  ): QueryCommand {
    const sent = traceparent !== null && this.#hasRoomFor(traceparent, sql) ? traceparent : null;
    return new QueryCommand(sql, this.connection, sink, events, sent);
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
   * Rejects if a command is refused or takes too long: the connection is then destroyed.
   */
  async reset(withinMs = resetTimeoutMs): Promise<void> {
    const { connection } = this;
    const timer = setTimeout(
      () => connection.destroy(new Error('the session reset took too long')),
      withinMs,
    );
    try {
      await runTogether(connection, [
        onePacketCommand(commandCodes.resetConnection, ''),
        onePacketCommand(commandCodes.initDb, this.#database),
        ...statementCommands(connection, this.#statements),
      ]);
      this.isFresh = true;
    } catch (cause) {
      connection.destroy(new Error('the session could not be reset', { cause }));
      throw cause;
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Prepares the session of a new connection. If that fails, or `signal` is aborted, the connection is destroyed. */
export function prepareSession(
  connection: Connection,
  settings: SessionSettings,
  signal: AbortSignal,
): Promise<Session> {
  const own = gatewaySettings(connection);
  const last = [...settings.initStatements, forgetFoundRows];
  return prepare(connection, signal, async () => {
    const [identity, commandLimitBytes, role, canProfile] = await Promise.all([
      fetchIdentity(connection),
      fetchCommandLimit(connection),
      fetchRoleStatement(connection),
      isAccepted(connection, [forgetProfiles.before, forgetProfiles.after]),
      runTogether(connection, statementCommands(connection, [own, ...last])),
    ]);
    const facts = { identity, commandLimitBytes };
    const first = canProfile ? [forgetProfiles.before, own, forgetProfiles.after] : [own];
    const atReset = [...role, ...first, ...last];
    return new Session(connection, facts, settings.database, atReset);
  });
}

/** The statement that brings back the role with which the account has logged in; none before MySQL 8. */
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

/** Whether the server executes all of the statements. Some proxies do not let every variable be set. Rejects if the connection is lost. */
async function isAccepted(connection: Connection, statements: readonly string[]): Promise<boolean> {
  try {
    await runTogether(connection, statementCommands(connection, statements));
    return true;
  } catch (error) {
    if (error instanceof RefusedError) return false;
    throw error;
  }
}

function statementCommands(connection: Connection, statements: readonly string[]) {
  return statements.map((sql) => statementCommand(sql, connection));
}

/**
 * MySQL's own answer to a command that is too long. The gateway gives it, because MySQL closes the connection after it,
 * and while the gateway still writes, that answer is lost more often than not.
 */
export const packetTooLarge: ServerError = {
  errno: 1153,
  sqlState: '08S01',
  message: "Got a packet bigger than 'max_allowed_packet' bytes",
};

/** Whether the session's server would refuse a command, given as the packets to write. */
export function isTooLarge(
  packet: Buffer,
  { commandLimitBytes }: { readonly commandLimitBytes: number },
): boolean {
  return commandBytes(packet) >= commandLimitBytes;
}

/** The range of max_allowed_packet on servers. */
const [minLimitBytes, maxLimitBytes] = [1024, 1024 ** 3];

/**
 * Asks for max_allowed_packet, which is fixed for the connection: a command must be shorter, and no cell of an answer is longer. The
 * connection enforces the latter from then on. Rejects if the connection is lost, or the answer is not a possible limit.
 */
export async function fetchCommandLimit(connection: Connection): Promise<number> {
  const [row] = await fetchRows(connection, 'SELECT @@max_allowed_packet');
  const limit = Number(row?.[0]);
  if (!(limit >= minLimitBytes && limit <= maxLimitBytes)) {
    throw new ServerFault('PROTOCOL_VIOLATION', 'no server has such a max_allowed_packet');
  }
  connection.longestCellBytes = limit;
  return limit;
}

/** The longest text of a statement that the server takes on a connection, with the command's head before it. */
export function maxTextBytes(
  commandLimitBytes: number,
  { hasQueryAttributes }: Pick<Connection, 'hasQueryAttributes'>,
): number {
  return commandLimitBytes - 1 - queryHeadBytes(hasQueryAttributes, null);
}

/** How long the server keeps a transaction that is idle, if the gateway's host has vanished. The gateway itself pauses for milliseconds. */
export const transactionBoundS = 10;
/** How much longer than the gateway the server waits for a client. */
const marginS = 5;

/** How often the gateway pings a session that the server takes for idle: several times within the bound. In ms. */
export const pingEveryMs = (transactionBoundS * 1000) / 4;

type Server = Pick<Connection, 'flavour' | 'serverVersion'>;

/**
 * The assignment, for SET SESSION, that bounds idle transactions. MariaDB has a variable for it. Elsewhere wait_timeout bounds all
 * idle sessions, so the pool must ping its idle ones.
 */
export function boundTransactions(server: Server, seconds = transactionBoundS): string {
  return `${variableOf(server)}=${seconds}`;
}

/** The same for a transaction that its client may leave idle. */
export function boundIdling(server: Server, idleMs: number): string {
  return boundTransactions(server, Math.max(transactionBoundS, Math.ceil(idleMs / 1000) + marginS));
}

/** Whether the bound ends idle sessions too. */
export function needsPings(server: Server): boolean {
  return variableOf(server) === 'wait_timeout';
}

/** https://mariadb.com/kb/en/transaction-timeouts/: since MariaDB 10.3. */
function variableOf({ flavour, serverVersion }: Server): string {
  const [, major, minor] = /^(?:5\.5\.5-)?(\d+)\.(\d+)/.exec(serverVersion) ?? [];
  const hasOwn = flavour === 'mariadb' && Number(major) * 1000 + Number(minor) >= 10_003;
  return hasOwn ? 'idle_transaction_timeout' : 'wait_timeout';
}
