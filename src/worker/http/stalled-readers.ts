// Keeps readers that are slow from holding the pool: while requests wait, they have half of its sessions at most.
// Must not know what is read, nor how a session is held.
import { performance } from 'node:perf_hooks';
import type { Indexed } from '../indexed-set.ts';
import { IndexedSet } from '../indexed-set.ts';
import type { Pace } from './pace.ts';
import type { Acknowledged } from './peers.ts';

/** How often the readers' paces are taken. */
const lookMs = 400;

/** A reader that has not taken what was written to it, and whose reply holds a session meanwhile. */
export interface HoldingReader extends Indexed {
  readonly pace: Pace;
  /** What it has acknowledged so far. Never rejects. */
  acknowledged(): Promise<Acknowledged>;
  /** Ends the reply and gives the session back. */
  giveUp(): void;
}

/** What a share is made of. */
export type StalledReadersSettings = {
  /** Whether requests wait for a session. */
  readonly othersWait: () => boolean;
  /** How many sessions slow readers may hold meanwhile. */
  readonly mostHeld: () => number;
  /** Told how many were given up at one look. */
  readonly onGivenUp: (count: number) => void;
};

/** The readers of one worker that are waited for. It looks at them only while there are more than may be slow. */
export class StalledReaders {
  readonly #settings: StalledReadersSettings;
  readonly #now: () => number;
  readonly #readers = new IndexedSet<HoldingReader>();
  #timer: NodeJS.Timeout | null = null;
  #isLooking = false;

  /** @param now a clock that does not jump, in ms */
  constructor(settings: StalledReadersSettings, now = () => performance.now()) {
    this.#settings = settings;
    this.#now = now;
  }

  /** From here on the reader is waited for. */
  add(reader: HoldingReader): void {
    reader.pace.begins(this.#now());
    this.#readers.add(reader);
    this.#timer ??= setInterval(() => void this.look(), lookMs).unref();
  }

  /** It has taken all, or its reply is over. */
  delete(reader: HoldingReader): void {
    if (this.#readers.delete(reader)) reader.pace.pauses(this.#now());
  }

  /** Takes the paces, and gives up the slowest where too many are slow. */
  async look(): Promise<void> {
    if (this.#isLooking) return;
    if (this.#readers.size === 0) {
      if (this.#timer !== null) clearInterval(this.#timer);
      this.#timer = null;
      return;
    }
    if (this.#readers.size <= this.#settings.mostHeld()) return;
    this.#isLooking = true;
    const readers = [...this.#readers];
    const acknowledged = await Promise.all(readers.map((reader) => reader.acknowledged()));
    this.#isLooking = false;
    const now = this.#now();
    for (const [at, reader] of readers.entries()) {
      reader.pace.note(acknowledged[at] as Acknowledged, now);
    }
    this.#giveUpSlowest();
  }

  #giveUpSlowest(): void {
    if (!this.#settings.othersWait()) return;
    // Those that have taken all meanwhile are waited for no more.
    const slow = [...this.#readers].filter(({ pace }) => pace.isSlow);
    const beyond = slow.length - Math.max(0, this.#settings.mostHeld());
    if (beyond <= 0) return;
    slow.sort((one, other) => paceOf(one) - paceOf(other));
    for (const reader of slow.slice(0, beyond)) reader.giveUp();
    this.#settings.onGivenUp(beyond);
  }
}

function paceOf({ pace }: HoldingReader): number {
  return pace.bytesPerSecond ?? Number.POSITIVE_INFINITY;
}
