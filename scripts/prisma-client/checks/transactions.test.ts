// prisma.$transaction, in both of its forms: what it commits, undoes, waits for, and how it fails.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { connectThrough, emptyTables, failure, prisma, straight, testBoth } from './clients.ts';

import type { Prisma, PrismaClient } from './generated/client.ts';
import { setting } from './setting.ts';

/** Longer than a busy machine takes for a transaction that must succeed. */
const generous = { maxWait: 60_000, timeout: 60_000 };
const narrow = connectThrough(setting.narrow);

const emails = async () =>
  (await straight.customer.findMany({ orderBy: { id: 'asc' } })).map(({ email }) => email);

testBoth('an array is one transaction: all of it, or nothing', async (client) => {
  const create = (email: string) => client.customer.create({ data: { email } });
  const [made, count, raw] = await client.$transaction([
    create('a'),
    client.customer.count(),
    client.$queryRaw`select count(*) as n from Customer`,
  ]);
  assert.deepEqual([made.email, count, raw], ['a', 1, [{ n: 1n }]]);
  const { code, meta } = await failure(
    client.$transaction([create('b'), create('a'), create('c')]),
  );
  assert.deepEqual([code, meta.modelName], ['P2002', 'Customer']);
  assert.deepEqual(await emails(), ['a']);
});

testBoth('an interactive one is seen by others when it has ended', async (client) => {
  const before = await client.$transaction(async (tx) => {
    const { id } = await tx.customer.create({ data: { email: 'a' } });
    await tx.order.create({ data: { customerId: id, number: 1 } });
    assert.equal((await tx.customer.findMany({ include: { orders: true } }))[0]?.orders.length, 1);
    return emails();
  }, generous);
  assert.deepEqual([before, await emails()], [[], ['a']]);
});

testBoth('a function that throws is undone', async (client) => {
  const undone = client.$transaction(async (tx) => {
    await tx.customer.create({ data: { email: 'a' } });
    throw new Error('on purpose');
  }, generous);
  await assert.rejects(undone, /on purpose/);
  assert.deepEqual(await emails(), []);
});

testBoth('an error that was caught does not end it', async (client) => {
  await client.$transaction(async (tx) => {
    await tx.customer.create({ data: { email: 'a' } });
    assert.equal((await failure(tx.customer.create({ data: { email: 'a' } }))).code, 'P2002');
    await tx.customer.create({ data: { email: 'b' } });
  }, generous);
  assert.deepEqual(await emails(), ['a', 'b']);
});

testBoth('statements of one that are sent at once run one after another', async (client) => {
  const count = await client.$transaction(async (tx) => {
    await Promise.all(
      Array.from({ length: 10 }, (_, n) => tx.customer.create({ data: { email: `a${n}` } })),
    );
    return tx.customer.count();
  }, generous);
  assert.equal(count, 10);
});

testBoth('one within another is a savepoint', async (client) => {
  await client.$transaction(async (tx) => {
    await tx.customer.create({ data: { email: 'a' } });
    const inner = tx.$transaction(async (within) => {
      await within.customer.create({ data: { email: 'b' } });
      throw new Error('on purpose');
    });
    await assert.rejects(inner, /on purpose/);
    await tx.customer.create({ data: { email: 'c' } });
  }, generous);
  assert.deepEqual(await emails(), ['a', 'c']);
});

testBoth('one that takes longer than its timeout is P2028, and undone', async (client) => {
  const late = client.$transaction(
    async (tx) => {
      await tx.customer.create({ data: { email: 'a' } });
      await tx.$queryRaw`select sleep(0.6)`;
      return tx.customer.count();
    },
    { maxWait: generous.maxWait, timeout: 500 },
  );
  const { code, meta } = await failure(late);
  assert.deepEqual([code, meta.timeout], ['P2028', 500]);
  assert.deepEqual(await emails(), []);
});

/**
 * Runs two transactions that lock each other's row, in opposite order. Resolves to the result of each.
 * @param lost what the transaction does whose statement has failed
 */
async function collide(
  client: PrismaClient,
  lost: (tx: Prisma.TransactionClient) => Promise<unknown> = async () => null,
): Promise<unknown[]> {
  await client.sample.createMany({ data: [{ whole: 0 }, { whole: 0 }] });
  const met = new AbortController();
  let arrived = 0;
  const run = (first: number, second: number) =>
    client.$transaction(async (tx) => {
      const touch = (id: number) =>
        tx.sample.update({ where: { id }, data: { whole: { increment: 1 } } });
      await touch(first);
      arrived += 1;
      if (arrived === 2) met.abort();
      else await once(met.signal, 'abort');
      await touch(second).catch(async (error: unknown) => {
        await lost(tx);
        throw error;
      });
    }, generous);
  const ended = await Promise.allSettled([run(1, 2), run(2, 1)]);
  return ended.map((one) => (one.status === 'fulfilled' ? 'committed' : one.reason.code)).sort();
}

testBoth('a deadlock is P2034 to one, and the other commits', async (client) => {
  assert.deepEqual(await collide(client), ['P2034', 'committed']);
  const rows = await straight.sample.findMany();
  assert.deepEqual(
    rows.map(({ whole }) => whole),
    [1, 1],
  );
});

test('after a deadlock, later statements of the function do not run; directly on a server they run outside the transaction', async () => {
  const reported: unknown[] = [];
  for (const client of [prisma, straight]) {
    await emptyTables();
    await collide(client, async (tx) => {
      const { code, cause } = await failure(tx.customer.create({ data: { email: 'a' } }));
      reported.push([code, cause.originalCode]);
    });
    reported.push(await emails());
  }
  assert.deepEqual(reported, [['P2039', '1317'], [], [undefined, undefined], ['a']]);
});

test('sixty at once over three workers do not mix', async () => {
  await emptyTables();
  const numbers = Array.from({ length: 60 }, (_, number) => number);
  await Promise.all(
    numbers.map((number) =>
      prisma.$transaction(async (tx) => {
        const { id } = await tx.customer.create({ data: { email: `c${number}` } });
        await tx.order.create({ data: { customerId: id, number } });
      }, generous),
    ),
  );
  const customers = await straight.customer.findMany({ include: { orders: true } });
  assert.equal(customers.length, 60);
  for (const { email, orders } of customers)
    assert.deepEqual(
      orders.map(({ number }) => `c${number}`),
      [email],
    );
});

test('transactions beyond the limit wait, and fail after maxWait; then there is room again', async () => {
  await emptyTables();
  // Three workers, each of which may hold one.
  const many = Array.from({ length: 9 }, () =>
    narrow.$transaction((tx) => tx.$queryRaw`select sleep(2)`, { ...generous, maxWait: 500 }),
  );
  const ended = await Promise.allSettled(many);
  const refused = ended.filter((one) => one.status === 'rejected').map(({ reason }) => reason);
  assert.ok(refused.length >= 6, `${refused.length} of 9`);
  for (const { code, message } of refused) {
    assert.equal(code, 'P2028');
    assert.match(message, /Unable to start a transaction in the given time/);
  }
  await narrow.$transaction((tx) => tx.customer.create({ data: { email: 'a' } }), generous);
  assert.deepEqual(await emails(), ['a']);
});

test('one that lies idle for transaction_idle_timeout is over: P2039 with 1317, and an error at its end', async () => {
  await emptyTables();
  const idle = narrow.$transaction(async (tx) => {
    await tx.customer.create({ data: { email: 'a' } });
    let reported = await failure(Promise.reject(new Error('nothing was asked')));
    // Each pause is longer than the last, until one comes after more than a second of silence.
    for (let pauseMs = 1000; reported.code === undefined; pauseMs += 500) {
      await setTimeout(pauseMs);
      reported = await failure(tx.customer.count());
    }
    assert.deepEqual([reported.code, reported.cause.originalCode], ['P2039', '1317']);
  }, generous);
  const { name, message } = await failure(idle);
  assert.equal(name, 'DatabaseError');
  assert.match(
    message,
    /^The transaction is over: it was idle for longer than transaction_idle_timeout/,
  );
  assert.deepEqual(await emails(), []);
});

/** Counts the rows of another transaction that a transaction sees although they were committed after its first read. */
async function seen(client: PrismaClient, isolationLevel?: Prisma.TransactionIsolationLevel) {
  await emptyTables();
  const options = isolationLevel === undefined ? generous : { ...generous, isolationLevel };
  return client.$transaction(async (tx) => {
    await tx.customer.count();
    await straight.customer.create({ data: { email: 'a' } });
    return tx.customer.count();
  }, options);
}

test('isolationLevel is lost in the adapter; the section’s init_sql chooses it', async () => {
  assert.equal(await seen(straight, 'ReadCommitted'), 1);
  // The adapter sends SET TRANSACTION in one session, and its driver begins the transaction in another.
  assert.equal(await seen(prisma, 'ReadCommitted'), 0);
  assert.equal(await seen(narrow), 1);
});

test('a refused BEGIN is P2028, and ends a process that does not listen to unhandledRejection', async () => {
  const program = fileURLToPath(new URL('refused-begin.js', import.meta.url));
  const run = promisify(execFile);
  const ended = (await run(process.execPath, [program]).catch((error: unknown) => error)) as {
    code?: number;
    stderr: string;
  };
  assert.equal(ended.code, 1);
  assert.match(ended.stderr, /DatabaseError: Basic authentication is needed/);
  const listening = await run(process.execPath, [program, 'listen']);
  assert.equal(listening.stdout, 'P2028\n');
});
