// A gateway with a replicated set, as its operator and its clients see it: roles, reasons, and the server that ran a statement.
import type { Stats } from '../../../src/shared/observe/stats.ts';
import { eventually } from '../eventually.ts';
import { type Gateway, startGateway } from '../gateway.ts';
import type { Settings } from '../ini-text.ts';
import { getReport } from '../reports.ts';
import { readMetric } from '../scrape.ts';
import type { ReplicatedSet } from './replication.ts';

/** The reported role of a candidate. */
export type Role = 'primary' | 'replica' | 'unusable';

type SectionReady = { readonly roles: readonly Role[]; readonly reasons: readonly string[] };
type Ready = { readonly sections?: Readonly<Record<string, SectionReady>> };

/** The number (server_id) of the server that answers a request. */
export const whoAmI = 'select @@server_id as id';

/** Starts a gateway of one worker before these servers, and waits until it has made up its mind; its caller stops it. */
export async function startBefore(
  set: Pick<ReplicatedSet, 'target'>,
  settings: Settings = {},
): Promise<Gateway> {
  const gateway = await startGateway({
    database: set.target,
    settings: { workers: 1, pool: 4, statement_timeout: '15s', ...settings },
  });
  try {
    await eventually('each server has a role', async () => (await rolesOf(gateway)).length > 0);
    return gateway;
  } catch (error) {
    await gateway.stop();
    throw error;
  }
}

/** The roles in the order of `host`. Empty until all servers have been probed. */
export async function rolesOf(gateway: Gateway): Promise<readonly Role[]> {
  const { sections, code } = (await gateway.get('/readyz')).json<Ready & { code?: string }>();
  return code === 'STARTING' ? [] : (sections?.[gateway.section]?.roles ?? []);
}

/** Why each server has its role, in the order of `host`, as /readyz reports it to all clients, since nothing guards it. */
export async function readyReasonsOf(gateway: Gateway): Promise<readonly string[]> {
  const { sections } = (await gateway.get('/readyz')).json<Ready>();
  return sections?.[gateway.section]?.reasons ?? [];
}

/** Why each server has its role, in the order of `host`, as the log and the console report it. */
export async function reasonsOf(gateway: Gateway): Promise<readonly (string | null)[]> {
  const { backends } = (await getReport(gateway, '/v1/stats')).json<Stats>();
  return backends.map(({ reason }) => reason);
}

/** Resolves once the roles are these. */
export async function rolesBecome(gateway: Gateway, roles: readonly Role[]): Promise<void> {
  const wanted = roles.join();
  let last = '';
  try {
    await eventually(
      `roles are ${wanted}`,
      async () => {
        last = (await rolesOf(gateway)).join();
        return last === wanted;
      },
      // The gateway probes once a second, so asking more often has no use.
      { everyMs: 200 },
    );
  } catch (error) {
    throw new Error(`they are ${last}\n${gateway.log()}`, { cause: error });
  }
}

/** The number of the server that answers a read, which is declared so or not. */
export async function readerOf(gateway: Gateway, isReadOnly = true): Promise<number> {
  const body = { sql: whoAmI, ...(isReadOnly ? { read_only: true } : {}) };
  const reply = await gateway.post('/v1/query', body);
  if (reply.status !== 200) throw new Error(reply.text);
  return Number(reply.json<{ rows: [[number]] }>().rows[0][0]);
}

/** The numbers of the servers that answer this many declared reads, each once. */
export async function readersOf(gateway: Gateway, count = 24): Promise<readonly number[]> {
  const readers = new Set<number>();
  for (let left = count; left > 0; left -= 1) readers.add(await readerOf(gateway));
  return [...readers].sort((one, other) => one - other);
}

/** The value of `dbhttpd_backend_role` for a server; 1 if it has this role. */
export function roleMetric(gateway: Gateway, backend: string, role: Role): Promise<number> {
  return readMetric(gateway, 'dbhttpd_backend_role', { backend, role });
}
