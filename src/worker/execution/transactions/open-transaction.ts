// One open transaction: it runs the steps of its client one at a time on its session, and ends when it is idle or too old.
import { fetchStatistics } from '../../../shared/mysql/commands.ts';
import type { Connection } from '../../../shared/mysql/connection.ts';
import type { TokenResult } from '../../servers/consistency/consistency.ts';
import type { Token } from '../../servers/consistency/token.ts';
import type { NoPlace } from '../../servers/pool/queue.ts';
import type { Session } from '../../servers/pool/session.ts';
import { pingEveryMs } from '../../servers/pool/session.ts';
import type { RequestOwner } from '../../servers/pool/wait-limit.ts';
import type { Routed } from '../../servers/server.ts';
import type { RunContext, RunEnd } from '../execution.ts';
import { SessionLease, type Undone } from '../session-lease.ts';
import { type EndCause, type Left, noCause, type TransactionEnd } from '../transaction-end.ts';
import { areUndoable, type Writes } from '../undoable-tables.ts';

/** A request that needs the session for a while. Exactly one of the first three is called, once, unless withdrawn. */
export interface Step {
  granted(session: Session): void;
  refused(reason: NoPlace): void;
  /** The transaction is over, and this is how it ended. */
  isTooLate(end: TransactionEnd, left: Left, cause: EndCause): void;
  /** The transaction is too old: the step must end, unless it is a COMMIT. */
  expire(): void;
  /** Whether it is a COMMIT. */
  readonly isCommit: boolean;
}

/** How long it may be idle, and how long it may be open. */
export type TransactionLimits = { readonly idleMs: number; readonly totalMs: number };

/** A transaction as it was begun. */
export type Begun = {
  readonly session: Session;
  readonly context: RunContext;
  /** Set before anything else: if it is gone, so is the transaction that was begun. */
  readonly savepoint: string;
  readonly isReadOnly: boolean;
  /** The client for which its session counts. */
  readonly owner: RequestOwner;
};

/** A statement that may leave something behind. */
export type Doubt = {
  /** All that it writes to and reads; null: that is unknown. */
  readonly writes: Writes | null;
  readonly isCall: boolean;
};

/** The reports of a transaction. */
export type TransactionEvents = {
  /** A step is over, and this is its end. */
  readonly stepEnded: (end: RunEnd) => void;
  /** The next statement may leave something behind that no ROLLBACK undoes. Resolves when that is recorded, or cannot be. Called once. */
  readonly doubted: () => Promise<void>;
  /** The transaction is over. Called once. */
  readonly ended: (end: TransactionEnd, left: Left, cause: EndCause) => void;
};

/** A transaction. It releases its session by itself, when it ends. */
export class OpenTransaction implements Routed {
  index = -1;
  readonly context: RunContext;
  readonly savepoint: string;
  readonly isReadOnly: boolean;
  readonly #session: Session;
  readonly #owner: RequestOwner;
  readonly #times: TransactionLimits;
  readonly #events: TransactionEvents;
  readonly #waiting: Step[] = [];
  /** The values of claims that its statements have bound. */
  readonly #claims = new Map<string, string>();
  /** The step that runs; null: none does. */
  #current: Step | null = null;
  /** The steps that run, or whose replies are on their way. If there are none, the transaction is idle. */
  readonly #unanswered = new Set<Step>();
  /** Why it ends as soon as no step runs; null: it stays open. */
  #dueEnd: TransactionEnd | null = null;
  #isClosing = false;
  /** How it has ended; null: it is open. */
  #end: TransactionEnd | null = null;
  #left: Left = 'nothing';
  #cause: EndCause = noCause;
  /** A procedure may have committed in it, or something was done outside of transactions: unless the server says otherwise, it may remain. */
  #isDoubted = false;
  /** A procedure may have committed in it, and begun another one. */
  #mayBeAnother = false;
  #idleTimer: NodeJS.Timeout | undefined;
  /** While it is not idle. */
  #pings: NodeJS.Timeout | undefined;
  readonly #totalTimer: NodeJS.Timeout;

  constructor(
    { session, context, savepoint, isReadOnly, owner }: Begun,
    times: TransactionLimits,
    events: TransactionEvents,
  ) {
    this.#session = session;
    this.#owner = owner;
    this.context = context;
    this.savepoint = savepoint;
    this.isReadOnly = isReadOnly;
    this.#times = times;
    this.#events = events;
    this.#totalTimer = setTimeout(() => this.#expire(), times.totalMs);
    this.#beIdle();
  }

  /**
   * Binds it to values of claims: from then on, calls with other values of these claims are another user's.
   * @param claims values by the paths of their claims
   * @returns false: it is bound to other values already
   */
  bindClaims(claims: ReadonlyMap<string, string>): boolean {
    for (const [path, value] of claims) {
      if ((this.#claims.get(path) ?? value) !== value) return false;
    }
    for (const [path, value] of claims) this.#claims.set(path, value);
    return true;
  }

  get session(): Session {
    return this.#session;
  }

  /** Asks for the session: granted at once, or behind earlier steps. A step that comes while the transaction ends waits for that end. */
  request(step: Step): void {
    if (this.#end !== null) step.isTooLate(this.#end, this.#left, this.#cause);
    else if (this.#current === null && this.#dueEnd === null) this.#grant(step);
    else this.#enqueue(step);
  }

  #enqueue(step: Step): void {
    const noPlace = this.context.pool.admission.admit(this.#owner);
    if (noPlace === null) this.#waiting.push(step);
    else step.refused(noPlace);
  }

  /** Gives up waiting. Nothing is called afterwards. */
  withdraw(step: Step): void {
    const at = this.#waiting.indexOf(step);
    if (at < 0) return;
    this.#waiting.splice(at, 1);
    this.context.pool.admission.leave(this.#owner.account);
  }

  /** Whether a COMMIT runs, or waits before this step. @param step one that waits, or was refused */
  hasCommitBefore(step: Step): boolean {
    const at = this.#waiting.indexOf(step);
    const before = at < 0 ? this.#waiting : this.#waiting.slice(0, at);
    return this.#current?.isCommit === true || before.some(({ isCommit }) => isCommit);
  }

  /**
   * Ends the step that runs.
   * @param end how the transaction has ended under it; null: it is open
   * @param done the end of the step
   * @param left what remains of a transaction that has ended; `unknown`: the server has not said
   */
  release(end: TransactionEnd | null, done: RunEnd, left: Left, cause?: EndCause): void {
    this.#current = null;
    this.#events.stepEnded(done);
    if (end !== null) {
      // Its age has stopped the step.
      const isTooOld = end === 'stopped' && this.#dueEnd === 'too_old';
      this.#finish(end, left, isTooOld ? this.causeOf('too_old') : cause);
      return;
    }
    if (this.#dueEnd !== null) {
      void this.#rollBack(this.#dueEnd);
      return;
    }
    const next = this.#waiting.shift();
    if (next === undefined) {
      this.#beIdle();
      return;
    }
    this.context.pool.admission.leave(this.#owner.account);
    this.#grant(next);
  }

  /** The client has what the step has answered, as far as the gateway knows, or is gone. */
  replyLeft(step: Step): void {
    const isOver = this.#end !== null || this.#dueEnd !== null;
    if (this.#unanswered.delete(step) && !isOver) this.#startIdling();
  }

  get isDoubted(): boolean {
    return this.#isDoubted;
  }

  get mayBeAnother(): boolean {
    return this.#mayBeAnother;
  }

  /** Must be called before a statement that a ROLLBACK may not undo, as far as the catalogue knows. Resolves when it may be sent. */
  async doubt({ writes, isCall }: Doubt): Promise<void> {
    this.#mayBeAnother ||= isCall;
    if (this.#isDoubted || this.isReadOnly) return;
    if (writes !== null && (await this.#isUndone(writes))) return;
    this.#isDoubted = true;
    await this.#events.doubted();
  }

  /** Asks the server on another connection, so that the next statement reads what the client's last one left. */
  async #isUndone(writes: Writes): Promise<boolean> {
    const ask = (connection: Connection) => areUndoable(connection, writes).catch(() => false);
    return (await this.context.control.ask(this.#session.identity, ask)) === true;
  }

  /** The gateway stops: the steps that are waiting run, and then the transaction ends. */
  close(): void {
    this.#isClosing = true;
    if (this.#current === null) this.#endSoon('stopping');
  }

  /** Its server must not be used any more. */
  leaveServer(): void {
    this.#endSoon('moved');
  }

  /** It waits for no server. */
  reconsider(): void {}

  /** The client's token: what it has seen, at most, as its server reports beside it. @param before null: it sends none */
  async seenNow(before: Token | null): Promise<TokenResult | null> {
    const { consistency, control } = this.context;
    if (consistency === null) return null;
    return control.ask(this.#session.identity, (connection) =>
      consistency.seenNow(connection, before),
    );
  }

  #grant(step: Step): void {
    this.#stopIdling();
    this.#current = step;
    this.#unanswered.add(step);
    this.#pings = setInterval(() => this.#stayAwake(), pingEveryMs).unref();
    step.granted(this.#session);
  }

  /**
   * A server that has sent a whole result waits for the next statement, and would end the transaction while its client still reads.
   * The server answers COM_STATISTICS after the statement that runs. Unlike COM_PING, it leaves ROW_COUNT() as it is.
   */
  #stayAwake(): void {
    // If the connection is lost, the step knows it already.
    fetchStatistics(this.#session.connection).catch(() => {});
  }

  #beIdle(): void {
    if (this.#isClosing) {
      this.#endSoon('stopping');
      return;
    }
    if (this.#session.connection.isLost) {
      this.#finish('lost', 'unknown');
      return;
    }
    this.#startIdling();
    // While it has its session, the pool assumes that the server can be reached.
    this.#session.onLost = () => this.#finish('lost', 'unknown');
  }

  #startIdling(): void {
    if (this.#current !== null || this.#unanswered.size > 0) return;
    clearInterval(this.#pings);
    this.#idleTimer = setTimeout(() => this.#endSoon('idle'), this.#times.idleMs);
  }

  #stopIdling(): void {
    clearTimeout(this.#idleTimer);
    clearInterval(this.#pings);
    this.#session.onLost = null;
  }

  #expire(): void {
    this.#endSoon('too_old');
    this.#current?.expire();
  }

  /** Ends at once, or after the step that runs; no further step is granted. */
  #endSoon(end: TransactionEnd): void {
    if (this.#end !== null || this.#dueEnd !== null) return;
    this.#dueEnd = end;
    if (this.#current === null) void this.#rollBack(end);
  }

  /** Never rejects. A session that does not answer is destroyed within a second, and the server undoes what was done. */
  async #rollBack(end: TransactionEnd): Promise<void> {
    this.#stopIdling();
    const { control } = this.context;
    const lease = new SessionLease(this.#session, control, () => {}, null);
    lease.boundWhatFollows();
    const undone = await lease.rollBack(this.savepoint);
    lease.end();
    this.#finish(lease.isLost ? 'lost' : end, leftBy(undone));
  }

  /** The known cause of an end of this transaction, now. */
  causeOf(end: TransactionEnd): EndCause {
    const { idleMs, totalMs } = this.#times;
    switch (end) {
      case 'idle':
        return { limitMs: idleMs };
      case 'too_old':
        return { limitMs: totalMs };
      case 'lost':
        return this.#session.connection.isClosedByServer ? { isClosedByServer: true } : noCause;
      default:
        return noCause;
    }
  }

  /** @param left `unknown`: the connection was lost, and the server undoes as much as it can */
  #finish(end: TransactionEnd, left: Left, cause: EndCause = this.causeOf(end)): void {
    if (this.#end !== null) return;
    this.#end = end;
    this.#cause = cause;
    this.#left = left === 'unknown' && !this.#isDoubted ? 'nothing' : left;
    this.#stopIdling();
    clearTimeout(this.#totalTimer);
    const { pool, reserved } = this.context;
    pool.release(this.#session, this.#session.connection.isLost ? 'broken' : 'unclean');
    reserved.release(this.#owner.account);
    this.#events.ended(end, this.#left, cause);
    for (const step of this.#waiting.splice(0)) {
      pool.admission.leave(this.#owner.account);
      step.isTooLate(end, this.#left, cause);
    }
  }
}

/** The rest after a ROLLBACK. */
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
