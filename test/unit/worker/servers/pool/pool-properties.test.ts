// Promises of the pool under any sequence of requests, transactions, losses and withdrawals: it never has more connections than it may, no
// session has two holders, every request gets one answer, and nothing that was counted stays counted.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import type { Account } from '../../../../../src/worker/servers/account.ts';
import { Pool, type SessionVerdict } from '../../../../../src/worker/servers/pool/pool.ts';
import type { RequestWaiter } from '../../../../../src/worker/servers/pool/queue.ts';
import { Reachability } from '../../../../../src/worker/servers/pool/reachability.ts';
import {
  ReservedSessions,
  type Reserving,
} from '../../../../../src/worker/servers/pool/reserved-sessions.ts';
import type { Session } from '../../../../../src/worker/servers/pool/session.ts';
import { fc } from '../../../../support/property.ts';
import {
  createScriptedConnection,
  createScriptedSession,
  type ScriptedConnection,
  silentLog,
} from '../../../support/scripted-connection.ts';
import { createAccount, createLimit } from '../../../support/wait-limit.ts';

type Held = { readonly session: Session; readonly account: Account; readonly isReserved: boolean };

/** A pool of which everything is counted from outside. */
class World {
  readonly accounts = [
    createAccount({ name: 'one', maxInFlight: 1 }),
    createAccount({ name: 'two', maxInFlight: 2 }),
    createAccount({ name: 'free' }),
  ];
  readonly held: Held[] = [];
  /** Requests that wait, and what withdraws each. */
  readonly waiting = new Map<object, () => void>();
  readonly pool: Pool;
  readonly reserved: ReservedSessions;
  readonly connections: ScriptedConnection[] = [];
  readonly #size: number;
  #opening = 0;
  #places = 0;

  constructor(size: number, queue: number) {
    this.#size = size;
    this.pool = new Pool(
      {
        size,
        queue,
        maxWaitMs: 60_000,
        open: () => this.#open(),
        onOpened: () => {},
        mayLend: null,
        log: silentLog,
      },
      new Reachability(silentLog, { address: 'db', account: 'app' }),
    );
    this.reserved = new ReservedSessions(this.pool);
  }

  async #open(): Promise<Session> {
    this.#opening += 1;
    this.check();
    await turn();
    this.#opening -= 1;
    const connection = createScriptedConnection();
    this.connections.push(connection);
    const session = createScriptedSession(connection);
    return Object.assign(session, { reset: () => turn() });
  }

  get open(): readonly ScriptedConnection[] {
    return this.connections.filter(({ isLost, sent }) => !isLost && !sent.includes('quit'));
  }

  ask(account: Account, isReserved = false): void {
    let isSettled = false;
    const settle = () => {
      assert.equal(isSettled, false, 'a second answer');
      isSettled = true;
      this.waiting.delete(waiter);
    };
    const waiter: RequestWaiter = {
      waitLimit: createLimit({ account, since: performance.now() }),
      granted: (session) => {
        settle();
        if (isReserved) this.reserved.noteSession(account);
        assert.ok(!this.held.some((one) => one.session === session), 'a second holder');
        this.held.push({ session, account, isReserved });
      },
      refused: () => {
        settle();
        if (isReserved) this.leaveUnused(account);
      },
    };
    this.waiting.set(waiter, () => {
      settle();
      this.pool.queue.remove(waiter);
      if (isReserved) this.leaveUnused(account);
    });
    this.pool.request(waiter);
  }

  begin(account: Account): void {
    const reserving: Reserving = {
      waitLimit: createLimit({ account, since: performance.now() }),
      reserved: () => {
        this.waiting.delete(reserving);
        this.#places += 1;
        this.ask(account, true);
      },
      refused: () => void this.waiting.delete(reserving),
    };
    this.waiting.set(reserving, () => {
      this.waiting.delete(reserving);
      this.reserved.withdraw(reserving);
    });
    this.reserved.acquire(reserving);
  }

  leaveUnused(account: Account): void {
    this.reserved.noteSession(account);
    this.leavePlace(account);
  }

  leavePlace(account: Account): void {
    this.#places -= 1;
    this.reserved.release(account);
  }

  finish(at: number, verdict: SessionVerdict): void {
    const [one] = this.held.splice(at, 1);
    if (one === undefined) return;
    this.pool.release(one.session, verdict);
    if (one.isReserved) this.leavePlace(one.account);
  }

  check(): void {
    const { pool, reserved, held } = this;
    assert.ok(this.open.length + this.#opening <= this.#size, 'more connections than it may have');
    assert.equal(reserved.count, this.#places);
    assert.ok(reserved.count <= Math.ceil(this.#size / 2));
    for (const account of this.accounts) {
      const own = held.filter((one) => one.account === account).length;
      assert.equal(account.inFlight, own);
      assert.ok(own <= (account.client.maxInFlight ?? own));
    }
    assert.equal(pool.admission.waiting, this.waiting.size);
  }
}

type Step =
  | { readonly kind: 'ask' | 'begin'; readonly client: number }
  | { readonly kind: 'finish'; readonly at: number; readonly verdict: SessionVerdict }
  | { readonly kind: 'lose' | 'withdraw'; readonly at: number }
  | { readonly kind: 'turn' };

const client = fc.nat(2);
const at = fc.nat(20);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('ask' as const), client }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('begin' as const), client }) },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('finish' as const),
      at,
      verdict: fc.constantFrom<SessionVerdict>('clean', 'clean', 'unclean', 'broken'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('lose', 'withdraw'), at }) },
  { weight: 5, arbitrary: fc.constant({ kind: 'turn' as const }) },
);

async function take(world: World, one: Step): Promise<void> {
  switch (one.kind) {
    case 'ask':
      world.ask(world.accounts[one.client] as Account);
      return;
    case 'begin':
      world.begin(world.accounts[one.client] as Account);
      return;
    case 'finish':
      world.finish(one.at % Math.max(1, world.held.length), one.verdict);
      return;
    case 'lose':
      world.open[one.at % Math.max(1, world.open.length)]?.lose();
      return;
    case 'withdraw':
      [...world.waiting.values()][one.at % Math.max(1, world.waiting.size)]?.();
      return;
    case 'turn':
      await turn();
      return;
    default:
      one satisfies never;
  }
}

/** Everything that runs ends, one after the other, until nothing waits. */
async function drainAll(world: World): Promise<void> {
  for (let round = 0; round < 500; round += 1) {
    for (let n = 0; n < 5; n += 1) await turn();
    world.check();
    if (world.held.length === 0 && world.waiting.size === 0) return;
    world.finish(0, 'clean');
  }
  assert.fail(`${world.waiting.size} requests wait for ever`);
}

test('no sequence of events makes the pool exceed its size, lend a session twice, or forget a request', async () => {
  const size = fc.integer({ min: 1, max: 5 });
  const queue = fc.constantFrom(3, 100);
  const steps = fc.array(step, { maxLength: 60 });
  await fc.assert(
    fc.asyncProperty(size, queue, steps, async (sessions, places, all) => {
      const world = new World(sessions, places);
      try {
        for (const one of all) {
          await take(world, one);
          world.check();
        }
        await drainAll(world);
        for (const account of world.accounts) {
          assert.ok(account.isIdle);
          assert.equal(world.pool.accounts.of(account).pending, 0);
        }
      } finally {
        world.reserved.close();
        for (let n = world.held.length; n > 0; n -= 1) world.finish(0, 'broken');
        await world.pool.close();
      }
    }),
  );
});
