// scripts/bench fair-step: what fair turns cost a request. A pool with sessions that do nothing, one request after the other.
import { type Client, defaultClient } from '../../src/shared/clients/client.ts';
import type { Log } from '../../src/shared/process/log.ts';
import { Accounts } from '../../src/worker/servers/account.ts';
import { Pool } from '../../src/worker/servers/pool/pool.ts';
import type { RequestWaiter } from '../../src/worker/servers/pool/queue.ts';
import { Reachability } from '../../src/worker/servers/pool/reachability.ts';
import type { Session } from '../../src/worker/servers/pool/session.ts';
import { median } from '../support/statistics.ts';

const rounds = 7;
const steps = 1_000_000;
/** Steps in which requests of many clients wait. */
const waitingSteps = 100_000;

const ignore = () => {};
const silent: Log = { error: ignore, warn: ignore, info: ignore, debug: null, reopen: ignore };

/** A pool whose sessions take no time. */
function createPool(size: number): Pool {
  const connection = { isLost: false, watch: ignore, destroy: ignore, send: ignore };
  const open = async () =>
    ({ connection, holder: null, heldSince: 0, index: -1, onLost: null }) as unknown as Session;
  const settings = { size, queue: 1_000_000, maxWaitMs: 3_600_000, open, log: silent };
  const where = { address: 'nowhere', account: 'bench' };
  return new Pool(
    { ...settings, onOpened: ignore, mayLend: null },
    new Reachability(silent, where),
  );
}

/** A request of a client that gives its session back at once. */
function createRequest(pool: Pool, accounts: Accounts, client: Client): RequestWaiter {
  const account = accounts.of(client);
  const waitLimit = { account, user: null, since: 0, longestMs: Number.POSITIVE_INFINITY };
  const granted = (session: Session) => pool.release(session, 'clean');
  return { waitLimit, granted, refused: ignore };
}

/** The CPU time of one step in ns: the middle of the rounds. On a busy machine the clock would also count other processes. */
function measure(count: number, step: () => void): number {
  const times: number[] = [];
  for (let round = 0; round <= rounds; round += 1) {
    const from = process.cpuUsage();
    for (let n = 0; n < count; n += 1) step();
    const { user, system } = process.cpuUsage(from);
    // The first round compiles the code.
    if (round > 0) times.push(((user + system) * 1000) / count);
  }
  return median(times);
}

function report(what: string, ns: number): void {
  process.stdout.write(`${what.padEnd(64)} ${ns.toFixed(0).padStart(6)} ns\n`);
}

const nameClient = (n: number): Client => ({ ...defaultClient, name: `client-${n}` });

/** The step of a request that need not wait, in a pool that one or two clients use: its account alone, and with the pool's session. */
async function measureFree(clients: number): Promise<void> {
  const pool = createPool(16);
  const accounts = new Accounts();
  const all = Array.from({ length: clients }, (_, n) =>
    createRequest(pool, accounts, nameClient(n)),
  );
  for (const request of all) pool.request(request);
  await new Promise((resolve) => setImmediate(resolve));
  const [request] = all as [RequestWaiter];
  const { client } = request.waitLimit.account;
  const label = `nothing waits, ${clients} client${clients === 1 ? '' : 's'}`;
  const account = () => {
    const now = performance.now();
    const own = pool.accounts.arrive(accounts.of(client), now);
    if (!pool.isFreeFor(own)) throw new Error('the client should not wait');
    own.begin(now);
    own.end(now, now);
  };
  report(`${label}: all that fair turns add`, measure(steps, account));
  const whole = () => pool.request(request);
  report(`${label}: request and release, with the pool`, measure(steps, whole));
  await pool.close();
}

/** The step of a request that waits, while requests of so many clients do. */
async function measureWaiting(clients: number): Promise<void> {
  const pool = createPool(1);
  const accounts = new Accounts();
  let held: Session | null = null;
  const all = Array.from({ length: clients }, (_, n): RequestWaiter => {
    const granted = (session: Session) => {
      held = session;
    };
    return { ...createRequest(pool, accounts, nameClient(n)), granted };
  });
  for (const request of all) pool.request(request);
  await new Promise((resolve) => setImmediate(resolve));
  let next = 0;
  const step = () => {
    next = (next + 1) % clients;
    pool.request(all[next] as RequestWaiter);
    if (held !== null) pool.release(held, 'clean');
  };
  report(
    `requests of ${clients} clients wait: enqueue, choose, grant`,
    measure(waitingSteps / Math.max(1, clients / 10), step),
  );
  await Promise.race([pool.close(), new Promise((resolve) => setImmediate(resolve))]);
}

/** Measures and prints. */
export async function runFairStep(): Promise<void> {
  for (const clients of [1, 2]) await measureFree(clients);
  for (const clients of [2, 20, 200]) await measureWaiting(clients);
}
