// Which shapes of statements are known to be quick, from how long they took.
// Pure but for its memory. Must not know connections.

/** Answers slower or larger than this make a shape no candidate for the pipeline. */
const quickMs = 20;
const smallBytes = 8 * 1024;
/** So many quick answers in a row make a shape quick. */
const neededStreak = 8;
/** In the pipeline others wait behind a statement: one this slow costs its shape the place at once. */
const slowPipelinedMs = 50;
/** How long a shape stays away; longer each time, as long as it is slow again and again. */
const banMs = { first: 250, most: 60_000 } as const;
/** A machine that pauses makes every shape slow once: after this time without a further one it is forgotten. */
const forgiveMs = 10_000;
const mostShapes = 2_000;

type Record = { streak: number; banMs: number; bannedUntil: number };

/** Remembers shapes; the oldest are forgotten first. Times are performance.now()'s ms. */
export class LatencyTracker {
  readonly #records = new Map<number, Record>();

  isQuick(shape: number, now: number): boolean {
    const record = this.#records.get(shape);
    return record !== undefined && record.streak >= neededStreak && now >= record.bannedUntil;
  }

  /** Notes an answer outside of the pipeline. */
  noteOutside(shape: number, ms: number, bytes: number): void {
    const record = this.#recordOf(shape);
    if (ms <= quickMs && bytes <= smallBytes) record.streak += 1;
    else record.streak = 0;
  }

  /** Notes an answer in the pipeline. */
  notePipelined(shape: number, ms: number, bytes: number, now: number): void {
    if (ms > slowPipelinedMs || bytes > smallBytes) this.ban(shape, now);
  }

  /** Puts a shape out of the pipeline, each time for longer; what is still to come of one incident counts once. */
  ban(shape: number, now: number): void {
    const record = this.#recordOf(shape);
    record.streak = 0;
    if (now < record.bannedUntil) return;
    if (now - record.bannedUntil > forgiveMs) record.banMs = banMs.first;
    record.bannedUntil = now + record.banMs;
    record.banMs = Math.min(record.banMs * 2, banMs.most);
  }

  #recordOf(shape: number): Record {
    let record = this.#records.get(shape);
    if (record === undefined) {
      if (this.#records.size >= mostShapes) {
        for (const oldest of this.#records.keys()) {
          this.#records.delete(oldest);
          break;
        }
      }
      record = { streak: 0, banMs: banMs.first, bannedUntil: 0 };
      this.#records.set(shape, record);
    }
    return record;
  }
}
