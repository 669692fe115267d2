// Keeps a gateway's sessions busy while a test needs requests to wait, and reports which ones wait.
import type { Ask, Reply } from './ask.ts';
import type { FaultProxy } from './database/fault-proxy.ts';
import { eventually } from './eventually.ts';
import type { Gateway } from './gateway.ts';
import { readMetric } from './scrape.ts';

/** Sends `ask`. Resolves when MySQL has executed `sql` and the proxy holds its answer back, until `release()`. */
export async function holdAnswer(
  proxy: FaultProxy,
  sql: string,
  ask: () => Promise<Reply>,
): Promise<{ readonly reply: Promise<Reply> }> {
  const before = proxy.answersHeld();
  const rule = proxy.on((sent) => sent === sql, { kind: 'stall' }, { times: 1 });
  const reply = ask();
  reply.catch(() => undefined);
  const isHeld = () => rule.hits() === 1 && proxy.answersHeld() > before;
  await eventually(`the answer to ${sql} is held back`, isHeld);
  rule.remove();
  return { reply };
}

/** Keeps one session busy until the proxy's `release()`. */
export async function occupy(gateway: Gateway, proxy: FaultProxy): Promise<void> {
  const SQL = "select 'busy'";
  await holdAnswer(proxy, SQL, () => gateway.dbPost({ SQL }));
}

/** Makes all requests wait for a gateway's only session, then lets them run. */
export async function askTogether(
  gateway: Gateway,
  proxy: FaultProxy,
  requests: readonly object[],
): Promise<Reply[]> {
  await occupy(gateway, proxy);
  const replies = requests.map((request) => gateway.dbPost(request));
  await waiting(gateway, requests.length);
  proxy.release();
  return Promise.all(replies);
}

/** Resolves when this many requests wait. */
export async function waiting(gateway: Gateway, count: number): Promise<void> {
  await eventually(
    `${count} wait`,
    async () => (await readMetric(gateway, 'dbhttpd_queue_length')) === count,
  );
}

/** Resolves when a gateway of one worker has this many open sessions, its whole pool, and none of them is in use. */
export async function fillPool(gateway: Ask, count: number): Promise<void> {
  await eventually(`${count} sessions are open`, async () => {
    await Promise.all(
      Array.from({ length: count }, () => gateway.dbPost({ SQL: 'select sleep(0.1)' })),
    );
    const idle = await readMetric(gateway, 'dbhttpd_pool_connections', { state: 'idle' });
    return idle === count;
  });
}

/** The number of times that the statement was sent to MySQL. */
export function timesSent({ statements }: FaultProxy, sql: string): number {
  return statements.filter((sent) => sent === sql).length;
}
