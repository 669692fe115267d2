// MySQL's packets as they pass: split from the stream, the statement of a COM_QUERY read.
// Must not know what is done with them.

/** One packet with its header, exactly as it came. */
export type Packet = {
  readonly sequence: number;
  readonly whole: Buffer;
  readonly payload: Buffer;
};

const comQuery = 0x03;
const queryAttributes = 1 << 27;
const encrypted = 1 << 11;

/** Creates a splitter: give it bytes in any pieces, it gives back the packets that are complete. */
export function createSplitter(): (bytes: Buffer) => Packet[] {
  let rest: Buffer = Buffer.alloc(0);
  return (bytes) => {
    rest = rest.length === 0 ? bytes : Buffer.concat([rest, bytes]);
    const packets: Packet[] = [];
    while (rest.length >= 4 && rest.length >= 4 + rest.readUIntLE(0, 3)) {
      const end = 4 + rest.readUIntLE(0, 3);
      const whole = rest.subarray(0, end);
      packets.push({ sequence: whole[3] ?? 0, whole, payload: whole.subarray(4) });
      rest = rest.subarray(end);
    }
    return packets;
  };
}

/** The capabilities that a server offers in its first packet. */
export function offeredCapabilities(greeting: Buffer): number {
  const afterVersion = greeting.indexOf(0, 1) + 1;
  const low = afterVersion + 4 + 8 + 1;
  if (afterVersion === 0 || greeting.length < low + 7) return 0;
  return greeting.readUInt16LE(low) | (greeting.readUInt16LE(low + 5) << 16);
}

/** Whether a client's first packet asks for TLS: nothing can be read after it. */
export function asksForTls(handshake: Buffer): boolean {
  return handshake.length === 32 && (handshake.readUInt32LE(0) & encrypted) !== 0;
}

/** Whether both sides agreed on query attributes, which stand between command byte and statement. */
export function usesQueryAttributes(offered: number, handshake: Buffer): boolean {
  if (handshake.length < 4) return false;
  return (offered & handshake.readUInt32LE(0) & queryAttributes) !== 0;
}

/** The statement of a COM_QUERY; null for every other command. */
export function statementOf(payload: Buffer, withAttributes: boolean): string | null {
  if (payload[0] !== comQuery) return null;
  // Two bytes where no attribute is set: their number (0) and the number of sets (1).
  const start = withAttributes && payload[1] === 0 ? 3 : 1;
  return payload.toString('utf8', start);
}
