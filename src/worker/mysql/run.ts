// One request's statements from waiting for a session to a known end; sent once at most.
// Must not know HTTP or the reply's shape: results go to a sink, the end to a callback.
import { runTogether, statementCommand } from './commands.ts';
import type { Connection } from './connection.ts';
import type { Control } from './control.ts';
import type { ServerError } from './packets.ts';
import type { Pool, Refusal, Waiter } from './pool.ts';
import { QueryCommand, type QueryOwner, type ResultSink } from './query.ts';
import type { Session } from './session.ts';

/** What is to be run, and what is known about it. */
export type Statement = {
  /** null: nothing to run, the session alone is wanted. */
  readonly sql: string | null;
  /** Killing it changes nothing. */
  readonly isRead: boolean;
  /** It reads what an earlier statement may have left in the session. */
  readonly needsFreshSession: boolean;
  /** It cannot have changed the session, as far as its text tells; the server's flags must agree. */
  readonly leavesSessionClean: boolean;
  /** It runs inside a READ ONLY transaction. */
  readonly isReadOnly: boolean;
};

/** Why a run was stopped from outside. */
export type StopReason = 'deadline' | 'client gone' | 'stalled' | 'too large' | 'stopping';

/** What became of the statements. */
export type RunEnd =
  /** MySQL answered to the end; the error, if any, has been given to the sink. */
  | { readonly kind: 'answered'; readonly error: ServerError | null }
  /** Nothing was sent to MySQL. */
  | { readonly kind: 'not executed'; readonly reason: Refusal | StopReason }
  /** Stopped while running; whatever MySQL may still answer is not trusted. */
  | { readonly kind: 'stopped'; readonly reason: StopReason }
  /** The connection was lost after the statement was sent. */
  | { readonly kind: 'lost' };

/** Work on the connection between the statements' end and the session's release. */
export type Afterwards = (connection: Connection, error: ServerError | null) => Promise<void>;

/** Whoever asks for a run. */
export interface RunOwner {
  readonly sink: ResultSink;
  readonly afterwards: Afterwards | null;
  /** Called exactly once. */
  runEnded(end: RunEnd): void;
}

/** KILL's answer, the statement's answer and the reset together may take this long. */
const killTimeoutMs = 1_000;

type Phase = 'waiting' | 'preparing' | 'running' | 'ended';

/** One run. `start` asks for a session; `stop` may be called at any time. */
export class Run implements Waiter, QueryOwner {
  readonly #pool: Pool;
  readonly #control: Control;
  readonly #statement: Statement;
  readonly #owner: RunOwner;
  #phase: Phase = 'waiting';
  #session: Session | null = null;
  #command: QueryCommand | null = null;
  #mayTryAnother = true;
  readonly #askedAt = performance.now();
  #grantedAt = 0;

  constructor(pool: Pool, control: Control, statement: Statement, owner: RunOwner) {
    this.#pool = pool;
    this.#control = control;
    this.#statement = statement;
    this.#owner = owner;
  }

  start(): void {
    this.#pool.request(this);
  }

  /** How long the run has waited for its session, ms. */
  get queueMs(): number {
    return (this.#grantedAt === 0 ? performance.now() : this.#grantedAt) - this.#askedAt;
  }

  /** How long the statements have been running, ms. */
  get databaseMs(): number {
    return this.#grantedAt === 0 ? 0 : performance.now() - this.#grantedAt;
  }

  granted(session: Session): void {
    this.#session = session;
    this.#grantedAt = performance.now();
    const { needsFreshSession, isReadOnly } = this.#statement;
    if (isReadOnly || (needsFreshSession && !session.isFresh)) {
      this.#phase = 'preparing';
      void this.#prepare(session);
    } else {
      this.#send(session);
    }
  }

  refused(reason: Refusal): void {
    this.#end({ kind: 'not executed', reason });
  }

  /** The reader does not keep up: no more rows for now. */
  pause(): void {
    if (this.#phase === 'running') this.#session?.connection.pause();
  }

  resume(): void {
    if (this.#phase === 'running') this.#session?.connection.resume();
  }

  /** Lets the statements run to their end though nobody wants the results any more. */
  abandonResults(): void {
    void this.#command?.discardResults();
    this.resume();
  }

  /** Ends the run: withdraws it from the queue, or kills what runs. */
  stop(reason: StopReason): void {
    if (this.#phase === 'waiting') {
      this.#pool.withdraw(this);
      this.#end({ kind: 'not executed', reason });
    } else if (this.#phase === 'preparing') {
      this.#end({ kind: 'not executed', reason });
    } else if (this.#phase === 'running') {
      this.#end({ kind: 'stopped', reason });
      void this.#kill();
    }
  }

  async #prepare(session: Session): Promise<void> {
    const { needsFreshSession, isReadOnly } = this.#statement;
    try {
      if (needsFreshSession && !session.isFresh) await session.reset();
      if (isReadOnly) {
        session.isFresh = false;
        const begin = statementCommand('START TRANSACTION READ ONLY', session.connection.columns);
        await runTogether(session.connection, [begin]);
      }
    } catch {
      this.#tryAnother(session);
      return;
    }
    if (this.#phase === 'preparing') this.#send(session);
    else this.#pool.release(session, session.isFresh ? 'clean' : 'unclean');
  }

  /** Nothing has been sent yet: another session may be tried, once. */
  #tryAnother(session: Session): void {
    this.#pool.release(session, 'broken');
    if (this.#phase === 'ended') return;
    if (!this.#mayTryAnother) {
      this.#end({ kind: 'not executed', reason: 'database unreachable' });
      return;
    }
    this.#mayTryAnother = false;
    this.#phase = 'waiting';
    this.#pool.request(this);
  }

  #send(session: Session): void {
    const { connection } = session;
    const { sql } = this.#statement;
    if (connection.isLost) {
      this.#tryAnother(session);
      return;
    }
    this.#phase = 'running';
    if (sql === null) {
      this.answered(true, null);
      return;
    }
    session.isFresh = false;
    this.#command = new QueryCommand(sql, connection.columns, this.#owner.sink, this);
    connection.send(this.#command);
  }

  answered(flagsClean: boolean, error: ServerError | null): void {
    if (this.#phase !== 'running') return;
    const { afterwards } = this.#owner;
    if (afterwards === null) this.#finish(flagsClean, error);
    else void this.#runAfterwards(afterwards, flagsClean, error);
  }

  lost(): void {
    if (this.#phase !== 'running') return;
    this.#end({ kind: 'lost' });
    this.#pool.release(this.#session as Session, 'broken');
  }

  async #runAfterwards(
    afterwards: Afterwards,
    flagsClean: boolean,
    error: ServerError | null,
  ): Promise<void> {
    try {
      await afterwards((this.#session as Session).connection, error);
    } catch {
      this.lost();
      return;
    }
    if (this.#phase === 'running') this.#finish(flagsClean, error);
  }

  #finish(flagsClean: boolean, error: ServerError | null): void {
    const session = this.#session as Session;
    const { leavesSessionClean, isReadOnly } = this.#statement;
    this.#end({ kind: 'answered', error });
    session.connection.resume();
    const isClean = flagsClean && leavesSessionClean && !isReadOnly;
    this.#pool.release(session, isClean ? 'clean' : 'unclean');
  }

  /**
   * The run has ended for its owner. The connection goes back only when KILL and the statement have
   * both been answered and the session is reset, so that no kill hits what comes next on it.
   */
  async #kill(): Promise<void> {
    const session = this.#session as Session;
    const { connection, identity } = session;
    const givenUpAt = performance.now() + killTimeoutMs;
    const timer = setTimeout(
      () => connection.destroy(new Error('the killed statement did not end')),
      killTimeoutMs,
    );
    const answer = this.#command?.discardResults() ?? Promise.resolve();
    connection.resume();
    const killed = await this.#control.kill(connection, identity);
    if (killed) await answer;
    clearTimeout(timer);
    if (killed && !connection.isLost) {
      this.#pool.release(session, 'unclean', Math.max(givenUpAt - performance.now(), 1));
    } else {
      this.#control.noteRunningOn(connection.threadId, identity);
      this.#pool.release(session, 'broken');
    }
  }

  #end(end: RunEnd): void {
    if (this.#phase === 'ended') return;
    this.#phase = 'ended';
    this.#owner.runEnded(end);
  }
}
