// Pieces of bytes, joined.

/** Joins pieces of bytes. It grows by doubling, so that many small pieces cost no more than twice their bytes. */
export class ByteCollector {
  length = 0;
  #bytes: Buffer = Buffer.alloc(0);

  /** Adds a piece. The first one is not copied: it must not change afterwards. */
  append(piece: Buffer): void {
    const needed = this.length + piece.length;
    if (this.length === 0) {
      this.#bytes = piece;
    } else {
      if (needed > this.#bytes.length) {
        const larger = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.length, 1024));
        this.#bytes.copy(larger, 0, 0, this.length);
        this.#bytes = larger;
      }
      piece.copy(this.#bytes, this.length);
    }
    this.length = needed;
  }

  /** All bytes, valid until the next piece is added. */
  bytes(): Buffer {
    return this.#bytes.length === this.length ? this.#bytes : this.#bytes.subarray(0, this.length);
  }
}
