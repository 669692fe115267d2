// The control connection: opened before it is needed, it kills statements on the pool's connections.
// Must not know requests. A KILL must never hit a stranger: see the conditions in `kill`.

import { fetchRows, ping, quit } from '../../shared/mysql/commands.ts';
import type { Connection } from '../../shared/mysql/connection.ts';
import { Backoff } from './backoff.ts';
import { openWithin, prepare } from './bounded.ts';
import { fetchIdentity, isSameServer, type ServerIdentity } from './identity.ts';
import type { Reachability } from './reachability.ts';

const pingIntervalMs = 5_000;
const answerTimeoutMs = 1_000;

/** What the control connection has done. */
export type ControlObservations = {
  connected: boolean;
  killsOk: number;
  killsFailed: number;
  /** Statements that were given up without a KILL and may still run. */
  runningOn: number;
};

/** One worker's control connection. Its owner must close it. */
export class Control {
  readonly observations: ControlObservations = {
    connected: false,
    killsOk: 0,
    killsFailed: 0,
    runningOn: 0,
  };
  readonly #connect: (signal: AbortSignal) => Promise<Connection>;
  readonly #reachability: Reachability;
  readonly #closing = new AbortController();
  readonly #runningOn = new Map<number, ServerIdentity>();
  #connection: Connection | null = null;
  #identity: ServerIdentity | null = null;
  #timer: NodeJS.Timeout | null = null;
  readonly #backoff = new Backoff();

  constructor(connect: (signal: AbortSignal) => Promise<Connection>, reachability: Reachability) {
    this.#connect = connect;
    this.#reachability = reachability;
    reachability.join('control', () => this.#wake());
  }

  /** Opens the connection and keeps it open; again and again, with a growing delay, while it cannot. */
  start(): void {
    void this.#open();
  }

  close(): void {
    this.#closing.abort(new Error('the control connection is closing'));
    if (this.#timer !== null) clearTimeout(this.#timer);
    if (this.#connection !== null) quit(this.#connection);
  }

  /**
   * Kills what runs on `target`. Only while the target's socket is open and both connections saw the
   * same server: thread ids repeat elsewhere and after a restart.
   * @returns whether the server confirmed the KILL; never rejects
   */
  async kill(target: Connection, identity: ServerIdentity): Promise<boolean> {
    const connection = this.#connection;
    const reachable =
      connection !== null &&
      !connection.isLost &&
      !target.isLost &&
      this.#identity !== null &&
      isSameServer(this.#identity, identity);
    const killed =
      reachable && (await this.#within(connection, fetchRows(connection, killSql(target))));
    if (killed) this.observations.killsOk += 1;
    else this.observations.killsFailed += 1;
    return killed;
  }

  /** Notes a statement that was given up without a confirmed KILL, until the server no longer lists it. */
  noteRunningOn(threadId: number, identity: ServerIdentity): void {
    this.#runningOn.set(threadId, identity);
    this.observations.runningOn = this.#runningOn.size;
  }

  async #open(): Promise<void> {
    try {
      const [connection, identity] = await openWithin(this.#closing.signal, async (signal) => {
        const opened = await this.#connect(signal);
        return [opened, await prepare(opened, signal, () => fetchIdentity(opened))] as const;
      });
      this.#identity = identity;
      this.#connection = connection;
      this.#backoff.succeeded();
      this.observations.connected = true;
      this.#reachability.succeeded('control');
      connection.watch((reason) => this.#lost(reason));
      this.#pingLater();
    } catch (error) {
      if (this.#closing.signal.aborted) return;
      this.#reachability.failed('control', error);
      this.#reopenLater();
    }
  }

  #lost(reason: Error): void {
    this.#connection = null;
    this.#identity = null;
    this.observations.connected = false;
    if (this.#timer !== null) clearTimeout(this.#timer);
    if (this.#closing.signal.aborted) return;
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

  /** The database has been reached by somebody else. */
  #wake(): void {
    if (this.#connection !== null || this.#timer === null) return;
    clearTimeout(this.#timer);
    this.#reopen();
  }

  #pingLater(): void {
    this.#timer = setTimeout(() => void this.#ping(), pingIntervalMs);
  }

  /** Keeps the connection alive, and finds out when it is not. */
  async #ping(): Promise<void> {
    const connection = this.#connection;
    if (connection === null) return;
    const check = Promise.all([ping(connection), this.#forgetEnded(connection)]);
    if (await this.#within(connection, check)) this.#pingLater();
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

  /** Waits for an answer on the control connection; a late one costs the connection. */
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
