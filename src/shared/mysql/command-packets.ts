// Commands out: their codes, and their packets as bytes.
// Must not know answers.
import { headerBytes, mostPayloadBytes } from './framing.ts';

/** The commands of the MySQL protocol that the gateway sends. */
export const commandCodes = {
  quit: 0x01,
  initDb: 0x02,
  query: 0x03,
  statistics: 0x09,
  ping: 0x0e,
  resetConnection: 0x1f,
} as const;

/**
 * A command with its argument as the packets to write; arguments of 16 MiB and more are continued.
 * The text is sent as UTF-8, whatever the session's character set is.
 */
export function encodeCommand(code: number, argument: string): Buffer {
  return encodeWithHead(Buffer.from([code]), argument);
}

/** The same, with all that stands before the argument: the code, and what else a command may have there. */
export function encodeWithHead(head: Buffer, argument: string): Buffer {
  const payloadLength = head.length + Buffer.byteLength(argument);
  if (payloadLength >= mostPayloadBytes) return encodeLong(head, argument);
  const packet = Buffer.allocUnsafe(headerBytes + payloadLength);
  packet.writeUIntLE(payloadLength, 0, 3);
  packet[3] = 0;
  head.copy(packet, headerBytes);
  packet.write(argument, headerBytes + head.length);
  return packet;
}

/** How long a command is without the headers of its packets. */
export function commandBytes(packet: Buffer): number {
  return packet.length - headerBytes * countPackets(packet);
}

/** The number of the first packet of a command's answer, which continues the command's own numbering. */
export function answerSequence(packet: Buffer): number {
  return countPackets(packet) & 0xff;
}

function countPackets(packet: Buffer): number {
  return Math.ceil(packet.length / (headerBytes + mostPayloadBytes));
}

function encodeLong(head: Buffer, argument: string): Buffer {
  const payload = Buffer.concat([head, Buffer.from(argument)]);
  const pieces: Buffer[] = [];
  for (let start = 0, sequence = 0; start <= payload.length; start += mostPayloadBytes) {
    const piece = payload.subarray(start, start + mostPayloadBytes);
    const header = Buffer.alloc(headerBytes);
    header.writeUIntLE(piece.length, 0, 3);
    header[3] = sequence++ & 0xff;
    pieces.push(header, piece);
  }
  return Buffer.concat(pieces);
}
