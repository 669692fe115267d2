// One connection of --check: it asks a server, as a worker would connect, within a limit of time.
import type { Candidate } from '../../shared/config/addresses.ts';
import type { Config } from '../../shared/config/config.ts';
import { connectionSettings } from '../../shared/database/connection-settings.ts';
import { fetchRows, RefusedError } from '../../shared/mysql/commands.ts';
import { type ConnectFailure, describeConnectFailure } from '../../shared/mysql/connect-failure.ts';
import type { Connection } from '../../shared/mysql/connection.ts';
import { minArenaBytes, openConnection } from '../../shared/mysql/open-connection.ts';

/** A server's report, or the reason why it could not be asked. */
export type Asked<T> =
  | { readonly ok: true; readonly facts: T }
  | { readonly ok: false; readonly failure: ConnectFailure };

/** For the connection, and for all questions together. */
const maxAskMs = 5000;
/** For questions about hundreds of statements, as a worker has. */
export const maxDescribeMs = 20_000;
const tooLate = Object.assign(new Error('no answer in time'), { code: 'ETIMEDOUT' });

/**
 * Connects as a worker does within 5 s, asks, and disconnects. The reason never holds the password.
 * @param maxMs for all questions together
 */
export async function ask<T>(
  config: Config,
  candidate: Candidate,
  fetch: (connection: Connection) => Promise<T>,
  maxMs = maxAskMs,
): Promise<Asked<T>> {
  try {
    const arena = Buffer.allocUnsafeSlow(minArenaBytes);
    const settings = connectionSettings(config, candidate, arena);
    const connection = await openConnection(settings, AbortSignal.timeout(maxAskMs));
    const timer = setTimeout(() => connection.destroy(tooLate), maxMs);
    try {
      return { ok: true, facts: await fetch(connection) };
    } finally {
      clearTimeout(timer);
      connection.destroy(new Error('all has been asked'));
    }
  } catch (error) {
    return { ok: false, failure: describeConnectFailure(error) };
  }
}

/** Why the server refused one of the statements; null: it accepted all. */
export async function tryStatements(
  connection: Connection,
  statements: readonly string[],
): Promise<string | null> {
  try {
    for (const sql of statements) await fetchRows(connection, sql);
    return null;
  } catch (error) {
    return error instanceof RefusedError
      ? `${error.message} (${error.errno})`
      : 'the connection was lost';
  }
}
