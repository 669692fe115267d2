// Keeps readers that take nothing from holding the pool: while requests wait, they have half of its sessions at most.
// Must not know what is read, nor how a session is held.
import type { Indexed } from '../indexed-set.ts';
import { IndexedSet } from '../indexed-set.ts';

/** How often it is looked whether a reader took something. */
const lookMs = 50;
/**
 * Looks without a byte taken until a reader has stalled: 250 ms. Looks are counted, not time: between two of them node
 * has had its turn to write, however long it was busy.
 */
const stalledLooks = 5;

/** A reader that has not taken what was written to it, and whose reply holds a session meanwhile. */
export interface HoldingReader extends Indexed {
  /** How many bytes the system has taken for it so far, whatever node still keeps. */
  measureTaken(): number;
  /** `measureTaken` at the last look; NaN before the first. */
  taken: number;
  /** Looks in a row at which nothing more had been taken. */
  idleLooks: number;
  /** Ends the reply and gives the session back. */
  giveUp(): void;
}

/** What a share is made of. */
export type StalledReadersSettings = {
  /** Whether requests wait for a session. */
  readonly othersWait: () => boolean;
  /** How many sessions stalled readers may hold meanwhile. */
  readonly mostHeld: () => number;
  /** Told how many were given up at one look. */
  readonly onGivenUp: (count: number) => void;
};

/** The readers of one worker that are waited for. It looks at them only while there are any. */
export class StalledReaders {
  readonly #settings: StalledReadersSettings;
  readonly #readers = new IndexedSet<HoldingReader>();
  #timer: NodeJS.Timeout | null = null;

  constructor(settings: StalledReadersSettings) {
    this.#settings = settings;
  }

  /** From here on the reader is waited for. */
  add(reader: HoldingReader): void {
    reader.taken = Number.NaN;
    reader.idleLooks = 0;
    this.#readers.add(reader);
    this.#timer ??= setInterval(() => this.#look(), lookMs).unref();
  }

  /** It has taken all, or its reply is over. */
  delete(reader: HoldingReader): void {
    this.#readers.delete(reader);
  }

  #look(): void {
    const stalled: HoldingReader[] = [];
    for (const reader of this.#readers) {
      const taken = reader.measureTaken();
      reader.idleLooks = taken === reader.taken ? reader.idleLooks + 1 : 0;
      reader.taken = taken;
      if (reader.idleLooks >= stalledLooks) stalled.push(reader);
    }
    if (stalled.length > 0 && this.#settings.othersWait()) {
      const beyond = stalled.length - this.#settings.mostHeld();
      if (beyond > 0) this.#giveUpLongest(stalled, beyond);
    }
    if (this.#readers.size > 0 || this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }

  #giveUpLongest(stalled: HoldingReader[], count: number): void {
    stalled.sort((one, other) => other.idleLooks - one.idleLooks);
    for (const reader of stalled.slice(0, count)) reader.giveUp();
    this.#settings.onGivenUp(count);
  }
}
