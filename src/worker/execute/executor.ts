// How a statement is run: in a flight with identical ones, in the lane when its shape is known to be quick and there
// is room, else by itself.
// Must not know requests or replies.
import { performance } from 'node:perf_hooks';
import type { Control } from '../backend/control.ts';
import type { Pool } from '../backend/pool.ts';
import type { Flights } from './coalescer.ts';
import { Run } from './dedicated-run.ts';
import type { Lane } from './pipeline.ts';
import { LaneRun } from './pipelined-run.ts';
import type { Statement } from './preparation.ts';
import type { RunOwner, StatementRun } from './statement-run.ts';

/** Creates the runs of a worker. */
export class Runs {
  readonly #pool: Pool;
  readonly #control: Control;
  readonly #lane: Lane | null;
  readonly #flights: Flights | null;

  /**
   * @param lane null: every statement runs by itself
   * @param flights null: every request has its statements run, whatever others ask for
   */
  constructor(pool: Pool, control: Control, lane: Lane | null, flights: Flights | null) {
    this.#pool = pool;
    this.#control = control;
    this.#lane = lane;
    this.#flights = flights;
  }

  /** Creates a run that its owner must start. */
  create(statement: Statement, owner: RunOwner): StatementRun {
    const { flightKey } = statement;
    const mayShare = this.#flights !== null && flightKey !== null && owner.afterwards === null;
    if (!mayShare || !statement.effects.isRepeatable()) {
      return this.#createOwn(statement, owner);
    }
    return this.#flights.create(flightKey, owner, (of) => this.#createOwn(statement, of));
  }

  #createOwn(statement: Statement, owner: RunOwner): StatementRun {
    const { sql, shape, effects } = statement;
    const lane = this.#lane;
    const outside = (of: RunOwner) =>
      new Run(this.#pool, this.#control, statement, of, lane?.quickness ?? null);
    if (lane === null || shape === null || sql === null || owner.afterwards !== null) {
      return outside(owner);
    }
    const now = performance.now();
    const place = lane.placeFor(shape, sql.length, now);
    if (place === null) return outside(owner);
    if (!effects.isHarmless()) return outside(owner);
    return new LaneRun(lane, place, { sql, shape, effects }, owner, now, outside);
  }
}
