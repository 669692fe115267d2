// The pipeline: a few sessions on which quick, clean reads are pipelined, several in one write.
// A connection with several statements outstanding is never sent a KILL: the server's own limit ends what is slow.
import { performance } from 'node:perf_hooks';
import type { ServerError } from '../../../shared/mysql/packets.ts';
import type { QueryCommand, QueryEvents, ResultSink } from '../../../shared/mysql/query.ts';
import type { Log } from '../../../shared/process/log.ts';
import type { Account } from '../../servers/account.ts';
import type { Pool } from '../../servers/pool/pool.ts';
import { LateCheck } from '../../servers/pool/queue.ts';
import type { Session } from '../../servers/pool/session.ts';
import type { WaitLimit } from '../../servers/pool/wait-limit.ts';
import type { Server } from '../../servers/server.ts';
import {
  heldUpMs,
  limitStatements,
  type PipelinedStatement,
  PipelineSession,
  type PositionRead,
  pipelineLimitMs,
} from './pipeline-session.ts';

const maxSessions = 2;
/** Statements that a session may have, written or waiting to be written: more than that go to sessions of their own. */
const maxDepth = 256;
const checkMs = 500;

/** ER_STATEMENT_TIMEOUT of MariaDB, ER_QUERY_TIMEOUT of MySQL. */
const limitErrors = new Set([1969, 3024]);

/** ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION: what was taken for a read writes. */
const readOnlyError = 1792;

/** A statement that the pipeline may run. */
export type QuickRead = {
  readonly sql: string;
  readonly shape: number;
  /** Asked again after the answer: what it names may have changed meanwhile. */
  readonly effects: { isHarmless(): boolean };
};

/** The owner of a read, and the sink of its results. */
export interface PipelineClient extends ResultSink {
  /** Bytes made of the results so far. */
  readonly resultBytes: number;
  /** The trace that the read is part of, as the server receives it. */
  readonly traceparent: string | null;
  /** How long the read may wait to be written. */
  readonly waitLimit: WaitLimit;
  /** From now on the read may have run. */
  pipelineWrote(now: number, position: PositionRead | null): void;
  /** @param isTrusted false: the time limit ended the statement, or the server refused it because it writes */
  pipelineAnswered(error: ServerError | null, isTrusted: boolean): void;
  /** There will be no usable answer here. The read is READ ONLY and may run on another session. */
  pipelineExpelled(): void;
  /** The connection was lost after the read was written. */
  pipelineLost(): void;
}

/** The counts of the pipeline so far, and the sessions that it holds now. */
export type PipelineObservations = {
  readonly statements: number;
  readonly reruns: number;
  readonly connections: number;
};

/** The server that the pipeline runs statements on. */
type PipelineServer = Pick<Server, 'pool' | 'reserved' | 'catalogue' | 'consistency'>;

/** One worker's pipeline. Its owner must close it before the pool. */
export class Pipeline {
  readonly latencies = new LatencyTracker();
  #statements = 0;
  #reruns = 0;
  readonly #server: PipelineServer;
  readonly #pool: Pool;
  readonly #log: Log;
  /** Sessions that are on their way. */
  #opening = 0;
  readonly #sessions: PipelineSession[] = [];
  readonly #batcher = new WriteBatcher({
    size: () => this.#countDue(),
    isFull: () => this.#sessions.every((place) => !place.isDue || place.isFull),
    write: () => this.#writeDue(),
  });
  readonly #lateCheck = new LateCheck(
    heldUpMs,
    () => this.#countWaiting() > 0,
    () => this.#relieve(),
  );
  #isClosed = false;
  #check: NodeJS.Timeout | null = null;

  constructor(server: PipelineServer, log: Log) {
    this.#server = server;
    this.#pool = server.pool;
    this.#log = log;
  }

  observations(): PipelineObservations {
    return {
      statements: this.#statements,
      reruns: this.#reruns,
      connections: this.#sessions.length,
    };
  }

  /**
   * A session with room for a statement of this shape; null: it runs on a session of its own, or waits for one. Opens sessions when they are
   * needed.
   * @param account the client's
   */
  placeFor(
    shape: number,
    sqlLength: number,
    account: Account,
    now: number,
  ): PipelineSession | null {
    if (this.#isClosed || account.room <= 0 || !this.latencies.isQuick(shape, now)) return null;
    const { accounts } = this.#pool;
    const own = accounts.arrive(account, now);
    const comesFirst = accounts.isShared && this.#pool.isBelowShare(own);
    // If it comes first where requests wait, it needs no session of the pipeline, which those behind it would lack.
    const mayOpen = !comesFirst || !this.#pool.isShort;
    if (mayOpen && this.#sessions.length + this.#opening < maxSessions) this.#open();
    const best = this.#findShallowest(sqlLength, now);
    if (best === null || best.depth >= maxDepth) return null;
    return comesFirst && best.isCrowdedFor(own) && this.#pool.isFreeFor(own) ? null : best;
  }

  #findShallowest(sqlLength: number, now: number): PipelineSession | null {
    let best: PipelineSession | null = null;
    for (const candidate of this.#sessions) {
      if (!candidate.isOpenTo(sqlLength, now)) continue;
      if (best === null || candidate.depth < best.depth) best = candidate;
    }
    return best;
  }

  /** Writes the statement together with others that come soon. */
  submit(place: PipelineSession, statement: PipelinedStatement): void {
    this.#statements += 1;
    place.add(statement);
    if (place.isDue) this.#batcher.begin();
    else this.#lateCheck.begin();
  }

  #countDue(): number {
    let count = 0;
    for (const place of this.#sessions) if (place.isDue) count += place.waiting;
    return count;
  }

  #writeDue(): void {
    const now = performance.now();
    for (const place of [...this.#sessions]) place.flush(now);
    this.#lateCheck.begin();
  }

  #countWaiting(): number {
    let count = 0;
    for (const place of this.#sessions) count += place.waiting;
    return count;
  }

  /** Sends away what waits behind a slow statement, and what has waited for as long as it may. */
  #relieve(): void {
    const now = performance.now();
    for (const place of [...this.#sessions]) {
      if (place.isHeldUp(now)) place.expelWaiting();
      else place.expelLate((limit) => this.#pool.isLate(limit, now));
    }
  }

  /**
   * Learns from an answer. Returns whether it is trusted: the server ended it by a limit, or refused it because it writes, if not.
   * @param bytes the size of the result, as far as a client still takes it
   */
  judge(
    place: PipelineSession,
    { shape, effects }: QuickRead,
    flagsClean: boolean,
    error: ServerError | null,
    bytes: number,
  ): boolean {
    const now = performance.now();
    const ms = place.headEnded(now);
    const isRefusedWrite = error?.errno === readOnlyError;
    // An answer that took the limit's time is not trusted: a SLEEP that was ended answers as if it had slept.
    const isLimited = ms >= pipelineLimitMs || (error !== null && limitErrors.has(error.errno));
    if (isLimited || !flagsClean || !effects.isHarmless()) {
      this.latencies.ban(shape, now);
      this.#spoil(place);
    } else {
      this.latencies.notePipelined(shape, ms, bytes, now);
    }
    // The catalogue is out of date about what the statement names.
    if (isRefusedWrite) this.#server.catalogue.outdate();
    return !isLimited && !isRefusedWrite;
  }

  /**
   * An answer may have changed the session. Statements written behind it cannot be called back, and might read what it left, so all of them
   * run on other sessions, and this one is reset before it serves again.
   */
  #spoil(place: PipelineSession): void {
    place.isRetiring = true;
    place.isSpoiled = true;
    place.expelAll();
  }

  /** Counts a statement that was written and runs again on a session of its own. */
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
    this.#lateCheck.end();
    for (const place of [...this.#sessions]) this.#retire(place);
    this.#stopLookingIfEmpty();
  }

  /** Asks the pool for a session. If the pool refuses, nothing happens. */
  #open(): void {
    this.#opening += 1;
    this.#pool.request({
      granted: (session) => void this.#admit(session),
      refused: () => {
        this.#opening -= 1;
      },
    });
  }

  /** Resets a spoiled session and keeps it: the pool might lend it to what the pipeline has just sent away. */
  #renew(session: Session): void {
    this.#opening += 1;
    this.#pool.refresh(session).then(
      () => this.#admit(session),
      () => {
        this.#opening -= 1;
        this.#pool.release(session, 'broken');
      },
    );
  }

  async #admit(session: Session): Promise<void> {
    try {
      await limitStatements(session);
      if (this.#isClosed) this.#pool.release(session, 'unclean');
      else this.#add(new PipelineSession(session, this.#server.consistency, this.#pool));
    } catch {
      this.#log.warn('a session could not be prepared for pipelining');
      this.#pool.release(session, 'broken');
    } finally {
      this.#opening -= 1;
    }
  }

  #add(place: PipelineSession): void {
    this.#sessions.push(place);
    this.#server.reserved.notePipeline(this.#sessions.length);
    this.#check ??= setInterval(() => this.#checkSilence(), checkMs).unref();
  }

  #checkSilence(): void {
    const now = performance.now();
    for (const place of [...this.#sessions]) {
      if (place.checkSilence(now)) {
        place.session.connection.destroy(new Error('the server did not keep the time limit'));
      }
      const isLittleUsed = place.checkUse() && this.#pool.accounts.isShared;
      if (place.isStale(now) || (isLittleUsed && this.#pool.isShort)) this.#retire(place);
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
    else if (isSpoiled && !this.#isClosed) this.#renew(session);
    else this.#pool.release(session, 'unclean');
    this.#server.reserved.notePipeline(this.#sessions.length);
    this.#stopLookingIfEmpty();
  }

  /** Until the last session is given back a silent server must be noticed, or the pool would wait for the session forever. */
  #stopLookingIfEmpty(): void {
    if (!this.#isClosed || this.#sessions.length > 0 || this.#check === null) return;
    clearInterval(this.#check);
    this.#check = null;
  }
}

/** A read that has a place in the pipeline. It calls its client until it is detached. */
export class PipelineEntry implements PipelinedStatement, QueryEvents {
  readonly command: QueryCommand;
  readonly waitLimit: WaitLimit;
  readonly #pipeline: Pipeline;
  readonly #place: PipelineSession;
  readonly #read: QuickRead;
  #client: PipelineClient | null;
  #isWritten = false;

  constructor(pipeline: Pipeline, place: PipelineSession, read: QuickRead, client: PipelineClient) {
    this.#pipeline = pipeline;
    this.#place = place;
    this.#read = read;
    this.#client = client;
    this.waitLimit = client.waitLimit;
    this.command = place.session.createQuery(read.sql, client.traceparent, client, this);
  }

  /** Writes it together with others that come soon. */
  submit(): void {
    this.#pipeline.submit(this.#place, this);
  }

  /** Discards the answer. A statement that has not been written never is. */
  detach(): void {
    this.#client = null;
    void this.command.discardResults();
    if (this.#place.withdraw(this)) this.#pipeline.ended(this.#place);
  }

  /** Gives the place to another client; nothing has been written. */
  handOver(client: PipelineClient): PipelineEntry {
    const next = new PipelineEntry(this.#pipeline, this.#place, this.#read, client);
    this.#place.replace(this, next);
    return next;
  }

  /** The result is not small: reads of its shape stay out of the pipeline for a while. */
  ban(): void {
    this.#pipeline.latencies.ban(this.#read.shape, performance.now());
  }

  written(now: number, position: PositionRead | null): void {
    this.#isWritten = true;
    this.#client?.pipelineWrote(now, position);
  }

  expelled(): void {
    this.#client?.pipelineExpelled();
  }

  answered(flagsClean: boolean, error: ServerError | null): void {
    const bytes = this.#client?.resultBytes ?? 0;
    const isTrusted = this.#pipeline.judge(this.#place, this.#read, flagsClean, error, bytes);
    this.#client?.pipelineAnswered(error, isTrusted);
    this.#pipeline.ended(this.#place);
  }

  lost(): void {
    this.#place.headEnded(performance.now());
    if (this.#isWritten) this.#client?.pipelineLost();
    else this.#client?.pipelineExpelled();
    this.#pipeline.ended(this.#place);
  }
}

/**
 * The longest wait for more statements, in turns of the event loop and in ms. A write and the read of its answer cost most of a small
 * statement, whatever their size: with 48 clients that connect for each request, of which libuv takes one a turn, 4
 * turns instead of none took 147 -> 105 µs of CPU a point query, 64 instead of 4 then 105 -> 89 (and 34 -> 28 µs of
 * the database's).
 */
export const maxTurns = 64;
export const maxMs = 2;

/** The statements that are written together. */
export type Gathering = {
  /** How many statements would be written now. */
  readonly size: () => number;
  /** Whether the next write has no more room. */
  readonly isFull: () => boolean;
  readonly write: () => void;
  /** The clock, in ms; missing: `performance.now`. */
  readonly now?: () => number;
};

const clock = (): number => performance.now();

/** Decides when to write: at the end of a turn of the event loop, later while more statements keep coming. */
export class WriteBatcher {
  readonly #gathering: Gathering;
  readonly #now: () => number;
  #isDue = false;
  #turns = 0;
  #seen = 0;
  #since = 0;
  #lastSize = 0;

  constructor(gathering: Gathering) {
    this.#gathering = gathering;
    this.#now = gathering.now ?? clock;
  }

  /** To be called when a statement has been added. */
  begin(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    this.#turns = 0;
    this.#seen = 0;
    this.#since = this.#now();
    setImmediate(this.#turn);
  }

  /** A single client never waits: only if the last write had several statements, more are expected. */
  readonly #turn = (): void => {
    const size = this.#gathering.size();
    if (this.#lastSize > 1 && size > this.#seen && this.#mayWait()) {
      this.#seen = size;
      this.#turns += 1;
      setImmediate(this.#turn);
      return;
    }
    this.#lastSize = size;
    this.#isDue = false;
    this.#gathering.write();
  };

  #mayWait(): boolean {
    if (this.#turns >= maxTurns || this.#gathering.isFull()) return false;
    return this.#now() - this.#since < maxMs;
  }
}

/** A shape with slower or larger answers stays out of the pipeline. */
const quickMs = 20;
const smallBytes = 8 * 1024;
/** Quick answers in a row that make a shape quick. */
const neededStreak = 8;
/** In the pipeline others wait behind a statement: one answer as slow as this bans its shape at once. */
const slowPipelinedMs = 50;
/** How long a shape is banned; each time for longer, if it is slow again and again. */
const banMs = { first: 250, max: 60_000 } as const;
/** A machine that pauses makes every shape slow once: after this time without another ban the next one is short again. */
const forgiveMs = 10_000;
const maxShapes = 2_000;

type ShapeRecord = { streak: number; banMs: number; bannedUntil: number };

/** Learns from answers which shapes of statements are quick. Forgets the oldest first. Times are performance.now()'s ms. */
export class LatencyTracker {
  readonly #records = new Map<number, ShapeRecord>();

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

  /** Keeps a shape out of the pipeline, each time for longer. Several bans during one count once. */
  ban(shape: number, now: number): void {
    const record = this.#recordOf(shape);
    record.streak = 0;
    if (now < record.bannedUntil) return;
    if (now - record.bannedUntil > forgiveMs) record.banMs = banMs.first;
    record.bannedUntil = now + record.banMs;
    record.banMs = Math.min(record.banMs * 2, banMs.max);
  }

  #recordOf(shape: number): ShapeRecord {
    let record = this.#records.get(shape);
    if (record === undefined) {
      if (this.#records.size >= maxShapes) {
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
