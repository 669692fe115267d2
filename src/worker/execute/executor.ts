// From statements to a known outcome: the one place where it is decided how they are run.
// Must not know requests or replies.
import type { Statement } from './preparation.ts';
import { Run, type RunContext } from './run.ts';
import type { RunEvents } from './run-events.ts';
import type { RunTimes } from './run-times.ts';

/** Creates the runs of a worker. */
export class Executor {
  readonly #context: RunContext;

  constructor(context: RunContext) {
    this.#context = context;
  }

  /** Creates a run that its owner must start. @param times kept by the run */
  create(statement: Statement, events: RunEvents, times: RunTimes): Run {
    return new Run(this.#context, statement, events, times);
  }
}
