// MySQL's packets as they pass: split from the stream, the statement of a COM_QUERY read.

/** One packet with its header, exactly as it came. */
export type Packet = {
  readonly sequence: number;
  readonly whole: Buffer;
  readonly payload: Buffer;
};

/** A COM_QUERY as the server reads it. */
export type Query = {
  readonly statement: string;
  /** Its query attributes, by name. */
  readonly attributes: Readonly<Record<string, string>>;
};

const comQuery = 0x03;
/** CLIENT_QUERY_ATTRIBUTES */
export const queryAttributes = 1 << 27;
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

/** Reads one connection, and separates the statements from everything else that a client sends. */
export type StatementReader = {
  /** Takes the server's bytes. Their first packet shows the server's capabilities. */
  readonly listen: (bytes: Buffer) => void;
  /** A COM_QUERY, as far as its first packet contains it; null for every other packet. */
  readonly query: (packet: Packet) => Query | null;
  /** Whether the client has switched to TLS. Nothing can be read from then on. */
  readonly isEncrypted: () => boolean;
};

/** Creates the reader of one connection. It must get the packets in order. */
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
    query: ({ sequence, payload }) => {
      const continued = continues;
      continues = payload.length === 0xffffff;
      if (sequence !== 0 && !greeted) {
        greeted = true;
        const capabilities = payload.length < 4 ? 0 : payload.readUInt32LE(0);
        encrypted = payload.length === 32 && (capabilities & tls) !== 0;
        withAttributes = ((offered ?? 0) & capabilities & queryAttributes) !== 0;
      }
      if (sequence !== 0 || continued || payload[0] !== comQuery) return null;
      return readQuery(payload, withAttributes);
    },
    isEncrypted: () => encrypted,
  };
}

/** Reads a COM_QUERY. @param withAttributes whether query attributes were negotiated: as text, 250 bytes each at most */
export function readQuery(payload: Buffer, withAttributes: boolean): Query {
  let position = 1;
  const byte = () => payload[position++] as number;
  const text = () => {
    const length = byte();
    position += length;
    return payload.toString('utf8', position - length, position);
  };
  const count = withAttributes ? byte() : 0;
  const sets = withAttributes ? byte() : 1;
  const names: string[] = [];
  if (count > 0) {
    const nulls = byte();
    const hasTypes = byte();
    if (count > 8 || nulls !== 0 || hasTypes !== 1) throw new Error('attributes of another kind');
    while (names.length < count) {
      const [type, flags] = [byte(), byte()];
      if (type !== 0xfe || flags !== 0) throw new Error(`an attribute of type ${type}`);
      names.push(text());
    }
  }
  if (sets !== 1) throw new Error(`${sets} sets of attributes`);
  const attributes = Object.fromEntries(names.map((name) => [name, text()]));
  return { statement: payload.toString('utf8', position), attributes };
}

function offeredCapabilities(greeting: Buffer): number {
  const afterVersion = greeting.indexOf(0, 1) + 1;
  const low = afterVersion + 4 + 8 + 1;
  if (afterVersion === 0 || greeting.length < low + 7) return 0;
  return greeting.readUInt16LE(low) | (greeting.readUInt16LE(low + 5) << 16);
}
