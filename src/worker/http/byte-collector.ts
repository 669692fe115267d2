// Bytes that come in pieces, kept as one: how small the pieces are is the client's choice, what they cost is not.
// Must not know what the bytes say.

/** Grows by doubling, so that any number of pieces costs as much as twice their bytes. */
export class ByteCollector {
  length = 0;
  #bytes: Buffer = Buffer.alloc(0);

  /** Takes a piece. The first one is kept as it is: nobody may write to it afterwards. */
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

  /** All of them, valid until the next piece is taken. */
  bytes(): Buffer {
    return this.#bytes.length === this.length ? this.#bytes : this.#bytes.subarray(0, this.length);
  }
}
