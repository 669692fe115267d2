// The choice of the server for writes and for reads, and what a token proves.
import type { Mutation } from '../mutation.ts';

export const serverMutations: readonly Mutation[] = [
  {
    name: 'former-primary-takes-writes',
    promise: 'a former primary takes no writes beside the replica that was promoted',
    file: 'src/shared/servers/eligibility.ts',
    before: 'if (isFollowed || holdsOwnOfPrimary(one, scene)) return null;',
    after: 'if (isFollowed || !holdsOwnOfPrimary(one, scene)) return null;',
    tests: ['test/unit/shared/servers/judge.test.ts'],
  },
  {
    name: 'connected-elsewhere',
    promise:
      'a replica that is connected to a server that cannot be seen speaks against the one that can',
    file: 'src/shared/servers/eligibility.ts',
    before: 'seenSource(source, scene) === null && source.isConnected && !isStale',
    after: 'seenSource(source, scene) === null && !source.isConnected && !isStale',
    tests: ['test/unit/shared/servers/eligibility.test.ts'],
  },
  {
    name: 'chosen-by-an-older-look',
    promise: 'another primary is chosen only by views that are not older than the memory in use',
    file: 'src/shared/servers/choice.ts',
    before: 'view.askedAt > inUse.view.askedAt && holdsViews(inUse.view, [view]) !== true',
    after: 'view.askedAt < inUse.view.askedAt && holdsViews(inUse.view, [view]) !== true',
    tests: ['test/unit/shared/servers/judge.test.ts'],
  },
  {
    name: 'ghosts-served',
    promise: 'a replica with transactions that the primary lacks is not read from',
    file: 'src/shared/servers/judge.ts',
    before: 'if (isContained === false && !isNode)',
    after: 'if (isContained === false && isNode)',
    tests: ['test/unit/shared/servers/judge.test.ts'],
  },
  {
    name: 'returned-after-two-looks',
    promise: 'a server that was gone counts after three probes',
    file: 'src/worker/servers/tracked-candidate.ts',
    before: 'const probesToReturn = 3;',
    after: 'const probesToReturn = 2;',
    tests: ['test/unit/worker/servers/tracked-candidate.test.ts'],
  },
  {
    name: 'one-domain-is-enough',
    promise: 'a server has all of a history only if it has all of its domains',
    file: 'src/shared/servers/position.ts',
    before: 'return [...other.highest].every(',
    after: 'return [...other.highest].some(',
    tests: ['test/unit/shared/servers/position.test.ts'],
  },
  {
    name: 'end-of-a-range',
    promise: 'a range of GTIDs is held to its end',
    file: 'src/shared/servers/gtid-sets.ts',
    before: 'first <= from && to <= last',
    after: 'first <= from && from <= last',
    tests: ['test/unit/shared/servers/gtid-sets.test.ts'],
  },
  {
    name: 'first-write-of-a-session',
    promise: 'a write on a session with an unknown position is not an upper bound',
    file: 'src/worker/servers/consistency/consistency.ts',
    before: 'const own = isWriteAlone && last !== null ? answer.ownWrite : null;',
    after: 'const own = isWriteAlone ? answer.ownWrite : null;',
    tests: ['test/unit/worker/servers/consistency/consistency.test.ts'],
  },
  {
    name: 'older-view-takes-writes',
    promise:
      'while two primaries contest each other, neither takes writes because its view is older',
    file: 'src/shared/servers/choice.ts',
    before: 'return isInUse && view.identity.name',
    after: 'return view.identity.name',
    tests: ['test/unit/shared/servers/judge.test.ts'],
  },
  {
    name: 'renewal-takes-all-the-time',
    promise: 'a server whose name DNS does not resolve is probed on the open connection',
    file: 'src/worker/servers/prober.ts',
    before: 'const renewMs = 500;',
    after: 'const renewMs = 5_000;',
    tests: ['test/behaviour/servers/probe-names.test.ts'],
  },
];
