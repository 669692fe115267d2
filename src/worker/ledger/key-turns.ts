// Requests with the same key, one at a time: of several that wait in the server for one that rolls back, all but one are ended.
// Must not know what they do in their turn.

/** The turns of one worker. */
export class KeyTurns {
  readonly #lines = new Map<string, (() => void)[]>();

  /** Calls `begin`, at once or when all who came before have left. Returns what must be called to leave; twice does nothing. */
  enter(id: string, begin: () => void): () => void {
    const line = this.#lines.get(id);
    if (line === undefined) this.#lines.set(id, [begin]);
    else line.push(begin);
    if (line === undefined) begin();
    let isIn = true;
    return () => {
      if (isIn) this.#leave(id, begin);
      isIn = false;
    };
  }

  #leave(id: string, begin: () => void): void {
    const line = this.#lines.get(id) ?? [];
    const at = line.indexOf(begin);
    line.splice(at, 1);
    if (line.length === 0) this.#lines.delete(id);
    else if (at === 0) line[0]?.();
  }
}
