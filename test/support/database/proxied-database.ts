// A database with a fault proxy before it, for gateways whose line to the database must fail.
import { type FaultProxy, startFaultProxy } from './fault-proxy.ts';
import type { Database } from './mariadb.ts';

/** The proxy, and the database behind it. The caller must stop it. */
export type ProxiedDatabase = FaultProxy & {
  readonly target: Pick<Database, 'host' | 'port' | 'user' | 'password' | 'name'>;
};

/** Starts a fault proxy before a database that runs. */
export async function startProxiedDatabase(database: Database): Promise<ProxiedDatabase> {
  const proxy = await startFaultProxy({ host: database.host, port: database.port });
  return { ...proxy, target: { ...database, host: proxy.host, port: proxy.port } };
}
