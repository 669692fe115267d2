// Removes old idempotency keys, in small pieces.
import { performance } from 'node:perf_hooks';
import type { IdempotencyTable } from '../../../shared/database/idempotency-table.ts';
import { fetchRows, RefusedError } from '../../../shared/mysql/commands.ts';
import type { Connection } from '../../../shared/mysql/connection.ts';
import type { Log } from '../../../shared/process/log.ts';
import type { Pool } from '../../servers/pool/pool.ts';
import type { Waiter } from '../../servers/pool/queue.ts';
import type { Session } from '../../servers/pool/session.ts';
import { utcTime } from './key-store.ts';

/** Keys outlive their time by at most a tenth of it, and at most by a minute. */
const [minRestMs, maxRestMs] = [500, 60_000];
const restsPerKeep = 10;
/** Rows in one piece. Each piece is a transaction, so that other transactions do not wait for long. */
const pieceRows = 200;
/** How long it borrows a session. If more is left, it asks again after a rest of the same length. */
const sliceMs = 100;
/** A piece, or what the session needs before the first one, is given up with its connection if it takes longer. */
const maxPieceMs = 10_000;

/** It does not wait for transactions that lock a row. */
const shortWait = 'SET SESSION innodb_lock_wait_timeout = 1';
/**
 * It does not lock the gaps between rows: under REPEATABLE READ new keys waited for a DELETE by time (MySQL's manual, "InnoDB
 * Locking").
 */
const readCommitted = 'SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED';
/** ER_BINLOG_STMT_MODE_AND_ROW_ENGINE: READ COMMITTED is refused with binlog_format = STATEMENT. */
const wantsOtherIsolation = 1665;

/** One worker's part of the work. Its creator starts and closes it. */
export class Purge implements Waiter {
  readonly #poolOf: () => Pool | undefined;
  /** The pool of the session that it waits for, or has. */
  #pool: Pool | undefined;
  readonly #table: IdempotencyTable;
  readonly #keepMs: number;
  readonly #log: Log;
  #phase: 'resting' | 'waiting' | 'purging' | 'closed' = 'resting';
  #timer: NodeJS.Timeout | null = null;
  #hasFailed = false;
  #settings = [shortWait, readCommitted];

  /**
   * @param poolOf the pool of the primary; undefined: there is no primary
   * @param keepMs how long a key is kept
   */
  constructor(poolOf: () => Pool | undefined, table: IdempotencyTable, keepMs: number, log: Log) {
    this.#poolOf = poolOf;
    this.#table = table;
    this.#keepMs = keepMs;
    this.#log = log;
  }

  /** The first rest is random: workers that start together do not purge together. */
  start(): void {
    this.#restFor(this.#restMs * Math.random());
  }

  close(): void {
    this.#phase = 'closed';
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  granted(session: Session): void {
    if (this.#phase === 'closed') {
      this.#pool?.release(session, session.isFresh ? 'clean' : 'unclean');
      return;
    }
    this.#phase = 'purging';
    void this.#purge(session);
  }

  refused(): void {
    this.#restFor(this.#restMs);
  }

  get #restMs(): number {
    return Math.min(Math.max(this.#keepMs / restsPerKeep, minRestMs), maxRestMs);
  }

  #restFor(ms: number): void {
    if (this.#phase === 'closed') return;
    this.#phase = 'resting';
    this.#timer = setTimeout(() => this.#ask(), ms).unref();
  }

  #ask(): void {
    this.#pool = this.#poolOf();
    if (this.#pool === undefined) {
      this.#restFor(this.#restMs);
      return;
    }
    this.#phase = 'waiting';
    this.#pool.request(this);
  }

  async #purge(session: Session): Promise<void> {
    const { connection } = session;
    session.isFresh = false;
    let isMoreLeft = false;
    try {
      await inTime(connection, () => this.#prepare(connection));
      isMoreLeft = await this.#removePieces(connection);
      this.#hasFailed = false;
    } catch (error) {
      this.#failed(error);
    }
    this.#pool?.release(session, connection.isLost ? 'broken' : 'unclean');
    this.#restFor(isMoreLeft ? sliceMs : this.#restMs);
  }

  async #prepare(connection: Connection): Promise<void> {
    for (const sql of this.#settings) await fetchRows(connection, sql);
  }

  /** Returns whether there is more to remove. */
  async #removePieces(connection: Connection): Promise<boolean> {
    const until = performance.now() + sliceMs;
    let isFull: boolean;
    do {
      isFull = await inTime(connection, () => this.#removePiece(connection));
    } while (isFull && performance.now() < until);
    return isFull;
  }

  /** Deletes by id, which locks these rows only. Returns whether the piece was full. */
  async #removePiece(connection: Connection): Promise<boolean> {
    const { quoted } = this.#table;
    const before = utcTime(Date.now() - this.#keepMs);
    const old = await fetchRows(
      connection,
      `SELECT HEX(id) FROM ${quoted} WHERE created < '${before}' ORDER BY created LIMIT ${pieceRows}`,
    );
    const ids = old.map(([id]) => `x'${id}'`).join();
    // Another gateway may have removed the key meanwhile, and a client may have used it again.
    const remove = `DELETE FROM ${quoted} WHERE id IN (${ids}) AND created < '${before}'`;
    if (ids !== '') await fetchRows(connection, remove);
    return old.length === pieceRows;
  }

  /** Logs the error number only: the message may quote names. */
  #failed(error: unknown): void {
    if (error instanceof RefusedError && error.errno === wantsOtherIsolation) {
      this.#settings = [shortWait];
      return;
    }
    const reason = error instanceof RefusedError ? `errno ${error.errno}` : String(error);
    this.#log.debug?.('old idempotency keys could not be removed', { reason });
    if (this.#hasFailed || this.#phase === 'closed') return;
    this.#hasFailed = true;
    this.#log.warn('old idempotency keys could not be removed: they are tried again', { reason });
  }
}

/** Does work on a connection, and destroys the connection if that takes too long. */
async function inTime<Result>(
  connection: Connection,
  work: () => Promise<Result>,
): Promise<Result> {
  const timer = setTimeout(
    () => connection.destroy(new Error('old keys could not be removed in time')),
    maxPieceMs,
  );
  try {
    return await work();
  } finally {
    clearTimeout(timer);
  }
}
