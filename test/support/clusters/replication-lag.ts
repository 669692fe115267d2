// Replicas that fall behind on purpose, each by one of three ways that look different from outside.
import type { ReplicationServer } from './replication-server.ts';

/**
 * How a replica falls behind. `stopped`: the thread that applies the log is stopped, and reports it. `locked`: it runs and waits for a
 * lock, and reports that it runs. `seconds`: it applies everything that late.
 */
export type Lag = 'stopped' | 'locked' | { readonly seconds: number };

/** The lags of a set's replicas. */
export type Lags = {
  /** Begins a lag, or with null ends it. At its end the replica has not caught up yet. */
  readonly set: (server: ReplicationServer, how: Lag | null) => Promise<void>;
  /** Releases the locks that hold them, for servers that are to be stopped. */
  readonly forget: () => void;
};

type Held = { readonly end: () => Promise<void>; readonly forget: () => void };

/** Creates the lags of a set without lag. */
export function createLags(): Lags {
  const held = new Map<ReplicationServer, Held>();
  return {
    set: async (server, how) => {
      const before = held.get(server);
      held.delete(server);
      await before?.end();
      if (how !== null) held.set(server, await begin(server, how));
    },
    forget: () => {
      for (const { forget } of held.values()) forget();
      held.clear();
    },
  };
}

async function begin(server: ReplicationServer, how: Lag): Promise<Held> {
  const runs = (sql: string) => async () => void (await server.query(sql));
  const forget = () => undefined;
  if (how === 'stopped') {
    await server.query('stop slave sql_thread');
    return { end: runs('start slave sql_thread'), forget };
  }
  if (how === 'locked') return lock(server);
  const delay = (seconds: number) =>
    `stop slave; change master to master_delay = ${seconds}; start slave`;
  await server.query(delay(how.seconds));
  return { end: runs(delay(0)), forget };
}

/** Reads go on under this lock, and the threads of the replication say that they run. */
async function lock(server: ReplicationServer): Promise<Held> {
  const connection = await server.connect();
  // The server may be killed while it holds the lock.
  connection.on('error', () => undefined);
  await connection.query('flush tables with read lock');
  const forget = () => connection.destroy();
  return {
    end: async () => {
      await connection.query('unlock tables').catch(() => undefined);
      forget();
    },
    forget,
  };
}
