// COMMIT and ROLLBACK of a transaction that its client holds.
// Must not know whose turn it is.
import type { ServerError } from '../../../shared/mysql/packets.ts';
import type { Outcome } from '../../failure/failure.ts';
import { serverFailure } from '../../failure/server-failure.ts';
import { undoesTransaction } from '../batch-break.ts';
import type { RunEnd } from '../execution.ts';
import { ofTransaction, type SessionLease } from '../session-lease.ts';
import { type Left, leftBy, type TransactionEnd } from './held-transaction.ts';
import { type Done, type Job, type JobTools, outcomeOf, transactionOver } from './held-turn.ts';
import { answeredWith } from './statement-job.ts';

const succeeded: RunEnd = { kind: 'answered', failure: null, facts: null };
/** COMMIT was sent, and has no answer. */
const unknown: RunEnd = { kind: 'lost', outcome: 'unknown' };

/** Whoever remembers, beyond this worker's life, that a COMMIT is on its way. */
export type CommitNotes = {
  /** Resolves when that is remembered, or cannot be. */
  readonly begun: () => Promise<void>;
  /** It has an answer that says what became of it, or was not sent after all. Resolves as `begun` does: who is told so hears nothing else later. */
  readonly settled: (isCommitted: boolean) => Promise<void>;
};

/** COMMIT, once it is proven that the transaction is the one that was begun. No stop ends one that was sent. */
export class CommitJob implements Job {
  readonly kind = 'commit';
  readonly seesOneMoment = true;
  readonly #notes: CommitNotes;

  constructor(notes: CommitNotes) {
    this.#notes = notes;
  }

  async perform(tools: JobTools): Promise<Done> {
    const { lease } = tools;
    if (tools.stopReason !== null) return tools.undoAfterStop(tools.stopReason);
    const proven = await lease.ask(`RELEASE SAVEPOINT ${tools.savepoint}`, ofTransaction);
    if (tools.stopReason !== null) {
      const isReleased = proven.kind === 'answered' && proven.error === null;
      return isReleased ? this.#stopped(tools) : tools.undoAfterStop(tools.stopReason);
    }
    if (proven.kind === 'lost')
      return notCommitted(tools.isDoubted ? 'unknown' : 'rolled_back', 'lost');
    if (proven.error !== null) {
      const undone = await lease.rollBack(null);
      return notCommitted(undone === 'unknown' ? 'unknown' : 'partial', 'ended');
    }
    await this.#notes.begun();
    if (tools.stopReason !== null) return this.#stopped(tools);
    tools.commitIsSent();
    const answered = await lease.ask('COMMIT', ofTransaction);
    if (answered.kind === 'lost') return { end: unknown, ended: 'unknown' };
    if (answered.error !== null) return this.#refused(lease, answered.error);
    await this.#notes.settled(true);
    return { end: succeeded, ended: 'committed' };
  }

  /** It may have been committed already, by somebody who came before. */
  afterEnd(end: TransactionEnd): RunEnd {
    if (end === 'committed') return succeeded;
    return end === 'unknown' ? unknown : transactionOver;
  }

  /** The savepoint is released by now: what there is is undone without it. */
  async #stopped({ lease, stopReason: reason }: JobTools): Promise<Done> {
    await this.#notes.settled(false);
    const undone = await lease.rollBack(null);
    const outcome = outcomeOf(undone);
    return {
      end: { kind: 'batch stopped', reason: reason ?? 'deadline', outcome },
      ended: 'stopped',
    };
  }

  async #refused(lease: SessionLease, error: ServerError): Promise<Done> {
    const isUndone = undoesTransaction(error, true);
    const hasLeft = isUndone && (await lease.hasLeftSomething());
    await lease.rollBack(null);
    const outcome = !isUndone ? 'unknown' : hasLeft ? 'partial' : 'rolled_back';
    if (outcome !== 'unknown') await this.#notes.settled(false);
    const failure = serverFailure(error, { isReadOnly: false, isRead: false }, outcome);
    return { end: answeredWith(failure), ended: isUndone ? 'rolled_back' : 'unknown' };
  }
}

/** What a ROLLBACK has undone; `nothing`: the transaction had been committed before. */
export type RolledBack = 'all' | 'a part' | 'nothing' | 'unknown';

/** What a ROLLBACK has undone, by what is left. */
const undoneBut: Readonly<Record<Left, RolledBack>> = {
  nothing: 'all',
  something: 'a part',
  unknown: 'unknown',
};

/** ROLLBACK. */
export class RollbackJob implements Job {
  readonly kind = 'rollback';
  readonly seesOneMoment = true;
  /** Once that is known. */
  undoes: RolledBack = 'all';

  /** A connection that is lost meanwhile has its transaction undone by the server, as far as it can be. */
  async perform({ lease, savepoint, isDoubted }: JobTools): Promise<Done> {
    const left = leftBy(await lease.rollBack(savepoint));
    this.undoes = undoneBut[left === 'unknown' && !isDoubted ? 'nothing' : left];
    return { end: succeeded, ended: 'rolled_back', left };
  }

  afterEnd(end: TransactionEnd, left: Left): RunEnd {
    if (end === 'unknown') return unknown;
    this.undoes = end === 'committed' ? 'nothing' : undoneBut[left];
    return succeeded;
  }
}

/** COMMIT was not sent. */
function notCommitted(outcome: Outcome, ended: 'lost' | 'ended'): Done {
  return { end: { kind: 'transaction ended', outcome }, ended };
}
