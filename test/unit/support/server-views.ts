// Looks at servers, made up for tests of what follows from them.
// Must not know what that is.
import { readMariadbPosition } from '../../../src/shared/servers/position.ts';
import type { GroupMember, ServerView } from '../../../src/shared/servers/server-view.ts';

/** What is to be special about a look; all else is as of a writable MariaDB that follows nobody and has written nothing. */
export type ViewWish = Partial<Omit<ServerView, 'number' | 'position'>> & {
  /** Its position in MariaDB's words, as of `gtid_binlog_state`; the last of each domain is what came last. */
  readonly state?: string;
  readonly position?: ServerView['position'];
  /** The numbers of those it follows; it is read-only then, unless that is said. */
  readonly follows?: readonly string[];
  /** Whether it is connected to those; false unless given. */
  readonly isConnected?: boolean;
};

/** A look at the server of this number. */
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

/** A node of a Galera cluster that is well, but for what is given. */
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

/** A member of a group that is well, but for what is given. */
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
