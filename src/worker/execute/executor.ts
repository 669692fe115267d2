// How a statement is run: together with identical ones, in the pipeline when its shape is known to be quick and there
// is room, else by itself.
// Must not know requests or replies.
import { performance } from 'node:perf_hooks';
import type { Control } from '../backend/control.ts';
import type { Pool } from '../backend/pool.ts';
import type { Coalescer } from './coalescer.ts';
import { DedicatedRun } from './dedicated-run.ts';
import type { Pipeline } from './pipeline.ts';
import { PipelinedRun } from './pipelined-run.ts';
import type { Statement } from './preparation.ts';
import type { RunEvents, StatementRun } from './statement-run.ts';

/** Creates the runs of a worker. */
export class Executor {
  readonly #pool: Pool;
  readonly #control: Control;
  readonly #pipeline: Pipeline | null;
  readonly #coalescer: Coalescer | null;

  /**
   * @param pipeline null: every statement runs by itself
   * @param coalescer null: every request has its statements run, whatever others ask for
   */
  constructor(
    pool: Pool,
    control: Control,
    pipeline: Pipeline | null,
    coalescer: Coalescer | null,
  ) {
    this.#pool = pool;
    this.#control = control;
    this.#pipeline = pipeline;
    this.#coalescer = coalescer;
  }

  /** Creates a run that its owner must start. */
  create(statement: Statement, events: RunEvents): StatementRun {
    const { coalescingKey } = statement;
    const mayShare =
      this.#coalescer !== null && coalescingKey !== null && events.afterwards === null;
    if (!mayShare || !statement.effects.isRepeatable()) {
      return this.#createOwn(statement, events);
    }
    return this.#coalescer.create(coalescingKey, events, (of) => this.#createOwn(statement, of));
  }

  #createOwn(statement: Statement, events: RunEvents): StatementRun {
    const { sql, shape, effects } = statement;
    const pipeline = this.#pipeline;
    const outside = (of: RunEvents) =>
      new DedicatedRun(this.#pool, this.#control, statement, of, pipeline?.latencies ?? null);
    if (pipeline === null || shape === null || sql === null || events.afterwards !== null) {
      return outside(events);
    }
    const now = performance.now();
    const place = pipeline.placeFor(shape, sql.length, now);
    if (place === null) return outside(events);
    if (!effects.isHarmless()) return outside(events);
    return new PipelinedRun(pipeline, place, { sql, shape, effects }, events, now, outside);
  }
}
