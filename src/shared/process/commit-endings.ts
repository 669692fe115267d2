// Remembers how open transactions have ended, so that a repeated COMMIT gets the right answer. Pure.

/**
 * The known end of a transaction that is over. `unknown`: its COMMIT was sent and has no answer, or its end was forgotten. `partial`: it
 * was not committed, but something of it remains. `unproven`: it was not committed, and something of it may remain.
 */
export type Ending = 'committed' | 'unknown' | 'partial' | 'unproven' | 'over';

/** A transaction. */
export type EndedName = {
  /** The life of its worker. */
  readonly incarnation: string;
  /** Its number in that worker. */
  readonly serial: number;
};

/** A message from one memory to another. `forgotten`: this transaction and those before it, unless they are passed too. */
export type Remembered = EndedName & { readonly ending: Ending | 'forgotten' };

const maxRemembered = 10_000;

/** A memory. It forgets the oldest first, and reports these as unknown: a committed transaction is never reported as undone. */
export class CommitEndings {
  readonly #max: number;
  readonly #endings = new Map<string, Ending>();
  /** The last transaction of each incarnation that was forgotten. */
  readonly #forgotten = new Map<string, number>();

  /** @param max how many are remembered */
  constructor(max = maxRemembered) {
    this.#max = max;
  }

  /** `unknown` is noted before COMMIT is sent; `over` after a rollback, or it would be unknown once younger ones are forgotten. */
  note({ incarnation, serial }: EndedName, ending: Ending): void {
    const key = `${incarnation}.${serial}`;
    this.#endings.delete(key);
    this.#endings.set(key, ending);
    if (this.#endings.size > this.#max) this.#forgetOldest();
  }

  of({ incarnation, serial }: EndedName): Ending {
    const known = this.#endings.get(`${incarnation}.${serial}`);
    if (known !== undefined) return known;
    return serial <= this.#lastForgotten(incarnation) ? 'unknown' : 'over';
  }

  /** Everything that is remembered, the oldest first. */
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
