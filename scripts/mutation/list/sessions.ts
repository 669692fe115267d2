// A session keeps nothing of a request for the next one.
import type { Mutation } from '../mutation.ts';

export const sessionMutations: readonly Mutation[] = [
  {
    name: 'changed-state-taken-clean',
    promise: 'a session is reset if the server reports that it was changed',
    file: 'src/shared/mysql/query.ts',
    before: 'error === null && !this.#stateChanged && this.isSettled',
    after: 'error === null && this.isSettled',
    tests: ['test/unit/shared/mysql/query.test.ts'],
  },
  {
    name: 'open-transaction-taken-clean',
    promise: 'a session with an open transaction is reset',
    file: 'src/shared/mysql/query.ts',
    before: 'error === null && !this.#stateChanged && this.isSettled',
    after: 'error === null && !this.#stateChanged',
    tests: ['test/unit/shared/mysql/query.test.ts'],
  },
  {
    name: 'text-not-asked',
    promise: 'a session is clean only if the text of the statement shows it too',
    file: 'src/worker/execution/session-run.ts',
    before: 'const isClean = flagsClean && leavesSessionClean && !isReadOnly',
    after: 'const isClean = flagsClean && !isReadOnly',
    tests: ['test/behaviour/sessions/sessions.test.ts'],
  },
  {
    name: 'use-outlives-reset',
    promise: 'USE is gone before another request has the session',
    file: 'src/worker/servers/pool/session.ts',
    before: '      onePacketCommand(commandCodes.initDb, this.#database),\n',
    after: '',
    tests: ['test/unit/worker/servers/pool/session.test.ts'],
  },
  {
    name: 'unclean-session-lent',
    promise: 'a session that is not clean is reset before it is lent again',
    file: 'src/worker/servers/pool/pool.ts',
    before: "else if (verdict === 'clean') this.#lend(session, null);",
    after: "else if (verdict !== 'broken') this.#lend(session, null);",
    tests: ['test/unit/worker/servers/pool/pool-release.test.ts'],
  },
  {
    name: 'warnings-of-another',
    promise: 'a statement without warnings lists none of an earlier statement of its session',
    file: 'src/worker/execution/warnings.ts',
    before: 'return (results.at(-1)?.warnings ?? 0) > 0;',
    after: 'return results.length > 0;',
    tests: ['test/behaviour/v1/warnings.test.ts'],
  },
];
