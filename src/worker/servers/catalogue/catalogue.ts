// A worker's knowledge of the tables, views and triggers of its database. The worker reads them when it connects, every minute, and again
// after a statement that may have changed them. Until then it knows nothing about them.
import { performance } from 'node:perf_hooks';
import { RefusedError } from '../../../shared/mysql/commands.ts';
import type { Connection } from '../../../shared/mysql/connection.ts';
import { isSameServer, type ServerIdentity } from '../../../shared/mysql/identity.ts';
import type { NamedStatement } from '../../../shared/named/statement.ts';
import type { Log } from '../../../shared/process/log.ts';
import { type BuiltIns, builtInEverywhere, builtInsOf } from '../../../shared/sql/vocabulary.ts';
import type { Pool } from '../pool/pool.ts';
import type { Refusal } from '../pool/queue.ts';
import type { Session } from '../pool/session.ts';
import { NamedDescriptions } from './named-descriptions.ts';
import { readObjects } from './read-objects.ts';
import type { StoredObjects } from './stored-objects.ts';

const everyMs = 60_000;
const retryMs = 1_000;
/** Maximal age of the catalogue if it cannot be read again. */
const maxAgeMs = 2 * everyMs;
/** Minimal time between readings for a missing name, which may be a new table; the rest after each reading applies too. */
const missMs = 1_000;
/** A reading that takes longer ends with its connection. */
const readingTimeoutMs = 10_000;
/** Minimal time between two reports to the other workers. */
const reportMs = 20;
/** More than a killed statement may take to end. */
const uncertainMs = 2_000;
/**
 * If tables change all the time, a rest follows each reading: a multiple of the reading's time, which doubles until readings take 3 % of a
 * session. After a while without changes the next reading follows at once.
 */
const restFactors = { first: 1, max: 32 } as const;
const quietMs = 10_000;

/**
 * One worker's catalogue. A reading waits in the pool's queue for a session, which it needs for milliseconds: the control connection must be
 * free to kill, the probe's must answer in time, and a connection of its own would cost each server one for each worker. The owner must
 * close it.
 */
export class Catalogue {
  /** The functions that are built in on this server. */
  builtIns: BuiltIns = builtInEverywhere;
  /** The descriptions of named statements, which are read together with the tables. */
  readonly named: NamedDescriptions;
  readonly #pool: Pool;
  readonly #reportChange: () => void;
  readonly #log: Log;
  #phase: 'resting' | 'waiting' | 'reading' | 'closed' = 'resting';
  /** Null: nothing is known. */
  #objects: StoredObjects | null = null;
  #readAt = Number.NEGATIVE_INFINITY;
  #identity: ServerIdentity | null = null;
  #reading: Connection | null = null;
  /** Tables may have changed since the current reading began. */
  #isOutdated = false;
  /** Number of running statements that may change tables. */
  #changing = 0;
  #notBefore = 0;
  #restFactor: number = restFactors.first;
  #failures = 0;
  #timer: NodeJS.Timeout | null = null;
  /** Runs after a report, until the next one is allowed. */
  #reporting: NodeJS.Timeout | null = null;
  #isUnreported = false;

  /** @param reportChange reports to the instance's other workers that tables may have changed */
  constructor(pool: Pool, reportChange: () => void, log: Log) {
    this.#pool = pool;
    this.#reportChange = reportChange;
    this.#log = log;
    this.named = new NamedDescriptions(log);
  }

  /** Replaces the named statements, and reads what the server says about them. */
  useNamed(statements: readonly NamedStatement[]): void {
    this.named.use(statements);
    this.#askInTime();
  }

  /** Reads as soon as there is a session. */
  start(): void {
    this.#ask();
  }

  close(): void {
    this.#phase = 'closed';
    this.#objects = null;
    this.#cancel();
    this.#reading?.destroy(new Error('the catalogue is closing'));
  }

  /** The meanings of tables' names; null: unknown at present. */
  get objects(): StoredObjects | null {
    return this.#objects;
  }

  /** To be called before a statement that may change tables: until its end nothing is known. */
  changeBegins(): void {
    this.#changing += 1;
    this.#objects = null;
    this.#isOutdated = true;
  }

  /**
   * To be called when such a statement has ended.
   * @param isCertain it was answered; otherwise it may go on for as long as a KILL takes
   */
  changeEnds(isCertain: boolean): void {
    this.#changing -= 1;
    this.#changed();
    if (!isCertain) setTimeout(() => this.#changed(), uncertainMs).unref();
  }

  #changed(): void {
    this.#report();
    this.outdate();
  }

  #report(): void {
    this.#isUnreported = this.#reporting !== null;
    if (this.#reporting !== null) return;
    this.#reportChange();
    this.#reporting = setTimeout(() => {
      this.#reporting = null;
      if (this.#isUnreported) this.#report();
    }, reportMs).unref();
  }

  /** Tables may have changed: reads all of them again. */
  outdate(): void {
    this.#objects = null;
    this.#isOutdated = true;
    this.named.outdate();
    this.#cancel();
    this.#askInTime();
  }

  /** To be called if a statement names an unknown table: another client may have created it. The catalogue remains valid. */
  missed(): void {
    const isDue = performance.now() - this.#readAt > missMs;
    if (isDue && this.#phase === 'resting' && this.#failures === 0) this.#askInTime();
  }

  /** To be called for each session that the pool opens: it may have reached another server, or the same one after a restart. */
  sessionOpened({ connection, identity }: Session): void {
    if (this.#identity !== null && isSameServer(this.#identity, identity)) {
      if (this.#timer === null) this.#askInTime();
      return;
    }
    this.#identity = identity;
    this.builtIns = builtInsOf(connection.flavour, connection.serverVersion);
    this.outdate();
  }

  granted(session: Session): void {
    if (this.#phase !== 'waiting') {
      this.#pool.release(session, session.isFresh ? 'clean' : 'unclean');
      return;
    }
    this.#phase = 'reading';
    this.#isOutdated = false;
    void this.#read(session);
  }

  /** Without a database the next opened session is the time to ask again. */
  refused(reason: Refusal): void {
    if (this.#phase !== 'waiting') return;
    this.#phase = 'resting';
    if (reason === 'queue full') {
      this.#forgetIfOld();
      this.#askIn(retryMs);
    } else {
      this.#objects = null;
    }
  }

  async #read(session: Session): Promise<void> {
    const { connection } = session;
    this.#reading = connection;
    const from = performance.now();
    const timer = setTimeout(
      () => connection.destroy(new Error('the tables could not be read in time')),
      readingTimeoutMs,
    );
    try {
      const objects = await readObjects(connection);
      clearTimeout(timer);
      this.#keep(objects, from, connection);
      await this.named.read(connection);
      this.#restAfter(from);
      // A PREPARE that is refused leaves its error in SHOW WARNINGS.
      const verdict = this.named.isEmpty ? 'clean' : 'unclean';
      this.#pool.release(session, connection.isLost ? 'broken' : verdict);
    } catch (error) {
      this.#failed(error);
      this.#pool.release(session, connection.isLost ? 'broken' : 'unclean');
    } finally {
      clearTimeout(timer);
      this.#reading = null;
    }
    if (this.#phase !== 'reading') return;
    this.#phase = 'resting';
    if (this.#failures > 0) this.#askIn(retryMs * Math.min(this.#failures, everyMs / retryMs));
    else if (this.#isOutdated || (!this.named.isCurrent && !connection.isLost)) this.#askInTime();
    else this.#askIn(everyMs);
  }

  #keep(objects: StoredObjects, from: number, { threadId }: Connection): void {
    const now = performance.now();
    const wasQuiet = from - this.#readAt > quietMs;
    this.#restFactor = wasQuiet
      ? restFactors.first
      : Math.min(this.#restFactor * 2, restFactors.max);
    this.#failures = 0;
    this.#readAt = now;
    const isCurrent = !this.#isOutdated && this.#changing === 0;
    if (isCurrent && this.#phase === 'reading') this.#objects = objects;
    this.#log.debug?.('the tables were read', {
      count: objects.count,
      took_ms: Math.round(now - from),
      outdated: !isCurrent,
      connection: threadId,
    });
  }

  #restAfter(from: number): void {
    const now = performance.now();
    this.#notBefore = now + this.#restFactor * (now - from);
  }

  #failed(error: unknown): void {
    this.#failures += 1;
    this.#forgetIfOld();
    // The server's message may quote names; the number says enough.
    const reason = error instanceof RefusedError ? `errno ${error.errno}` : String(error);
    this.#log.debug?.('the tables could not be read', { attempt: this.#failures, reason });
    if (this.#failures !== 1 || this.#phase === 'closed') return;
    this.#log.warn('the tables of the database cannot be read: reads are not pipelined', {
      reason,
    });
  }

  #forgetIfOld(): void {
    if (performance.now() - this.#readAt > maxAgeMs) this.#objects = null;
  }

  #askInTime(): void {
    if (this.#changing === 0) this.#askIn(this.#notBefore - performance.now());
  }

  #askIn(ms: number): void {
    if (this.#phase !== 'resting') return;
    this.#cancel();
    if (ms <= 0) this.#ask();
    else this.#timer = setTimeout(() => this.#ask(), ms).unref();
  }

  #ask(): void {
    this.#timer = null;
    if (this.#phase !== 'resting') return;
    this.#phase = 'waiting';
    this.#pool.request(this);
  }

  #cancel(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }
}
