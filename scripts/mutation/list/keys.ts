// Idempotency keys: their owners, and what an attempt may conclude.
import type { Mutation } from '../mutation.ts';

export const keyMutations: readonly Mutation[] = [
  {
    name: 'other-request-replayed',
    promise: 'a key of another request is refused',
    file: 'src/worker/execution/keyed-run.ts',
    before: 'if (request !== this.#key.request) return',
    after: "if (request === '') return",
    tests: ['test/unit/worker/execution/keyed-run.test.ts'],
  },
  {
    name: 'loss-reported-not-executed',
    promise: 'after a loss, an attempt without the key does not settle the attempts before it',
    file: 'src/worker/execution/keyed-run.ts',
    before: 'if (this.#hasLost && !hasKey) return',
    after: 'if (this.#hasLost && hasKey) return',
    tests: ['test/unit/worker/execution/keyed-run.test.ts'],
  },
  {
    name: 'predecessor-elsewhere-killed',
    promise: 'the rest of an attempt is ended only on its own server',
    file: 'src/worker/execution/idempotency/key-store.ts',
    before: 'if (lost === null || !isSameServer(lost.identity, identity)) return;',
    after: "if (lost === null || identity.name === '') return;",
    tests: ['test/unit/worker/execution/idempotency/key-store-attempt.test.ts'],
  },
  {
    name: 'keys-shared-by-sections',
    promise: 'a key belongs to its section',
    file: 'src/worker/endpoints/v1/idempotency.ts',
    before: 'id: hashAll([section, header, ...owned])',
    after: 'id: hashAll([section.slice(0, 1), header, ...owned])',
    tests: ['test/unit/worker/endpoints/v1/idempotency.test.ts'],
  },
  {
    name: 'key-boundaries',
    promise: 'a section and a key never equal another pair',
    file: 'src/worker/endpoints/v1/idempotency.ts',
    before: 'Buffer.byteLength(text)}:',
    after: "''}",
    tests: ['test/unit/worker/endpoints/v1/idempotency.test.ts'],
  },
  {
    name: 'engine-not-proven',
    promise: 'a key is written only to a table with transactions',
    file: 'src/worker/execution/batch-texts.ts',
    before: 'if (key !== null) texts.add({ sql: key.engineProof',
    after: "if (key?.engineProof === '') texts.add({ sql: key.engineProof",
    tests: ['test/unit/worker/execution/batch-texts.test.ts'],
  },
  {
    name: 'lock-released-twice',
    promise: 'the lock of a key that is released twice leaves the next owner in place',
    file: 'src/worker/execution/idempotency/key-store.ts',
    before: 'if (isIn) this.#leave(id, begin);',
    after: 'if (isIn || begin.length >= 0) this.#leave(id, begin);',
    tests: ['test/unit/worker/execution/idempotency/key-store-locks.test.ts'],
  },
  {
    name: 'triggers-not-asked',
    promise: 'what a trigger writes to counts too, if a ROLLBACK is to undo a write',
    file: 'src/worker/execution/undoable-tables.ts',
    before: 'counts.views > 0 || counts.triggers > 0',
    after: 'counts.views > 0',
    tests: ['test/unit/worker/execution/undoable-tables.test.ts'],
  },
];
