// Invented views of servers, for tests of their consequences.
import { readMariadbPosition } from '../../../src/shared/servers/position.ts';
import type { Known } from '../../../src/shared/servers/scene.ts';
import type { GroupMember, ServerView } from '../../../src/shared/servers/server-view.ts';

/** The knowledge before the first decision: none. */
export const noKnowledge: Known = { memory: null, reference: null, isInUse: false };

/** The special properties of a view. Everything else is as for a writable MariaDB that follows no server and has written nothing. */
export type ViewWish = Partial<Omit<ServerView, 'number' | 'position'>> & {
  /** Its position in MariaDB's words, as of `gtid_binlog_state`; the last of each domain is what came last. */
  readonly state?: string;
  readonly position?: ServerView['position'];
  /** The numbers of the servers that it follows. It is read-only then, unless the test says otherwise. */
  readonly follows?: readonly string[];
  /** Whether it is connected to them; false by default. */
  readonly isConnected?: boolean;
};

/** A view of the server with this number. */
export function createView(number: string, wish: ViewWish = {}): ServerView {
  const { state = '', follows, isConnected = false, ...given } = wish;
  const sources = (follows ?? []).map((one) => ({
    number: one,
    uuid: null,
    address: null,
    isConnected,
  }));
  const binlogPos = [...new Map(state.split(',').map((gtid) => [gtid.split('-')[0], gtid]))].map(
    ([, gtid]) => gtid,
  );
  return {
    identity: { name: `db${number}:3306/${number}`, startedAt: 1_000 },
    number,
    uuid: null,
    version: 'MariaDB 10.11',
    isReadOnly: follows !== undefined,
    following: follows === undefined ? { kind: 'none' } : { kind: 'listed', sources },
    position: readMariadbPosition({
      binlogState: state,
      binlogPos: binlogPos.join(),
      slavePos: '',
    }),
    galera: null,
    group: null,
    askedAt: 0,
    ...given,
  };
}

/** A healthy node of a Galera cluster, except for the given properties. */
export function createNode(
  number: string,
  wish: ViewWish & {
    readonly node?: Partial<ServerView['galera']>;
    readonly cluster?: string;
    readonly committed?: bigint;
  } = {},
): ServerView {
  const { node, cluster = 'c', committed = 10n, ...given } = wish;
  return createView(number, {
    position: { kind: 'galera', cluster, committed },
    galera: { isReady: true, state: 4, rejectsQueries: false, ...node },
    ...given,
  });
}

/** A healthy member of a group, except for the given properties. */
export function createMember(
  number: string,
  member: Partial<GroupMember>,
  wish: ViewWish = {},
): ServerView {
  return createView(number, {
    position: { kind: 'mysql', sets: new Map([['g', [[1n, 10n]]]]) },
    group: {
      name: 'g',
      hasSinglePrimary: true,
      state: 'ONLINE',
      takesPart: null,
      hasMajority: true,
      ...member,
    },
    ...wish,
  });
}
