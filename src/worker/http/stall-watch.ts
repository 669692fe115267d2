// Notices a reader that takes nothing: the only sign of it, since a paused connection hides its peer's death.
// Must not know what is being read, nor how its progress is measured.
import { performance } from 'node:perf_hooks';
import type { Acknowledged, Peer } from './peers.ts';

const checkMs = 5_000;

/** Calls `onStall` when a peer for which bytes wait has acknowledged none of them for as long as it may. Its owner must stop it. */
export class StallWatch {
  readonly #peer: Peer;
  readonly #onStall: () => void;
  readonly #now: () => number;
  #timer: NodeJS.Timeout | undefined;
  #waiting = 0;
  /** At the last look at what nothing was taken of; null: something has been taken since. */
  #acknowledged: Acknowledged | null = null;
  #stillSince = 0;
  #isStopped = false;

  /** @param now a clock that does not jump, in ms */
  constructor(peer: Peer, onStall: () => void, now = () => performance.now()) {
    this.#peer = peer;
    this.#onStall = onStall;
    this.#now = now;
  }

  start(): void {
    this.#progressed();
    this.#timer = setInterval(() => void this.check(), checkMs);
  }

  stop(): void {
    this.#isStopped = true;
    clearInterval(this.#timer);
  }

  /** Looks once. What the kernel takes is room that an acknowledgement has made: only if it takes nothing is it asked for more. */
  async check(): Promise<void> {
    if (this.#peer.waitingBytes === 0 || this.#peer.waitingBytes !== this.#waiting) {
      this.#progressed();
      return;
    }
    const seen = await this.#peer.acknowledged();
    if (this.#isStopped) return;
    const before = this.#acknowledged;
    this.#acknowledged = seen;
    // Without one to compare it with, it tells nothing: the time runs from when something was taken.
    const isStill =
      before === null || (before.isExact === seen.isExact && before.bytes === seen.bytes);
    if (!isStill) this.#stillSince = this.#now();
    if (this.#now() - this.#stillSince < this.#peer.mostStillMs(seen.isExact)) return;
    this.stop();
    this.#onStall();
  }

  #progressed(): void {
    this.#waiting = this.#peer.waitingBytes;
    this.#acknowledged = null;
    this.#stillSince = this.#now();
  }
}
