// The part of the connections' time that each client gets over many statements, in a real pool whose clock and statements are simulated.
import assert from 'node:assert/strict';
import { performance } from 'node:perf_hooks';
import { type TestContext, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import type { Account } from '../../../../../src/worker/servers/account.ts';
import { Pool } from '../../../../../src/worker/servers/pool/pool.ts';
import { Reachability } from '../../../../../src/worker/servers/pool/reachability.ts';
import type { Session } from '../../../../../src/worker/servers/pool/session.ts';
import { createRandom } from '../../../../support/random.ts';
import {
  createScriptedConnection,
  createScriptedSession,
  silentLog,
} from '../../../support/scripted-connection.ts';
import { createAccount, createLimit } from '../../../support/wait-limit.ts';

const size = 16;
const reserved = 2;

type Event = { readonly at: number; readonly run: () => void };

/** Events in the order of their times; those of one time in the order in which they were added. */
class Timeline {
  now = 0;
  /** The next one comes last. */
  readonly #events: Event[] = [];

  after(ms: number, run: () => void): void {
    const at = this.now + ms;
    let from = 0;
    for (let to = this.#events.length; from < to; ) {
      const middle = (from + to) >> 1;
      if ((this.#events[middle] as Event).at > at) from = middle + 1;
      else to = middle;
    }
    this.#events.splice(from, 0, { at, run });
  }

  /** Runs the next event. */
  step(): void {
    const { at, run } = this.#events.pop() as Event;
    this.now = at;
    run();
  }
}

/** A client with connections that ask again and again. */
type Asking = {
  readonly account: Account;
  readonly connections: number;
  /** How long its next statement runs. */
  readonly nextMs: () => number;
  /** The pause of a connection between two statements. */
  readonly pauseMs: () => number;
  served: number;
  longestWaitMs: number;
};

/** A pool with all its sessions open, in simulated time. */
async function simulate(t: TestContext) {
  const timeline = new Timeline();
  const real = Object.getOwnPropertyDescriptor(performance, 'now');
  performance.now = () => timeline.now;
  t.after(() => {
    if (real === undefined) Reflect.deleteProperty(performance, 'now');
    else Object.defineProperty(performance, 'now', real);
  });
  t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
  const open = async () => createScriptedSession(createScriptedConnection());
  const settings = { size, queue: 1_000, maxWaitMs: 60_000, open, log: silentLog };
  const pool = new Pool(
    { ...settings, onOpened: () => {}, mayLend: null },
    new Reachability(silentLog, { address: 'db', account: 'app' }),
  );
  const opener = createAccount({ name: 'opener' });
  const opened: Session[] = [];
  for (let n = 0; n < size; n += 1) {
    pool.request({
      waitLimit: createLimit({ account: opener }),
      granted: (session) => void opened.push(session),
      refused: (reason) => assert.equal(reason, 'stopping'),
    });
  }
  while (opened.length < size) await turn();
  for (const session of opened) pool.release(session, 'clean');
  // The opener is forgotten, as a client that was not seen for a minute.
  timeline.now = 61_000;
  pool.accounts.sweep(timeline.now);
  t.after(() => void pool.close());

  const ask = (client: Asking) => {
    const since = timeline.now;
    pool.request({
      waitLimit: createLimit({ account: client.account, since }),
      granted: (session) => {
        client.longestWaitMs = Math.max(client.longestWaitMs, timeline.now - since);
        timeline.after(client.nextMs(), () => {
          client.served += 1;
          pool.release(session, 'clean');
          timeline.after(client.pauseMs(), () => ask(client));
        });
      },
      refused: (reason) => assert.equal(reason, 'stopping'),
    });
  };
  const start = (client: Asking) => {
    for (let n = 0; n < client.connections; n += 1) timeline.after(0, () => ask(client));
  };
  return { timeline, start };
}

type Plan = Pick<Asking, 'account' | 'nextMs' | 'pauseMs'> & Partial<Asking>;

function createAsking(plan: Plan): Asking {
  return { connections: 2, served: 0, longestWaitMs: 0, ...plan };
}

/** The held time of each of 200 clients for its share, divided by the mean, once each has had 100 statements. They have shares of 1 to 4, and always ask. */
async function shareOut(t: TestContext, nextMs: (random: () => number) => number) {
  const random = createRandom(1);
  const { timeline, start } = await simulate(t);
  const clients = Array.from({ length: 200 }, (_, n) =>
    createAsking({
      account: createAccount({ name: `${n}`, share: 1 + (n % 4) }),
      nextMs: () => nextMs(random),
      pauseMs: () => 5 * random(),
    }),
  );
  for (const client of clients) start(client);
  while (clients.some(({ served }) => served < 100)) timeline.step();
  const parts = clients.map(({ account }) => account.held.at(timeline.now) / account.client.share);
  const mean = parts.reduce((sum, part) => sum + part) / parts.length;
  return parts.map((part) => part / mean);
}

function assertEqualParts(parts: readonly number[]): void {
  const worst = Math.max(...parts.map((part) => Math.abs(part - 1)));
  assert.ok(worst <= 0.1, `a client is ${worst} away from its share`);
}

test('200 clients get the time of their shares within 10 %, if statements run for 30 ms', async (t) => {
  assertEqualParts(await shareOut(t, () => 30));
});

test('200 clients get the time of their shares within 10 %, if statements run for 1 ms or 200 ms', async (t) => {
  assertEqualParts(await shareOut(t, (random) => (random() < 0.5 ? 1 : 200)));
});

for (const [load, longPart] of [
  ['statements of 1 ms', 0],
  ['statements of 1 ms and of 200 ms', 0.1],
] as const) {
  test(`a loud client keeps all unreserved connections beside a quiet one, which does not wait: ${load}`, async (t) => {
    const random = createRandom(2);
    const { timeline, start } = await simulate(t);
    const nextMs = () => (random() < longPart ? 200 : 1);
    const loud = createAsking({
      account: createAccount({ name: 'loud' }),
      connections: 500,
      nextMs,
      pauseMs: () => 0,
    });
    const quiet = createAsking({
      account: createAccount({ name: 'quiet' }),
      nextMs: () => 1,
      pauseMs: () => 2 * random(),
    });
    start(quiet);
    start(loud);
    // The quiet client's first requests may wait for connections that were lent before it was seen.
    while (quiet.served < 10) timeline.step();
    quiet.longestWaitMs = 0;
    const from = timeline.now;
    const heldBefore = loud.account.held.at(from);
    while (loud.served < 5_000) timeline.step();
    const connections = (loud.account.held.at(timeline.now) - heldBefore) / (timeline.now - from);
    // The sum of times has rounding errors.
    assert.ok(connections > size - reserved - 1e-6, `the loud client held ${connections}`);
    assert.ok(quiet.served > 100, 'the quiet client hardly asked');
    assert.equal(quiet.longestWaitMs, 0);
  });
}
