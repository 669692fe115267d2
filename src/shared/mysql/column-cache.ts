// Column definitions that a connection has seen, found again by their bytes: most results repeat.
// Hot: a result whose columns are among the latest costs one comparison or a few, whatever their number.
import { type Flavour, guessBits, hasDoubtfulBits, withGuesses } from './doubtful-bits.ts';
import { headerBytes, type PacketsAhead } from './framing.ts';
import { type Column, isColumnDefinition, parseColumn } from './packets.ts';

/** Definitions as bytes, and decoded. */
type Known = {
  /** One payload after another. */
  readonly bytes: Buffer;
  /** The same with their headers, as in an answer whose first result has them. */
  readonly packets: Buffer;
  readonly columns: readonly Column[];
  /** The columns with guesses about their BITs, by the guesses; null: there is no doubt. */
  readonly guessed: Map<string, readonly Column[]> | null;
};

const noneKnown: Known[] = [];
const noBytes = Buffer.alloc(0);
/** Maximal memory of one connection's definitions; beyond it the cache forgets all. */
const maxKnownBytes = 256 * 1024;
/** Maximal number of sets with the same number of columns. */
const maxAlike = 64;
/** A thousand columns' definitions; longer ones are parsed each time. */
const maxBytes = 64 * 1024;
const usualBytes = 4096;
/** Maximal length of one set: 4,096 columns with the longest names in ASCII take a third of it. */
const maxGatheredBytes = 4 * 1024 * 1024;
/** MySQL's own limit for a table. */
export const usualMaxColumns = 4096;
/** The number of the first definition's packet in an answer: after the command and the header of the result. */
const firstSequence = 2;

/**
 * Gathers the definitions of one result set at a time: `begin`, `takeKnown` or `add` for each packet, `finish`.
 * Equal definitions give the same array, so that callers can use it as a key.
 */
export class ColumnCache {
  /** A result with more columns is too wide: its definitions are not added. */
  maxColumns = usualMaxColumns;
  readonly #extended: boolean;
  readonly #flavour: Flavour;
  /** By number of columns; recent and frequent ones come first. */
  readonly #known = new Map<number, Known[]>();
  #knownBytes = 0;
  /** The current result's definitions, if `takeKnown` found them. */
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

  /** Moves past all `count` definitions at once; returns false if some have not arrived, or they are new. */
  takeKnown(ahead: PacketsAhead, count: number): boolean {
    if (ahead.sequence !== firstSequence) return false;
    const known = this.#known.get(count) ?? noneKnown;
    for (let index = 0; index < known.length; index += 1) {
      const { packets } = known[index] as Known;
      // The length of the first definition rules out most sets without a native call.
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

  /** Whether there is room for a definition of this length. */
  admits(bytes: number): boolean {
    return this.#length + bytes <= maxGatheredBytes;
  }

  /** Forgets the added definitions and frees their memory; returns their number. */
  forget(): number {
    const count = this.#ends.length;
    this.begin();
    this.#bytes = Buffer.allocUnsafe(usualBytes);
    return count;
  }

  /**
   * Adds a definition's payload, which `admits` must have accepted; returns the number of definitions.
   * @throws RangeError if it is no definition
   */
  add(bytes: Buffer, start: number, end: number): number {
    if (!isColumnDefinition(bytes, start, end, this.#extended)) {
      throw new RangeError('expected a column definition');
    }
    const wanted = this.#length + end - start;
    if (wanted > this.#bytes.length) this.#grow(wanted);
    bytes.copy(this.#bytes, this.#length, start, end);
    this.#length = wanted;
    return this.#ends.push(wanted);
  }

  /**
   * @param sql the statement, for guesses about BITs
   * @throws RangeError if a definition ends early
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

/** Moves an entry half of the way to the front: frequent entries stay before rare ones. Allocates nothing. */
function bringForward(list: Known[], index: number): void {
  if (index === 0) return;
  const found = list[index] as Known;
  const place = index >> 1;
  list.copyWithin(place + 1, place, index);
  list[place] = found;
}
