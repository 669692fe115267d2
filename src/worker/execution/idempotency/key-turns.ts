// Requests with the same key, one at a time: of several that wait in the server for one that rolls back, all but one are ended.
// Must not know what they do in their turn.

/** A place in the line of a key. Whoever has it must leave; twice does nothing. */
export type Turn = {
  /** Nobody is before: it need not be waited for. */
  readonly isFirst: boolean;
  readonly leave: () => void;
};

/** The turns of one worker. */
export class KeyTurns {
  readonly #lines = new Map<string, (() => void)[]>();
  /** Those whose first one is just being begun. */
  readonly #beginning = new Set<(() => void)[]>();

  /** @param begin called when all who came before have left; not where there are none */
  enter(id: string, begin: () => void): Turn {
    const line = this.#lines.get(id);
    if (line === undefined) this.#lines.set(id, [begin]);
    else line.push(begin);
    let isIn = true;
    const leave = () => {
      if (isIn) this.#leave(id, begin);
      isIn = false;
    };
    return { isFirst: line === undefined, leave };
  }

  #leave(id: string, begin: () => void): void {
    const line = this.#lines.get(id) ?? [];
    const at = line.indexOf(begin);
    line.splice(at, 1);
    if (line.length === 0) this.#lines.delete(id);
    else if (at === 0 && !this.#beginning.has(line)) this.#beginFirst(line);
  }

  /** Who is refused at once leaves while it is begun. The next one is begun here, not by it: of a long line the stack had no end. */
  #beginFirst(line: (() => void)[]): void {
    this.#beginning.add(line);
    try {
      for (let begun: (() => void) | undefined; line[0] !== begun; ) {
        begun = line[0];
        begun?.();
      }
    } finally {
      this.#beginning.delete(line);
    }
  }
}
