// The last ten minutes of one statement, in points of ten seconds: what it takes now, and since when.
// Must not know other statements, nor clocks.
import type { StatementHistory } from '../../shared/observe/statement-sums.ts';

/** How far apart the points are. */
export const statementIntervalMs = 10_000;
/** How many there are, the one that is under way among them. */
export const statementPoints = 60;

/** One statement's, in a ring: some KiB, however long it is kept. */
export class StatementPast {
  readonly #counts = new Float32Array(statementPoints);
  readonly #totalMs = new Float32Array(statementPoints);

  /** @param point counted since the start of all */
  add(point: number, count: number, totalMs: number): void {
    const at = point % statementPoints;
    this.#counts[at] = (this.#counts[at] as number) + count;
    this.#totalMs[at] = (this.#totalMs[at] as number) + totalMs;
  }

  /** A point begins, in the place of the one that is ten minutes old. */
  begin(point: number): void {
    this.#counts[point % statementPoints] = 0;
    this.#totalMs[point % statementPoints] = 0;
  }

  /** The time of all points. */
  sumMs(): number {
    return this.#totalMs.reduce((sum, ms) => sum + ms, 0);
  }

  /** The points from one to another, both among them. */
  told(from: number, to: number): StatementHistory {
    const points = Array.from({ length: to - from + 1 }, (_, at) => (from + at) % statementPoints);
    return {
      count: points.map((at) => this.#counts[at] as number),
      total_ms: points.map((at) => Number((this.#totalMs[at] as number).toFixed(2))),
    };
  }
}
