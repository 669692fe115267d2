// Column definitions that a connection has seen, found again by their bytes: most results repeat.
// Must not know queries. Hot: a result whose columns are among those that were seen last costs one comparison or a
// few, whatever their number.
import { type Flavour, guessBits, hasDoubtfulBits, withGuesses } from './doubtful-bits.ts';
import { headerBytes, type PacketsAhead } from './framing.ts';
import { type Column, parseColumn } from './packets.ts';

/** Definitions as they came, and what they say. */
type Known = {
  /** One payload after another. */
  readonly bytes: Buffer;
  /** The same with their headers, as they stand in an answer whose first result they belong to. */
  readonly packets: Buffer;
  readonly columns: readonly Column[];
  /** The same with guesses of how their BITs are to be read, by the guesses; null: there is no doubt. */
  readonly guessed: Map<string, readonly Column[]> | null;
};

const noneKnown: Known[] = [];
const noBytes = Buffer.alloc(0);
/** What one connection's definitions may come to; then all are forgotten. */
const maxKnownBytes = 256 * 1024;
/** Sets of as many definitions among which one is looked for. */
const maxAlike = 64;
/** These are a thousand columns' definitions; longer ones are parsed each time. */
const maxBytes = 64 * 1024;
const usualBytes = 4096;
/** The most that is taken: definitions of 4,096 columns with the longest names in ASCII take a third of it. */
const maxGatheredBytes = 4 * 1024 * 1024;
/** MySQL's own limit for a table. */
export const usualMaxColumns = 4096;
/** The number of the first definition's packet in an answer: behind the command's, and the header of the result. */
const firstSequence = 2;

/**
 * Gathers the definitions of one result set at a time: `begin`, `takeKnown` or `add` for each packet, `finish`.
 * Equal definitions give the same array, so that what was made from it can be found by it.
 */
export class ColumnCache {
  /** A result with more columns is too wide: its definitions are not added. */
  maxColumns = usualMaxColumns;
  readonly #extended: boolean;
  readonly #flavour: Flavour;
  /** By number of columns; what was seen last, or is found again and again, comes first. */
  readonly #known = new Map<number, Known[]>();
  #knownBytes = 0;
  /** What was taken of the current result. */
  #taken: Known | null = null;
  #bytes = Buffer.allocUnsafe(usualBytes);
  #length = 0;
  readonly #ends: number[] = [];

  /** @param extended whether MariaDB's extended metadata was negotiated */
  constructor(extended: boolean, flavour: Flavour) {
    this.#extended = extended;
    this.#flavour = flavour;
  }

  begin(): void {
    this.#length = 0;
    this.#ends.length = 0;
    this.#taken = null;
  }

  /** Whether nothing was added yet. */
  get isEmpty(): boolean {
    return this.#ends.length === 0;
  }

  /** Moves past all `count` definitions at once; false when they are not all there, or were not seen before. */
  takeKnown(ahead: PacketsAhead, count: number): boolean {
    if (ahead.sequence !== firstSequence) return false;
    const known = this.#known.get(count) ?? noneKnown;
    for (let index = 0; index < known.length; index += 1) {
      const { packets } = known[index] as Known;
      // The first one's length tells most of them apart without a native call.
      if (packets[0] !== ahead.bytes[ahead.position]) continue;
      const end = ahead.position + packets.length;
      if (end > ahead.end || packets.compare(ahead.bytes, ahead.position, end) !== 0) continue;
      ahead.position = end;
      ahead.sequence = (firstSequence + count) & 0xff;
      this.#taken = known[index] as Known;
      bringForward(known, index);
      return true;
    }
    return false;
  }

  /** Whether there is room for a definition of so many bytes. */
  admits(bytes: number): boolean {
    return this.#length + bytes <= maxGatheredBytes;
  }

  /** Forgets what was added, its memory included; returns how many definitions that were. */
  forget(): number {
    const count = this.#ends.length;
    this.begin();
    this.#bytes = Buffer.allocUnsafe(usualBytes);
    return count;
  }

  /** Adds a definition's payload, which must have been admitted; returns how many there are now. */
  add(bytes: Buffer, start: number, end: number): number {
    const wanted = this.#length + end - start;
    if (wanted > this.#bytes.length) this.#grow(wanted);
    bytes.copy(this.#bytes, this.#length, start, end);
    this.#length = wanted;
    return this.#ends.push(wanted);
  }

  /**
   * @param sql the statement, for what the definitions leave open
   * @throws RangeError where a definition ends early
   */
  finish(sql: string): readonly Column[] {
    const known = this.#taken ?? this.#findOrLearn();
    return known.guessed === null ? known.columns : this.#guess(known, known.guessed, sql);
  }

  #guess(
    { columns }: Known,
    guessed: Map<string, readonly Column[]>,
    sql: string,
  ): readonly Column[] {
    const guesses = guessBits(columns, this.#flavour, sql);
    let found = guessed.get(guesses);
    if (found === undefined) {
      found = withGuesses(columns, guesses);
      guessed.set(guesses, found);
    }
    return found;
  }

  #findOrLearn(): Known {
    const length = this.#length;
    if (length > maxBytes) return this.#create(noBytes, noBytes);
    const known = this.#known.get(this.#ends.length) ?? noneKnown;
    const index = known.findIndex(
      ({ bytes }) => bytes.length === length && bytes.compare(this.#bytes, 0, length) === 0,
    );
    if (index < 0) return this.#learn();
    const found = known[index] as Known;
    bringForward(known, index);
    return found;
  }

  #learn(): Known {
    const bytes = Buffer.from(this.#bytes.subarray(0, this.#length));
    const known = this.#create(bytes, this.#toPackets());
    const newBytes = bytes.length + known.packets.length;
    if (this.#knownBytes + newBytes > maxKnownBytes) {
      this.#known.clear();
      this.#knownBytes = 0;
    }
    const count = this.#ends.length;
    const others = this.#known.get(count) ?? noneKnown;
    this.#known.set(count, [known, ...others].slice(0, maxAlike));
    this.#knownBytes += newBytes;
    return known;
  }

  #create(bytes: Buffer, packets: Buffer): Known {
    const columns = this.#parse();
    const guessed = hasDoubtfulBits(columns, this.#flavour) ? new Map() : null;
    return { bytes, packets, columns, guessed };
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

/** Half of the way: what is asked for often stays before what comes by once, and nothing is allocated for it. */
function bringForward(list: Known[], index: number): void {
  if (index === 0) return;
  const found = list[index] as Known;
  const place = index >> 1;
  list.copyWithin(place + 1, place, index);
  list[place] = found;
}
