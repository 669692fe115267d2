// A group of three members of MySQL's Group Replication, with one primary or with several: its start, and an operator's commands.
import { randomBytes, randomUUID } from 'node:crypto';
import { freeLastingPort, type ServerProgram } from '../../../scripts/support/private-server.ts';
import { fetchServerKey } from '../database/mariadb.ts';
import { eventually } from '../eventually.ts';
import { type GroupMember, startGroupMember, waitForMembers } from './group-member.ts';
import type { ReplicatedSet } from './replication.ts';

export type GroupMode = 'single-primary' | 'multi-primary';

/** A group. The caller must stop it. */
export type Group = {
  /** In the order of the configuration. */
  readonly members: readonly [GroupMember, GroupMember, GroupMember];
  /** The gateway's configuration: every member by its link, and an account with ALL on this one database, which may see the group. */
  readonly target: ReplicatedSet['target'] & { readonly serverKey: string };
  /** Resolves once all members are up, and agree. */
  readonly waitForAll: () => Promise<void>;
  /** Switches to one primary, or to several. All members must be up. */
  readonly setMode: (mode: GroupMode) => Promise<void>;
  /** Makes a restarted member join: it does not remember the group's mode. */
  readonly rejoin: (member: GroupMember) => Promise<void>;
  readonly stop: () => Promise<void>;
};

/** Starts three members, with an account and an empty database. Takes half a minute. */
export async function startGroup(program: ServerProgram): Promise<Group> {
  const plan = {
    name: randomUUID(),
    ports: await findPorts(3),
    database: `dbhttpd_test_${process.pid}_${randomBytes(4).toString('hex')}`,
    replicator: { user: 'replicator', password: randomBytes(12).toString('hex') },
  };
  const account = { user: 'app', password: randomBytes(12).toString('hex') };
  const members: GroupMember[] = [];
  const stop = async () => {
    await Promise.all(members.map((member) => member.stop()));
  };
  try {
    for (const number of [1, 2, 3]) {
      const member = await startGroupMember(program, number, plan);
      members.push(member);
      await member.query(describeAccounts(plan, account));
    }
    const [first, ...others] = members as [GroupMember, GroupMember, GroupMember];
    await first.bootstrap();
    await waitForMembers(first, 1);
    for (const other of others) await other.join();
    const waitForAll = async () => {
      for (const member of members) await waitForMembers(member, members.length);
    };
    await waitForAll();
    const keys = await Promise.all(members.map(({ query }) => fetchServerKey(query)));
    let current: GroupMode = 'single-primary';
    return {
      members: [first, ...others],
      target: {
        ...account,
        name: plan.database,
        serverKey: keys.join('\n'),
        host: members.map(({ host, port }) => `${host}:${port}`).join(', '),
      },
      waitForAll,
      setMode: async (mode) => {
        await first.query(`select group_replication_switch_to_${mode.replace('-', '_')}_mode()`);
        await eventually(`the group is ${mode}`, async () => {
          const all = await Promise.all(members.map((member) => member.status()));
          const writable = all.filter(({ isWritable }) => isWritable).length;
          return writable === (mode === 'single-primary' ? 1 : members.length);
        });
        current = mode;
      },
      rejoin: async (member) => {
        const [single, several] = current === 'single-primary' ? ['ON', 'OFF'] : ['OFF', 'ON'];
        await member.query(`set global group_replication_single_primary_mode = ${single};
          set global group_replication_enforce_update_everywhere_checks = ${several}`);
        await member.join();
      },
      stop,
    };
  } catch (error) {
    const logs = members.map((member) => member.log().split('\n').slice(-20).join('\n'));
    await stop();
    throw new Error(`the group did not start:\n${logs.join('\n')}`, { cause: error });
  }
}

/** On each member, so that none has something which the others lack, and no log contains it. */
function describeAccounts(
  { database, replicator }: { readonly database: string; readonly replicator: Account },
  account: Account,
): string {
  const create = ({ user, password }: Account) =>
    `create user '${user}'@'127.0.0.1' identified by '${password}';`;
  return `set sql_log_bin = 0;
    ${create(replicator)}
    grant replication slave, backup_admin, group_replication_stream, connection_admin on *.* to '${replicator.user}'@'127.0.0.1';
    ${create(account)}
    grant all on ${database}.* to '${account.user}'@'127.0.0.1';
    grant select on performance_schema.replication_group_members to '${account.user}'@'127.0.0.1';
    reset binary logs and gtids`;
}

type Account = { readonly user: string; readonly password: string };

async function findPorts(count: number): Promise<readonly number[]> {
  const ports = new Set<number>();
  while (ports.size < count) ports.add(await freeLastingPort());
  return [...ports];
}
