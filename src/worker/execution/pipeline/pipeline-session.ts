// One session of the pipeline: statements written together, answered in order, ended by the server itself.
import { performance } from 'node:perf_hooks';
import { firstRowCommand, runTogether, statementCommand } from '../../../shared/mysql/commands.ts';
import type { Command } from '../../../shared/mysql/connection.ts';
import type { QueryCommand } from '../../../shared/mysql/query.ts';
import type { Consistency } from '../../servers/consistency/consistency.ts';
import type { WaitLimit } from '../../servers/pool/queue.ts';
import { type Session, staleAfterMs } from '../../servers/pool/session.ts';

/** So many are written together: behind a slow one they cannot be called back. */
export const maxTogether = 32;
/** Where no answer has come for so long, what is not written yet is better off elsewhere. */
export const heldUpMs = 30;
/** What the server allows a statement of the pipeline: others wait behind it. */
export const pipelineLimitMs = 100;
/** Beyond the limit and this, the server is no longer believed to answer. */
const silenceMs = 1_000;
/** Silence is found so often before it is believed: the first time it may be ours, with answers unread. */
const looksForSilence = 2;
/** How long a session may take to be limited. */
const limitingTimeoutMs = 1_000;
/** Longer statements have a session to themselves. In characters. */
export const longestPipelined = 8 * 1024;
const maxBytesPerCharacter = 3;

/** What is asked behind all that is written together: an upper bound of what any of it saw. */
export type Look = {
  readonly session: Session;
  /** Called once, behind the answers; null: there is none. */
  readonly watch: (told: (row: readonly (string | null)[] | null) => void) => void;
};

/** A statement in the pipeline. */
export interface PipelinedStatement {
  readonly command: QueryCommand;
  /** It is about to be written: from here on it may have run. @param look null: nothing is asked behind it */
  written(now: number, look: Look | null): void;
  /** Something before it may have changed the session: its answer is not wanted any more, or not to be had. */
  expelled(): void;
  /** How long it may wait to be written. */
  readonly waitLimit: WaitLimit;
}

/** A session that answers several statements. */
export class PipelineSession {
  readonly session: Session;
  /** Nothing is added any more. */
  isRetiring = false;
  /** Statements may have left something behind in the session. */
  isSpoiled = false;
  /** When the last answer ended, or the first of a batch was written; performance.now(). */
  headSince = performance.now();
  readonly #consistency: Consistency | null;
  readonly #outstanding: PipelinedStatement[] = [];
  #waiting: PipelinedStatement[] = [];
  #silentLooks = 0;

  /** @param consistency null: nothing is asked behind what is written */
  constructor(session: Session, consistency: Consistency | null) {
    this.session = session;
    this.#consistency = consistency;
  }

  /** Whether statements wait to be written, and nothing is in their way. */
  get isDue(): boolean {
    return this.#waiting.length > 0 && this.#outstanding.length === 0;
  }

  /** Whether as much waits as is written together. */
  get isFull(): boolean {
    return this.#waiting.length >= maxTogether;
  }

  /** Statements that are not written yet. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Whether what is added now is not written with the next batch: it waits as those in the queue do. */
  get isDeep(): boolean {
    return this.depth >= maxTogether;
  }

  /** Statements written or about to be. */
  get depth(): number {
    return this.#outstanding.length + this.#waiting.length;
  }

  /** To be called at intervals; returns whether the head has long been unanswered, and not because we did not read. */
  lookForSilence(now: number): boolean {
    const isSilent =
      this.#outstanding.length > 0 && now - this.headSince > pipelineLimitMs + silenceMs;
    this.#silentLooks = isSilent ? this.#silentLooks + 1 : 0;
    return this.#silentLooks >= looksForSilence;
  }

  /** Whether what was written last has been without an answer for longer than is usual here. */
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

  /** Whether the connection is lost, or may be gone without our knowing: not to be used without being asked. */
  isStale(now: number): boolean {
    return (
      this.session.connection.isLost || (this.depth === 0 && now - this.headSince > staleAfterMs)
    );
  }

  add(statement: PipelinedStatement): void {
    this.#waiting.push(statement);
  }

  /** Takes a statement back; returns false when it has been written. */
  withdraw(statement: PipelinedStatement): boolean {
    const at = this.#waiting.indexOf(statement);
    if (at >= 0) this.#waiting.splice(at, 1);
    return at >= 0;
  }

  /** Puts another statement in the place of one that has not been written. */
  replace(statement: PipelinedStatement, by: PipelinedStatement): void {
    const at = this.#waiting.indexOf(statement);
    if (at >= 0) this.#waiting[at] = by;
  }

  /** Sends all statements away: nothing more is written, and what is still answered counts for nothing. */
  expelAll(): void {
    for (const statement of this.#outstanding.slice()) statement.expelled();
    this.expelWaiting();
  }

  /** Sends away what is not written yet. */
  expelWaiting(): void {
    for (const statement of this.#waiting.splice(0)) statement.expelled();
  }

  /** Sends away the statements that are not written yet and have waited for too long. */
  expelLate(isLate: (limit: WaitLimit) => boolean): void {
    if (this.#waiting.length === 0) return;
    const late = this.#waiting.filter(({ waitLimit }) => isLate(waitLimit));
    if (late.length === 0) return;
    this.#waiting = this.#waiting.filter((statement) => !late.includes(statement));
    for (const statement of late) statement.expelled();
  }

  /**
   * Writes what has been added, as much as goes together, in one write, once all that was written before
   * is answered: while a batch runs the next one gathers. On a lost connection nothing is written.
   */
  flush(now: number): void {
    if (!this.isDue) return;
    const batch = this.#takeBatch();
    const asked = this.#consistency === null ? null : createLook(this.session, this.#consistency);
    this.headSince = now;
    if (!this.session.connection.isLost) {
      const look = asked?.look ?? null;
      for (const statement of batch) statement.written(now, look);
    }
    this.#outstanding.push(...batch);
    this.session.isFresh = false;
    const commands: Command[] = batch.map(({ command }) => command);
    if (asked !== null) commands.push(asked.command);
    this.session.connection.sendTogether(commands);
  }

  #takeBatch(): readonly PipelinedStatement[] {
    if (this.#waiting.length > maxTogether) return this.#waiting.splice(0, maxTogether);
    const batch = this.#waiting;
    this.#waiting = [];
    return batch;
  }

  /** Notes that the head's answer has ended; returns how long it was the head, ms. */
  headEnded(now: number): number {
    this.#outstanding.shift();
    const ms = now - this.headSince;
    this.headSince = now;
    return ms;
  }
}

function createLook(session: Session, consistency: Consistency) {
  const watchers: ((row: readonly (string | null)[] | null) => void)[] = [];
  const { connection } = session;
  const { sql } = consistency.queryOn(connection);
  const command = firstRowCommand(sql, connection, (row) => {
    for (const told of watchers) told(row);
  });
  const look: Look = { session, watch: (told) => void watchers.push(told) };
  return { command, look };
}

/**
 * Puts the pipeline's limits on a session, in one write: the time that a statement may take, and READ ONLY, so that the
 * server itself refuses what writes (1792) and nothing has happened when a statement is run again. Both end with the
 * session's reset. Rejects when the server refuses, is silent, or the connection is lost.
 */
export async function limitStatements(session: Session): Promise<void> {
  const { connection } = session;
  // Nothing is open between its statements: no bound is needed, nor pings.
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
