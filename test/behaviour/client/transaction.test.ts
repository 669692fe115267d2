// The promises of db.transaction of dbhttpd/client: all or nothing, the function's own error, and the truth about a COMMIT.
import assert from 'node:assert/strict';
import { after, beforeEach, test } from 'node:test';
import {
  type Client,
  connect,
  DbhttpdError,
  type Transaction,
  type TransactionOptions,
} from '../../../src/client/client.ts';
import { eventually } from '../../support/eventually.ts';
import { startGateway } from '../../support/gateway.ts';
import { type Deed, type HttpFront, startHttpFront } from '../../support/http-front.ts';
import { readMetric } from '../../support/scrape.ts';
import { useProxiedGateway } from '../../support/use-gateway.ts';
import { failureOf } from './support/client-failure.ts';

const { gateway, database, proxy } = useProxiedGateway(
  { workers: 2, pool: 32 },
  {
    prepare: async (database) => {
      await database.query(
        'create table notes (id int auto_increment primary key, who int) engine = innodb',
      );
    },
    ready: async () => {
      front = await startHttpFront(gateway.url);
      db = connect({ url: front.url });
    },
  },
);
let front: HttpFront;
let db: Client;
after(() => front?.stop());
let seenBefore = 0;
beforeEach(async () => {
  await database.query('delete from notes');
  seenBefore = front.seen.length;
});

const written = async () => {
  const rows = await database.query('select who from notes order by who');
  return rows.map(({ who }) => who);
};
/** The requests of this test: `begin`, `query`, `commit`, `rollback`. */
const sent = () =>
  front.seen.slice(seenBefore).map(({ path }) => {
    const last = path.split('/').at(-1);
    return last === 'transaction' ? 'begin' : last;
  });
const insert = (tx: Transaction, who: number) => tx.query`insert into notes (who) values (${who})`;

/** A refusal as the gateway gives it. */
function refusing(status: number, reported: object): Deed {
  const body = JSON.stringify({ detail: 'from the front', retryable: false, ...reported });
  const headers = { 'Content-Type': 'application/problem+json', 'Retry-After': '0' };
  return { kind: 'answer', status, headers, body };
}
const busy = refusing(503, { code: 'DEADLINE_WAITING', outcome: 'not_executed', retryable: true });
const ended = refusing(409, { code: 'TRANSACTION_ENDED', outcome: 'not_executed' });

test('the work of the function is committed when it returns, and its value is the result', async () => {
  const value = await db.transaction(async (tx) => {
    const { insertId } = await insert(tx, 1);
    await tx.query('insert into notes (who) values (:who)', { who: 2 });
    const lines: unknown[] = [];
    for await (const row of tx.stream`select who from notes order by who`) lines.push(row);
    assert.deepEqual(lines, [{ who: 1 }, { who: 2 }]);
    assert.deepEqual(await written(), []);
    const { rows } = await tx.query<[number]>('select who from notes where id = ?', [insertId], {
      rows: 'array',
    });
    return rows[0]?.[0];
  });
  assert.equal(value, 1);
  assert.deepEqual(await written(), [1, 2]);
  assert.deepEqual(sent(), ['begin', 'query', 'query', 'query', 'query', 'commit']);
});

test('an error of the function is thrown again, and nothing of its work remains', async () => {
  const own = new Error('of the caller');
  const failing = (options: TransactionOptions, ...deeds: readonly Deed[]) =>
    db.transaction(async (tx) => {
      await insert(tx, 1);
      front.next(...deeds);
      throw own;
    }, options);
  await assert.rejects(failing({}), (error) => error === own);
  assert.deepEqual(sent(), ['begin', 'query', 'rollback']);
  // A rollback that fails hides nothing.
  const lost = failing({ retry: false }, { kind: 'drop', when: 'asked' });
  await assert.rejects(lost, (error) => error === own);
  await assert.rejects(
    db.transaction(() => {
      throw own;
    }),
    (error) => error === own,
  );
  assert.deepEqual(await written(), []);
});

test('an error of a statement that the function swallows leaves the rest', async () => {
  await db.transaction(async (tx) => {
    await insert(tx, 1);
    const error = await failureOf(tx.query`insert into nowhere values (1)`);
    assert.equal(error.code, 'ER_NO_SUCH_TABLE');
    await insert(tx, 2);
  });
  assert.deepEqual(await written(), [1, 2]);
});

test('transactions at one time do not mix', async () => {
  const one = (who: number) =>
    db.transaction(async (tx) => {
      await tx.query`set @who = ${who}`;
      await insert(tx, who);
      const { rows } = await tx.query<{ who: number }>`select who from notes where who = @who`;
      if (who % 3 === 0) throw new Error('not this one');
      return rows.map((row) => row.who);
    });
  const all = Array.from({ length: 12 }, (_, who) => who);
  const ends = await Promise.allSettled(all.map(one));
  for (const [who, end] of ends.entries()) {
    if (who % 3 === 0) assert.equal(end.status, 'rejected');
    else assert.deepEqual(end, { status: 'fulfilled', value: [who] });
  }
  assert.deepEqual(
    await written(),
    all.filter((who) => who % 3 !== 0),
  );
});

test('statements run in the order of their calls, even those that are not awaited', async () => {
  await db.transaction(async (tx) => {
    await tx.query`set @n = 0`;
    for (let n = 1; n <= 10; n += 1) {
      void tx.query`insert into notes (who) select 100 * ${n} + (@n := @n + 1)`;
    }
  });
  assert.deepEqual(
    await written(),
    Array.from({ length: 10 }, (_, n) => 101 * (n + 1)),
  );
});

test('isolation, read_only and section are those of the options', async () => {
  const count = async (tx: Transaction) => (await tx.query`select who from notes`).rowCount;
  for (const [isolation, sees] of [
    ['repeatable read', 0],
    ['read committed', 1],
  ] as const) {
    await database.query('delete from notes');
    const section = gateway.section;
    await db.transaction(
      async (tx) => {
        assert.equal(await count(tx), 0);
        await database.query('insert into notes (who) values (5)');
        assert.equal(await count(tx), sees);
      },
      { isolation, section },
    );
  }
  const refused = await failureOf(db.transaction((tx) => insert(tx, 6), { readOnly: true }));
  assert.deepEqual([refused.status, refused.code], [403, 'READ_ONLY']);
  assert.equal(await db.with({ readOnly: true }).transaction(count), 1);
  const nowhere = await failureOf(db.transaction((tx) => insert(tx, 7), { section: 'nowhere' }));
  assert.equal(nowhere.status, 400);
  assert.deepEqual(await written(), [5]);
});

test('an option that a transaction cannot honour is a TypeError, and the statement does not run', async () => {
  const isTypeError = (error: unknown) => error instanceof TypeError;
  for (const options of [{ dryRun: true }, { idempotencyKey: true }, { maxAffected: 1 }] as const) {
    const work = (tx: Transaction) => insert(tx, 1);
    await assert.rejects(db.with(options).transaction(work), isTypeError);
    const inside = (tx: Transaction) =>
      tx.query('insert into notes (who) values (1)', [], options as object);
    await assert.rejects(db.transaction(inside), isTypeError);
  }
  assert.deepEqual(await written(), []);
  await db.with({ idempotencyKey: null }).transaction((tx) => insert(tx, 2));
  assert.deepEqual(await written(), [2]);
});

test('when it is over, its tx throws at once, and sends nothing', async () => {
  const left = await db.transaction(async (tx) => tx);
  const before = front.seen.length;
  const asked = [insert(left, 1), left.stream`select 1`.next()];
  for (const error of await Promise.all(asked.map(failureOf))) {
    assert.deepEqual([error.code, error.outcome], ['TRANSACTION_ENDED', 'not_executed']);
  }
  assert.equal(front.seen.length, before);
});

test('a deadlock is reported as retryable, and a caller that repeats it succeeds', async () => {
  await database.query('insert into notes (id, who) values (1, 0), (2, 0)');
  let arrived = 0;
  let meet = () => {};
  const bothHaveOne = new Promise<void>((resolve) => {
    meet = resolve;
  });
  const errors: DbhttpdError[] = [];
  const add = async (first: number, second: number): Promise<void> => {
    const work = async (tx: Transaction) => {
      await tx.query`update notes set who = who + 1 where id = ${first}`;
      arrived += 1;
      if (arrived === 2) meet();
      await bothHaveOne;
      await tx.query`update notes set who = who + 1 where id = ${second}`;
    };
    for (;;) {
      try {
        return await db.transaction(work);
      } catch (error) {
        if (!(error instanceof DbhttpdError && error.retryable)) throw error;
        errors.push(error);
      }
    }
  };
  await Promise.all([add(1, 2), add(2, 1)]);
  assert.deepEqual(await written(), [2, 2]);
  assert.deepEqual(
    errors.map(({ code, outcome }) => [code, outcome]),
    [['ER_LOCK_DEADLOCK', 'rolled_back']],
  );
});

test('one that lay idle for too long is not committed', async () => {
  const own = await startGateway({
    database,
    settings: { workers: 1, transaction_idle_timeout: '400ms' },
  });
  try {
    const idle = () => readMetric(own, 'dbhttpd_transactions_ended_total', { end: 'idle' });
    const slow = connect({ url: own.url }).transaction(async (tx) => {
      await insert(tx, 1);
      await eventually('it is rolled back', async () => (await idle()) === 1);
      const error = await failureOf(insert(tx, 2));
      assert.deepEqual([error.code, error.status], ['TRANSACTION_ENDED', 409]);
    });
    const error = await failureOf(slow);
    assert.deepEqual([error.code, error.outcome], ['TRANSACTION_ENDED', 'not_executed']);
  } finally {
    await own.stop();
  }
  assert.deepEqual(await written(), []);
});

test('if the reply to COMMIT is lost, the client asks again, and learns the outcome', async () => {
  const lost: readonly Deed[] = [
    { kind: 'drop', when: 'asked' },
    { kind: 'cut', afterBytes: 5 },
    { kind: 'reset' },
  ];
  for (const [who, deed] of lost.entries()) {
    await db.transaction(async (tx) => {
      await insert(tx, who);
      front.next(deed);
    });
  }
  assert.deepEqual(await written(), [0, 1, 2]);
  const once = ['begin', 'query', 'commit', 'commit'];
  assert.deepEqual(sent(), [...once, ...once, ...once]);
});

test('if COMMIT outlives its deadline, the client asks until it knows the outcome', async () => {
  const stalled = proxy.on(/^COMMIT$/, { kind: 'stall' }, { times: 1 });
  // Long enough for everything before COMMIT, even on a busy machine.
  const options = { timeoutMs: 3000, retry: { attempts: 20 } };
  const committing = db.transaction((tx) => insert(tx, 1), options);
  committing.catch(() => {});
  await eventually('its deadline has passed', () => front.passed.includes(504));
  proxy.release();
  assert.equal((await committing).affectedRows, 1);
  assert.equal(stalled.hits(), 1);
  assert.deepEqual(await written(), [1]);
});

test('a COMMIT that the gateway has lost is unknown, and the client does not ask again', async () => {
  proxy.on(/^COMMIT$/, { kind: 'cut-reply', afterBytes: 0 }, { times: 1 });
  const error = await failureOf(db.transaction((tx) => insert(tx, 1)));
  assert.deepEqual(
    [error.code, error.status, error.outcome, error.retryable],
    ['CONNECTION_LOST', 502, 'unknown', false],
  );
  assert.deepEqual(sent(), ['begin', 'query', 'commit']);
});

test('a COMMIT of which nothing can be learnt is unknown, within the bound of attempts', async () => {
  const drop = { kind: 'drop', when: 'asked' } as const;
  const work = (...deeds: readonly Deed[]) =>
    db.with({ retry: { attempts: 3 } }).transaction(async (tx) => {
      await insert(tx, 1);
      front.next(...deeds);
    });
  const never = await failureOf(work(drop, drop, drop));
  assert.deepEqual([never.code, never.outcome], ['FETCH_FAILED', 'unknown']);
  // A gateway that was restarted has forgotten how it ended: this one was committed.
  const forgotten = await failureOf(work(drop, ended, ended));
  assert.deepEqual([forgotten.code, forgotten.outcome], ['TRANSACTION_ENDED', 'unknown']);
  assert.match(forgotten.message, /earlier one may have been executed/);
  const thrice = ['begin', 'query', 'commit', 'commit', 'commit'];
  assert.deepEqual(sent(), [...thrice, ...thrice]);
  assert.deepEqual(await written(), [1, 1]);
});

test('503 is sent again, to begin, inside, and to commit; nothing else that may have been executed is', async () => {
  front.next(busy);
  await db.transaction(async (tx) => {
    front.next(busy);
    await insert(tx, 1);
    front.next(busy);
  });
  assert.deepEqual(sent(), ['begin', 'begin', 'query', 'query', 'commit', 'commit']);
  const lost = await failureOf(
    db.transaction((tx) => {
      front.next({ kind: 'drop', when: 'asked' });
      return insert(tx, 2);
    }),
  );
  assert.deepEqual([lost.code, lost.outcome], ['FETCH_FAILED', 'unknown']);
  assert.deepEqual(sent().slice(6), ['begin', 'query', 'rollback']);
  assert.deepEqual(await written(), [1]);
});

test('an abort rolls back, whatever the function waits for', async () => {
  const reason = new Error('the user went away');
  const waitingFor: readonly ((tx: Transaction) => Promise<unknown>)[] = [
    () => new Promise(() => {}),
    (tx) => tx.query`select sleep(20)`,
    // It takes no notice.
    (tx) => tx.query`select sleep(20)`.catch(() => {}),
  ];
  const direct = connect({ url: gateway.url });
  for (const waits of waitingFor) {
    const leaving = new AbortController();
    let arrived = false;
    const work = async (tx: Transaction) => {
      await insert(tx, 1);
      arrived = true;
      await waits(tx);
    };
    const aborted = failureOf(direct.transaction(work, { signal: leaving.signal }));
    await eventually('it waits', () => arrived);
    leaving.abort(reason);
    const error = await aborted;
    assert.deepEqual([error.code, error.outcome, error.cause], ['ABORTED', 'rolled_back', reason]);
  }
  const early = await failureOf(
    direct.transaction((tx) => insert(tx, 1), { signal: AbortSignal.abort(reason) }),
  );
  assert.deepEqual([early.code, early.outcome], ['ABORTED', 'not_executed']);
  assert.deepEqual(await written(), []);
});

test('an abort while COMMIT is under way is unknown', async () => {
  const leaving = new AbortController();
  const work = async (tx: Transaction) => {
    await insert(tx, 1);
    front.next({ kind: 'hold' });
  };
  const aborted = failureOf(db.transaction(work, { signal: leaving.signal }));
  await eventually('COMMIT is on its way', () => sent().at(-1) === 'commit');
  leaving.abort();
  const error = await aborted;
  assert.deepEqual([error.code, error.outcome, error.retryable], ['ABORTED', 'unknown', false]);
  front.release();
  await eventually('the held one has ended', async () => (await written()).length === 1);
});
