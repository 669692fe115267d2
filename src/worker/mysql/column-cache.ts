// Column definitions that a connection has seen, found again by their bytes: most results repeat.
// Must not know queries. Hot: a result whose columns are known costs one look-up, whatever their number.
import { type Column, parseColumn } from './packets.ts';

/** Definitions as they came, and what they say. */
type Known = { readonly bytes: Buffer; readonly columns: readonly Column[] };

const mostEntries = 256;
/** More columns than a result can have (4,096 in MySQL): their number and their length make one key. */
const countSpan = 1 << 16;
/** Longer definitions are parsed each time. */
const mostBytes = 4096;

/**
 * Gathers the definitions of one result set at a time: `begin`, `add` for each packet, `finish`.
 * Equal definitions give the same array, so that what was made from it can be found by it.
 */
export class ColumnCache {
  readonly #extended: boolean;
  readonly #known = new Map<string, readonly Column[]>();
  /** Of each number of columns and bytes the definitions seen last: compared, they need no string as their key. */
  readonly #latest = new Map<number, Known>();
  #bytes = Buffer.allocUnsafe(mostBytes);
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
    const latest = this.#latest.get(size);
    if (latest?.bytes.compare(this.#bytes, 0, length) === 0) return latest.columns;
    const columns = this.#find();
    if (this.#latest.size >= mostEntries) this.#latest.clear();
    this.#latest.set(size, { bytes: Buffer.from(this.#bytes.subarray(0, length)), columns });
    return columns;
  }

  #find(): readonly Column[] {
    const key = `${this.#ends.length}:${this.#bytes.toString('latin1', 0, this.#length)}`;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const columns = this.#parse();
    if (this.#known.size >= mostEntries) this.#known.clear();
    this.#known.set(key, columns);
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
