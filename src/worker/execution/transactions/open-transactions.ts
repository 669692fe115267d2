// The open transactions of one worker: begins them, finds them by their tokens, runs steps in them, and remembers how they ended.
import { CommitEndings, type Ending } from '../../../shared/process/commit-endings.ts';
import type { TransactionCharacteristics } from '../../../shared/sql/transactions.ts';
import type { Token } from '../../servers/consistency/token.ts';
import type { RunEnd } from '../execution.ts';
import type { Executor, OpenStep } from '../executor.ts';
import { noEffects } from '../statement-effects.ts';
import {
  type Left,
  noCause,
  noSuchTransaction,
  type TransactionEnd,
  type TransactionOver,
} from '../transaction-end.ts';
import type { Statement } from '../work.ts';
import { BeginRun } from './begin-run.ts';
import { CommitJob, type Job, RollbackJob, StatementJob } from './jobs.ts';
import { type Begun, OpenTransaction, type TransactionLimits } from './open-transaction.ts';
import { StepRun } from './step-run.ts';
import {
  decodeTransactionToken,
  encodeTransactionToken,
  type TransactionBearer,
  type TransactionName,
} from './transaction-token.ts';

/** The identity of a worker in its tokens. */
export type TransactionOwner = {
  readonly pid: number;
  readonly incarnation: string;
  /** All workers of an instance have the same. */
  readonly key: Buffer;
};

/** Records, beyond a worker's life, that a COMMIT was sent, and what became of it. */
export type CommitKeeper = {
  /** Resolves when that is recorded, or cannot be. */
  readonly begun: (name: TransactionName) => Promise<void>;
  readonly settled: (name: TransactionName, isCommitted: boolean) => Promise<void>;
  /** A transaction is over that was not committed, and something of it remains. */
  readonly left: (name: TransactionName) => Promise<void>;
  /** The same, but it is unknown whether something of it remains. Also called while it is open, in case its worker dies. */
  readonly doubted: (name: TransactionName) => Promise<void>;
  /** How a transaction of a worker that is gone has ended. */
  readonly endingOf: (name: TransactionName) => Promise<Ending>;
};

/** The section in which a transaction is open. */
export type Home = {
  readonly section: string;
  readonly executor: Executor;
  readonly times: TransactionLimits;
  /** Called when a transaction ends. */
  readonly onEnd: (end: TransactionEnd) => void;
};

/** An open transaction of this worker. */
export type Held = { readonly name: TransactionName; readonly transaction: OpenTransaction };

/** The transaction that a token names. */
export type Found =
  | { readonly kind: 'held'; readonly held: Held }
  | { readonly kind: 'elsewhere'; readonly name: TransactionName }
  | { readonly kind: 'over'; readonly ending: Ending; readonly over: TransactionOver };

/** A step that begins a transaction, and the token that it then has. */
export type BeginStep = OpenStep & { readonly token: string };

/** Its connection was lost, whether or not a step ran. */
const lost: RunEnd = { kind: 'lost', outcome: 'unknown' };
const plain = { kind: 'open step', isRead: true, isReadOnly: false, effects: noEffects } as const;

/** The open transactions of one worker. */
export class OpenTransactions {
  readonly #owner: TransactionOwner;
  readonly #keeper: CommitKeeper;
  readonly #living = new Map<number, OpenTransaction>();
  /** How transactions that are over have ended. */
  readonly #endings = new CommitEndings();
  readonly #overs = new LatestOvers();
  #lastSerial = 0;
  #isClosed = false;
  /** Called when the last one has ended. */
  #onLast: () => void = () => {};

  constructor(owner: TransactionOwner, keeper: CommitKeeper) {
    this.#owner = owner;
    this.#keeper = keeper;
  }

  /** Finds the transaction of a token that a request has brought. */
  find(token: string, bearer: TransactionBearer): Found {
    const { pid, incarnation, key } = this.#owner;
    const name = decodeTransactionToken(token, bearer, key);
    if (name === null) return { kind: 'over', ending: 'over', over: noSuchTransaction };
    if (name.pid !== pid || name.incarnation !== incarnation) return { kind: 'elsewhere', name };
    const transaction = this.#living.get(name.serial);
    if (transaction !== undefined) return { kind: 'held', held: { name, transaction } };
    const ending = this.#endings.of(name);
    return { kind: 'over', ending, over: this.#overs.of(name.serial) ?? forgotten };
  }

  /** How a transaction of a worker that cannot be reached has ended. */
  endingOf(name: TransactionName): Promise<Ending> {
    return this.#keeper.endingOf(name);
  }

  /** A step that begins a transaction. @param owner `transactionOwner` of its caller */
  begin(home: Home, wish: TransactionCharacteristics, owner: string): BeginStep {
    this.#lastSerial += 1;
    const { pid, incarnation, key } = this.#owner;
    const name = { pid, incarnation, serial: this.#lastSerial };
    const bearer = { section: home.section, owner };
    const route = { isReadOnly: wish.isReadOnly, hasKey: false, needsPrimary: false };
    return {
      ...plain,
      sql: 'START TRANSACTION',
      token: encodeTransactionToken(name, bearer, key),
      launch: (after, events, times) =>
        home.executor.launch(
          { ...route, after },
          (context, to) =>
            new BeginRun(
              context,
              { wish, after, idleMs: home.times.idleMs },
              (begun) => this.#hold(home, name, begun),
              to,
              times,
            ),
          events,
          times,
        ),
    };
  }

  /** A statement in a transaction. */
  run({ transaction }: Held, statement: Statement): OpenStep {
    const { sql, isRead, effects } = statement;
    const launch = launchIn(transaction, new StatementJob(statement, transaction.isReadOnly));
    return { kind: 'open step', sql, isRead, isReadOnly: transaction.isReadOnly, effects, launch };
  }

  commit({ name, transaction }: Held): OpenStep {
    const job = new CommitJob({
      begun: () => this.#keeper.begun(name),
      settled: (isCommitted) => this.#keeper.settled(name, isCommitted),
    });
    return { ...plain, isRead: false, sql: 'COMMIT', launch: launchIn(transaction, job) };
  }

  /** The job says afterwards whether all was undone. */
  rollback({ transaction }: Held): OpenStep & { readonly job: RollbackJob } {
    const job = new RollbackJob();
    return { ...plain, sql: 'ROLLBACK', job, launch: launchIn(transaction, job) };
  }

  /** Each ends once the steps that wait for it have run; no further one begins. Resolves when the last one has ended. */
  close(): Promise<void> {
    this.#isClosed = true;
    const lastEnded = new Promise<void>((resolve) => {
      this.#onLast = resolve;
    });
    for (const transaction of [...this.#living.values()]) transaction.close();
    if (this.#living.size === 0) this.#onLast();
    return lastEnded;
  }

  #hold(home: Home, name: TransactionName, begun: Begun): void {
    const { serial } = name;
    const { context } = begun;
    const { executor } = home;
    const transaction = new OpenTransaction(begun, home.times, {
      stepEnded: (end) => executor.ended(context, end, begun.isReadOnly),
      doubted: () => this.#keeper.doubted(name),
      ended: (end, left, cause) => {
        this.#living.delete(serial);
        executor.forget(transaction);
        if (end === 'lost') executor.ended(context, lost, begun.isReadOnly);
        const ending = endingOf(end, left);
        this.#endings.note(name, ending);
        this.#overs.note(serial, { end, left, cause });
        this.#remember(name, ending, transaction.isDoubted);
        home.onEnd(end);
        if (this.#living.size === 0) this.#onLast();
      },
    });
    this.#living.set(serial, transaction);
    executor.remember(transaction, context);
    if (this.#isClosed) transaction.close();
  }

  /** Replaces what was recorded before, of a doubt or of a COMMIT. */
  #remember(name: TransactionName, ending: Ending, wasDoubted: boolean): void {
    if (ending === 'partial') void this.#keeper.left(name);
    else if (ending === 'unproven') void this.#keeper.doubted(name);
    else if (ending === 'over' && wasDoubted) void this.#keeper.settled(name, false);
  }
}

const forgotten: TransactionOver = { end: 'forgotten', left: 'unknown', cause: noCause };

const maxOvers = 10_000;

/** How the latest transactions of a worker have ended, by their numbers, for messages. */
class LatestOvers {
  readonly #all = new Map<number, TransactionOver>();

  note(serial: number, over: TransactionOver): void {
    this.#all.set(serial, over);
    if (this.#all.size <= maxOvers) return;
    const [oldest = 0] = this.#all.keys();
    this.#all.delete(oldest);
  }

  of(serial: number): TransactionOver | null {
    return this.#all.get(serial) ?? null;
  }
}

function endingOf(end: TransactionEnd, left: Left): Ending {
  if (end === 'committed' || end === 'unknown') return end;
  return leftEndings[left];
}

const leftEndings: Readonly<Record<Left, Ending>> = {
  nothing: 'over',
  something: 'partial',
  unknown: 'unproven',
};

function launchIn(transaction: OpenTransaction, job: Job): OpenStep['launch'] {
  return (after: Token | null, events, times) =>
    new StepRun(transaction, job, after, events, times);
}
