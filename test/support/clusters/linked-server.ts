// One server that replicates, of whatever product: its process, a link that clients reach it by, and a way around that link for the test.
import { type FaultProxy, startFaultProxy } from '../database/fault-proxy.ts';
import { openConnection, queryOnce, type Row } from '../database/mariadb.ts';
import { type ServerWish, startServerProcess } from '../database/server-process.ts';
import { freeze } from '../processes.ts';

/** A server that runs, is frozen, or is gone for a while. */
export type LinkedServer = {
  /** `db1`, `db2` …, in the order of the set. */
  readonly name: string;
  readonly serverId: number;
  /** The address for clients: its link, on a port that remains the same whatever happens to the server. */
  readonly host: string;
  readonly port: number;
  readonly link: FaultProxy;
  /** The server's own port, for other servers. */
  readonly ownPort: number;
  readonly state: () => 'running' | 'frozen' | 'killed';
  readonly log: () => string;
  /** Runs a statement as root, without the link, whatever read_only says. */
  readonly query: (sql: string, values?: readonly unknown[]) => Promise<Row[]>;
  /** A connection of root's around the link; the caller must end it. */
  readonly connect: () => ReturnType<typeof openConnection>;
  /** SIGSTOP: connections stay open, the system accepts new ones, and no process answers. */
  readonly freeze: () => void;
  readonly thaw: () => void;
  /** SIGKILL. Its link refuses connections until `restart`. */
  readonly kill: () => Promise<void>;
  /** Starts a killed server again, as it was configured at first. */
  readonly restart: () => Promise<void>;
  readonly stop: () => Promise<void>;
};

/** Starts a server with a binary log, and a database that `query` and `connect` are in; its creation is not in the log. */
export async function startLinkedServer(wish: {
  readonly serverId: number;
  readonly args: readonly string[];
  readonly database: string;
  readonly server?: ServerWish;
}): Promise<LinkedServer> {
  const { serverId } = wish;
  const own = [`--server-id=${serverId}`, '--log-bin=binlog', '--relay-log=relay'];
  const server = await startServerProcess([...own, ...wish.args], wish.server ?? {});
  const root = { host: '127.0.0.1', port: server.port, user: 'root', password: server.password };
  const create = `set sql_log_bin = 0; create database ${wish.database} character set utf8mb4`;
  await queryOnce(root, undefined, create);
  const link = await startFaultProxy({ host: root.host, port: root.port });
  let state: 'running' | 'frozen' | 'killed' = 'running';
  return {
    name: `db${serverId}`,
    serverId,
    host: link.host,
    port: link.port,
    link,
    ownPort: server.port,
    state: () => state,
    log: server.log,
    query: (sql, values = []) => queryOnce(root, wish.database, sql, values),
    connect: () => openConnection(root, wish.database, {}),
    freeze: () => {
      freeze(server.pid());
      state = 'frozen';
    },
    thaw: () => {
      process.kill(server.pid(), 'SIGCONT');
      state = 'running';
    },
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
    stop: async () => {
      await link.stop();
      await server.remove();
    },
  };
}
