// Statements that were sent are not sent again.
import type { Mutation } from '../mutation.ts';

export const repeatMutations: readonly Mutation[] = [
  {
    name: 'moved-write-begun-again',
    promise: 'a write that was sent is not begun at another server',
    file: 'src/worker/execution/routed-run.ts',
    before: "return end.kind === 'not executed' || this.#wish.isReadOnly;",
    after: "return end.kind !== 'answered';",
    tests: ['test/unit/worker/execution/routed-run.test.ts'],
  },
  {
    name: 'lost-write-begun-again',
    promise: 'a write whose connection was lost is not begun at another server',
    file: 'src/worker/execution/routed-run.ts',
    before: "case 'lost':\n        return isReadOnly;",
    after: "case 'lost':\n        return end.outcome === 'unknown';",
    tests: ['test/unit/worker/execution/routed-run.test.ts'],
  },
  {
    name: 'batch-without-key-replayed',
    promise: 'a batch is replayed at another server only if it has a key',
    file: 'src/worker/execution/routed-run.ts',
    before: "return isReadOnly || (hasKey && failure.outcome === 'rolled_back');",
    after: "return isReadOnly || hasKey || failure.outcome === 'rolled_back';",
    tests: ['test/unit/worker/execution/routed-run.test.ts'],
  },
  {
    name: 'read-replayed-behind-its-bytes',
    promise: 'a read of which a byte has left is not begun at another server',
    file: 'src/worker/execution/routed-run.ts',
    before: 'if (run.isSent && !(this.#wish.isReadOnly && !this.sink.hasLeft)) return;',
    after: 'if (run.isSent && !this.#wish.isReadOnly) return;',
    tests: ['test/unit/worker/execution/routed-run.test.ts'],
  },
  {
    name: 'written-read-reported-not-executed',
    promise: 'a statement that the pipeline has written is never reported as not executed',
    file: 'src/worker/execution/run.ts',
    before: "this.#wasWritten ? { kind: 'cut short', reason } :",
    after: '',
    tests: ['test/behaviour/execution/pipeline-second-run.test.ts'],
  },
  {
    name: 'batch-begun-again-not-undone',
    promise: 'a batch begins again only if all of it was undone',
    file: 'src/worker/execution/batch-run.ts',
    before: "if (!isUndone || broken.kind !== 'refused' ||",
    after: "if (broken.kind !== 'refused' ||",
    tests: ['test/behaviour/v1/batch-faults.test.ts'],
  },
  {
    name: 'moved-read-reported-not-executed',
    promise:
      'a read that was sent to a lost server is not reported as not executed by the next one',
    file: 'src/worker/execution/routed-run.ts',
    before: 'const wasSentBefore = this.isReadOnly && this.#wasSent;',
    after: 'const wasSentBefore = this.isReadOnly && this.#run?.isSent === true;',
    tests: ['test/unit/worker/execution/routed-run.test.ts'],
  },
  {
    name: 'faulted-after-a-loss-not-executed',
    promise: 'after a loss, an exception does not make a write with a key one that was never sent',
    file: 'src/worker/execution/keyed-run.ts',
    before: 'isSent: end.isSent || this.#hasLost',
    after: 'isSent: end.isSent',
    tests: ['test/unit/worker/execution/keyed-run.test.ts'],
  },
  {
    name: 'faulted-second-run-not-executed',
    promise: 'a read that the pipeline wrote is not reported as not executed after an exception',
    file: 'src/worker/execution/run.ts',
    before: 'isSent: end.isSent || this.#wasWritten',
    after: 'isSent: end.isSent',
    tests: ['test/unit/worker/execution/run.test.ts'],
  },
];
