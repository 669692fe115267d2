// One server of a MariaDB set that replicates by GTID.
import { type LinkedServer, startLinkedServer } from './linked-server.ts';

/** A server; `restart` brings it back writable, unless it was begun as a read-only replica. */
export type ReplicationServer = LinkedServer & {
  /** Everything that is in its binary log, its own and what it got from others: `@@gtid_binlog_pos`. */
  readonly position: () => Promise<string>;
  readonly setReadOnly: (on: boolean) => Promise<void>;
};

/** Starts a server that logs what it gets from others too. */
export async function startReplicationServer(wish: {
  readonly serverId: number;
  readonly args: readonly string[];
  readonly database: string;
}): Promise<ReplicationServer> {
  const own = ['--binlog-format=ROW', '--log-slave-updates'];
  const server = await startLinkedServer({ ...wish, args: [...own, ...wish.args] });
  const { query } = server;
  return {
    ...server,
    position: async () => String((await query('select @@global.gtid_binlog_pos as p'))[0]?.p ?? ''),
    setReadOnly: async (on) => void (await query(`set global read_only = ${on ? 1 : 0}`)),
  };
}
