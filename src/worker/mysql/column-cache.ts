// Column definitions that a connection has seen, found again by their bytes: most results repeat.
// Must not know queries. Hot: a result whose columns are known costs one look-up, whatever their number.
import { type Column, parseColumn } from './packets.ts';

/** Definitions as they came, and what they say. */
type Known = { readonly bytes: Buffer; readonly columns: readonly Column[] };

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

/**
 * Gathers the definitions of one result set at a time: `begin`, `add` for each packet, `finish`.
 * Equal definitions give the same array, so that what was made from it can be found by it.
 */
export class ColumnCache {
  readonly #extended: boolean;
  /** By number of columns and of bytes; the one seen first comes first. */
  readonly #known = new Map<number, readonly Known[]>();
  #knownBytes = 0;
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
    const columns = this.#parse();
    if (this.#knownBytes + bytes.length > mostKnownBytes) {
      this.#known.clear();
      this.#knownBytes = 0;
    }
    const kept = this.#known.get(size)?.slice(0, mostAlike - 1) ?? [];
    this.#known.set(size, [...kept, { bytes, columns }]);
    this.#knownBytes += bytes.length;
    return columns;
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
