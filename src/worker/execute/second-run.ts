// Whoever asks for the second run of a read: what ends it without an answer does not make the first one unsent.
// Must not know why there was a second one.
import type { RunEnd } from './outcome.ts';
import type { Afterwards, RunEvents, RunSink } from './statement-run.ts';

/** Stands between a run and whom it tells, for a read that had been sent once. */
export class SecondRunEvents implements RunEvents {
  readonly #events: RunEvents;

  constructor(events: RunEvents) {
    this.#events = events;
  }

  get sink(): RunSink {
    return this.#events.sink;
  }

  get afterwards(): Afterwards | null {
    return this.#events.afterwards;
  }

  runBegins(): void {
    this.#events.runBegins?.();
  }

  runEnded(end: RunEnd): void {
    if (end.kind === 'not executed')
      this.#events.runEnded({ kind: 'cut short', reason: end.reason });
    else this.#events.runEnded(end.kind === 'faulted' ? { ...end, isSent: true } : end);
  }
}
