// One transaction that its client holds: its session, whose turn it is on it, how long it may lie idle, how it ends.
// Must not know what is run in it, nor how its client names it.
import { ping } from '../../../shared/mysql/commands.ts';
import type { Connection } from '../../../shared/mysql/connection.ts';
import type { TokenResult } from '../../servers/consistency/consistency.ts';
import type { Session } from '../../servers/pool/session.ts';
import { pingEveryMs } from '../../servers/pool/session.ts';
import type { Routed } from '../../servers/server.ts';
import type { RunContext, RunEnd } from '../execution.ts';
import { SessionLease, type Undone } from '../session-lease.ts';
import { areUndoable, type Writes } from '../undoable-tables.ts';

/**
 * How a transaction has ended. `ended`: by a statement in it, or by an error that undid it; `stopped`: a statement of it was
 * stopped; `moved`: its server is not to be used any more; `unknown`: COMMIT has no answer.
 */
export const transactionEnds = [
  'committed',
  'rolled_back',
  'unknown',
  'ended',
  'stopped',
  'idle',
  'too_old',
  'lost',
  'moved',
  'stopping',
] as const;

export type TransactionEnd = (typeof transactionEnds)[number];

/** What stands of a transaction that has ended otherwise than by COMMIT. */
export type Left = 'nothing' | 'something' | 'unknown';

/** Somebody who wants the session for a while. Exactly one of the first three is called, once, unless withdrawn. */
export interface Turn {
  granted(session: Session): void;
  refused(reason: 'queue full'): void;
  /** The transaction is over, and this is how it ended. */
  isTooLate(end: TransactionEnd, left: Left): void;
  /** The transaction is too old: what goes on is to end, unless it is a COMMIT. */
  expire(): void;
  /** Whether it is a COMMIT. */
  readonly isCommit: boolean;
}

/** How long it may be held. */
export type HoldingTimes = { readonly idleMs: number; readonly totalMs: number };

/** What it was begun as. */
export type Begun = {
  readonly session: Session;
  readonly context: RunContext;
  /** That was set first of all: when it is there no more, neither is what was begun. */
  readonly savepoint: string;
  readonly isReadOnly: boolean;
};

/** What may stay behind. */
export type Doubt = {
  /** All that is written to and read; null: that is not known. */
  readonly writes: Writes | null;
  readonly isCall: boolean;
};

/** Told of a transaction. */
export type HeldEvents = {
  /** Somebody's turn is over, and this is what was done in it. */
  readonly turnEnded: (end: RunEnd) => void;
  /** What runs next may leave something behind that no ROLLBACK undoes. Resolves when that is remembered, or cannot be. Called once. */
  readonly doubted: () => Promise<void>;
  /** The transaction is over. Called once. */
  readonly ended: (end: TransactionEnd, left: Left) => void;
};

/** A transaction. It gives its session back by itself, when it ends. */
export class HeldTransaction implements Routed {
  index = -1;
  readonly context: RunContext;
  readonly savepoint: string;
  readonly isReadOnly: boolean;
  readonly #session: Session;
  readonly #times: HoldingTimes;
  readonly #events: HeldEvents;
  readonly #waiting: Turn[] = [];
  /** Whose turn it is; null: it lies idle. */
  #turn: Turn | null = null;
  /** Why it is to end as soon as nobody has its turn; null: it is not. */
  #dueEnd: TransactionEnd | null = null;
  #isClosing = false;
  /** How it has ended; null: it has not. */
  #end: TransactionEnd | null = null;
  #left: Left = 'nothing';
  /** A procedure may have committed in it, or something was done outside of transactions: without the server's word it may stand. */
  #isDoubted = false;
  /** A procedure may have committed in it, and begun another one. */
  #mayBeAnother = false;
  #idleTimer: NodeJS.Timeout | undefined;
  /** While somebody has its turn. */
  #pings: NodeJS.Timeout | undefined;
  readonly #totalTimer: NodeJS.Timeout;

  constructor(
    { session, context, savepoint, isReadOnly }: Begun,
    times: HoldingTimes,
    events: HeldEvents,
  ) {
    this.#session = session;
    this.context = context;
    this.savepoint = savepoint;
    this.isReadOnly = isReadOnly;
    this.#times = times;
    this.#events = events;
    this.#totalTimer = setTimeout(() => this.#expire(), times.totalMs);
    this.#lieIdle();
  }

  get session(): Session {
    return this.#session;
  }

  /** Asks for the session: granted at once, or behind those who came before; whoever comes while it ends waits to be told how. */
  request(turn: Turn): void {
    if (this.#end !== null) turn.isTooLate(this.#end, this.#left);
    else if (this.#turn === null && this.#dueEnd === null) this.#grant(turn);
    else if (this.context.pool.admission.admit()) this.#waiting.push(turn);
    else turn.refused('queue full');
  }

  /** Gives up waiting. Nothing is called afterwards. */
  withdraw(turn: Turn): void {
    const at = this.#waiting.indexOf(turn);
    if (at < 0) return;
    this.#waiting.splice(at, 1);
    this.context.pool.admission.leave();
  }

  /** Whether a COMMIT has its turn, or waits before this one. @param turn one that waits, or was refused */
  hasCommitBefore(turn: Turn): boolean {
    const at = this.#waiting.indexOf(turn);
    const before = at < 0 ? this.#waiting : this.#waiting.slice(0, at);
    return this.#turn?.isCommit === true || before.some(({ isCommit }) => isCommit);
  }

  /**
   * The turn is over.
   * @param end how the transaction has ended under it; null: it is open
   * @param done what was done in it
   * @param left of a transaction that has ended; `unknown`: the server has not said so
   */
  release(end: TransactionEnd | null, done: RunEnd, left: Left): void {
    clearInterval(this.#pings);
    this.#turn = null;
    this.#events.turnEnded(done);
    if (end !== null) {
      this.#finish(end, left);
      return;
    }
    if (this.#dueEnd !== null) {
      void this.#rollBack(this.#dueEnd);
      return;
    }
    const next = this.#waiting.shift();
    if (next === undefined) {
      this.#lieIdle();
      return;
    }
    this.context.pool.admission.leave();
    this.#grant(next);
  }

  get isDoubted(): boolean {
    return this.#isDoubted;
  }

  get mayBeAnother(): boolean {
    return this.#mayBeAnother;
  }

  /** To be called before something is sent that a ROLLBACK may not undo, as far as the catalogue knows. Resolves when it may be sent. */
  async doubt({ writes, isCall }: Doubt): Promise<void> {
    this.#mayBeAnother ||= isCall;
    if (this.#isDoubted || this.isReadOnly) return;
    if (writes !== null && (await this.#isUndone(writes))) return;
    this.#isDoubted = true;
    await this.#events.doubted();
  }

  /** Asks the server beside the session, so that the next statement reads what the client's last one left. */
  async #isUndone(writes: Writes): Promise<boolean> {
    const ask = (connection: Connection) => areUndoable(connection, writes).catch(() => false);
    return (await this.context.control.ask(this.#session.identity, ask)) === true;
  }

  /** The gateway stops: what is asked for already is done, and then it ends. */
  close(): void {
    this.#isClosing = true;
    if (this.#turn === null) this.#endSoon('stopping');
  }

  /** Its server is not to be used any more. */
  leaveServer(): void {
    this.#endSoon('moved');
  }

  /** It waits for no server. */
  reconsider(): void {}

  /** What its client has seen, at most, as its server says beside it. */
  async seenNow(): Promise<TokenResult | null> {
    const { consistency, control } = this.context;
    if (consistency === null) return null;
    return control.ask(this.#session.identity, (connection) =>
      consistency.seenNow(connection, null),
    );
  }

  #grant(turn: Turn): void {
    this.#stopIdling();
    this.#turn = turn;
    this.#pings = setInterval(() => this.#stayAwake(), pingEveryMs).unref();
    turn.granted(this.#session);
  }

  /**
   * A server that has sent a whole result waits for the next statement, and would end the transaction while its client still reads.
   * A ping is answered behind what runs, and changes nothing that a statement could ask for.
   */
  #stayAwake(): void {
    // The connection is lost by then, and whoever has the turn has been told.
    ping(this.#session.connection).catch(() => {});
  }

  #lieIdle(): void {
    if (this.#isClosing) {
      this.#endSoon('stopping');
      return;
    }
    if (this.#session.connection.isLost) {
      this.#finish('lost', 'unknown');
      return;
    }
    this.#idleTimer = setTimeout(() => this.#endSoon('idle'), this.#times.idleMs);
    // While it keeps its place, the pool takes the server for one that can be reached.
    this.#session.onLost = () => this.#finish('lost', 'unknown');
  }

  #stopIdling(): void {
    clearTimeout(this.#idleTimer);
    this.#session.onLost = null;
  }

  #expire(): void {
    this.#endSoon('too_old');
    this.#turn?.expire();
  }

  /** At once, or when the turn that somebody has is over; nobody has one after that. */
  #endSoon(end: TransactionEnd): void {
    if (this.#end !== null || this.#dueEnd !== null) return;
    this.#dueEnd = end;
    if (this.#turn === null) void this.#rollBack(end);
  }

  /** Never rejects. A session that does not answer is lost within a second, and the server undoes what was done. */
  async #rollBack(end: TransactionEnd): Promise<void> {
    this.#stopIdling();
    const { control } = this.context;
    const lease = new SessionLease(this.#session, control, () => {}, null);
    lease.boundWhatFollows();
    const undone = await lease.rollBack(this.savepoint);
    lease.end();
    this.#finish(lease.isLost ? 'lost' : end, leftBy(undone));
  }

  /** @param left `unknown`: what was lost is undone by the server, as far as it can be */
  #finish(end: TransactionEnd, left: Left): void {
    if (this.#end !== null) return;
    this.#end = end;
    this.#left = left === 'unknown' && !this.#isDoubted ? 'nothing' : left;
    this.#stopIdling();
    clearTimeout(this.#totalTimer);
    const { pool, reserved } = this.context;
    pool.release(this.#session, this.#session.connection.isLost ? 'broken' : 'unclean');
    reserved.release();
    this.#events.ended(end, this.#left);
    for (const turn of this.#waiting.splice(0)) {
      pool.admission.leave();
      turn.isTooLate(end, this.#left);
    }
  }
}

/** What stands after a ROLLBACK. */
export function leftBy(undone: Undone): Left {
  switch (undone) {
    case 'rolled_back':
      return 'nothing';
    case 'no proof':
    case 'partial':
      return 'something';
    case 'unknown':
      return 'unknown';
    default:
      return undone satisfies never;
  }
}
