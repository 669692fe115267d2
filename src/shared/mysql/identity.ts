// Which server a connection has reached: behind a balancer two connections may reach two.
// Must not know what depends on the answer.
import { fetchRows } from './commands.ts';
import type { Connection } from './connection.ts';

/** What tells one server, and one run of it, from another. */
export type ServerIdentity = {
  readonly name: string;
  /** Unix time in seconds by the server's own clock; may be off by one. */
  readonly startedAt: number;
};

/** A session whose connection is gone, and whose transaction the server may not have ended yet. */
export type LostSession = { readonly threadId: number; readonly identity: ServerIdentity };

/** Both readings are rounded to seconds, one after the other. */
const startToleranceSeconds = 2;

/** Asks the server who it is. Rejects when the connection is lost. */
export async function fetchIdentity(connection: Connection): Promise<ServerIdentity> {
  const [names, uptimes] = await Promise.all([
    fetchRows(connection, 'SELECT @@hostname, @@port, @@server_id, UNIX_TIMESTAMP()'),
    fetchRows(connection, "SHOW GLOBAL STATUS LIKE 'Uptime'"),
  ]);
  const [hostname, port, serverId, now] = names[0] ?? [];
  return {
    name: `${hostname}:${port}/${serverId}`,
    startedAt: Math.floor(Number(now)) - Number(uptimes[0]?.[1]),
  };
}

/** Whether two connections saw the same run of the same server. Nothing known is nothing equal. */
export function isSameServer(one: ServerIdentity, other: ServerIdentity): boolean {
  return (
    one.name === other.name && Math.abs(one.startedAt - other.startedAt) <= startToleranceSeconds
  );
}
