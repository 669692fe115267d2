// The transactions that clients hold in one worker: begun, found by their tokens, continued, ended; and how those ended that are over.
// Must not know HTTP, nor the other workers.
import { CommitEndings, type Ending } from '../../../shared/process/commit-endings.ts';
import type { Token } from '../../servers/consistency/token.ts';
import type { RunEnd } from '../execution.ts';
import type { Executor, OpenStep } from '../executor.ts';
import { noEffects } from '../statement-effects.ts';
import type { Statement } from '../work.ts';
import { BeginRun, type TransactionCharacteristics } from './begin-run.ts';
import { CommitJob, RollbackJob } from './ending-jobs.ts';
import {
  type Begun,
  HeldTransaction,
  type HoldingTimes,
  type Left,
  type TransactionEnd,
} from './held-transaction.ts';
import { HeldTurn, type Job } from './held-turn.ts';
import { StatementJob } from './statement-job.ts';
import {
  decodeTransactionToken,
  encodeTransactionToken,
  type TransactionBearer,
  type TransactionName,
} from './transaction-token.ts';

/** Who a worker is, for its tokens. */
export type TransactionOwner = {
  readonly pid: number;
  readonly incarnation: string;
  /** All workers of an instance have the same. */
  readonly key: Buffer;
};

/** Whoever remembers, beyond a worker's life, that a COMMIT was sent, and what became of it. */
export type CommitKeeper = {
  /** Resolves when that is remembered, or cannot be. */
  readonly begun: (name: TransactionName) => Promise<void>;
  readonly settled: (name: TransactionName, isCommitted: boolean) => Promise<void>;
  /** A transaction is over that was not committed, and something of it stands. */
  readonly left: (name: TransactionName) => Promise<void>;
  /** The same, and it is not known whether something of it stands; also of one that is not over, in case its worker is gone then. */
  readonly doubted: (name: TransactionName) => Promise<void>;
  /** How a transaction has ended whose worker is gone. */
  readonly endingOf: (name: TransactionName) => Promise<Ending>;
};

/** Where transactions of one section are held. */
export type Home = {
  readonly section: string;
  readonly executor: Executor;
  readonly times: HoldingTimes;
  /** Told of each transaction when it ends. */
  readonly onEnd: (end: TransactionEnd) => void;
};

/** One of this worker's that is not over. */
export type Held = { readonly name: TransactionName; readonly transaction: HeldTransaction };

/** Where a token leads. */
export type Found =
  | { readonly kind: 'held'; readonly held: Held }
  | { readonly kind: 'elsewhere'; readonly name: TransactionName }
  | { readonly kind: 'over'; readonly ending: Ending };

/** A step that begins a transaction, and the token that it then has. */
export type BeginStep = OpenStep & { readonly token: string };

/** Its connection was lost, whether or not anybody had a turn. */
const lost: RunEnd = { kind: 'lost', outcome: 'unknown' };
const plain = { kind: 'open step', isRead: true, isReadOnly: false, effects: noEffects } as const;

/** All of one worker. */
export class HeldTransactions {
  readonly #owner: TransactionOwner;
  readonly #keeper: CommitKeeper;
  readonly #living = new Map<number, HeldTransaction>();
  /** Of those that are over. */
  readonly #endings = new CommitEndings();
  #lastSerial = 0;
  #isClosed = false;
  /** Told when the last one has ended. */
  #onLast: () => void = () => {};

  constructor(owner: TransactionOwner, keeper: CommitKeeper) {
    this.#owner = owner;
    this.#keeper = keeper;
  }

  /** Where a token leads that somebody has brought. */
  find(token: string, bearer: TransactionBearer): Found {
    const { pid, incarnation, key } = this.#owner;
    const name = decodeTransactionToken(token, bearer, key);
    if (name === null) return { kind: 'over', ending: 'over' };
    if (name.pid !== pid || name.incarnation !== incarnation) return { kind: 'elsewhere', name };
    const transaction = this.#living.get(name.serial);
    if (transaction !== undefined) return { kind: 'held', held: { name, transaction } };
    return { kind: 'over', ending: this.#endings.of(name) };
  }

  /** How one has ended whose worker cannot be reached. */
  endingOf(name: TransactionName): Promise<Ending> {
    return this.#keeper.endingOf(name);
  }

  /** A step that begins a transaction. */
  begin(home: Home, wish: TransactionCharacteristics, credential: string): BeginStep {
    this.#lastSerial += 1;
    const { pid, incarnation, key } = this.#owner;
    const name = { pid, incarnation, serial: this.#lastSerial };
    const bearer = { section: home.section, credential };
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

  /** The job tells afterwards whether all was undone. */
  rollback({ transaction }: Held): OpenStep & { readonly job: RollbackJob } {
    const job = new RollbackJob();
    return { ...plain, sql: 'ROLLBACK', job, launch: launchIn(transaction, job) };
  }

  /** Each ends as soon as what has been asked of it is done; none is begun any more. Resolves when the last one has ended. */
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
    const transaction = new HeldTransaction(begun, home.times, {
      turnEnded: (end) => executor.ended(context, end, begun.isReadOnly),
      doubted: () => this.#keeper.doubted(name),
      ended: (end, left) => {
        this.#living.delete(serial);
        executor.forget(transaction);
        if (end === 'lost') executor.ended(context, lost, begun.isReadOnly);
        const ending = endingOf(end, left);
        this.#endings.note(name, ending);
        this.#remember(name, ending, transaction.isDoubted);
        home.onEnd(end);
        if (this.#living.size === 0) this.#onLast();
      },
    });
    this.#living.set(serial, transaction);
    executor.remember(transaction, context);
    if (this.#isClosed) transaction.close();
  }

  /** What was noted before, of a doubt or of a COMMIT, counts no more. */
  #remember(name: TransactionName, ending: Ending, wasDoubted: boolean): void {
    if (ending === 'partial') void this.#keeper.left(name);
    else if (ending === 'unproven') void this.#keeper.doubted(name);
    else if (ending === 'over' && wasDoubted) void this.#keeper.settled(name, false);
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

function launchIn(transaction: HeldTransaction, job: Job): OpenStep['launch'] {
  return (after: Token | null, events, times) =>
    new HeldTurn(transaction, job, after, events, times);
}
