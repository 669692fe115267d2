// Tools of agents: which there are, and what they refuse.
import type { Mutation } from '../mutation.ts';

export const toolMutations: readonly Mutation[] = [
  {
    name: 'another-list-kept',
    promise: 'a kept list of tools answers only the same question',
    file: 'src/worker/endpoints/mcp/protocol.ts',
    before: 'if (known?.asked === asked) return known;',
    after: "if (known !== undefined && asked !== '') return known;",
    tests: ['test/unit/worker/endpoints/mcp/tools.test.ts'],
  },
  {
    name: 'tool-kept-after-reload',
    promise: 'tools are made again when statements are replaced',
    file: 'src/worker/endpoints/mcp/named-tools.ts',
    before: 'known.entries === entries && areSame(known.states, states)',
    after: 'areSame(known.states, states)',
    tests: ['test/unit/worker/endpoints/mcp/named-tools.test.ts'],
  },
  {
    name: 'tool-kept-after-columns',
    promise: 'tools are made again when columns become known',
    file: 'src/worker/endpoints/mcp/named-tools.ts',
    before: 'known.entries === entries && areSame(known.states, states)',
    after: 'known.entries === entries',
    tests: ['test/unit/worker/endpoints/mcp/named-tools.test.ts'],
  },
  {
    name: 'tool-idempotent-without-key',
    promise: 'a tool is idempotent only if it needs a key',
    file: 'src/worker/endpoints/mcp/named-tools.ts',
    before: 'idempotentHint: isRead || isKeyRequired,',
    after: 'idempotentHint: isRead || takesKey,',
    tests: ['test/unit/worker/endpoints/mcp/named-tools.test.ts'],
  },
  {
    name: 'tool-sql-for-all',
    promise: 'query and describe are for clients with sql',
    file: 'src/worker/endpoints/mcp/tools.ts',
    before: '...(showsServerText ? this.#forSql(client) : []), ...named',
    after: '...this.#forSql(client), ...named',
    tests: ['test/unit/worker/endpoints/mcp/tools.test.ts'],
  },
  {
    name: 'tool-quoted-sleep',
    promise: 'a quoted built-in is recognised',
    file: 'src/shared/sql/refused-calls.ts',
    before: 'kind === tokenKinds.quotedName || (kind',
    after: '(kind',
    tests: ['test/unit/shared/sql/refused-calls.test.ts'],
  },
  {
    name: 'tool-ansi-sleep',
    promise: 'a built-in in double quotes is recognised',
    file: 'src/shared/sql/refused-calls.ts',
    before: "kind === tokenKinds.string && sql[start] === '\"'",
    after: "kind === tokenKinds.string && sql[start] === '`'",
    tests: ['test/unit/shared/sql/refused-calls.test.ts'],
  },
  {
    name: 'tool-plan-for-connection',
    promise: 'the plan of another connection is not shown',
    file: 'src/shared/sql/refused-calls.ts',
    before: "wasFor && word === 'CONNECTION'",
    after: "wasFor && word === 'CONNECTIONS'",
    tests: ['test/unit/shared/sql/refused-calls.test.ts'],
  },
];
