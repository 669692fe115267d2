// Column definitions that a connection has seen, found again by their bytes: most results repeat.
// Must not know queries. Hot: a result whose columns are known costs one comparison, whatever their number.
import { headerBytes, type PacketsAhead } from './framing.ts';
import { type Column, parseColumn } from './packets.ts';

/** Definitions as they came, and what they say. */
type Known = {
  /** One payload after another. */
  readonly bytes: Buffer;
  /** The same with their headers, as they stand in an answer whose first result they belong to. */
  readonly packets: Buffer;
  readonly columns: readonly Column[];
};

const noneKnown: readonly Known[] = [];
/** What one connection's definitions may come to; then all are forgotten. */
const mostKnownBytes = 256 * 1024;
/** Definitions of the same size among which one is looked for. */
const mostAlike = 8;
/** These are a thousand columns' definitions; longer ones are parsed each time. */
const mostBytes = 64 * 1024;
const usualBytes = 4096;
/** More columns than a result can have (4,096 in MySQL): their number and their length make one key. */
const countSpan = 1 << 16;
/** The number of the first definition's packet in an answer: behind the command's, and the header of the result. */
const firstSequence = 2;

/**
 * Gathers the definitions of one result set at a time: `begin`, `takeKnown` or `add` for each packet, `finish`.
 * Equal definitions give the same array, so that what was made from it can be found by it.
 */
export class ColumnCache {
  readonly #extended: boolean;
  /** By number of columns and of bytes. */
  readonly #known = new Map<number, readonly Known[]>();
  /** The same by number of columns alone. */
  readonly #knownByCount = new Map<number, readonly Known[]>();
  #knownBytes = 0;
  /** What was taken of the current result. */
  #taken: readonly Column[] | null = null;
  #bytes = Buffer.allocUnsafe(usualBytes);
  #length = 0;
  readonly #ends: number[] = [];

  /** @param extended whether MariaDB's extended metadata was negotiated */
  constructor(extended: boolean) {
    this.#extended = extended;
  }

  begin(): void {
    this.#length = 0;
    this.#ends.length = 0;
    this.#taken = null;
  }

  /** Whether nothing was added yet. */
  get isEmpty(): boolean {
    return this.#length === 0;
  }

  /** Moves past all `count` definitions at once; false when they are not all there, or were not seen before. */
  takeKnown(ahead: PacketsAhead, count: number): boolean {
    for (const { packets, columns } of this.#knownByCount.get(count) ?? noneKnown) {
      const end = ahead.position + packets.length;
      if (end > ahead.end || packets.compare(ahead.bytes, ahead.position, end) !== 0) continue;
      ahead.position = end;
      ahead.sequence = (ahead.sequence + count) & 0xff;
      this.#taken = columns;
      return true;
    }
    return false;
  }

  /** Adds a definition's payload; returns how many there are now. */
  add(bytes: Buffer, start: number, end: number): number {
    const wanted = this.#length + end - start;
    if (wanted > this.#bytes.length) this.#grow(wanted);
    bytes.copy(this.#bytes, this.#length, start, end);
    this.#length = wanted;
    return this.#ends.push(wanted);
  }

  /** @throws RangeError where a definition ends early */
  finish(): readonly Column[] {
    if (this.#taken !== null) return this.#taken;
    const length = this.#length;
    if (length > mostBytes) return this.#parse();
    const size = length * countSpan + this.#ends.length;
    for (const { bytes, columns } of this.#known.get(size) ?? noneKnown) {
      if (bytes.compare(this.#bytes, 0, length) === 0) return columns;
    }
    return this.#learn(size);
  }

  #learn(size: number): readonly Column[] {
    const bytes = Buffer.from(this.#bytes.subarray(0, this.#length));
    const known: Known = { bytes, packets: this.#toPackets(), columns: this.#parse() };
    const newBytes = bytes.length + known.packets.length;
    if (this.#knownBytes + newBytes > mostKnownBytes) {
      this.#known.clear();
      this.#knownByCount.clear();
      this.#knownBytes = 0;
    }
    remember(this.#known, size, known);
    remember(this.#knownByCount, this.#ends.length, known);
    this.#knownBytes += newBytes;
    return known.columns;
  }

  #toPackets(): Buffer {
    const packets = Buffer.allocUnsafeSlow(this.#length + headerBytes * this.#ends.length);
    let [at, start] = [0, 0];
    for (const [index, end] of this.#ends.entries()) {
      at = packets.writeUIntLE(end - start, at, 3);
      at = packets.writeUInt8((firstSequence + index) & 0xff, at);
      at += this.#bytes.copy(packets, at, start, end);
      start = end;
    }
    return packets;
  }

  #parse(): readonly Column[] {
    let start = 0;
    return this.#ends.map((end) => {
      const column = parseColumn(this.#bytes, start, end, this.#extended);
      start = end;
      return column;
    });
  }

  #grow(wanted: number): void {
    const wider = Buffer.allocUnsafe(Math.max(wanted, this.#bytes.length * 2));
    this.#bytes.copy(wider, 0, 0, this.#length);
    this.#bytes = wider;
  }
}

/** What was seen last comes first. */
function remember(map: Map<number, readonly Known[]>, key: number, known: Known): void {
  map.set(key, [known, ...(map.get(key) ?? noneKnown)].slice(0, mostAlike));
}
