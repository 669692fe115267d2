// One request's statements from waiting for a session to a known end; sent once at most.
// Must not know HTTP or the reply's shape: results go to a sink, the end to a callback.
import { performance } from 'node:perf_hooks';
import type { ServerError } from '../../shared/mysql/packets.ts';
import { QueryCommand, type QueryEvents } from '../../shared/mysql/query.ts';
import type { Control } from '../backend/control.ts';
import { killRunning, killTimeoutMs } from '../backend/kill.ts';
import { isTooLarge, packetTooLarge } from '../backend/packet-limit.ts';
import type { Pool } from '../backend/pool.ts';
import type { Session } from '../backend/session.ts';
import type { Refusal, Waiter } from '../backend/waiter.ts';
import type { LatencyTracker } from './latency-tracker.ts';
import type { RunEnd, StopReason } from './outcome.ts';
import { makeReady, needsPreparation, type Statement } from './preparation.ts';
import type { Afterwards, RunEvents, StatementRun } from './statement-run.ts';

type Phase = 'waiting' | 'preparing' | 'running' | 'ended';

/** The ordinary run: on a session of its own. */
export class DedicatedRun implements StatementRun, Waiter, QueryEvents {
  readonly #pool: Pool;
  readonly #control: Control;
  readonly #statement: Statement;
  readonly #events: RunEvents;
  readonly #latencies: LatencyTracker | null;
  #phase: Phase = 'waiting';
  #session: Session | null = null;
  #command: QueryCommand | null = null;
  #mayTryAnother = true;
  /** Set when the run was stopped while its session was being prepared. */
  #preparingUntil: NodeJS.Timeout | undefined;
  readonly #askedAt = performance.now();
  #grantedAt = 0;
  /** 0 while there is no answer. */
  #answeredAt = 0;

  /** @param latencies told how long statements with a shape took; null: nobody wants to know */
  constructor(
    pool: Pool,
    control: Control,
    statement: Statement,
    events: RunEvents,
    latencies: LatencyTracker | null,
  ) {
    this.#pool = pool;
    this.#control = control;
    this.#statement = statement;
    this.#events = events;
    this.#latencies = latencies;
  }

  start(): void {
    this.#pool.request(this);
  }

  get isSent(): boolean {
    return this.#command !== null;
  }

  get queueMs(): number {
    return (this.#grantedAt === 0 ? performance.now() : this.#grantedAt) - this.#askedAt;
  }

  get databaseMs(): number {
    if (this.#grantedAt === 0) return 0;
    return (this.#answeredAt === 0 ? performance.now() : this.#answeredAt) - this.#grantedAt;
  }

  granted(session: Session): void {
    this.#session = session;
    this.#grantedAt = performance.now();
    try {
      this.#begin(session);
    } catch (cause) {
      this.#faulted(session, cause);
    }
  }

  #begin(session: Session): void {
    this.#events.runBegins?.();
    const needsFresh = !session.isFresh && this.#mayReadWhatWasLeft();
    if (needsPreparation(session, this.#statement, needsFresh, this.#grantedAt)) {
      this.#phase = 'preparing';
      void this.#prepare(session, needsFresh);
    } else {
      this.#send(session);
    }
  }

  refused(reason: Refusal): void {
    this.#end({ kind: 'not executed', reason });
  }

  pause(): void {
    if (this.#phase === 'running') this.#session?.connection.pause();
  }

  resume(): void {
    if (this.#phase === 'running') this.#session?.connection.resume();
  }

  abandonResults(): void {
    void this.#command?.discardResults();
    this.resume();
  }

  stop(reason: StopReason): void {
    if (this.#phase === 'waiting') {
      this.#pool.queue.remove(this);
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

  #mayReadWhatWasLeft(): boolean {
    return this.#statement.needsFreshSession || !this.#statement.effects.isHarmless();
  }

  async #prepare(session: Session, needsFresh: boolean): Promise<void> {
    try {
      await makeReady(this.#pool, session, this.#statement, needsFresh);
    } catch {
      this.#tryAnother(session);
      return;
    } finally {
      clearTimeout(this.#preparingUntil);
    }
    if (this.#phase === 'preparing') this.#sendPrepared(session);
    else this.#pool.release(session, session.isFresh ? 'clean' : 'unclean');
  }

  #sendPrepared(session: Session): void {
    try {
      this.#send(session);
    } catch (cause) {
      this.#faulted(session, cause);
    }
  }

  /** An exception is this run's own: a session is granted while somebody else's answer is handled. */
  #faulted(session: Session, cause: unknown): void {
    try {
      this.#end({ kind: 'faulted', isSent: this.isSent, cause });
    } finally {
      this.#pool.release(session, 'broken');
    }
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
    const command = new QueryCommand(sql, connection.columns, this.#events.sink, this);
    if (isTooLarge(command.packet, session)) {
      this.answered(true, packetTooLarge);
      return;
    }
    session.isFresh = false;
    this.#command = command;
    this.#statement.effects.sent();
    connection.send(command);
  }

  answered(flagsClean: boolean, error: ServerError | null): void {
    if (this.#phase !== 'running') return;
    if (error !== null) this.#events.sink.error(error);
    const { afterwards } = this.#events;
    if (afterwards === null) this.#finish(flagsClean, error);
    else void this.#runAfterwards(afterwards, flagsClean, error);
  }

  lost(): void {
    if (this.#phase !== 'running') return;
    try {
      this.#end({ kind: 'lost' });
    } finally {
      this.#pool.release(this.#session as Session, 'broken');
    }
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
    this.#answeredAt = performance.now();
    const session = this.#session as Session;
    const { leavesSessionClean, isReadOnly, shape } = this.#statement;
    const isClean =
      flagsClean && leavesSessionClean && !isReadOnly && this.#statement.effects.isHarmless();
    if (isClean && shape !== null) {
      this.#latencies?.noteOutside(shape, this.databaseMs, this.#events.sink.totalBytes);
    }
    try {
      this.#end({ kind: 'answered', error });
    } finally {
      session.connection.resume();
      this.#pool.release(session, isClean ? 'clean' : 'unclean');
    }
  }

  #end(end: RunEnd): void {
    if (this.#phase === 'ended') return;
    this.#phase = 'ended';
    if (this.isSent) this.#statement.effects.ended(end.kind === 'answered');
    this.#events.runEnded(end);
  }
}
