// The identity of a server and of its run: what is meant for one server must never reach another, nor be believed of another.
import type { Mutation } from '../mutation.ts';

export const identityMutations: readonly Mutation[] = [
  {
    name: 'kill-other-server',
    promise: 'a KILL is sent only to the run of the server on which the statement runs',
    file: 'src/worker/servers/pool/control.ts',
    before: '    return isSameServer(this.#identity, identity)\n      ? null',
    after: '    return identity !== null\n      ? null',
    tests: ['test/unit/worker/servers/pool/control.test.ts'],
  },
  {
    name: 'kill-lost-in-other-run',
    promise: 'a lost session is ended only in the run of the server that it was lost in',
    file: 'src/worker/servers/pool/control.ts',
    before: 'const isHere = isSameServer(identity, this.#identity);',
    after: 'const isHere = true;',
    tests: ['test/unit/worker/servers/pool/control.test.ts'],
  },
  {
    name: 'write-beside-lost-token',
    promise:
      'a write beside a token of this server is not run before it is known that the server still has it',
    file: 'src/worker/servers/consistency/consistency.ts',
    before: 'return !isRead && !this.#isKnownToHave(state, position);',
    after: 'return false;',
    tests: ['test/unit/worker/servers/consistency/consistency.test.ts'],
  },
  {
    name: 'token-lost-reported-behind',
    promise: 'a server that came back without the transactions of a token answers TOKEN_LOST',
    file: 'src/worker/servers/consistency/consistency.ts',
    before: "if (has === false) return 'lost';",
    after: "if (has === false) return isSame ? 'behind' : 'lost';",
    tests: ['test/unit/worker/servers/consistency/consistency.test.ts'],
  },
  {
    name: 'token-lost-read-reported-behind',
    promise:
      'a read at a primary that came back without what a token stands for answers TOKEN_LOST',
    file: 'src/worker/servers/consistency/consistency.ts',
    before: "missing: isPrimary ? 'lost' : 'behind'",
    after: "missing: 'behind'",
    tests: ['test/unit/worker/servers/consistency/consistency.test.ts'],
  },
  {
    name: 'token-known-of-earlier-run',
    promise: 'knowledge about one run of a server does not apply to the next',
    file: 'src/worker/servers/consistency/consistency.ts',
    before: 'return this.#known?.run === run && this.#known.answer.has(position) === true;',
    after: "return run !== '' && this.#known?.answer.has(position) === true;",
    tests: ['test/unit/worker/servers/consistency/consistency.test.ts'],
  },
  {
    name: 'unknown-position-takes-writes',
    promise: 'a former primary without a known position takes no writes',
    file: 'src/shared/servers/eligibility.ts',
    before: 'if (memory === null || view.position === null) return false;',
    after: 'if (memory === null || view.position === null) return true;',
    tests: ['test/unit/shared/servers/eligibility.test.ts'],
  },
];
