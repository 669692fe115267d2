// Transactions that clients hold: no statement outside of them, no word about a COMMIT that is not known.
import type { Mutation } from '../mutation.ts';

export const heldMutations: readonly Mutation[] = [
  {
    name: 'idle-transaction-not-asked',
    promise: 'a statement is not run outside of its transaction when that has ended unseen',
    file: 'src/worker/transactions/held-turn.ts',
    before: 'return (status & serverStatus.inTransaction) !== 0;',
    after: 'return status >= 0 && !connection.isLost;',
    tests: ['test/unit/worker/transactions/held-turn.test.ts'],
  },
  {
    name: 'commit-stopped-by-age',
    promise: 'a COMMIT that was sent is not ended by the age of its transaction',
    file: 'src/worker/transactions/held-turn.ts',
    before: "if (this.#phase === 'working') this.stop('deadline');",
    after: "this.stop('deadline');",
    tests: ['test/unit/worker/transactions/held-turn.test.ts'],
  },
  {
    name: 'turn-behind-the-end',
    promise: 'nobody has a turn in a transaction that is about to end',
    file: 'src/worker/transactions/held-transaction.ts',
    before: 'else if (this.#turn === null && this.#dueEnd === null) this.#grant(turn);',
    after: 'else if (this.#turn === null) this.#grant(turn);',
    tests: ['test/unit/worker/transactions/held-transaction.test.ts'],
  },
  {
    name: 'token-of-earlier-life',
    promise: 'a token names no transaction of another life of a process id',
    file: 'src/worker/transactions/held-transactions.ts',
    before: 'if (name.pid !== pid || name.incarnation !== incarnation)',
    after: 'if (name.pid !== pid)',
    tests: ['test/unit/worker/transactions/held-transactions.test.ts'],
  },
  {
    name: 'forgotten-commit-told-over',
    promise: 'what became of a COMMIT that was forgotten is unknown',
    file: 'src/shared/process/commit-endings.ts',
    before: "return serial <= this.#lastForgotten(incarnation) ? 'unknown' : 'over';",
    after: "return serial < this.#lastForgotten(incarnation) ? 'unknown' : 'over';",
    tests: ['test/unit/shared/process/commit-endings.test.ts'],
  },
  {
    name: 'unknown-commit-told-undone',
    promise: 'a COMMIT of a worker that is gone is unknown if it was sent',
    file: 'src/worker/endpoints/held-requests.ts',
    before: "if (ending === 'unknown') return connectionLostElsewhere;",
    after: "if (ending === 'unknown' && !wasSent) return connectionLostElsewhere;",
    tests: ['test/unit/worker/endpoints/held-requests.test.ts'],
  },
  {
    name: 'error-left-something',
    promise: 'a transaction is told rolled back only if the server has undone all of it',
    file: 'src/worker/transactions/statement-job.ts',
    before: 'const isUndone = isUndoing && !hasLeft && !failure.mayBePartial;',
    after: 'const isUndone = isUndoing && !failure.mayBePartial;',
    tests: ['test/unit/worker/transactions/statement-job.test.ts'],
  },
];
