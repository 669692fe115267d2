// A connection's session: brought to the gateway's state, and back to it after somebody used it.
// Must not know who uses it, nor the pool.
import { onePacketCommand, runTogether, statementCommand } from './commands.ts';
import type { Connection } from './connection.ts';
import { commandCodes } from './framing.ts';
import { fetchIdentity, type ServerIdentity } from './identity.ts';

/** What every session starts from. */
export type SessionSettings = {
  readonly database: string;
  /** The operator's statements (init_sql), one command each. */
  readonly initStatements: readonly string[];
};

/**
 * What the gateway needs: its own character set; autocommit, because a global autocommit=0 would lose
 * writes at the next reset; the session tracker, because its flag tells a session that was changed.
 */
const gatewaySettings = 'SET NAMES utf8mb4, autocommit=1, session_track_state_change=1';

/** A prepared session. Whoever uses it says so; whoever wants it as it was resets it. */
export class Session {
  readonly connection: Connection;
  readonly identity: ServerIdentity;
  /** Whether nothing has run since it was prepared or reset. */
  isFresh = true;
  readonly #settings: SessionSettings;

  constructor(connection: Connection, identity: ServerIdentity, settings: SessionSettings) {
    this.connection = connection;
    this.identity = identity;
    this.#settings = settings;
  }

  /**
   * Takes the session back to the state after connecting. COM_RESET_CONNECTION leaves the database as
   * `USE` has set it and brings the server's global settings, so both are set again. One write.
   * Rejects when the connection is lost or a command refused: then it must be destroyed.
   */
  async reset(): Promise<void> {
    await runTogether(this.connection, [
      onePacketCommand(commandCodes.resetConnection, ''),
      onePacketCommand(commandCodes.initDb, this.#settings.database),
      ...settingCommands(this.connection, this.#settings),
    ]);
    this.isFresh = true;
  }
}

/** Prepares the session of a connection that has just been opened; destroys the connection if it cannot. */
export async function prepareSession(
  connection: Connection,
  settings: SessionSettings,
): Promise<Session> {
  try {
    const [identity] = await Promise.all([
      fetchIdentity(connection),
      runTogether(connection, settingCommands(connection, settings)),
    ]);
    return new Session(connection, identity, settings);
  } catch (cause) {
    connection.destroy(new Error('the session could not be prepared', { cause }));
    throw cause;
  }
}

function settingCommands(connection: Connection, settings: SessionSettings) {
  return [gatewaySettings, ...settings.initStatements].map((sql) =>
    statementCommand(sql, connection.columns),
  );
}
