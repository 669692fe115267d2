// The pipeline: a few sessions on which quick, clean reads are pipelined, several in one write.
// Must not know replies or HTTP. A connection with several statements outstanding is never sent a KILL:
// the server's own limit ends what is slow.
import { performance } from 'node:perf_hooks';
import type { Log } from '../../../shared/process/log.ts';
import type { Pool } from '../../servers/pool/pool.ts';
import { Relief } from '../../servers/pool/relief.ts';
import type { Server } from '../../servers/server.ts';
import { LatencyTracker } from './latency-tracker.ts';
import { heldUpMs, type PipelinedStatement, type PipelineSession } from './pipeline-session.ts';
import { type PipelineSessionEvents, PipelineSessions } from './pipeline-sessions.ts';
import { WriteBatcher } from './write-batcher.ts';

const mostSessions = 2;
/** Statements that a session may have, written or waiting to be: more than that go to sessions of their own. */
const mostDepth = 256;
const checkMs = 500;

/** What the pipeline has done so far, and the sessions that it holds now. */
export type PipelineObservations = {
  readonly statements: number;
  readonly reruns: number;
  readonly connections: number;
};

/** The server that the pipeline runs statements on. */
type PipelineServer = Pick<Server, 'pool' | 'reserved' | 'catalogue' | 'consistency'>;

/** One worker's pipeline. Its owner must close it before the pool. */
export class Pipeline implements PipelineSessionEvents {
  readonly latencies = new LatencyTracker();
  #statements = 0;
  #reruns = 0;
  readonly #server: PipelineServer;
  readonly #pool: Pool;
  readonly #source: PipelineSessions;
  readonly #sessions: PipelineSession[] = [];
  readonly #batcher = new WriteBatcher({
    size: () => this.#countDue(),
    isFull: () => this.#sessions.every((place) => !place.isDue || place.isFull),
    write: () => this.#writeDue(),
  });
  readonly #relief = new Relief(
    heldUpMs,
    () => this.#countWaiting() > 0,
    () => this.#relieve(),
  );
  #isClosed = false;
  #check: NodeJS.Timeout | null = null;

  constructor(server: PipelineServer, log: Log) {
    this.#server = server;
    this.#pool = server.pool;
    this.#source = new PipelineSessions(server.pool, this, server.consistency, log);
  }

  /** A statement of the pipeline tried to write: what it names has changed. */
  noteWriter(): void {
    this.#server.catalogue.outdate();
  }

  observations(): PipelineObservations {
    return {
      statements: this.#statements,
      reruns: this.#reruns,
      connections: this.#sessions.length,
    };
  }

  /** A session with room for a statement of this shape; null: it runs outside. Opens sessions when they are wanted. */
  placeFor(shape: number, sqlLength: number, now: number): PipelineSession | null {
    if (this.#isClosed || !this.latencies.isQuick(shape, now)) return null;
    if (this.#sessions.length + this.#source.opening < mostSessions) this.#source.open();
    let best: PipelineSession | null = null;
    for (const candidate of this.#sessions) {
      if (!candidate.isOpenTo(sqlLength, now)) continue;
      if (best === null || candidate.depth < best.depth) best = candidate;
    }
    return best !== null && best.depth < mostDepth ? best : null;
  }

  /** Has the statement written with others that come about now. */
  submit(place: PipelineSession, statement: PipelinedStatement): void {
    this.#statements += 1;
    place.add(statement);
    if (place.isDue) this.#batcher.begin();
    else this.#relief.begin();
  }

  #countDue(): number {
    let count = 0;
    for (const place of this.#sessions) if (place.isDue) count += place.waiting;
    return count;
  }

  #writeDue(): void {
    const now = performance.now();
    for (const place of [...this.#sessions]) place.flush(now);
    this.#relief.begin();
  }

  #countWaiting(): number {
    let count = 0;
    for (const place of this.#sessions) count += place.waiting;
    return count;
  }

  /** What waits behind a statement that takes its time runs outside instead, and what has waited for as long as it may. */
  #relieve(): void {
    const now = performance.now();
    for (const place of [...this.#sessions]) {
      if (place.isHeldUp(now)) place.expelWaiting();
      else place.expelLate((limit) => this.#pool.isLate(limit, now));
    }
  }

  /**
   * To be called after an answer that may have changed the session. What is behind it cannot be called back
   * but might read what it left: all of it runs outside, and the session is reset before it serves again.
   */
  spoil(place: PipelineSession): void {
    place.isRetiring = true;
    place.isSpoiled = true;
    place.expelAll();
  }

  /** Notes that a statement which had been written runs once more. */
  noteRerun(): void {
    this.#reruns += 1;
  }

  /** To be called after each answer, loss or withdrawal. */
  ended(place: PipelineSession): void {
    if (place.isDue) this.#batcher.begin();
    if (place.isRetiring || place.session.connection.isLost) this.#takeOutIfIdle(place);
  }

  /** Gives all sessions back as they become idle. */
  close(): void {
    this.#isClosed = true;
    this.#source.close();
    this.#relief.end();
    for (const place of [...this.#sessions]) this.#retire(place);
    this.#stopLookingIfEmpty();
  }

  admitted(place: PipelineSession): void {
    this.#sessions.push(place);
    this.#server.reserved.notePipeline(this.#sessions.length);
    this.#check ??= setInterval(() => this.#look(), checkMs).unref();
  }

  #look(): void {
    const now = performance.now();
    for (const place of [...this.#sessions]) {
      if (place.lookForSilence(now)) {
        place.session.connection.destroy(new Error('the server did not keep the time limit'));
      }
      if (place.isStale(now)) this.#retire(place);
    }
  }

  /** Nothing is added to the session, and it goes back once it is idle. */
  #retire(place: PipelineSession): void {
    place.isRetiring = true;
    this.#takeOutIfIdle(place);
  }

  #takeOutIfIdle(place: PipelineSession): void {
    const at = this.#sessions.indexOf(place);
    if (place.depth > 0 || at < 0) return;
    this.#sessions.splice(at, 1);
    const { session, isSpoiled } = place;
    if (session.connection.isLost) this.#pool.release(session, 'broken');
    else if (isSpoiled && !this.#isClosed) this.#source.renew(session);
    else this.#pool.release(session, 'unclean');
    this.#server.reserved.notePipeline(this.#sessions.length);
    this.#stopLookingIfEmpty();
  }

  /** Until then a server that falls silent must be noticed, or the pool would wait for its session for ever. */
  #stopLookingIfEmpty(): void {
    if (!this.#isClosed || this.#sessions.length > 0 || this.#check === null) return;
    clearInterval(this.#check);
    this.#check = null;
  }
}
