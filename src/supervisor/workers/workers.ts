// All slots of one instance: filled, refilled, watched, asked for their numbers, ended.
import { type ExitCode, exitCodes } from '../../shared/process/exit-codes.ts';
import type { LogFields } from '../../shared/process/log.ts';
import type { Renewed } from '../../shared/process/messages.ts';
import type { RememberedPrimary } from '../../shared/servers/primary-memory.ts';
import {
  type Overridden,
  openPrimaryMemories,
  type PrimaryMemories,
} from '../primary/primary-memories.ts';
import { Monitor, type OwnState } from './monitor.ts';
import { isHopeless, type Making, Slot } from './slot.ts';

/** How the first boot ended. */
export type Boot =
  | { readonly kind: 'listening' }
  | { readonly kind: 'failed'; readonly exitCode: ExitCode; readonly reason: string };

const tickMs = 1000;
/** The longest that a stop at once takes. */
export const hardStopMs = 1000;

/** All workers of one instance. Its slots are empty until `boot`. */
export class Workers {
  /** Resolves when no worker is left, after drain, stopNow or kill. */
  readonly gone: Promise<void>;
  readonly #making: Making;
  readonly #primaries: PrimaryMemories;
  readonly #monitor: Monitor;
  readonly #slots: readonly Slot[];
  #isEnding = false;
  /** Requests that were lost with their workers before the end began. */
  #lostBefore = 0;
  /** The slot that drains when all others have closed. */
  #last: Slot | null = null;
  #concludeBoot: ((boot: Boot) => void) | null = null;
  #onClosed = () => {};
  #onGone = () => {};
  #killTimer: NodeJS.Timeout | undefined;

  constructor(making: Making, own: OwnState) {
    const { sections, log, commits } = making;
    this.#making = making;
    this.#primaries = openPrimaryMemories(sections, log, (section, memory) =>
      this.#forEach((slot) => slot.send({ kind: 'primary memory', section, memory })),
    );
    const slots = () => this.#slots;
    this.#monitor = new Monitor(sections, slots, commits, this.#primaries, own);
    this.#slots = Array.from({ length: sections[0].workers }, (_, number) => this.#create(number));
    const ticker = setInterval(() => this.#forEach((slot) => slot.tick()), tickMs);
    this.gone = new Promise<void>((resolve) => {
      this.#onGone = resolve;
    }).finally(() => {
      clearInterval(ticker);
      clearTimeout(this.#killTimer);
      this.#monitor.close();
    });
  }

  /** Fills every slot. Resolves when all listen, or when that is given up. */
  boot(): Promise<Boot> {
    return new Promise((resolve) => {
      this.#concludeBoot = resolve;
      this.#forEach((slot) => slot.fill());
    });
  }

  /** Has every worker finish and end. Resolves when none listens any more. No slot is refilled from here on. */
  drain(): Promise<void> {
    this.#beginEnd();
    const slots = this.#slots;
    this.#last =
      slots.find((slot) => slot.isListening() && !slot.isSilent()) ??
      slots.find((slot) => !slot.isEmpty()) ??
      null;
    return new Promise((resolve) => {
      this.#onClosed = resolve;
      for (const slot of slots) if (slot !== this.#last) slot.drain(true);
      this.#advanceEnd();
    });
  }

  /** Has every worker kill what it runs in MySQL and exit. Kills those that are left after `hardStopMs`. */
  stopNow(): void {
    this.#beginEnd();
    this.#forEach((slot) => slot.stopNow());
    this.#killTimer ??= setTimeout(() => this.kill(), hardStopMs);
    this.#advanceEnd();
  }

  kill(): void {
    this.#isEnding = true;
    this.#forEach((slot) => slot.kill());
    this.#advanceEnd();
  }

  /**
   * The counts of the workers since the last scrape, in fields for the log. `requests_lost`: they were in flight when their workers died
   * during the end, by the workers' last reports. What became of them is in no other count.
   */
  unseen(): LogFields {
    return { ...this.#monitor.unseen(), requests_lost: this.#countLost() - this.#lostBefore };
  }

  #countLost(): number {
    return this.#slots.reduce((sum, slot) => sum + slot.describe().requestsLost, 0);
  }

  reopenLogs(): void {
    this.#forEach((slot) => slot.send({ kind: 'reopen logs' }));
  }

  /** Hands new contents of files to every worker and to their successors. */
  renew(renewed: Renewed): void {
    this.#forEach((slot) => slot.renew(renewed));
  }

  /** Has every worker take the primary that an operator names. Null: the instance is ending, or has no such section. */
  overridePrimary(
    section: string,
    primary: Omit<RememberedPrimary, 'taken'>,
  ): Promise<Overridden | null> {
    return this.#primaries.override(section, primary);
  }

  #forEach(act: (slot: Slot) => void): void {
    for (const slot of this.#slots) act(slot);
  }

  #create(number: number): Slot {
    return new Slot(number, this.#making, {
      onListening: () => {
        if (this.#slots.every((slot) => slot.isListening())) this.#conclude({ kind: 'listening' });
      },
      onClosed: () => {
        if (this.#isEnding) this.#advanceEnd();
      },
      onFailed: (exitCode, reason) => this.#conclude({ kind: 'failed', exitCode, reason }),
      onReport: (slot, report) => this.#monitor.report(slot, report),
      onTablesChanged: (origin) =>
        this.#forEach((slot) => {
          if (slot.number !== origin) slot.send({ kind: 'tables changed' });
        }),
      onEmpty: (slot, delayMs) => this.#refill(slot, delayMs),
      answerers: this.#monitor.answerers,
      primaries: this.#primaries.inForce,
    });
  }

  #conclude(boot: Boot): void {
    this.#concludeBoot?.(boot);
    this.#concludeBoot = null;
  }

  #refill(slot: Slot, delayMs: number): void {
    this.#monitor.retire(slot.number);
    if (this.#isEnding) {
      this.#advanceEnd();
      return;
    }
    if (this.#concludeBoot !== null && isHopeless(slot.restarts() + 1)) {
      const reason = 'workers keep dying at boot';
      this.#conclude({ kind: 'failed', exitCode: exitCodes.unavailable, reason });
      return;
    }
    this.#making.log.info('the slot is filled again', { slot: slot.number, delay_ms: delayMs });
    slot.fillAfter(delayMs);
  }

  #beginEnd(): void {
    if (!this.#isEnding) this.#lostBefore = this.#countLost();
    this.#isEnding = true;
    this.#primaries.freeze();
  }

  #advanceEnd(): void {
    const slots = this.#slots;
    const last = this.#last;
    // Only the worker that closes last must accept all connections left in the kernel's queue, so it drains after the others.
    if (last !== null && slots.every((slot) => slot === last || slot.isClosed())) {
      this.#last = null;
      last.drain(this.#making.socketStays);
    }
    if (slots.every((slot) => slot.isClosed())) this.#onClosed();
    if (slots.every((slot) => slot.isEmpty())) this.#onGone();
  }
}
