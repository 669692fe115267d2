// The content of servers at the end of a history, read without a gateway.
import type { Row } from '../database/mariadb.ts';
import { eventually } from '../eventually.ts';

/** A server that is queried without a gateway. */
export type Asked = { readonly query: (sql: string) => Promise<Row[]> };

/** Longer than a session that has lost its client may wait for a lock of another such session. */
const maxIdleMs = 90_000;

/** Resolves once nothing runs on the server any more in its database. */
export async function waitUntilIdle(server: Asked): Promise<void> {
  const isIdle = async () => {
    const busy = await server.query(
      "select id from information_schema.processlist where db = database() and id <> connection_id() and command <> 'Sleep'",
    );
    return busy.length === 0;
  };
  const limits = { timeoutMs: maxIdleMs };
  await eventually('the server has ended what it still ran', isIdle, limits);
}

/** Numbers `n` by `id`, as a query gives them. */
export async function fetchCounts(
  server: Asked,
  sql: string,
): Promise<ReadonlyMap<number, number>> {
  return new Map((await server.query(sql)).map(({ id, n }) => [Number(id), Number(n)]));
}

/** The replies that are kept with keys. */
export async function fetchKeptReplies(server: Asked): Promise<string[]> {
  // A key that was taken for good, so that its batch can never be executed, has no reply.
  const kept = await server.query(
    'select convert(reply using utf8mb4) as reply from request_keys where reply is not null',
  );
  return kept.map(({ reply }) => String(reply));
}
