// One session of the lane: statements written together, answered in order, ended by the server itself.
// Must not know which statements belong here, nor replies.
import { runTogether, statementCommand } from './commands.ts';
import { staleAfterMs } from './preparation.ts';
import type { QueryCommand } from './query.ts';
import type { Session } from './session.ts';

/** What the server allows a statement of the lane: others wait behind it. */
export const laneLimitMs = 100;
/** Beyond the limit and this, the server is no longer believed to answer. */
const silenceMs = 1_000;

/** A statement in the lane. */
export interface LaneStatement {
  readonly command: QueryCommand;
  /** It is about to be written: from here on it may have run. */
  written(): void;
}

/** A session that answers several statements; `retire` it, and give it back when it is `isIdle`. */
export class LaneSession {
  readonly session: Session;
  isRetiring = false;
  /** When the last answer ended, or the first of a batch was written; performance.now(). */
  headSince = performance.now();
  readonly #outstanding: LaneStatement[] = [];
  #batch: LaneStatement[] = [];

  constructor(session: Session) {
    this.session = session;
  }

  /** Whether statements wait to be written, and nothing is in their way. */
  get isDue(): boolean {
    return this.#batch.length > 0 && this.#outstanding.length === 0;
  }

  /** Statements written or about to be. */
  get depth(): number {
    return this.#outstanding.length + this.#batch.length;
  }

  /** Whether the statement at the head has been unanswered for longer than the server allows it. */
  isSilent(now: number): boolean {
    return this.#outstanding.length > 0 && now - this.headSince > laneLimitMs + silenceMs;
  }

  /** Whether the connection is lost, or may be gone without our knowing: not to be used without being asked. */
  isStale(now: number): boolean {
    return (
      this.session.connection.isLost || (this.depth === 0 && now - this.headSince > staleAfterMs)
    );
  }

  add(statement: LaneStatement): void {
    this.#batch.push(statement);
  }

  /**
   * Writes what has been added, in one write, once all that was written before is answered: while a
   * batch runs the next one gathers. On a lost connection nothing is written.
   */
  flush(now: number): void {
    const batch = this.#batch;
    if (batch.length === 0 || this.#outstanding.length > 0) return;
    this.#batch = [];
    this.headSince = now;
    if (!this.session.connection.isLost) {
      for (const statement of batch) statement.written();
    }
    this.#outstanding.push(...batch);
    this.session.isFresh = false;
    this.session.connection.sendTogether(batch.map(({ command }) => command));
  }

  /** Notes that the head's answer has ended; returns how long it was the head, ms. */
  headEnded(now: number): number {
    this.#outstanding.shift();
    const ms = now - this.headSince;
    this.headSince = now;
    return ms;
  }
}

/** Puts the lane's limit on a session. Rejects when the server refuses or the connection is lost. */
export function limitStatements(session: Session): Promise<void> {
  const { connection } = session;
  const sql =
    connection.flavour === 'mariadb'
      ? `SET SESSION max_statement_time=${laneLimitMs / 1000}`
      : `SET SESSION max_execution_time=${laneLimitMs}`;
  session.isFresh = false;
  return runTogether(connection, [statementCommand(sql, connection.columns)]);
}
