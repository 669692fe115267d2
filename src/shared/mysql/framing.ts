// Bytes from the MySQL socket in, whole packets out, however the bytes are cut.

/** Length and sequence number. */
export const headerBytes = 4;
/** The first byte of an error. */
const errorMarker = 0xff;
/** A packet of this length is continued in the next one (MySQL protocol, "sending more than 16 MiB"). */
export const maxPayloadBytes = 0xffffff;

/** Receives each whole payload: the bytes from `start` to `end` of `bytes`, valid during the call only. */
export type PacketHandler = (bytes: Buffer, start: number, end: number) => void;

/**
 * The rest of a chunk from `position` to `end`: the next packet first, its header included. A handler that takes several packets at once
 * moves `position` and `sequence` past them. Valid during the call only.
 */
export type PacketsAhead = {
  bytes: Buffer;
  position: number;
  end: number;
  /** The number that the next packet must carry. */
  sequence: number;
};

/** Takes none, one or more whole packets. */
export type AheadHandler = (ahead: PacketsAhead) => void;

const noBytes = Buffer.alloc(0);

/**
 * Cuts a byte stream into packets. Packets that are complete in a chunk are delivered in place, and so are those whose beginning, from the
 * chunk before, fits in front of the chunk:
 *
 *     |......free......|.tail.|......chunk.......|.tail.|
 *                             start                     end
 *
 * Others are copied once, into a buffer of their exact size.
 */
export class Framing {
  /** The sequence number that the next packet must have; the connection sets it before each answer. */
  expectedSequence = 0;
  /**
   * With at least this many bytes ahead, `onAhead` gets them before they are cut into packets. The connection sets it after each packet and
   * each offer. Infinity: never.
   */
  aheadFrom = Number.POSITIVE_INFINITY;
  readonly #onPacket: PacketHandler;
  readonly #onViolation: (reason: string) => void;
  readonly #onAhead: AheadHandler;
  readonly #ahead: PacketsAhead = { bytes: noBytes, position: 0, end: 0, sequence: 0 };
  /** The beginning of a packet, kept until the next chunk. */
  #tail = noBytes;
  #tailFill = 0;
  /** Header bytes of a packet whose header is not complete yet. */
  readonly #header = Buffer.alloc(headerBytes);
  #headerFill = 0;
  /** Payload of a packet that is not complete yet, and the number of its bytes so far. */
  #payload: Buffer | null = null;
  #payloadFill = 0;
  /** Full-length packets that are to be continued. */
  #parts: Buffer[] = [];
  #partsBytes = 0;
  #violated = false;
  readonly #maxBytes: () => number;

  /** @param maxBytes current limit of a packet that must be copied */
  constructor(
    onPacket: PacketHandler,
    onViolation: (reason: string) => void,
    onAhead: AheadHandler = () => {},
    maxBytes: () => number = () => Number.POSITIVE_INFINITY,
  ) {
    this.#onPacket = onPacket;
    this.#onViolation = onViolation;
    this.#onAhead = onAhead;
    this.#maxBytes = maxBytes;
  }

  /**
   * Takes the next chunk, from `start` to `end`, and may overwrite bytes before `start`. It reports a packet that is out of sequence or too
   * long once, and drops everything after it.
   */
  feed(chunk: Buffer, start: number, end: number): void {
    if (this.#violated) return;
    let position = this.#continue(chunk, start, end);
    while (end - position >= headerBytes && !this.#violated) {
      if (end - position >= this.aheadFrom) {
        position = this.#offer(chunk, position, end);
        if (end - position < headerBytes) break;
      }
      const length = readLength(chunk, position);
      const payloadEnd = position + headerBytes + length;
      if (payloadEnd > end) {
        if (!this.#admits(length)) return;
        break;
      }
      const sequence = chunk[position + 3] as number;
      position += headerBytes;
      this.#deliver(chunk, position, payloadEnd, sequence);
      position = payloadEnd;
    }
    if (position === end || this.#violated) return;
    if (end - position <= start) this.#keepTail(chunk, position, end);
    else this.#complete(chunk, position, end);
  }

  /** Continues the packet that the last chunk began; returns where the next one begins. */
  #continue(chunk: Buffer, start: number, end: number): number {
    const fill = this.#tailFill;
    this.#tailFill = 0;
    if (fill > start) this.#complete(this.#tail, 0, fill);
    else if (fill > 0) return start - this.#tail.copy(chunk, start - fill, 0, fill);
    return this.#headerFill > 0 || this.#payload !== null
      ? this.#complete(chunk, start, end)
      : start;
  }

  #keepTail(chunk: Buffer, position: number, end: number): void {
    const length = end - position;
    if (length > this.#tail.length) this.#tail = Buffer.allocUnsafeSlow(length * 2);
    this.#tailFill = chunk.copy(this.#tail, 0, position, end);
  }

  /** Offers the bytes ahead for as long as the handler takes some; returns where the rest begins. */
  #offer(chunk: Buffer, position: number, end: number): number {
    if (this.#parts.length > 0) return position;
    const ahead = this.#ahead;
    ahead.bytes = chunk;
    ahead.position = position;
    ahead.end = end;
    ahead.sequence = this.expectedSequence;
    let before: number;
    do {
      before = ahead.position;
      this.#onAhead(ahead);
    } while (ahead.position > before && end - ahead.position >= this.aheadFrom);
    this.expectedSequence = ahead.sequence;
    ahead.bytes = noBytes;
    return ahead.position;
  }

  /** Continues an incomplete packet with the chunk's bytes from `position`; returns where it stopped. */
  #complete(chunk: Buffer, position: number, end: number): number {
    let at = position;
    if (this.#payload === null) {
      at += chunk.copy(this.#header, this.#headerFill, at, end);
      this.#headerFill += at - position;
      if (this.#headerFill < headerBytes) return at;
      const length = readLength(this.#header, 0);
      if (!this.#admits(length)) return end;
      this.#payload = Buffer.allocUnsafe(length);
      this.#payloadFill = 0;
    }
    const payload = this.#payload;
    const taken = chunk.copy(payload, this.#payloadFill, at, end);
    this.#payloadFill += taken;
    at += taken;
    if (this.#payloadFill === payload.length) {
      this.#payload = null;
      this.#headerFill = 0;
      this.#deliver(payload, 0, payload.length, this.#header[3] as number);
    }
    return at;
  }

  /** Whether a packet may grow by this length. */
  #admits(length: number): boolean {
    if (this.#partsBytes + length <= this.#maxBytes()) return true;
    this.#violate(`a packet is longer than ${this.#maxBytes()} bytes`);
    return false;
  }

  #violate(reason: string): void {
    this.#violated = true;
    this.#onViolation(reason);
  }

  #deliver(bytes: Buffer, start: number, end: number, sequence: number): void {
    if (sequence !== this.expectedSequence) {
      this.#violate(`packet ${sequence} arrived instead of packet ${this.expectedSequence}`);
      return;
    }
    this.expectedSequence = (sequence + 1) & 0xff;
    if (end - start === maxPayloadBytes) {
      this.#parts.push(Buffer.from(bytes.subarray(start, end)));
      this.#partsBytes += maxPayloadBytes;
      return;
    }
    if (this.#parts.length === 0) {
      this.#onPacket(bytes, start, end);
      return;
    }
    const whole = Buffer.concat([...this.#parts, bytes.subarray(start, end)]);
    this.#parts = [];
    this.#partsBytes = 0;
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

/**
 * Moves past whole packets of less than 16 MiB that are not errors, in sequence.
 * @returns their number
 */
export function skipPackets(ahead: PacketsAhead, maxPackets: number): number {
  const { bytes, end } = ahead;
  let count = 0;
  let at = ahead.position;
  while (count < maxPackets && at + headerBytes < end) {
    const length = readLength(bytes, at);
    const next = at + headerBytes + length;
    const isPlain =
      length > 0 && length < maxPayloadBytes && bytes[at + headerBytes] !== errorMarker;
    if (!isPlain || next > end || bytes[at + 3] !== ((ahead.sequence + count) & 0xff)) break;
    at = next;
    count += 1;
  }
  ahead.position = at;
  ahead.sequence = (ahead.sequence + count) & 0xff;
  return count;
}
