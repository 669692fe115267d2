// Bytes from the MySQL socket in, whole packets out, however the bytes are cut.
// Must not know what a packet means.

const headerBytes = 4;
/** A packet of this length is continued in the next one (MySQL protocol, "sending more than 16 MiB"). */
const mostPayloadBytes = 0xffffff;

/** Receives each whole payload: the bytes from `start` to `end` of `bytes`, valid during the call only. */
export type PacketHandler = (bytes: Buffer, start: number, end: number) => void;

/**
 * Cuts a byte stream into packets. Packets that lie whole in a chunk are handed out in place; others
 * are gathered once, into a buffer of their exact size.
 */
export class Framing {
  /** The sequence number that the next packet must carry; the owner sets it before each answer. */
  expectedSequence = 0;
  readonly #onPacket: PacketHandler;
  readonly #onViolation: (reason: string) => void;
  /** Header bytes of a packet whose header is not complete yet. */
  readonly #header = Buffer.alloc(headerBytes);
  #headerFill = 0;
  /** Payload of a packet that is not complete yet, and how much of it is there. */
  #payload: Buffer | null = null;
  #payloadFill = 0;
  /** Full-length packets that are to be continued. */
  #parts: Buffer[] = [];
  #violated = false;

  constructor(onPacket: PacketHandler, onViolation: (reason: string) => void) {
    this.#onPacket = onPacket;
    this.#onViolation = onViolation;
  }

  /** Takes the next chunk. A packet out of sequence is reported once; everything after it is dropped. */
  feed(chunk: Buffer): void {
    const end = chunk.length;
    let position = this.#headerFill > 0 || this.#payload !== null ? this.#complete(chunk, 0) : 0;
    while (end - position >= headerBytes && !this.#violated) {
      const length = readLength(chunk, position);
      const payloadEnd = position + headerBytes + length;
      if (payloadEnd > end) break;
      const sequence = chunk[position + 3] as number;
      position += headerBytes;
      this.#deliver(chunk, position, payloadEnd, sequence);
      position = payloadEnd;
    }
    if (position < end && !this.#violated) this.#complete(chunk, position);
  }

  /** Continues an incomplete packet with the chunk's bytes from `position`; returns where it stopped. */
  #complete(chunk: Buffer, position: number): number {
    let at = position;
    if (this.#payload === null) {
      const wanted = Math.min(headerBytes - this.#headerFill, chunk.length - at);
      chunk.copy(this.#header, this.#headerFill, at, at + wanted);
      this.#headerFill += wanted;
      at += wanted;
      if (this.#headerFill < headerBytes) return at;
      this.#payload = Buffer.allocUnsafe(readLength(this.#header, 0));
      this.#payloadFill = 0;
    }
    const payload = this.#payload;
    const taken = Math.min(payload.length - this.#payloadFill, chunk.length - at);
    chunk.copy(payload, this.#payloadFill, at, at + taken);
    this.#payloadFill += taken;
    at += taken;
    if (this.#payloadFill === payload.length) {
      this.#payload = null;
      this.#headerFill = 0;
      this.#deliver(payload, 0, payload.length, this.#header[3] as number);
    }
    return at;
  }

  #deliver(bytes: Buffer, start: number, end: number, sequence: number): void {
    if (sequence !== this.expectedSequence) {
      this.#violated = true;
      this.#onViolation(`packet ${sequence} arrived where ${this.expectedSequence} was due`);
      return;
    }
    this.expectedSequence = (sequence + 1) & 0xff;
    if (end - start === mostPayloadBytes) {
      this.#parts.push(Buffer.from(bytes.subarray(start, end)));
      return;
    }
    if (this.#parts.length === 0) {
      this.#onPacket(bytes, start, end);
      return;
    }
    const whole = Buffer.concat([...this.#parts, bytes.subarray(start, end)]);
    this.#parts = [];
    this.#onPacket(whole, 0, whole.length);
  }
}

function readLength(bytes: Buffer, position: number): number {
  return (
    (bytes[position] as number) |
    ((bytes[position + 1] as number) << 8) |
    ((bytes[position + 2] as number) << 16)
  );
}

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
  const payloadLength = 1 + Buffer.byteLength(argument);
  if (payloadLength >= mostPayloadBytes) return encodeLongCommand(code, argument);
  const packet = Buffer.allocUnsafe(headerBytes + payloadLength);
  packet.writeUIntLE(payloadLength, 0, 3);
  packet[3] = 0;
  packet[4] = code;
  packet.write(argument, headerBytes + 1);
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

function encodeLongCommand(code: number, argument: string): Buffer {
  const payload = Buffer.concat([Buffer.from([code]), Buffer.from(argument)]);
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
