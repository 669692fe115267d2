// The reported outcome of statements whose end is not seen: never more than is known.
import type { Mutation } from '../mutation.ts';

export const outcomeMutations: readonly Mutation[] = [
  {
    name: 'proof-without-tables',
    promise: 'a free key proves nothing of tables that are not undone',
    file: 'src/worker/execution/keyed-run.ts',
    before: "this.#isBarring ? 'unknown' : 'rolled_back'",
    after: "'rolled_back'",
    tests: ['test/unit/worker/execution/keyed-run.test.ts'],
  },
  {
    name: 'rollback-without-proof',
    promise: 'a ROLLBACK reports that all is undone only if the transaction was there to its end',
    file: 'src/worker/execution/transactions/jobs.ts',
    before: "undoneBut[left === 'unknown' && !isDoubted ? 'nothing' : left]",
    after: "undoneBut['nothing']",
    tests: ['test/unit/worker/execution/transactions/jobs-endings.test.ts'],
  },
  {
    name: 'lost-commit-noted-undone',
    promise: 'a COMMIT without an answer remains unknown after the death of its worker',
    file: 'src/worker/execution/transactions/jobs.ts',
    before: "if (answered.kind === 'lost') return { end: unknown, ended: 'unknown' };",
    after:
      "if (answered.kind === 'lost') { await this.#notes.settled(false); return { end: unknown, ended: 'unknown' }; }",
    tests: ['test/unit/worker/execution/transactions/jobs-endings.test.ts'],
  },
  {
    name: 'refused-commit-noted-undone',
    promise: 'a COMMIT with an unrelated error remains unknown after the death of its worker',
    file: 'src/worker/execution/transactions/jobs.ts',
    before: "if (outcome !== 'unknown') await this.#notes.settled(false);",
    after: 'await this.#notes.settled(false);',
    tests: ['test/unit/worker/execution/transactions/jobs-endings.test.ts'],
  },
  {
    name: 'kill-not-confirmed',
    promise: 'a session is used again only after a KILL that its server confirmed',
    file: 'src/worker/servers/pool/control.ts',
    before: 'const isUsable = killed && !connection.isLost;',
    after: 'const isUsable = !connection.isLost;',
    tests: ['test/unit/worker/servers/pool/control-kill.test.ts'],
  },
];
