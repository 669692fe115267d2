// Whether so many requests wait already that one more would wait for too long, judged by how many were served lately.
// Pure but for its memory. Must not know sessions. Time comes from outside, in ms of any clock that does not jump.

/** What one window has seen. */
type Window = { readonly since: number; turns: number };

/**
 * Counts turns in windows as long as the longest wait. It judges nothing before a request has waited for the whole of one.
 * A window with many turns counts for longer than one with few, and all sessions may come free at once: the answer errs on the
 * side of letting a request wait.
 */
export class Backlog {
  readonly #windowMs: number;
  readonly #sessions: number;
  #window: Window = { since: 0, turns: 0 };
  /** The turns of the window before; null: no request waited, or not for all of it. */
  #turnsBefore: number | null = null;

  /** @param windowMs the longest wait @param sessions how many may come free at once */
  constructor(windowMs: number, sessions: number) {
    this.#windowMs = windowMs;
    this.#sessions = sessions;
  }

  /** A request waits, and none did before. */
  begins(now: number): void {
    this.#window = { since: now, turns: 0 };
    this.#turnsBefore = null;
  }

  /** One of the waiting requests has had its turn. */
  shortened(now: number): void {
    this.#moveTo(now);
    this.#window.turns += 1;
  }

  /** Whether a request behind so many others would wait for longer than that. */
  outlasts(ahead: number, longestMs: number, now: number): boolean {
    this.#moveTo(now);
    if (this.#turnsBefore === null) return false;
    const turns = Math.max(this.#turnsBefore, this.#window.turns);
    return ahead >= this.#sessions + (turns * Math.min(longestMs, this.#windowMs)) / this.#windowMs;
  }

  #moveTo(now: number): void {
    const { since, turns } = this.#window;
    const passed = Math.floor((now - since) / this.#windowMs);
    if (passed === 0) return;
    // If no call came in a window, it was one without a turn.
    this.#turnsBefore = passed === 1 ? turns : 0;
    this.#window = { since: since + passed * this.#windowMs, turns: 0 };
  }
}
