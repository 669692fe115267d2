// One request's statements from waiting for a session to a known end; sent once at most.
// Must not know HTTP or the reply's shape: results go to a sink, the end to a callback.
import { proveAlive } from './bounded.ts';
import { runTogether, statementCommand } from './commands.ts';
import type { Connection } from './connection.ts';
import type { Control } from './control.ts';
import type { RunEnd, StopReason } from './fate.ts';
import { commandBytes } from './framing.ts';
import { killRunning, killTimeoutMs } from './kill.ts';
import type { ServerError } from './packets.ts';
import type { Pool, Refusal, Waiter } from './pool.ts';
import { QueryCommand, type QueryOwner, type ResultSink } from './query.ts';
import type { Quickness } from './quickness.ts';
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
  /** A number that statements like it share; null where it matters that it runs by itself. */
  readonly shape: number | null;
};

/** Work on the connection between the statements' end and the session's release. */
export type Afterwards = (connection: Connection, error: ServerError | null) => Promise<void>;

/** Takes the results of a run, and its error. */
export interface RunSink extends ResultSink {
  /** Bytes made of the results so far. */
  readonly totalBytes: number;
  /** MySQL refused a statement; no further result follows. */
  error(error: ServerError): void;
  /** Forgets the results so far; returns false when some have left already. */
  restart(): boolean;
}

/** Whoever asks for a run. */
export interface RunOwner {
  readonly sink: RunSink;
  readonly afterwards: Afterwards | null;
  /** Called exactly once. */
  runEnded(end: RunEnd): void;
}

/**
 * A session that lay idle for this long may be gone without our knowing: closed by the server in this very
 * moment (wait_timeout is a second at least), or forgotten by a firewall. It is asked before it is used.
 */
const staleAfterMs = 500;

/** A run as its owner sees it. `stop` may be called at any time. */
export interface StatementRun {
  /** Whether MySQL may have got the statements. */
  readonly isSent: boolean;
  readonly queueMs: number;
  readonly databaseMs: number;
  start(): void;
  stop(reason: StopReason): void;
  pause(): void;
  resume(): void;
  abandonResults(): void;
}

/**
 * MySQL's own answer to a command over max_allowed_packet. It is given here, because MySQL closes the
 * connection after it, and while we still write the answer is lost more often than not.
 */
const packetTooLarge: ServerError = {
  errno: 1153,
  sqlState: '08S01',
  message: "Got a packet bigger than 'max_allowed_packet' bytes",
};

type Phase = 'waiting' | 'preparing' | 'running' | 'ended';

/** One run. `start` asks for a session; `stop` may be called at any time. */
export class Run implements StatementRun, Waiter, QueryOwner {
  readonly #pool: Pool;
  readonly #control: Control;
  readonly #statement: Statement;
  readonly #owner: RunOwner;
  readonly #quickness: Quickness | null;
  #phase: Phase = 'waiting';
  #session: Session | null = null;
  #command: QueryCommand | null = null;
  #mayTryAnother = true;
  /** Set when the run was stopped while its session was being prepared. */
  #preparingUntil: NodeJS.Timeout | undefined;
  readonly #askedAt = performance.now();
  #grantedAt = 0;

  /** @param quickness told how long statements with a shape took; null: nobody wants to know */
  constructor(
    pool: Pool,
    control: Control,
    statement: Statement,
    owner: RunOwner,
    quickness: Quickness | null,
  ) {
    this.#quickness = quickness;
    this.#pool = pool;
    this.#control = control;
    this.#statement = statement;
    this.#owner = owner;
  }

  start(): void {
    this.#pool.request(this);
  }

  get isSent(): boolean {
    return this.#command !== null;
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
    const isStale = this.#grantedAt - session.idleSince > staleAfterMs;
    if (isStale || isReadOnly || (needsFreshSession && !session.isFresh)) {
      this.#phase = 'preparing';
      void this.#prepare(session, isStale);
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
      this.#preparingUntil = setTimeout(
        () => this.#session?.connection.destroy(new Error('the preparation did not end')),
        killTimeoutMs,
      );
    } else if (this.#phase === 'running') {
      this.#end({ kind: 'stopped', reason });
      void killRunning(this.#pool, this.#control, this.#session as Session, this.#command);
    }
  }

  async #prepare(session: Session, isStale: boolean): Promise<void> {
    const { needsFreshSession, isReadOnly } = this.#statement;
    try {
      if (needsFreshSession && !session.isFresh) await this.#pool.refresh(session);
      else if (isStale) await proveAlive(session.connection);
      if (isReadOnly) {
        session.isFresh = false;
        const begin = statementCommand('START TRANSACTION READ ONLY', session.connection.columns);
        await runTogether(session.connection, [begin]);
      }
    } catch {
      this.#tryAnother(session);
      return;
    } finally {
      clearTimeout(this.#preparingUntil);
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
    const command = new QueryCommand(sql, connection.columns, this.#owner.sink, this);
    if (commandBytes(command.packet) >= session.commandLimitBytes) {
      this.answered(true, packetTooLarge);
      return;
    }
    session.isFresh = false;
    this.#command = command;
    connection.send(command);
  }

  answered(flagsClean: boolean, error: ServerError | null): void {
    if (this.#phase !== 'running') return;
    if (error !== null) this.#owner.sink.error(error);
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
    const { leavesSessionClean, isReadOnly, shape } = this.#statement;
    const isClean = flagsClean && leavesSessionClean && !isReadOnly;
    if (isClean && shape !== null) {
      this.#quickness?.noteOutside(shape, this.databaseMs, this.#owner.sink.totalBytes);
    }
    this.#end({ kind: 'answered', error });
    session.connection.resume();
    this.#pool.release(session, isClean ? 'clean' : 'unclean');
  }

  #end(end: RunEnd): void {
    if (this.#phase === 'ended') return;
    this.#phase = 'ended';
    this.#owner.runEnded(end);
  }
}
