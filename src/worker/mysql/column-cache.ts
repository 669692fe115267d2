// Column definitions that a connection has seen, found again by their bytes: most results repeat.
// Must not know queries. Hot: a result whose columns are known costs one look-up, whatever their number.
import { type Column, parseColumn } from './packets.ts';

const mostEntries = 256;
/** Longer definitions are parsed each time. */
const mostBytes = 4096;

/**
 * Gathers the definitions of one result set at a time: `begin`, `add` for each packet, `finish`.
 * Equal definitions give the same array, so that what was made from it can be found by it.
 */
export class ColumnCache {
  readonly #extended: boolean;
  readonly #known = new Map<string, readonly Column[]>();
  #bytes = Buffer.allocUnsafe(mostBytes);
  #length = 0;
  #ends: number[] = [];

  /** @param extended whether MariaDB's extended metadata was negotiated */
  constructor(extended: boolean) {
    this.#extended = extended;
  }

  begin(): void {
    this.#length = 0;
    this.#ends = [];
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
    if (this.#length > mostBytes) return this.#parse();
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
