// One server of a replicated set: its process, a link that clients reach it by, and a way around that link for the test.
// Must not know the gateway, nor which role the server has.
import { type FaultProxy, startFaultProxy } from './fault-proxy.ts';
import { openConnection, queryOnce, type Row } from './mariadb.ts';
import { startServerProcess } from './server-process.ts';

/** A server that runs, or stands still, or is gone for a while. */
export type ReplicationServer = {
  /** `db1`, `db2` …, in the order of the set. */
  readonly name: string;
  readonly serverId: number;
  /** Where clients reach it: its link, on a port that stays the same whatever becomes of the server. */
  readonly host: string;
  readonly port: number;
  readonly link: FaultProxy;
  /** Where it listens itself, for those that must get there: other servers. */
  readonly ownPort: number;
  readonly state: () => 'running' | 'frozen' | 'killed';
  readonly log: () => string;
  /** As root, around the link, whatever read_only says. */
  readonly query: (sql: string, values?: readonly unknown[]) => Promise<Row[]>;
  /** A connection of root's around the link; the caller must end it. */
  readonly connect: () => ReturnType<typeof openConnection>;
  /** Everything that is in its binary log, its own and what it got from others: `@@gtid_binlog_pos`. */
  readonly position: () => Promise<string>;
  /** SIGSTOP: connections stay open, new ones are accepted by the system, nobody answers. */
  readonly freeze: () => void;
  readonly thaw: () => void;
  /** SIGKILL. Its link refuses connections until `restart`. */
  readonly kill: () => Promise<void>;
  /** Starts a killed server again, as it was configured at first: writable, unless it was begun as a read-only replica. */
  readonly restart: () => Promise<void>;
  readonly setReadOnly: (on: boolean) => Promise<void>;
  readonly stop: () => Promise<void>;
};

/** Starts a server with a binary log, and a database that `query` and `connect` are in; its creation is not in the log. */
export async function startReplicationServer(wish: {
  readonly serverId: number;
  readonly args: readonly string[];
  readonly database: string;
}): Promise<ReplicationServer> {
  const { serverId } = wish;
  const server = await startServerProcess([
    `--server-id=${serverId}`,
    '--log-bin=binlog',
    '--binlog-format=ROW',
    '--log-slave-updates',
    '--relay-log=relay',
    ...wish.args,
  ]);
  const root = { host: '127.0.0.1', port: server.port, user: 'root', password: server.password };
  const create = `set sql_log_bin = 0; create database ${wish.database} character set utf8mb4`;
  await queryOnce(root, undefined, create);
  const query = (sql: string, values: readonly unknown[] = []) =>
    queryOnce(root, wish.database, sql, values);
  const link = await startFaultProxy({ host: root.host, port: root.port });
  let state: 'running' | 'frozen' | 'killed' = 'running';
  const signal = (name: 'SIGSTOP' | 'SIGCONT') => {
    process.kill(server.pid(), name);
    state = name === 'SIGSTOP' ? 'frozen' : 'running';
  };
  return {
    name: `db${serverId}`,
    serverId,
    host: link.host,
    port: link.port,
    link,
    ownPort: server.port,
    state: () => state,
    log: server.log,
    query,
    connect: () => openConnection(root, wish.database, {}),
    position: async () => String((await query('select @@global.gtid_binlog_pos as p'))[0]?.p ?? ''),
    freeze: () => signal('SIGSTOP'),
    thaw: () => signal('SIGCONT'),
    kill: async () => {
      state = 'killed';
      await link.listen(false);
      await server.halt('SIGKILL');
    },
    restart: async () => {
      await server.resume();
      await link.listen(true);
      state = 'running';
    },
    setReadOnly: async (on) => void (await query(`set global read_only = ${on ? 1 : 0}`)),
    stop: async () => {
      await link.stop();
      await server.remove();
    },
  };
}
