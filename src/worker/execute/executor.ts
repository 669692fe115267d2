// From statements to a known outcome: the one place where it is decided how they are run.
// Must not know requests or replies.
import type { Batch } from './batch.ts';
import { BatchRun } from './batch-run.ts';
import type { Execution } from './execution.ts';
import { KeyedRun } from './keyed-run.ts';
import type { Statement } from './preparation.ts';
import { Run, type RunContext } from './run.ts';
import type { RunEvents } from './run-events.ts';
import type { RunTimes } from './run-times.ts';

/** What is asked for: one text, or several statements in a transaction. */
export type Work = Statement | Batch;

/** Which of both it is. */
export function isBatch(work: Work): work is Batch {
  return 'steps' in work;
}

/** Creates the runs of a worker. */
export class Executor {
  readonly #context: RunContext;

  constructor(context: RunContext) {
    this.#context = context;
  }

  /** Creates a run that its owner must start. @param times kept by the run */
  create(work: Work, events: RunEvents, times: RunTimes): Execution {
    const context = this.#context;
    if (!isBatch(work)) return new Run(context, work, events, times);
    const { key } = work;
    if (key === null) return new BatchRun(context, work, events, times, null);
    const { ledger } = context;
    if (ledger === null) throw new Error('a key came where there is no table of keys');
    return new KeyedRun(context, ledger, { batch: work, key }, events, times);
  }
}
