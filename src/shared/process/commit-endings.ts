// How transactions that clients held have ended, for those who ask again: whether their COMMITs stand. Pure.
// Must not know workers, nor how an ending is told.

/**
 * What is known of a transaction that is over. `unknown`: its COMMIT was sent and has no answer, or what became of it was forgotten.
 * `partial`: it was not committed, and something of it stands all the same. `unproven`: it was not committed, and something of it
 * may stand.
 */
export type Ending = 'committed' | 'unknown' | 'partial' | 'unproven' | 'over';

/** A transaction. */
export type EndedName = {
  /** Its worker's life. */
  readonly incarnation: string;
  /** Its number there. */
  readonly serial: number;
};

/** What one memory hands to another; `forgotten`: that one, and those before it, of which nothing else is handed over. */
export type Remembered = EndedName & { readonly ending: Ending | 'forgotten' };

const mostRemembered = 10_000;

/** The oldest are forgotten first, and then told as unknown: nobody hears of one that was committed that nothing was done. */
export class CommitEndings {
  readonly #most: number;
  readonly #endings = new Map<string, Ending>();
  /** By incarnation: the last transaction that had to be forgotten. */
  readonly #forgotten = new Map<string, number>();

  /** @param most how many are remembered */
  constructor(most = mostRemembered) {
    this.#most = most;
  }

  /** `unknown` before COMMIT is sent; `over` where it came to nothing, or was none: else it would be unknown once younger ones are forgotten. */
  note({ incarnation, serial }: EndedName, ending: Ending): void {
    const key = `${incarnation}.${serial}`;
    this.#endings.delete(key);
    this.#endings.set(key, ending);
    if (this.#endings.size > this.#most) this.#forgetOldest();
  }

  of({ incarnation, serial }: EndedName): Ending {
    const known = this.#endings.get(`${incarnation}.${serial}`);
    if (known !== undefined) return known;
    return serial <= this.#lastForgotten(incarnation) ? 'unknown' : 'over';
  }

  /** All that is remembered, the oldest first. */
  remembered(): readonly Remembered[] {
    const forgotten = [...this.#forgotten].map(([incarnation, serial]) => ({
      incarnation,
      serial,
      ending: 'forgotten' as const,
    }));
    const endings = [...this.#endings].map(([key, ending]) => ({ ...parseKey(key), ending }));
    return [...forgotten, ...endings];
  }

  /** Takes over what another memory has remembered. */
  take({ ending, ...name }: Remembered): void {
    if (ending === 'forgotten') this.#forget(name);
    else this.note(name, ending);
  }

  #forgetOldest(): void {
    const [oldest = ''] = this.#endings.keys();
    this.#endings.delete(oldest);
    this.#forget(parseKey(oldest));
  }

  #forget({ incarnation, serial }: EndedName): void {
    this.#forgotten.set(incarnation, Math.max(this.#lastForgotten(incarnation), serial));
  }

  #lastForgotten(incarnation: string): number {
    return this.#forgotten.get(incarnation) ?? 0;
  }
}

function parseKey(key: string): EndedName {
  const [incarnation = '', serial] = key.split('.');
  return { incarnation, serial: Number(serial) };
}
