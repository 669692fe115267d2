// All slots of one instance: filled, refilled, watched, asked for their numbers, ended.
// Must not know signals, pidfile or claim.

import type { SectionCredentials } from '../shared/config/credentials.ts';
import { type ExitCode, exitCodes } from '../shared/process/exit-codes.ts';
import type { LogFields } from '../shared/process/log.ts';
import type { RememberedPrimary } from '../shared/servers/primary-memory.ts';
import { createInside } from './inside.ts';
import { type Overridden, openPrimaryMemories } from './primary/primary-memories.ts';
import { isHopeless } from './restart-policy.ts';
import { createSlot, type Making, type Slot } from './slot.ts';

/** How the first boot ended. */
export type Boot =
  | { readonly kind: 'listening' }
  | { readonly kind: 'failed'; readonly exitCode: ExitCode; readonly reason: string };

/** All workers of one instance. */
export type Workers = {
  /** Fills every slot; resolves when all listen, or when that is given up. */
  readonly boot: () => Promise<Boot>;
  /** Tells every worker to finish and end; resolves when none listens any more. Nothing is refilled from here on. */
  readonly drain: () => Promise<void>;
  /** Has every worker kill what it runs in MySQL and exit; after `hardStopMs` those that are left are ended. */
  readonly stopNow: () => void;
  readonly kill: () => void;
  /** Resolves when no worker is left; only after drain or kill. */
  readonly gone: Promise<void>;
  /** What the workers counted and no scrape has told, in fields for the log. */
  readonly unseen: () => LogFields;
  readonly reopenLogs: () => void;
  /** Hands them to every worker, and to those that come later. */
  readonly renew: (credentials: SectionCredentials) => void;
  /** Has every worker take the primary that an operator names. Null: the instance is ending, or has no such section. */
  readonly overridePrimary: (
    section: string,
    primary: Omit<RememberedPrimary, 'taken'>,
  ) => Promise<Overridden | null>;
};

const tickMs = 1000;
/** How long a stop at once takes at most. */
export const hardStopMs = 1000;

/** Creates the workers of an instance, its slots still empty. */
export function createWorkers(making: Making, logLinesLost: () => number): Workers {
  const { sections, log, commits } = making;
  const primaries = openPrimaryMemories(sections, log, (section, memory) => {
    for (const slot of slots) slot.send({ kind: 'primary memory', section, memory });
  });
  const inside = createInside({ sections, slots: () => slots, commits, primaries, logLinesLost });
  let isEnding = false;
  /** Told to drain when all others have closed. */
  let last: Slot | null = null;
  let concludeBoot: ((boot: Boot) => void) | null = null;
  let onGone = () => {};
  let onClosed = () => {};
  let killTimer: NodeJS.Timeout | undefined;
  const gone = new Promise<void>((resolve) => {
    onGone = resolve;
  }).finally(() => {
    clearInterval(ticker);
    clearTimeout(killTimer);
    inside.close();
  });

  const conclude = (boot: Boot) => {
    concludeBoot?.(boot);
    concludeBoot = null;
  };

  /** Only who closes last has to see to it that nobody is left in the kernel's queue: the others leave it to that one. */
  const drainLast = () => {
    if (last === null || !slots.every((slot) => slot === last || slot.isClosed())) return;
    const slot = last;
    last = null;
    slot.drain(making.socketStays);
  };

  const tellIfEnded = () => {
    drainLast();
    if (slots.every((slot) => slot.isClosed())) onClosed();
    if (slots.every((slot) => slot.isEmpty())) onGone();
  };

  const onEmpty = (slot: Slot, delayMs: number) => {
    inside.retire(slot.number);
    if (isEnding) {
      tellIfEnded();
      return;
    }
    if (concludeBoot !== null && isHopeless(slot.restarts() + 1)) {
      const reason = 'workers keep dying at boot';
      conclude({ kind: 'failed', exitCode: exitCodes.unavailable, reason });
      return;
    }
    log.info('the slot is filled again', { slot: slot.number, delay_ms: delayMs });
    slot.fillAfter(delayMs);
  };

  const slots = Array.from({ length: sections[0].workers }, (_, number) =>
    createSlot(number, making, {
      onListening: () => {
        if (slots.every((slot) => slot.isListening())) conclude({ kind: 'listening' });
      },
      onClosed: () => {
        if (isEnding) tellIfEnded();
      },
      onFailed: (exitCode, reason) => conclude({ kind: 'failed', exitCode, reason }),
      onReport: inside.report,
      onTablesChanged: (number) => {
        for (const slot of slots) if (slot.number !== number) slot.send({ kind: 'tables changed' });
      },
      answerers: inside.answerers,
      primaries: primaries.inForce,
      onEmpty,
    }),
  );

  const kill = () => {
    isEnding = true;
    for (const slot of slots) slot.kill();
    tellIfEnded();
  };

  const ticker = setInterval(() => {
    for (const slot of slots) slot.tick();
  }, tickMs);

  return {
    boot: () =>
      new Promise((resolve) => {
        concludeBoot = resolve;
        for (const slot of slots) slot.fill();
      }),
    drain: () =>
      new Promise((resolve) => {
        isEnding = true;
        primaries.freeze();
        onClosed = resolve;
        last = slots.find((slot) => slot.isListening() && !slot.isSilent()) ?? slots[0] ?? null;
        for (const slot of slots) if (slot !== last) slot.drain(true);
        tellIfEnded();
      }),
    stopNow: () => {
      isEnding = true;
      primaries.freeze();
      for (const slot of slots) slot.stopNow();
      killTimer ??= setTimeout(kill, hardStopMs);
      tellIfEnded();
    },
    kill,
    gone,
    unseen: inside.unseen,
    reopenLogs: () => {
      for (const slot of slots) slot.send({ kind: 'reopen logs' });
    },
    renew: (credentials) => {
      for (const slot of slots) slot.renew(credentials);
    },
    overridePrimary: primaries.override,
  };
}
