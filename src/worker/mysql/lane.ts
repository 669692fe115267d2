// The lane: a few sessions on which quick, clean reads are pipelined, several in one write.
// Must not know replies or HTTP. A connection with several statements outstanding is never sent a KILL:
// the server's own limit ends what is slow.
import type { Log } from '../../shared/log.ts';
import { LaneSession, type LaneStatement, limitStatements } from './lane-session.ts';
import type { Pool } from './pool.ts';
import { Quickness } from './quickness.ts';
import type { Session } from './session.ts';
import type { Waiter } from './waiter.ts';

const mostSessions = 2;
const mostOutstanding = 32;
const checkMs = 500;

export type LaneObservations = { statements: number; rerun: number };

/** One worker's lane. Its owner must close it before the pool. */
export class Lane {
  readonly quickness = new Quickness();
  readonly observations: LaneObservations = { statements: 0, rerun: 0 };
  readonly #pool: Pool;
  readonly #log: Log;
  readonly #sessions: LaneSession[] = [];
  #opening = 0;
  #flushDue = false;
  #isClosed = false;
  #check: NodeJS.Timeout | null = null;

  constructor(pool: Pool, log: Log) {
    this.#pool = pool;
    this.#log = log;
  }

  /** A session with room for a statement of this shape; null: it runs outside. Opens sessions when they are wanted. */
  placeFor(shape: number, now: number): LaneSession | null {
    if (this.#isClosed || !this.quickness.isQuick(shape, now)) return null;
    if (this.#sessions.length + this.#opening < mostSessions) this.#open();
    let best: LaneSession | null = null;
    for (const candidate of this.#sessions) {
      if (candidate.isRetiring || candidate.isStale(now)) continue;
      if (best === null || candidate.depth < best.depth) best = candidate;
    }
    return best !== null && best.depth < mostOutstanding ? best : null;
  }

  /** Has the statement written with all others of this turn of the event loop. */
  submit(place: LaneSession, statement: LaneStatement): void {
    this.observations.statements += 1;
    place.add(statement);
    if (place.isDue) this.#flushSoon();
  }

  /** At the end of this turn of the event loop, so that its other requests go along. */
  #flushSoon(): void {
    if (this.#flushDue) return;
    this.#flushDue = true;
    setImmediate(() => {
      this.#flushDue = false;
      const now = performance.now();
      for (const place of [...this.#sessions]) place.flush(now);
    });
  }

  /** Takes a session out of the lane: nothing is added to it, and it goes back once it is idle. */
  retire(place: LaneSession): void {
    place.isRetiring = true;
    this.#giveBackIfIdle(place);
  }

  /** To be called after each answer or loss. */
  ended(place: LaneSession): void {
    if (place.isDue) this.#flushSoon();
    if (place.isRetiring || place.session.connection.isLost) this.#giveBackIfIdle(place);
  }

  /** Gives all sessions back as they become idle. */
  close(): void {
    this.#isClosed = true;
    if (this.#check !== null) clearInterval(this.#check);
    for (const place of [...this.#sessions]) this.retire(place);
  }

  #open(): void {
    this.#opening += 1;
    const waiter: Waiter = {
      granted: (session) => void this.#admit(session),
      refused: () => {
        this.#opening -= 1;
      },
    };
    this.#pool.request(waiter);
  }

  async #admit(session: Session): Promise<void> {
    try {
      await limitStatements(session);
      if (this.#isClosed) this.#pool.release(session, 'unclean');
      else this.#sessions.push(new LaneSession(session));
      this.#check ??= setInterval(() => this.#look(), checkMs).unref();
    } catch {
      this.#log.warn('a session could not be prepared for pipelining');
      this.#pool.release(session, 'broken');
    } finally {
      this.#opening -= 1;
    }
  }

  #look(): void {
    const now = performance.now();
    for (const place of [...this.#sessions]) {
      if (place.isSilent(now)) {
        place.session.connection.destroy(new Error('the server did not keep the time limit'));
      }
      if (place.isStale(now)) this.retire(place);
    }
  }

  #giveBackIfIdle(place: LaneSession): void {
    if (place.depth > 0) return;
    const at = this.#sessions.indexOf(place);
    if (at < 0) return;
    this.#sessions.splice(at, 1);
    this.#pool.release(place.session, place.session.connection.isLost ? 'broken' : 'unclean');
  }
}
