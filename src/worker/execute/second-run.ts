// Whoever asks for the second run of a read: what ends it without an answer does not make the first one unsent.
// Must not know why there was a second one.
import type { RunEnd } from './outcome.ts';
import type { Afterwards, RunOwner, RunSink } from './statement-run.ts';

/** Stands between a run and its owner, for a read that had been sent once. */
export class SecondRunOwner implements RunOwner {
  readonly #owner: RunOwner;

  constructor(owner: RunOwner) {
    this.#owner = owner;
  }

  get sink(): RunSink {
    return this.#owner.sink;
  }

  get afterwards(): Afterwards | null {
    return this.#owner.afterwards;
  }

  runBegins(): void {
    this.#owner.runBegins?.();
  }

  runEnded(end: RunEnd): void {
    if (end.kind === 'not executed')
      this.#owner.runEnded({ kind: 'cut short', reason: end.reason });
    else this.#owner.runEnded(end.kind === 'faulted' ? { ...end, isSent: true } : end);
  }
}
