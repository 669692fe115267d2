// Second safeguards, which hold if the first one fails.
import type { Mutation } from '../mutation.ts';

export const safeguardMutations: readonly Mutation[] = [
  {
    name: 'key-completed-by-another',
    promise: 'an attempt completes its own row of a key, and never that of another attempt',
    file: 'src/worker/execution/idempotency/key-store.ts',
    before: " AND attempt = x'",
    after: " OR attempt = x'",
    tests: ['test/behaviour/idempotency/rows.test.ts'],
  },
  {
    name: 'key-looked-up-without-lock',
    promise: 'a look-up of a key sees only committed rows',
    file: 'src/worker/execution/idempotency/key-store.ts',
    before: ' LOCK IN SHARE MODE`',
    after: '`',
    tests: ['test/behaviour/idempotency/rows.test.ts'],
  },
  {
    name: 'stale-session-not-asked',
    promise: 'an idle session is pinged before a statement is sent on it',
    file: 'src/worker/execution/session-acquisition.ts',
    before: 'else if (isStale(session, performance.now())) await showAlive(session);',
    after: 'else if (session.connection.isLost) await showAlive(session);',
    tests: ['test/unit/worker/execution/session-acquisition.test.ts'],
  },
  {
    name: 'stale-session-passed-over',
    promise: 'an idle session is made ready before a statement is sent on it',
    file: 'src/worker/execution/session-acquisition.ts',
    before: 'return isStale(session, now) || isReadOnly ||',
    after: 'return now < 0 || isReadOnly ||',
    tests: ['test/unit/worker/execution/session-acquisition.test.ts'],
  },
  {
    name: 'held-session-clean',
    promise: 'a session is reset after a transaction that a client held',
    file: 'src/worker/execution/transactions/open-transaction.ts',
    before: "this.#session.connection.isLost ? 'broken' : 'unclean'",
    after: "this.#session.connection.isLost ? 'broken' : 'clean'",
    tests: ['test/unit/worker/execution/transactions/open-transaction.test.ts'],
  },
  {
    name: 'token-signs-four-characters',
    promise: 'the token of a transaction is valid for its own bearer only',
    file: 'src/worker/execution/transactions/transaction-token.ts',
    before: 'JSON.stringify([section, credential])',
    after: 'JSON.stringify([section, credential.slice(0, 4)])',
    tests: ['test/unit/worker/execution/transactions/transaction-token.test.ts'],
  },
  {
    name: 'deleted-lock-counts',
    promise: 'a lock on a deleted file is not a claim',
    file: 'src/supervisor/claim/claim.ts',
    before: 'if (isLocked && isStillAt(path, claim.fd)) return claim;',
    after: 'if (isLocked) return claim;',
    tests: ['test/unit/supervisor/claim/claim.test.ts'],
  },
];
