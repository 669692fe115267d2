// Commands as bytes: their codes, their packets, and the query attributes of MySQL 8.0.23 and later.
import { headerBytes, maxPayloadBytes } from './framing.ts';

/** The commands of the MySQL protocol that the gateway sends. */
export const commandCodes = {
  quit: 0x01,
  initDb: 0x02,
  query: 0x03,
  statistics: 0x09,
  ping: 0x0e,
  prepare: 0x16,
  closeStatement: 0x19,
  resetConnection: 0x1f,
} as const;

/**
 * Encodes a command with its argument; arguments of 16 MiB and more take several packets. The text is UTF-8, whatever the session's
 * character set is.
 */
export function encodeCommand(code: number, argument: string): Buffer {
  return encodeWithHead(Buffer.from([code]), argument);
}

/** The same with a head: the code, and anything else before the argument. */
export function encodeWithHead(head: Buffer, argument: string): Buffer {
  const payloadLength = head.length + Buffer.byteLength(argument);
  if (payloadLength >= maxPayloadBytes) return encodeLong(head, argument);
  const packet = Buffer.allocUnsafe(headerBytes + payloadLength);
  packet.writeUIntLE(payloadLength, 0, 3);
  packet[3] = 0;
  head.copy(packet, headerBytes);
  packet.write(argument, headerBytes + head.length);
  return packet;
}

/** Length of a command without the headers of its packets. */
export function commandBytes(packet: Buffer): number {
  return packet.length - headerBytes * countPackets(packet);
}

/** The number of the first packet of a command's answer, which continues the command's own numbering. */
export function answerSequence(packet: Buffer): number {
  return countPackets(packet) & 0xff;
}

function countPackets(packet: Buffer): number {
  return Math.ceil(packet.length / (headerBytes + maxPayloadBytes));
}

function encodeLong(head: Buffer, argument: string): Buffer {
  const payload = Buffer.concat([head, Buffer.from(argument)]);
  const pieces: Buffer[] = [];
  for (let start = 0, sequence = 0; start <= payload.length; start += maxPayloadBytes) {
    const piece = payload.subarray(start, start + maxPayloadBytes);
    const header = Buffer.alloc(headerBytes);
    header.writeUIntLE(piece.length, 0, 3);
    header[3] = sequence++ & 0xff;
    pieces.push(header, piece);
  }
  return Buffer.concat(pieces);
}

/** The part before the statement with one attribute, not NULL: name and text (COM_QUERY, "if CLIENT_QUERY_ATTRIBUTES is set"). */
const traceparentHead = Buffer.concat([
  Buffer.from([commandCodes.query]),
  // parameter_count, parameter_set_count, null_bitmap, new_params_bind_flag
  Buffer.from([1, 1, 0, 1]),
  // MYSQL_TYPE_STRING, signed
  Buffer.from([0xfe, 0]),
  Buffer.from([11]),
  Buffer.from('traceparent'),
]);
/** Without query attributes. */
const bareHead = Buffer.from([commandCodes.query]);
/** No attribute: parameter_count 0, parameter_set_count 1. */
const emptyHead = Buffer.from([commandCodes.query, 0, 1]);
/** From here on a length takes more than a byte. */
const maxAttributeBytes = 250;

/** Length of a statement's command without its text. @param traceparent null: it has none */
export function queryHeadBytes(hasQueryAttributes: boolean, traceparent: string | null): number {
  if (!hasQueryAttributes) return bareHead.length;
  return traceparent === null ? emptyHead.length : traceparentHead.length + 1 + traceparent.length;
}

/**
 * Encodes a statement as packets.
 * @param hasQueryAttributes whether they were negotiated: then each statement lists its attributes
 * @param traceparent ASCII, up to 250 characters: the attribute of that name; not sent without `hasQueryAttributes`
 */
export function encodeQuery(
  sql: string,
  hasQueryAttributes: boolean,
  traceparent: string | null,
): Buffer {
  if (!hasQueryAttributes) return encodeWithHead(bareHead, sql);
  return encodeWithHead(traceparent === null ? emptyHead : headWith(traceparent), sql);
}

function headWith(traceparent: string): Buffer {
  if (traceparent.length > maxAttributeBytes) throw new RangeError('a traceparent is too long');
  const length = Buffer.from([traceparent.length]);
  return Buffer.concat([traceparentHead, length, Buffer.from(traceparent, 'latin1')]);
}
