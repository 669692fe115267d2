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
const tls = 1 << 11;

/** Puts packets together from bytes that come in any pieces. */
export type Splitter = {
  /** Takes further bytes; gives back the packets that are complete. */
  readonly push: (bytes: Buffer) => Packet[];
  /** Takes out what is left of an incomplete packet. */
  readonly takeRest: () => Buffer;
};

/** Creates the splitter of one direction of one connection. */
export function createSplitter(): Splitter {
  let rest: Buffer = Buffer.alloc(0);
  return {
    push: (bytes) => {
      rest = rest.length === 0 ? bytes : Buffer.concat([rest, bytes]);
      const packets: Packet[] = [];
      while (rest.length >= 4 && rest.length >= 4 + rest.readUIntLE(0, 3)) {
        const end = 4 + rest.readUIntLE(0, 3);
        const whole = rest.subarray(0, end);
        packets.push({ sequence: whole[3] ?? 0, whole, payload: whole.subarray(4) });
        rest = rest.subarray(end);
      }
      return packets;
    },
    takeRest: () => {
      const taken = rest;
      rest = Buffer.alloc(0);
      return taken;
    },
  };
}

/** Reads one connection: tells the statements apart from everything else that a client sends. */
export type StatementReader = {
  /** To be given what the server sends; the first packet tells what it can do. */
  readonly listen: (bytes: Buffer) => void;
  /** The statement of a COM_QUERY; null for every other packet. */
  readonly statement: (packet: Packet) => string | null;
  /** Whether the client went over to TLS: nothing can be read from here on. */
  readonly isEncrypted: () => boolean;
};

/** Creates the reader of one connection; packets are to be given in order. */
export function createStatementReader(): StatementReader {
  let offered: number | null = null;
  let greeted = false;
  let encrypted = false;
  let withAttributes = false;
  let continues = false;
  return {
    listen: (bytes) => {
      offered ??= offeredCapabilities(bytes.subarray(4));
    },
    statement: ({ sequence, payload }) => {
      const continued = continues;
      continues = payload.length === 0xffffff;
      if (sequence !== 0 && !greeted) {
        greeted = true;
        const capabilities = payload.length < 4 ? 0 : payload.readUInt32LE(0);
        encrypted = payload.length === 32 && (capabilities & tls) !== 0;
        withAttributes = ((offered ?? 0) & capabilities & queryAttributes) !== 0;
      }
      if (sequence !== 0 || continued || payload[0] !== comQuery) return null;
      // Two bytes where no attribute is set: their number (0) and the number of sets (1).
      const start = withAttributes && payload[1] === 0 ? 3 : 1;
      return payload.toString('utf8', start);
    },
    isEncrypted: () => encrypted,
  };
}

function offeredCapabilities(greeting: Buffer): number {
  const afterVersion = greeting.indexOf(0, 1) + 1;
  const low = afterVersion + 4 + 8 + 1;
  if (afterVersion === 0 || greeting.length < low + 7) return 0;
  return greeting.readUInt16LE(low) | (greeting.readUInt16LE(low + 5) << 16);
}
