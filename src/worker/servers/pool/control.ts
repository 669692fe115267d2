// The control connection: opened before it is needed, it kills statements on the pool's connections. A KILL must never hit the statement of
// another client: see the conditions in `whyNot`.
import { performance } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import { fetchRows, ping, quit, RefusedError } from '../../../shared/mysql/commands.ts';
import type { Connection } from '../../../shared/mysql/connection.ts';
import {
  fetchIdentity,
  isSameServer,
  type LostSession,
  type ServerIdentity,
} from '../../../shared/mysql/identity.ts';
import type { Log } from '../../../shared/process/log.ts';
import { Attempt, Backoff, prepare } from './connecting.ts';
import type { Pool } from './pool.ts';
import { describeLoss, type Reachability, type Reconnecting } from './reachability.ts';
import type { Session } from './session.ts';

const pingIntervalMs = 5_000;
const answerTimeoutMs = 1_000;
/** At most this many lost sessions are remembered, to be ended later. */
const maxLost = 1_000;

/** The counts of the control connection. */
export type ControlObservations = {
  connected: boolean;
  killsOk: number;
  killsFailed: number;
  /** Statements that were abandoned without a KILL and may still run. */
  runningOn: number;
};

/** One worker's control connection. Its owner must close it. */
export class Control implements Reconnecting {
  readonly observations: ControlObservations = {
    connected: false,
    killsOk: 0,
    killsFailed: 0,
    runningOn: 0,
  };
  readonly #connect: (signal: AbortSignal) => Promise<Connection>;
  readonly #reachability: Reachability;
  readonly #log: Log;
  #isClosed = false;
  /** The attempt in progress; null: there is none. */
  #attempt: Attempt | null = null;
  readonly #runningOn = new Map<number, ServerIdentity>();
  readonly #lost = new Map<number, ServerIdentity>();
  #connection: Connection | null = null;
  #identity: ServerIdentity | null = null;
  #timer: NodeJS.Timeout | null = null;
  readonly #backoff = new Backoff();

  constructor(
    connect: (signal: AbortSignal) => Promise<Connection>,
    reachability: Reachability,
    log: Log,
  ) {
    this.#connect = connect;
    this.#reachability = reachability;
    this.#log = log;
    reachability.join('control', this);
  }

  /** Opens the connection and keeps it open. While that fails, it tries again with growing pauses. */
  start(): void {
    void this.#open();
  }

  close(): void {
    this.#isClosed = true;
    this.#attempt?.giveUp('the control connection is closing');
    if (this.#timer !== null) clearTimeout(this.#timer);
    if (this.#connection !== null) quit(this.#connection);
  }

  /**
   * Kills the statement on `target`, if the target's socket is open and both connections are to the same run of the same server: thread ids
   * repeat elsewhere and after a restart.
   * @returns whether the server confirmed the KILL; never rejects
   */
  async kill(target: Connection, identity: ServerIdentity): Promise<boolean> {
    const connection = this.#connection;
    const whyNot = this.#whyNot(target, identity);
    const from = performance.now();
    const killed =
      connection !== null &&
      whyNot === null &&
      (await this.#within(connection, fetchRows(connection, killSql(target))));
    if (killed) this.observations.killsOk += 1;
    else this.observations.killsFailed += 1;
    this.#log.debug?.(whyNot === null ? 'KILL QUERY was sent' : 'KILL QUERY could not be sent', {
      connection: target.threadId,
      ...(whyNot === null
        ? { confirmed: killed, took_ms: Math.round(performance.now() - from) }
        : { reason: whyNot }),
    });
    return killed;
  }

  /** Why a KILL might hit another client, or cannot be sent; null: it may be sent. */
  #whyNot(target: Connection, identity: ServerIdentity): string | null {
    if (this.#connection === null || this.#connection.isLost || this.#identity === null) {
      return 'there is no control connection';
    }
    if (target.isLost) return 'its connection is gone';
    return isSameServer(this.#identity, identity)
      ? null
      : 'the control connection is to another server';
  }

  /** Asks the server of a session something beside the session, within a second; null: there was no answer. Never rejects. */
  async ask<Answer>(
    identity: ServerIdentity,
    work: (connection: Connection) => Promise<Answer>,
  ): Promise<Answer | null> {
    const connection = this.#connection;
    const isThere = this.#identity !== null && isSameServer(this.#identity, identity);
    if (connection === null || !isThere) return null;
    const answer = work(connection);
    return (await this.#within(connection, answer)) ? answer : null;
  }

  /**
   * Ends what is left of a session whose connection is lost, now or when the same server is reached again. Until the server notices the
   * loss by itself, the session holds its locks. A server does not reuse a thread id before it restarts.
   */
  endLost({ threadId, identity }: LostSession): void {
    if (this.#lost.size >= maxLost) return;
    this.#lost.set(threadId, identity);
    if (this.#connection !== null) void this.#endAllLost(this.#connection);
  }

  /** Notes a statement that was abandoned without a confirmed KILL, until the server no longer lists it. */
  noteRunningOn(threadId: number, identity: ServerIdentity): void {
    this.#runningOn.set(threadId, identity);
    this.observations.runningOn = this.#runningOn.size;
    this.#log.debug?.('a statement was given up and may still run', { connection: threadId });
  }

  async #open(): Promise<void> {
    if (this.#isClosed) return;
    const attempt = new Attempt();
    this.#attempt = attempt;
    try {
      const [connection, identity] = await attempt.open(async (signal) => {
        const opened = await this.#connect(signal);
        return [opened, await prepare(opened, signal, () => fetchIdentity(opened))] as const;
      });
      if (this.#attempt === attempt) await this.#opened(connection, identity);
      else connection.destroy(new Error('its attempt was given up'));
    } catch (error) {
      if (this.#isClosed || this.#attempt !== attempt) return;
      this.#attempt = null;
      this.#reachability.failed('control', error);
      this.#reopenLater();
    }
  }

  async #opened(connection: Connection, identity: ServerIdentity): Promise<void> {
    this.#attempt = null;
    this.#identity = identity;
    this.#connection = connection;
    this.#backoff.succeeded();
    this.observations.connected = true;
    this.#reachability.succeeded('control');
    this.#log.debug?.('the control connection was opened', { connection: connection.threadId });
    connection.watch((reason) => this.#disconnected(reason));
    this.#pingLater();
    await this.#endAllLost(connection);
  }

  /** Lost sessions of another server wait until it is reached. Those of an earlier run of this server ended with it. */
  async #endAllLost(connection: Connection): Promise<void> {
    for (const [threadId, identity] of this.#lost) {
      if (connection.isLost || this.#identity === null) return;
      if (identity.name !== this.#identity.name) continue;
      const isHere = isSameServer(identity, this.#identity);
      const ended = isHere && fetchRows(connection, `KILL ${threadId}`).catch(ignoreRefusal);
      if (isHere && !(await this.#within(connection, Promise.resolve(ended)))) return;
      this.#lost.delete(threadId);
    }
  }

  #disconnected(reason: Error): void {
    this.#connection = null;
    this.#identity = null;
    this.observations.connected = false;
    if (this.#timer !== null) clearTimeout(this.#timer);
    if (this.#isClosed) return;
    this.#log.debug?.('the control connection was lost', { error: describeLoss(reason) });
    this.#reachability.lost(reason, false);
    this.#reopenLater();
  }

  #reopenLater(): void {
    this.#timer = setTimeout(() => this.#reopen(), this.#backoff.failed());
  }

  #reopen(): void {
    this.#timer = null;
    void this.#open();
  }

  wake(): void {
    if (this.#connection !== null || this.#timer === null) return;
    clearTimeout(this.#timer);
    this.#reopen();
  }

  renew(): void {
    const hung = this.#attempt;
    if (hung !== null) {
      void this.#open();
      hung.giveUp('the server answers again');
    } else this.wake();
  }

  #pingLater(): void {
    this.#timer = setTimeout(() => void this.#ping(), pingIntervalMs);
  }

  /** Keeps the connection alive, and detects that it is not. */
  async #ping(): Promise<void> {
    const connection = this.#connection;
    if (connection === null) return;
    const check = Promise.all([ping(connection), this.#forgetEnded(connection)]);
    await this.#within(connection, check);
    // The server may refuse the question about the process list, and be there.
    if (!connection.isLost) this.#pingLater();
  }

  async #forgetEnded(connection: Connection): Promise<void> {
    if (this.#runningOn.size === 0) return;
    const rows = await fetchRows(connection, 'SELECT ID FROM information_schema.PROCESSLIST');
    const listed = new Set(rows.map(([id]) => Number(id)));
    for (const [threadId, identity] of this.#runningOn) {
      const here = this.#identity !== null && isSameServer(this.#identity, identity);
      if (!here || !listed.has(threadId)) this.#runningOn.delete(threadId);
    }
    this.observations.runningOn = this.#runningOn.size;
  }

  /** Waits for an answer on the control connection. If it is late, the connection is destroyed. */
  async #within(connection: Connection, answer: Promise<unknown>): Promise<boolean> {
    const timer = setTimeout(
      () => connection.destroy(new Error('the control connection did not answer')),
      answerTimeoutMs,
    );
    try {
      await answer;
      return true;
    } catch {
      return false;
    } finally {
      clearTimeout(timer);
    }
  }
}

/** KILL QUERY ends the statement and leaves the connection; both servers know this form. */
function killSql(target: Connection): string {
  return `KILL QUERY ${target.threadId}`;
}

/** The session has ended by itself. */
function ignoreRefusal(error: unknown): void {
  if (!(error instanceof RefusedError)) throw error;
}

/** KILL's answer, the statement's answer and the reset together may take this long. */
export const killTimeoutMs = 1_000;
const repeatMs = 100;
const unreferenced = { ref: false };

/**
 * Kills the statement on a granted session, and releases the session to be reset, or as broken. Never rejects.
 * @param answer as for `killStatement`; nothing may be sent on the session afterwards
 */
export async function killRunning(
  pool: Pool,
  control: Control,
  session: Session,
  answer: Promise<unknown>,
): Promise<void> {
  const givenUpAt = performance.now() + killTimeoutMs;
  if (await killStatement(control, session, answer)) {
    pool.release(session, 'unclean', Math.max(givenUpAt - performance.now(), 1));
  } else {
    pool.release(session, 'broken');
  }
}

/**
 * Kills the statement on a granted session. Resolves within `killTimeoutMs` to whether the session may be used again: only if KILL and the
 * statement have both been answered, so that no KILL hits the next statement. When it waited for the statement's answer alone, 3 of 3,000
 * next statements were hit. Never rejects.
 * @param answer resolves when the statement's answer has ended, or the connection is lost
 */
export async function killStatement(
  control: Control,
  { connection, identity }: Session,
  answer: Promise<unknown>,
): Promise<boolean> {
  const timer = setTimeout(
    () => connection.destroy(new Error('the killed statement did not end')),
    killTimeoutMs,
  );
  connection.resume();
  let killed = false;
  let hasEnded = false;
  void answer.then(() => {
    hasEnded = true;
  });
  do {
    killed = await control.kill(connection, identity);
    // It is sent again until the answer has come: between two statements of a request it hits neither, and the control connection may be
    // about to open.
    if (!hasEnded) await Promise.race([answer, pause(repeatMs, undefined, unreferenced)]);
  } while (!hasEnded && !connection.isLost);
  clearTimeout(timer);
  const isUsable = killed && !connection.isLost;
  if (!isUsable) control.noteRunningOn(connection.threadId, identity);
  return isUsable;
}
