// One member of a group of MySQL's Group Replication: its reports, and an operator's commands.
import type { ServerProgram } from '../../../scripts/support/private-server.ts';
import { eventually } from '../eventually.ts';
import { type LinkedServer, startLinkedServer } from './linked-server.ts';

/** A member's report about itself and the others. */
export type MemberStatus = {
  /** ONLINE, RECOVERING, OFFLINE, ERROR, UNREACHABLE; OFFLINE also if it has not been started. */
  readonly state: string;
  readonly isWritable: boolean;
  /** The members that it knows of. */
  readonly size: number;
  /** The number of members that are ONLINE. */
  readonly online: number;
};

/** A member; `restart` brings it back outside its group, and writable. */
export type GroupMember = LinkedServer & {
  readonly status: () => Promise<MemberStatus>;
  /** Transactions that it found to conflict with another one's, so far. */
  readonly conflicts: () => Promise<number>;
  /** Makes a group of this one member. */
  readonly bootstrap: () => Promise<void>;
  /** Joins its group, and returns before it has recovered. With a password that others refuse, it remains RECOVERING for a minute. */
  readonly join: (isKnown?: boolean) => Promise<void>;
  /** Leaves its group, by which it becomes read-only; or is done with one that has given it up. */
  readonly leave: () => Promise<void>;
  /** The others of its group are given up: it goes on alone. */
  readonly force: () => Promise<void>;
  /** Makes it the primary of its group. Resolves to when it could be written to (performance.now()). */
  readonly promote: () => Promise<number>;
};

/** The group as all its members know it. */
export type GroupPlan = {
  /** A UUID. */
  readonly name: string;
  /** The ports for the other members, by their numbers from 1 on. */
  readonly ports: readonly number[];
  readonly database: string;
  readonly replicator: { readonly user: string; readonly password: string };
};

/** Starts a server that may join the group, with the account that members copy by. The caller must stop it. */
export async function startGroupMember(
  program: ServerProgram,
  serverId: number,
  { name, ports, database, replicator }: GroupPlan,
): Promise<GroupMember> {
  const addresses = ports.map((port) => `127.0.0.1:${port}`);
  const own = addresses[serverId - 1] ?? '';
  const server = await startLinkedServer({
    serverId,
    database,
    args: [
      ...groupArguments,
      `--loose-group-replication-group-name=${name}`,
      `--loose-group-replication-local-address=${own}`,
      `--loose-group-replication-group-seeds=${addresses.join()}`,
    ],
    server: { program, lastingPort: true },
  });
  const { query } = server;
  const run = async (sql: string) => void (await query(sql));
  const { user, password } = replicator;
  const start = (secret: string) =>
    `start group_replication user = '${user}', password = '${secret}'`;
  const set = (what: string) => `set global group_replication_${what}`;
  return {
    ...server,
    status: () => readStatus(server),
    conflicts: async () => {
      const [row] = await query(
        'select sum(count_conflicts_detected) as n from performance_schema.replication_group_member_stats where member_id = @@server_uuid',
      );
      return Number(row?.n ?? 0);
    },
    bootstrap: () =>
      run(`${set('bootstrap_group = ON')}; ${start(password)}; ${set('bootstrap_group = OFF')}`),
    join: (isKnown = true) => run(start(isKnown ? password : 'another')),
    // Settings that it made when it was given up remain.
    leave: () => run('stop group_replication; set global offline_mode = OFF'),
    // It refuses to start again while the list is set.
    force: () => run(`${set(`force_members = '${own}'`)}; ${set("force_members = ''")}`),
    promote: async () => {
      await run(`select group_replication_set_as_primary(@@server_uuid, ${maxRunningSeconds})`);
      return performance.now();
    },
  };
}

/**
 * Statements that still run on the former primary are ended after this time. Otherwise transactions that wait for each other's rows, and
 * for the lock by which it becomes read-only, would hold up the switch and the new primary until the locks' own timeout.
 */
const maxRunningSeconds = 1;

/**
 * A member that is silent for the five seconds that cannot be set is given up at once; one that finds itself given up waits for its operator. Becoming
 * read-only it may wait for statements that wait for each other's rows: not for the 50 s that are usual.
 */
const groupArguments = [
  '--performance-schema=ON',
  '--gtid-mode=ON',
  '--enforce-gtid-consistency=ON',
  '--report-host=127.0.0.1',
  '--sync-binlog=0',
  '--innodb-lock-wait-timeout=15',
  '--plugin-load-add=group_replication.so',
  '--loose-group-replication-start-on-boot=OFF',
  '--loose-group-replication-communication-stack=XCOM',
  '--loose-group-replication-ip-allowlist=127.0.0.1',
  '--loose-group-replication-member-expel-timeout=0',
  '--loose-group-replication-autorejoin-tries=0',
  '--loose-group-replication-message-cache-size=134217728',
  '--loose-group-replication-recovery-get-public-key=ON',
  '--loose-group-replication-recovery-retry-count=60',
  '--loose-group-replication-recovery-reconnect-interval=1',
];

/** Resolves when the member is one of this many that are all ONLINE. */
export async function waitForMembers({ name, status }: GroupMember, size: number): Promise<void> {
  await eventually(
    `${name} is one of ${size}`,
    async () => {
      const found = await status();
      return found.state === 'ONLINE' && found.size === size && found.online === size;
    },
    { timeoutMs: 60_000, everyMs: 50 },
  );
}

async function readStatus({ query }: LinkedServer): Promise<MemberStatus> {
  const [row] = await query(`
    select max(if(member_id = @@server_uuid, member_state, null)) as state, not @@super_read_only as writable,
      count(*) as size, sum(member_state = 'ONLINE') as online
    from performance_schema.replication_group_members`);
  return {
    state: String(row?.state ?? 'OFFLINE'),
    isWritable: Number(row?.writable) === 1,
    size: Number(row?.size),
    online: Number(row?.online),
  };
}
