// Which server a connection has reached: behind a balancer two connections may reach different servers.
import { fetchRows } from './commands.ts';
import type { Connection } from './connection.ts';

/** Identifies a server and its start. */
export type ServerIdentity = {
  readonly name: string;
  /** Unix time in seconds by the server's own clock; may be off by one. */
  readonly startedAt: number;
};

/** A session whose connection is lost, and whose transaction the server may not have ended yet. */
export type LostSession = { readonly threadId: number; readonly identity: ServerIdentity };

/** The server rounds both values to seconds, and reads them one after another. */
const startToleranceSeconds = 2;

/** Asks for the server's identity. Rejects if the connection is lost. */
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

/** Whether two connections reached the same server without a restart between them. */
export function isSameServer(one: ServerIdentity, other: ServerIdentity): boolean {
  return (
    one.name === other.name && Math.abs(one.startedAt - other.startedAt) <= startToleranceSeconds
  );
}
