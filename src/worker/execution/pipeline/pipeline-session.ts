// One session of the pipeline: statements written together, answered in order, ended by the server itself.
import { performance } from 'node:perf_hooks';
import { firstRowCommand, runTogether, statementCommand } from '../../../shared/mysql/commands.ts';
import type { Command } from '../../../shared/mysql/connection.ts';
import type { QueryCommand } from '../../../shared/mysql/query.ts';
import type { Consistency } from '../../servers/consistency/consistency.ts';
import type { Queued } from '../../servers/pool/client-line.ts';
import { FairQueue } from '../../servers/pool/fair-queue.ts';
import type { Pool } from '../../servers/pool/pool.ts';
import type { PoolAccount, PoolAccounts } from '../../servers/pool/pool-accounts.ts';
import { type Session, staleAfterMs } from '../../servers/pool/session.ts';
import type { WaitLimit } from '../../servers/pool/wait-limit.ts';

/** Statements in one write: behind a slow one they cannot be called back. */
export const maxTogether = 32;
/** If no answer has come for this time, statements that are not written yet run on other sessions. */
export const heldUpMs = 30;
/** The time limit of a statement in the pipeline: others wait behind it. */
export const pipelineLimitMs = 100;
/** The server is taken for silent after the limit and this time. */
const silenceMs = 1_000;
/** Checks that must find silence: at the first one, answers may be there that the worker has not read. */
const checksForSilence = 2;
/** How long a session may take to be limited. */
const limitingTimeoutMs = 1_000;
/** Longer statements run on a session of their own. In characters. */
export const longestPipelined = 8 * 1024;
const maxBytesPerCharacter = 3;
/** A client below its share does not wait for longer behind the statements of others if it can have a session of its own. */
const crowdedMs = 1;
/** A session that never has more statements at once saves nothing. */
const fewStatements = 2;
/** The usual time between two answers follows about so many answers. */
const answersForUsual = 8;
/** The time of a statement, in ms, while none has been answered. */
const minUsualMs = 0.01;

/** The question about the position after one write: an upper bound of what any of its statements saw. */
export type PositionRead = {
  readonly session: Session;
  /** Its callbacks run once, after the answers; null: the server has not answered it. */
  readonly watch: (callback: (row: readonly (string | null)[] | null) => void) => void;
};

/** A statement in the pipeline. */
export interface PipelinedStatement extends Queued {
  readonly command: QueryCommand;
  /** It is about to be written: from now on it may have run. @param position null: nothing is asked after it */
  written(now: number, position: PositionRead | null): void;
  /** There will be no usable answer: a statement before it may have changed the session, or it has waited for too long. */
  expelled(): void;
}

/** The parts of the pool that decide whose statements are written first. */
export type PipelinePool = Pick<Pool, 'accounts' | 'isBelowShare'>;

/** A session that answers several statements. */
export class PipelineSession {
  readonly session: Session;
  /** It takes no further statements. */
  isRetiring = false;
  /** Statements may have left something behind in the session. */
  isSpoiled = false;
  /** When the last answer ended, or the first statement of a write was sent; performance.now(). */
  headSince = performance.now();
  readonly #consistency: Consistency | null;
  readonly #accounts: PoolAccounts;
  readonly #outstanding: PipelinedStatement[] = [];
  readonly #waiting: FairQueue<PipelinedStatement>;
  #silentChecks = 0;
  /** The usual time between two answers, in ms. */
  #usualMs = 0;
  /** The most statements that it has had at once since the last check. */
  #deepest = 0;

  /** @param consistency null: positions are not tracked */
  constructor(session: Session, consistency: Consistency | null, pool: PipelinePool) {
    this.session = session;
    this.#consistency = consistency;
    this.#accounts = pool.accounts;
    this.#waiting = new FairQueue(pool.accounts, {
      mayTake: () => true,
      isBelowShare: (own) => pool.isBelowShare(own),
    });
  }

  /** Whether statements wait, and all that was written is answered. */
  get isDue(): boolean {
    return this.#waiting.length > 0 && this.#outstanding.length === 0;
  }

  /** Whether the next write is full. */
  get isFull(): boolean {
    return this.#waiting.length >= maxTogether;
  }

  /** Statements that are not written yet. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Whether a further statement would miss the next write: it waits as those in the queue do. */
  get isDeep(): boolean {
    return this.depth >= maxTogether;
  }

  /** Statements that are written or wait to be written. */
  get depth(): number {
    return this.#outstanding.length + this.#waiting.length;
  }

  /**
   * Whether a statement of a client would wait behind a batch of other clients' statements: most of what is here is theirs, and takes longer
   * than a millisecond.
   */
  isCrowdedFor(own: PoolAccount): boolean {
    if (this.depth * this.#usualMs <= crowdedMs) return false;
    let count = this.#waiting.waitingOf(own);
    for (const { waitLimit } of this.#outstanding)
      if (waitLimit.account === own.account) count += 1;
    return count * 2 < this.depth;
  }

  /** Must be called at intervals. Returns whether it has gathered too few statements since the last call to be worth a connection. */
  checkUse(): boolean {
    const deepest = this.#deepest;
    this.#deepest = this.depth;
    return deepest <= fewStatements;
  }

  /** Must be called at intervals. Returns whether the server has been silent for long, although the worker has read all. */
  checkSilence(now: number): boolean {
    const isSilent =
      this.#outstanding.length > 0 && now - this.headSince > pipelineLimitMs + silenceMs;
    this.#silentChecks = isSilent ? this.#silentChecks + 1 : 0;
    return this.#silentChecks >= checksForSilence;
  }

  /** Whether the head has been without an answer for longer than is usual. */
  isHeldUp(now: number): boolean {
    return this.#outstanding.length > 0 && now - this.headSince > heldUpMs;
  }

  /** Whether a statement of so many characters may be added. */
  isOpenTo(sqlLength: number, now: number): boolean {
    return !this.isRetiring && !this.isStale(now) && !this.isHeldUp(now) && this.#takes(sqlLength);
  }

  /** Whether it is short enough, for the pipeline and for the server. */
  #takes(sqlLength: number): boolean {
    const maxBytes = sqlLength * maxBytesPerCharacter;
    return sqlLength <= longestPipelined && maxBytes <= this.session.maxTextBytes;
  }

  /** Whether the connection is lost, or was idle for so long that it may be gone. */
  isStale(now: number): boolean {
    return (
      this.session.connection.isLost || (this.depth === 0 && now - this.headSince > staleAfterMs)
    );
  }

  add(statement: PipelinedStatement): void {
    this.#waiting.add(statement);
    statement.waitLimit.account.enter();
    if (this.depth > this.#deepest) this.#deepest = this.depth;
  }

  /** Takes a statement back; returns false when it has been written. */
  withdraw(statement: PipelinedStatement): boolean {
    if (!this.#waiting.remove(statement)) return false;
    statement.waitLimit.account.leave();
    return true;
  }

  /** Replaces a statement that has not been written. */
  replace(statement: PipelinedStatement, by: PipelinedStatement): void {
    if (!this.#waiting.replace(statement, by)) return;
    by.waitLimit.account.enter();
    statement.waitLimit.account.leave();
  }

  /** Sends all statements away. Answers that still come are ignored. */
  expelAll(): void {
    for (const statement of this.#outstanding.slice()) statement.expelled();
    this.expelWaiting();
  }

  /** Sends away what is not written yet. */
  expelWaiting(): void {
    const all = this.#waiting.clear();
    for (const { waitLimit } of all) waitLimit.account.leave();
    for (const statement of all) statement.expelled();
  }

  /** Sends away the statements that are not written yet and have waited for too long. */
  expelLate(isLate: (limit: WaitLimit) => boolean): void {
    if (this.#waiting.length === 0) return;
    const late = [...this.#waiting].filter(({ waitLimit }) => isLate(waitLimit));
    for (const statement of late) if (this.withdraw(statement)) statement.expelled();
  }

  /**
   * Writes the waiting statements in one write, once all that was written before is answered: the next ones gather meanwhile. On a lost
   * connection nothing is written.
   */
  flush(now: number): void {
    if (!this.isDue) return;
    const batch = this.#takeBatch(now);
    const asked =
      this.#consistency === null ? null : createPositionRead(this.session, this.#consistency);
    this.headSince = now;
    if (!this.session.connection.isLost) {
      const position = asked?.position ?? null;
      for (const statement of batch) statement.written(now, position);
    }
    this.#outstanding.push(...batch);
    this.session.isFresh = false;
    const commands: Command[] = batch.map(({ command }) => command);
    if (asked !== null) commands.push(asked.command);
    this.session.connection.sendTogether(commands);
  }

  /** Clients take turns, as if each statement took the usual time. */
  #takeBatch(now: number): readonly PipelinedStatement[] {
    const all = this.#waiting.length <= maxTogether ? this.#waiting.takeAll() : null;
    if (all !== null) return all;
    this.#accounts.noteWait(true, now);
    const batch: PipelinedStatement[] = [];
    while (batch.length < maxTogether) {
      const next = this.#waiting.take(now);
      if (next === undefined) break;
      batch.push(next);
      this.#accounts.of(next.waitLimit.account).pledgedMs += Math.max(this.#usualMs, minUsualMs);
    }
    for (const { waitLimit } of batch) this.#accounts.of(waitLimit.account).pledgedMs = 0;
    return batch;
  }

  /** Notes that the head's answer has ended, which its client pays for. Returns how long it was the head, in ms. */
  headEnded(now: number): number {
    const head = this.#outstanding.shift();
    const ms = now - this.headSince;
    this.headSince = now;
    this.#usualMs += (ms - this.#usualMs) / answersForUsual;
    if (head !== undefined) {
      const { account } = head.waitLimit;
      this.#accounts.of(account).add(ms);
      account.leave();
    }
    return ms;
  }
}

function createPositionRead(session: Session, consistency: Consistency) {
  const watchers: ((row: readonly (string | null)[] | null) => void)[] = [];
  const { connection } = session;
  const { sql } = consistency.queryOn(connection);
  const command = firstRowCommand(sql, connection, (row) => {
    for (const callback of watchers) callback(row);
  });
  const position: PositionRead = { session, watch: (callback) => void watchers.push(callback) };
  return { command, position };
}

/**
 * Puts the pipeline's limits on a session, in one write: a time limit for each statement, and READ ONLY. The server then refuses
 * what writes (1792), so that a statement can safely run again. A reset of the session ends both. Rejects when the server refuses, is
 * silent, or the connection is lost.
 */
export async function limitStatements(session: Session): Promise<void> {
  const { connection } = session;
  // No transaction is open between its statements: the idle limit is not needed.
  const sql =
    connection.flavour === 'mariadb'
      ? `SET SESSION max_statement_time=${pipelineLimitMs / 1000}`
      : `SET SESSION max_execution_time=${pipelineLimitMs}, wait_timeout=DEFAULT`;
  session.isFresh = false;
  const timer = setTimeout(
    () => connection.destroy(new Error('the session was not limited in time')),
    limitingTimeoutMs,
  );
  try {
    await runTogether(
      connection,
      [sql, 'SET SESSION TRANSACTION READ ONLY'].map((each) => statementCommand(each, connection)),
    );
  } finally {
    clearTimeout(timer);
  }
}
