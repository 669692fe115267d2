// A MariaDB primary and its replicas, replicated by GTID: started, promoted, re-pointed, made to lag, stopped.
import { randomBytes } from 'node:crypto';
import type { TestContext } from 'node:test';
import { ownServerOnly } from '../database/mariadb.ts';
import { chooseProgram } from '../database/server-process.ts';
import { eventually } from '../eventually.ts';
import { createLags, type Lag } from './replication-lag.ts';
import { type ReplicationServer, startReplicationServer } from './replication-server.ts';

/** The options of a set. */
export type ReplicationWish = {
  /** 2 unless given. */
  readonly replicas?: number;
  /** False: replicas are writable for all accounts, as MariaDB leaves them. */
  readonly readOnlyReplicas?: boolean;
  /** False: servers without gtid_strict_mode, as MariaDB leaves them. */
  readonly strict?: boolean;
  /** Each server writes in a separate GTID domain; else all write in domain 0. */
  readonly ownDomains?: boolean;
  /** A write waits for one replica to have it before it is shown to others (AFTER_SYNC). */
  readonly semiSync?: boolean;
  /** Further arguments, for each server. */
  readonly args?: readonly string[];
};

/** Servers of which one is written to. The caller must stop them. */
export type ReplicatedSet = {
  /** In the order of the configuration. The first one was the primary at the start. */
  readonly servers: readonly ReplicationServer[];
  /** The server that was made primary last, also while it is frozen or gone. */
  readonly primary: () => ReplicationServer;
  /** The servers that follow it. */
  readonly replicas: () => readonly ReplicationServer[];
  /**
   * The gateway's configuration: every server by its link, and an account with ALL on this one database. A single one has host and port.
   */
  readonly target: {
    readonly host: string;
    readonly port?: number;
    readonly user: string;
    readonly password: string;
    readonly name: string;
  };
  /**
   * Makes a replica the primary: it applies what it has received, follows no server any more, and may be written to. Then the other replicas that run
   * follow it; the earlier primary is left alone. Resolves to when it could be written to (performance.now()).
   */
  readonly promote: (server: ReplicationServer) => Promise<number>;
  /** Makes a server follow another one, the primary by default. It is read-only if replicas of this set are. */
  readonly follow: (server: ReplicationServer, primary?: ReplicationServer) => Promise<void>;
  /** Lets a replica fall behind; null: it goes on. */
  readonly lag: (server: ReplicationServer, how: Lag | null) => Promise<void>;
  /** Resolves once these replicas, all that run unless given, show what the primary has written up to now. */
  readonly waitForCatchUp: (servers?: readonly ReplicationServer[]) => Promise<void>;
  readonly stop: () => Promise<void>;
};

const catchUpSeconds = 30;

/** Tells whether sets of servers can be started here. If not, skips the test with the reason. Use: `if (!replicationHere(t)) return;` */
export function replicationHere(t: TestContext): boolean {
  if (!ownServerOnly(t)) return false;
  if (chooseProgram().flavour === 'mariadb') return true;
  t.skip('these servers replicate as MariaDB does');
  return false;
}

/** Starts the servers, an account and an empty database; resolves once all replicas have both. Takes two to three seconds for three. */
export async function startReplication(wish: ReplicationWish = {}): Promise<ReplicatedSet> {
  const name = `dbhttpd_test_${process.pid}_${randomBytes(4).toString('hex')}`;
  const account = { user: 'app', password: randomBytes(12).toString('hex') };
  const servers = await startServers(wish, name);
  try {
    const set = createSet(wish, servers, { ...account, name });
    await set.prepare();
    return set;
  } catch (error) {
    await Promise.all(servers.map((server) => server.stop()));
    throw error;
  }
}

async function startServers(wish: ReplicationWish, database: string): Promise<ReplicationServer[]> {
  const starts = Array.from({ length: 1 + (wish.replicas ?? 2) }, (_, index) =>
    startReplicationServer({
      serverId: index + 1,
      args: serverArguments(wish, index),
      database,
    }),
  );
  const ended = await Promise.allSettled(starts);
  const failed = ended.find((one) => one.status === 'rejected');
  const started = ended.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  if (failed === undefined) return started;
  await Promise.all(started.map((server) => server.stop()));
  throw failed.reason;
}

function serverArguments(wish: ReplicationWish, index: number): string[] {
  const { readOnlyReplicas = true, strict = true, ownDomains = false, semiSync = false } = wish;
  return [
    `--gtid-strict-mode=${strict ? 'ON' : 'OFF'}`,
    `--gtid-domain-id=${ownDomains ? index + 1 : 0}`,
    ...(readOnlyReplicas && index > 0 ? ['--read-only=1'] : []),
    ...(semiSync
      ? ['--rpl-semi-sync-slave-enabled=ON', '--rpl-semi-sync-master-wait-point=AFTER_SYNC']
      : []),
    ...(wish.args ?? []),
  ];
}

function createSet(
  wish: ReplicationWish,
  servers: readonly ReplicationServer[],
  account: { readonly user: string; readonly password: string; readonly name: string },
): ReplicatedSet & { readonly prepare: () => Promise<void> } {
  const { readOnlyReplicas = true, semiSync = false } = wish;
  const [first] = servers;
  if (first === undefined) throw new Error('a set has a server');
  const replicator = { user: 'replicator', password: randomBytes(12).toString('hex') };
  const following = new Map<ReplicationServer, ReplicationServer>();
  const lags = createLags();
  let primary = first;

  const replicas = () => servers.filter((server) => following.get(server) === primary);
  const running = () => replicas().filter((server) => server.state() === 'running');
  const setSemiSync = async (on: boolean) => {
    if (semiSync) await primary.query(`set global rpl_semi_sync_master_enabled = ${on ? 1 : 0}`);
  };
  const follow = async (server: ReplicationServer, followed = primary) => {
    await lags.set(server, null);
    // Read-only meanwhile, because an account without grants takes a server that follows none for a promoted one. A former primary's own
    // writes count as received.
    await server.query(`set global read_only = 1;
      stop slave;
      set global gtid_slave_pos = @@global.gtid_current_pos;
      change master to master_host = '127.0.0.1', master_port = ${followed.ownPort}, master_connect_retry = 1,
        master_user = '${replicator.user}', master_password = '${replicator.password}', master_use_gtid = slave_pos;
      start slave`);
    following.set(server, followed);
    if (readOnlyReplicas) return;
    await eventually('it is seen to follow', () => isFollowing(server));
    await server.query('set global read_only = 0');
  };
  const waitForCatchUp = async (waiting: readonly ReplicationServer[] = running()) => {
    const position = await primary.position();
    await Promise.all(waiting.map((server) => waitForPosition(server, position)));
  };

  return {
    servers,
    primary: () => primary,
    replicas,
    target: {
      ...account,
      ...(servers.length === 1
        ? { host: first.host, port: first.port }
        : { host: servers.map(({ host, port }) => `${host}:${port}`).join(', ') }),
    },
    promote: async (server) => {
      const others = running().filter((one) => one !== server);
      await lags.set(server, null);
      await applyRelayLog(server);
      await server.query('stop slave; reset slave all; set global read_only = 0');
      const atMs = performance.now();
      primary = server;
      following.delete(server);
      await Promise.all(others.map((one) => follow(one)));
      await setSemiSync(true);
      return atMs;
    },
    follow,
    lag: lags.set,
    waitForCatchUp,
    prepare: async () => {
      const { user, password, name } = account;
      await primary.query(`
        create user '${replicator.user}'@'127.0.0.1' identified by '${replicator.password}';
        grant replication slave on *.* to '${replicator.user}'@'127.0.0.1';
        create user '${user}'@'127.0.0.1' identified by '${password}';
        grant all on ${name}.* to '${user}'@'127.0.0.1'`);
      await Promise.all(servers.filter((server) => server !== primary).map((one) => follow(one)));
      await waitForCatchUp();
      await setSemiSync(true);
    },
    stop: async () => {
      lags.forget();
      await Promise.all(servers.map((server) => server.stop()));
    },
  };
}

/** Resolves to whether every account sees that it follows. */
async function isFollowing(server: ReplicationServer): Promise<boolean> {
  const [status] = await server.query("show global status like 'Slaves_running'");
  return Number(status?.Value) > 0;
}

/** Whatever a primary has sent before it went is not lost: tools for failovers wait for it too. */
async function applyRelayLog(server: ReplicationServer): Promise<void> {
  await server.query('stop slave io_thread; start slave sql_thread');
  const [status] = await server.query('show slave status');
  await waitForPosition(server, String(status?.Gtid_IO_Pos ?? ''));
}

/** Resolves when a running replica shows all of a position. Rejects if it has another history, or after 30 s. */
export async function waitForPosition(server: ReplicationServer, position: string): Promise<void> {
  const [row] = await server.query('select master_gtid_wait(?, ?) as missed', [
    position,
    catchUpSeconds,
  ]);
  if (Number(row?.missed) === 0 && (await holdsPosition(server, position))) return;
  const [status] = await server.query('show slave status');
  throw new Error(`${server.name} has not reached ${position}: ${JSON.stringify(status, null, 1)}`);
}

/** Resolves to whether a server has all transactions of a position. Without log_slave_updates only gtid_slave_pos has those of others. */
export async function holdsPosition(server: ReplicationServer, position: string): Promise<boolean> {
  const [row] = await server.query(
    "select concat_ws(',', @@global.gtid_binlog_state, @@global.gtid_slave_pos) as state",
  );
  return contains(String(row?.state), position);
}

/** MASTER_GTID_WAIT compares sequence numbers alone: another server's transaction with the same number satisfies it. */
function contains(state: string, position: string): boolean {
  const parse = (list: string) => list.split(',').map((gtid) => gtid.split('-').map(Number));
  const held = parse(state);
  return parse(position).every(
    ([domain, server, number = 0]) =>
      position === '' || held.some(([d, s, n = 0]) => d === domain && s === server && n >= number),
  );
}
