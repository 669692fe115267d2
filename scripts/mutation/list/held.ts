// Transactions that clients hold: no statement runs outside of them, and no claim about a COMMIT without an answer.
import type { Mutation } from '../mutation.ts';

export const heldMutations: readonly Mutation[] = [
  {
    name: 'idle-transaction-not-asked',
    promise:
      'a statement does not run outside of its transaction if the transaction has ended unseen',
    file: 'src/worker/execution/transactions/step-run.ts',
    before: 'return (status & serverStatus.inTransaction) !== 0;',
    after: 'return status >= 0 && !connection.isLost;',
    tests: ['test/unit/worker/execution/transactions/step-run.test.ts'],
  },
  {
    name: 'commit-stopped-by-age',
    promise: 'the age of a transaction does not end its COMMIT',
    file: 'src/worker/execution/transactions/step-run.ts',
    before: "if (this.#phase === 'working') this.stop('deadline');",
    after: "this.stop('deadline');",
    tests: ['test/unit/worker/execution/transactions/step-run.test.ts'],
  },
  {
    name: 'step-behind-the-end',
    promise: 'no step runs in a transaction that is about to end',
    file: 'src/worker/execution/transactions/open-transaction.ts',
    before: 'else if (this.#current === null && this.#dueEnd === null) this.#grant(step);',
    after: 'else if (this.#current === null) this.#grant(step);',
    tests: ['test/unit/worker/execution/transactions/open-transaction.test.ts'],
  },
  {
    name: 'token-of-earlier-life',
    promise: 'a token names no transaction of an earlier process with the same id',
    file: 'src/worker/execution/transactions/open-transactions.ts',
    before: 'if (name.pid !== pid || name.incarnation !== incarnation)',
    after: 'if (name.pid !== pid)',
    tests: ['test/unit/worker/execution/transactions/open-transactions.test.ts'],
  },
  {
    name: 'forgotten-commit-reported-over',
    promise: 'the outcome of a forgotten COMMIT is unknown',
    file: 'src/shared/process/commit-endings.ts',
    before: "return serial <= this.#lastForgotten(incarnation) ? 'unknown' : 'over';",
    after: "return serial < this.#lastForgotten(incarnation) ? 'unknown' : 'over';",
    tests: ['test/unit/shared/process/commit-endings.test.ts'],
  },
  {
    name: 'unknown-commit-reported-undone',
    promise: 'a COMMIT that was sent by a dead worker is unknown',
    file: 'src/worker/endpoints/held-requests.ts',
    before: "if (ending === 'unknown') return connectionLost;",
    after: "if (ending === 'unknown' && !wasSent) return connectionLost;",
    tests: ['test/unit/worker/endpoints/held-requests.test.ts'],
  },
  {
    name: 'error-left-something',
    promise: 'a transaction is reported as rolled back only if the server has undone all of it',
    file: 'src/worker/execution/transactions/jobs.ts',
    before: 'const isPartial = !isUndoing || hasLeft || mayBePartial(text, error);',
    after: 'const isPartial = !isUndoing || mayBePartial(text, error);',
    tests: ['test/unit/worker/execution/transactions/jobs-statement.test.ts'],
  },
  {
    name: 'left-part-reported-undone',
    promise: 'a rollback after the COMMIT of a procedure does not report that all is undone',
    file: 'src/worker/execution/transactions/open-transactions.ts',
    before: "  something: 'partial',",
    after: "  something: 'over',",
    tests: ['test/behaviour/transactions/held.test.ts'],
  },
  {
    name: 'waiting-rollback-reported-undone',
    promise: 'a rollback that waited does not report that all is undone if something was committed',
    file: 'src/worker/execution/transactions/jobs.ts',
    before: "this.undoes = end === 'committed' ? 'nothing' : undoneBut[left];",
    after: "this.undoes = end === 'committed' ? 'nothing' : 'all';",
    tests: ['test/unit/worker/execution/transactions/jobs-endings.test.ts'],
  },
];
