// The sessions of a pool that clients reserve over several requests: at most half of the pool. Further clients wait until there is room.
import { performance } from 'node:perf_hooks';
import type { Pool } from './pool.ts';
import { LateCheck, type Refusal, type WaitLimit } from './queue.ts';

/** How often it refuses requests that have waited for too long. */
const lateCheckMs = 25;

/** A request that wants to reserve a session. Exactly one of the two is called, once, unless withdrawn. */
export interface Reserving {
  /** How long it may wait. */
  readonly waitLimit: WaitLimit;
  /** There is room, which the request must release. */
  reserved(): void;
  refused(reason: Refusal): void;
}

/** The room for reserved sessions in one pool. */
export class ReservedSessions {
  /** Sessions that are reserved, or about to be. */
  count = 0;
  readonly #pool: Pick<Pool, 'size' | 'admission' | 'isLate'>;
  readonly #waiting: Reserving[] = [];
  readonly #lateCheck = new LateCheck(
    lateCheckMs,
    () => this.#waiting.length > 0,
    () => this.#refuseLate(),
  );
  #inPipeline = 0;
  #isClosed = false;

  constructor(pool: Pick<Pool, 'size' | 'admission' | 'isLate'>) {
    this.#pool = pool;
  }

  /**
   * How many more sessions may be reserved now. At most half of the pool is, rounded up. While the pipeline has the other half, one less is:
   * some statements cannot run in the pipeline.
   */
  get room(): number {
    const { size } = this.#pool;
    const half = Math.ceil(size / 2);
    const max = this.#inPipeline === 0 ? half : Math.min(half, size - this.#inPipeline - 1);
    return max - this.count;
  }

  /** Asks for room: at once, when a session is released, or not at all. */
  acquire(request: Reserving): void {
    if (this.#isClosed) request.refused('stopping');
    else if (this.room > 0 && this.#waiting.length === 0) this.#reserve(request);
    else if (this.#pool.admission.admit()) {
      this.#waiting.push(request);
      this.#lateCheck.begin();
    } else request.refused('queue full');
  }

  /** Gives up waiting. Nothing is called afterwards. */
  withdraw(request: Reserving): void {
    const at = this.#waiting.indexOf(request);
    if (at < 0) return;
    this.#waiting.splice(at, 1);
    this.#pool.admission.leave();
  }

  release(): void {
    this.count -= 1;
    this.#fill();
  }

  /** Notes how many sessions the pipeline has now. */
  notePipeline(sessions: number): void {
    this.#inPipeline = sessions;
    this.#fill();
  }

  /** Refuses the requests that wait, and all later ones. */
  close(): void {
    this.#isClosed = true;
    this.#lateCheck.end();
    for (const request of this.#waiting.splice(0)) {
      this.#pool.admission.leave();
      request.refused('stopping');
    }
  }

  #fill(): void {
    while (this.room > 0) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      this.#pool.admission.leave();
      this.#reserve(next);
    }
  }

  #refuseLate(): void {
    const now = performance.now();
    for (const request of this.#waiting.filter(({ waitLimit }) =>
      this.#pool.isLate(waitLimit, now),
    )) {
      this.withdraw(request);
      request.refused('waited too long');
    }
  }

  #reserve(request: Reserving): void {
    this.count += 1;
    request.reserved();
  }
}
