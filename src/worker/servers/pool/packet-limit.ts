// Which commands the server would refuse for their length (max_allowed_packet), and how.
// Must not know what is done about it.
import { constants } from 'node:buffer';
import { commandBytes } from '../../../shared/mysql/command-packets.ts';
import { fetchRows } from '../../../shared/mysql/commands.ts';
import type { Connection } from '../../../shared/mysql/connection.ts';
import type { ServerError } from '../../../shared/mysql/packets.ts';
import { queryHeadBytes } from '../../../shared/mysql/query-attributes.ts';
import { ServerFault } from '../../../shared/mysql/server-fault.ts';

/**
 * MySQL's own answer to such a command. It is given here, because MySQL closes the connection after it,
 * and while we still write the answer is lost more often than not.
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

/** What servers allow the setting to be. */
const [leastLimitBytes, mostLimitBytes] = [1024, 1024 ** 3];

/**
 * Asks a connection's server for max_allowed_packet, which is fixed for the connection: a command must be shorter, and
 * no cell of its answers is longer, which the connection holds it to from then on. Rejects when the connection is lost, or the answer is none.
 */
export async function fetchCommandLimit(connection: Connection): Promise<number> {
  const [row] = await fetchRows(connection, 'SELECT @@max_allowed_packet');
  const limit = Number(row?.[0]);
  if (!(limit >= leastLimitBytes && limit <= mostLimitBytes)) {
    throw new ServerFault('PROTOCOL_VIOLATION', 'no server has such a max_allowed_packet');
  }
  connection.longestCellBytes = limit;
  return limit;
}

/** The longest text of a statement that is not refused on a connection: with what stands before it, it stays below the limit. */
export function mostTextBytes(
  commandLimitBytes: number,
  { hasQueryAttributes }: Pick<Connection, 'hasQueryAttributes'>,
): number {
  return commandLimitBytes - 1 - queryHeadBytes(hasQueryAttributes, null);
}

/** With MariaDB's default; MySQL's is four times that. */
const usualTextBytes = mostTextBytes(16 * 1024 * 1024, { hasQueryAttributes: true });

/** What a worker knows of its server's limit: the last word that any of its connections has heard. */
export class PacketLimit {
  #mostTextBytes = usualTextBytes;

  /** Notes what a connection was told. */
  note(textBytes: number): void {
    this.#mostTextBytes = textBytes;
  }

  /** The longest statement that is not refused. */
  get mostStatementBytes(): number {
    return Math.min(this.#mostTextBytes, constants.MAX_STRING_LENGTH);
  }
}
