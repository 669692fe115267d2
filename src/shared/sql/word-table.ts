// Words that mean something, found inside of a text in whatever case: nothing is cut out of it for that.
// Must not know what they mean.

/** Slots by word, at least: most words of a statement are names, and should meet an empty slot. */
const leastSpace = 8;

/** A hash table of ASCII words, open-addressed; every word is an entry's `text`, in upper case. */
export class WordTable<Entry extends { readonly text: string }> {
  readonly #entries: readonly Entry[];
  /** Where an entry is, from 1; 0: no word has this hash. */
  readonly #slots: Uint16Array;
  readonly #longest: number;

  constructor(entries: readonly Entry[]) {
    this.#entries = entries;
    this.#slots = new Uint16Array(2 ** Math.ceil(Math.log2(entries.length * leastSpace)));
    this.#longest = Math.max(...entries.map(({ text }) => text.length));
    entries.forEach(({ text }, index) => {
      let slot = this.#slotOf(text, 0, text.length);
      while (this.#slots[slot] !== 0) slot = this.#after(slot);
      this.#slots[slot] = index + 1;
    });
  }

  /** The entry of the word from `start` to `end`; null when it is none of them. */
  find(text: string, start: number, end: number): Entry | null {
    if (end - start > this.#longest) return null;
    for (let slot = this.#slotOf(text, start, end); ; slot = this.#after(slot)) {
      const at = this.#slots[slot] as number;
      if (at === 0) return null;
      const entry = this.#entries[at - 1] as Entry;
      if (isSameWord(entry.text, text, start, end)) return entry;
    }
  }

  #after(slot: number): number {
    return (slot + 1) & (this.#slots.length - 1);
  }

  #slotOf(text: string, start: number, end: number): number {
    let hash = 0;
    for (let at = start; at < end; at += 1) {
      hash = Math.imul(hash ^ upperCase(text.charCodeAt(at)), 0x9e3779b1);
      hash ^= hash >>> 15;
    }
    return hash & (this.#slots.length - 1);
  }
}

function isSameWord(word: string, text: string, start: number, end: number): boolean {
  if (word.length !== end - start) return false;
  for (let at = 0; at < word.length; at += 1) {
    if (word.charCodeAt(at) !== upperCase(text.charCodeAt(start + at))) return false;
  }
  return true;
}

/** For ASCII letters only: ſ and ı would turn into S and I, which are other words. */
function upperCase(code: number): number {
  return code >= 0x61 && code <= 0x7a ? code - 0x20 : code;
}
