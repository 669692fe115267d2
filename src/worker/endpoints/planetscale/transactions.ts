// Statements of drivers: by themselves, or in transactions that begin, go on and end as those of /v1/transaction do.
import type { Caller } from '../../../shared/clients/caller.ts';
import type { Analysis } from '../../../shared/sql/analyse.ts';
import { type Isolation, whyNotInTransaction } from '../../../shared/sql/transactions.ts';
import type { Work } from '../../execution/executor.ts';
import type { OpenTransactions } from '../../execution/transactions/open-transactions.ts';
import type { RunDecision } from '../../request/exchange.ts';
import type { Call, Decision, WhenOver } from '../endpoint.ts';
import { commitOver, type FoundHere, findTransaction, statementOver } from '../held-requests.ts';
import type { SqlSection } from '../sections.ts';
import { type Decided, decideAnalysed, notInTransaction, type RunWish } from '../statement.ts';
import type { DriverReplies } from './replies.ts';
import type { DriverSession } from './session.ts';

const wish: Omit<RunWish, 'caller'> = {
  readOnly: false,
  isSingle: true,
  needsEffect: false,
  rollbackOnError: false,
  asksServer: false,
  showsWarnings: false,
  format: 'planetscale',
};

/** One request of a driver's, with the session that it brought. */
export type DriverCall = Call & { readonly session: DriverSession };

/** The characteristics in a BEGIN; null: the server's own. */
export type BeginStatement = {
  readonly isolation: Isolation | null;
  readonly isReadOnly: boolean | null;
  readonly withConsistentSnapshot: boolean;
};

/** Decides what is done with the statements of drivers. `runWithin`, `commit` and `rollback` need a session that is in a transaction. */
export class DriverStatements {
  readonly #served: SqlSection;
  readonly #transactions: OpenTransactions;
  readonly #replies: DriverReplies;

  constructor(served: SqlSection, transactions: OpenTransactions, replies: DriverReplies) {
    this.#served = served;
    this.#transactions = transactions;
    this.#replies = replies;
  }

  /** A statement that is its own transaction. */
  runAlone({ record, session }: DriverCall, analysis: Analysis): Decision {
    const decided = this.#decide(record.caller, analysis);
    return decided.ok ? this.#run(decided.statement, () => session, analysis) : decided;
  }

  /** The session of the reply is in the transaction; its `next` is used up. */
  begin({ record, session }: DriverCall, wish: BeginStatement): Decision {
    const { config, context } = this.#served;
    const asked = {
      isolation: wish.isolation,
      isReadOnly: wish.isReadOnly === true || config.readOnly,
      hasSnapshot: wish.withConsistentSnapshot,
    };
    const { transactionOwner: owner } = record.caller;
    const step = this.#transactions.begin(context.home, asked, owner);
    const bearer = { section: context.home.section, owner };
    const isHeld = () => this.#transactions.find(step.token, bearer).kind === 'held';
    return this.#run(step, () => (isHeld() ? { ...session, transaction: step.token } : session));
  }

  /** Runs one statement in the transaction, or fails: never outside of it. */
  runWithin(call: DriverCall, analysis: Analysis): Decision {
    const found = this.#find(call, false, (_, wasSent, over) => {
      return { ok: false, failure: statementOver(wasSent, over) };
    });
    if (!found.isHere) return found.decision;
    const decided = this.#decide(call.record.caller, analysis);
    if (!decided.ok) return decided;
    const whyNot = whyNotInTransaction(analysis, found.held.transaction.isReadOnly);
    if (whyNot !== null) return notInTransaction(whyNot);
    const step = this.#transactions.run(found.held, decided.statement);
    return this.#run(step, () => call.session, analysis);
  }

  /** The session of the reply is in no transaction; fails if the transaction is lost. */
  commit(call: DriverCall): Decision {
    const found = this.#find(call, true, (ending, wasSent, over) =>
      ending === 'committed'
        ? this.#replies.done(outside(call.session))
        : { ok: false, failure: commitOver(ending, wasSent, over) },
    );
    if (!found.isHere) return found.decision;
    return this.#run(this.#transactions.commit(found.held), this.#sessionBehind(call));
  }

  /** The same, and it succeeds also if the transaction is lost, except after a COMMIT whose answer is not known. */
  rollback(call: DriverCall): Decision {
    const found = this.#find(call, true, (ending, _, over) =>
      ending === 'unknown'
        ? { ok: false, failure: commitOver(ending, false, over) }
        : this.#replies.done(outside(call.session)),
    );
    if (!found.isHere) return found.decision;
    return this.#run(this.#transactions.rollback(found.held), () => outside(call.session));
  }

  #decide(caller: Caller, analysis: Analysis): Decided {
    const { config, context } = this.#served;
    return decideAnalysed(config, { ...wish, caller }, analysis, context.catalogue());
  }

  #find({ record, session }: DriverCall, asksForEnd: boolean, over: WhenOver): FoundHere {
    const { config, context } = this.#served;
    return findTransaction(this.#transactions, {
      token: session.transaction ?? '',
      sections: [context.home.section],
      caller: record.caller,
      timeoutMs: config.statementTimeoutMs,
      asksForEnd,
      over,
    });
  }

  /** The session leaves its transaction if COMMIT succeeds; after a failure, only by ROLLBACK. */
  #sessionBehind({ record, session }: DriverCall): () => DriverSession {
    const { section } = this.#served.context.home;
    const bearer = { section, owner: record.caller.transactionOwner };
    return () => {
      const found = this.#transactions.find(session.transaction ?? '', bearer);
      return found.kind === 'over' && found.ending === 'committed' ? outside(session) : session;
    };
  }

  /**
   * @param session as it is when the reply ends
   * @param analysis null: the work is none of the client's statements
   */
  #run(work: Work, session: () => DriverSession, analysis: Analysis | null = null): RunDecision {
    const format = this.#replies.format(analysis, session);
    const section = this.#served;
    return { ok: true, kind: 'run', section, work, timeoutMs: null, format, ignoresToken: true };
  }
}

function outside(session: DriverSession): DriverSession {
  return { ...session, transaction: null };
}
