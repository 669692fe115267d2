// From statements to a known outcome: the one place where it is decided how they are run.
// Must not know requests or replies.
import type { Token } from '../servers/consistency/token.ts';
import type { Batch } from './batch.ts';
import { BatchRun } from './batch-run.ts';
import type { Execution } from './execution.ts';
import { KeyedRun } from './idempotency/keyed-run.ts';
import type { Ledger } from './idempotency/ledger.ts';
import type { CreateRun, Launcher } from './launcher.ts';
import type { Statement } from './preparation.ts';
import { Run } from './run.ts';
import type { RunEvents } from './run-events.ts';
import type { RunTimes } from './run-times.ts';

/** A step of a transaction that its client holds: it runs where that is. */
export interface HeldStep extends Pick<Statement, 'sql' | 'isRead' | 'isReadOnly' | 'effects'> {
  /** Creates a run that its owner must start. */
  launch(after: Token | null, events: RunEvents, times: RunTimes): Execution;
}

/** What is asked for: one text, several statements in a transaction, or a step of one that stays open. */
export type Work = Statement | Batch | HeldStep;

/** Whether it is several statements. */
export function isBatch(work: Work): work is Batch {
  return 'steps' in work;
}

/** Whether it runs in a transaction that its client holds. */
export function isHeldStep(work: Work): work is HeldStep {
  return 'launch' in work;
}

/** Creates the runs of a section. */
export class Executor {
  readonly #launcher: Launcher;
  readonly #ledger: Ledger | null;

  /** @param ledger null: requests have no keys */
  constructor(launcher: Launcher, ledger: Ledger | null) {
    this.#launcher = launcher;
    this.#ledger = ledger;
  }

  /**
   * Creates a run that its owner must start.
   * @param after what the client has seen before; null: it does not say
   * @param times kept by the run
   */
  create(work: Work, after: Token | null, events: RunEvents, times: RunTimes): Execution {
    if (isHeldStep(work)) return work.launch(after, events, times);
    const key = isBatch(work) ? work.key : null;
    if (isBatch(work) && key !== null) {
      if (this.#ledger === null) throw new Error('a key came where there is no table of keys');
      return new KeyedRun(this.#launcher, this.#ledger, { batch: work, key, after }, events, times);
    }
    const create: CreateRun = (context, to) =>
      isBatch(work)
        ? new BatchRun(context, { batch: work, attempt: null, after }, to, times)
        : new Run(context, work, to, times, after);
    const wish = { isReadOnly: work.isReadOnly, hasKey: false, after, needsPrimary: false };
    return this.#launcher.launch(wish, create, events, times);
  }
}
