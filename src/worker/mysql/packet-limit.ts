// Which commands the server would refuse for their length (max_allowed_packet), and how.
// Must not know what is done about it.
import { commandBytes } from './command-packets.ts';
import type { ServerError } from './packets.ts';
import type { Session } from './session.ts';

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
export function isTooLarge(packet: Buffer, { commandLimitBytes }: Session): boolean {
  return commandBytes(packet) >= commandLimitBytes;
}
