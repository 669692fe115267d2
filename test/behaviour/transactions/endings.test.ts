// The promise to clients whose transaction is over: the reply gives the one reason, and says what remains of the transaction.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TransactionEnd } from '../../../src/worker/execution/transaction-end.ts';
import { eventually } from '../../support/eventually.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { beginHeld, type HeldByClient } from '../../support/held.ts';
import { openRaw } from '../../support/http.ts';
import { signal } from '../../support/processes.ts';
import { endRequest } from '../../support/reports.ts';
import { readMetric } from '../../support/scrape.ts';
import { useGateway } from '../../support/use-gateway.ts';
import { formatRequest } from '../../support/worker-connections.ts';

const { gateway, database } = useGateway(
  { workers: 1, pool: 8, transaction_idle_timeout: '60s', transaction_timeout: '120s' },
  {
    prepare: async (prepared) => {
      await prepared.query(`
        create table t (id int primary key) engine = innodb;
        create table kept (id int) engine = myisam;
        create procedure commits() begin commit; end`);
    },
  },
);

type Problem = { readonly code: string; readonly detail: string; readonly outcome: string };
const undone = 'Everything in it was undone. This request executed nothing.';

/** The message for a statement in a transaction that is over. */
async function messageOf(held: HeldByClient): Promise<string> {
  const reply = await eventually('it is over', async () => {
    const answer = await held.query('select 1');
    return answer.status === 409 ? answer : undefined;
  });
  const { code, outcome, detail } = reply.json<Problem>();
  assert.deepEqual([code, outcome], ['TRANSACTION_ENDED', 'not_executed']);
  return detail;
}

/** Resolves when a transaction has ended in this way. */
async function hasEnded(own: Gateway, end: TransactionEnd): Promise<void> {
  await eventually(`a transaction is over: ${end}`, async () => {
    return (await readMetric(own, 'dbhttpd_transactions_ended_total', { end })) === 1;
  });
}

async function withGateway(
  settings: NonNullable<Parameters<typeof startGateway>[0]['settings']>,
  work: (own: Gateway) => Promise<void>,
): Promise<void> {
  const own = await startGateway({ database, settings });
  try {
    await work(own);
  } finally {
    await own.stop();
  }
}

test('its client has ended it', async () => {
  const committed = await beginHeld(gateway);
  await committed.commit();
  assert.equal(
    await messageOf(committed),
    'The transaction is over: its client committed it. This request executed nothing.',
  );
  const rolledBack = await beginHeld(gateway);
  await rolledBack.rollback();
  assert.equal(
    await messageOf(rolledBack),
    `The transaction is over: its client rolled it back. ${undone}`,
  );
});

test('it is not idle while the reply to its last statement is on its way', async () => {
  await withGateway({ workers: 1, transaction_idle_timeout: '5s' }, async (own) => {
    const reading = await beginHeld(own);
    // A single row, which the server has sent in full. The gateway keeps what the system's buffers do not take.
    const wish = { sql: "select repeat('x', 15000000)", transaction: reading.token };
    const client = await openRaw(own.port);
    client.send(formatRequest('POST', '/v1/query', wish));
    await client.anything();
    client.socket.pause();
    const idle = await beginHeld(own);
    assert.equal((await idle.query('insert into t values (7)')).status, 200);
    // It waits for the lock until the idle transaction, which began later, is rolled back.
    await database.query('insert into t values (7)');
    client.socket.resume();
    assert.equal((await client.reply()).status, 200);
    assert.deepEqual(await reading.rows('select 1'), [[1]]);
    client.close();
  });
});

test('it was idle for too long, or open for too long', async () => {
  await withGateway({ workers: 1, transaction_idle_timeout: '200ms' }, async (own) => {
    const held = await beginHeld(own);
    await hasEnded(own, 'idle');
    assert.equal(
      await messageOf(held),
      `The transaction is over: it was idle for longer than transaction_idle_timeout (200 ms). ${undone}`,
    );
  });
  const limits = { transaction_idle_timeout: '2s', transaction_timeout: '2s' };
  await withGateway({ workers: 1, ...limits }, async (own) => {
    const held = await beginHeld(own);
    // It is open for longer than 2 s, and its age stops this statement.
    assert.equal((await held.query('select sleep(20)')).status, 504);
    assert.equal(
      await messageOf(held),
      `The transaction is over: it was open for longer than transaction_timeout (2 s). ${undone}`,
    );
  });
});

test('a statement ended it: by a COMMIT, an error, its deadline, or an operator', async () => {
  const byCall = await beginHeld(gateway);
  await byCall.query('insert into t values (1)');
  const call = await byCall.query('call commits()');
  assert.match(
    call.json<Problem>().detail,
    /^The transaction is over: one of its statements has ended it, such as a CALL that commits\. /,
  );
  assert.match(await messageOf(byCall), /such as a CALL that commits\. A part of it remains\. /);

  const byError = await beginHeld(gateway);
  const other = await beginHeld(gateway);
  await byError.query('insert into t values (2)');
  await other.query('insert into t values (3)');
  const waiting = other.query('insert into t values (2)');
  const deadlocked = await Promise.any(
    [waiting, byError.query('insert into t values (3)')].map(async (asked, at) => {
      const { status } = await asked;
      if (status !== 409) throw new Error(`${status}`);
      return at === 0 ? other : byError;
    }),
  );
  assert.equal(
    await messageOf(deadlocked),
    `The transaction is over: one of its statements failed with error 1213 (ER_LOCK_DEADLOCK), which ended it. ${undone}`,
  );
  await Promise.all([byError.rollback(), other.rollback()]);

  const atDeadline = await beginHeld(gateway);
  await atDeadline.query('select sleep(20)', { timeout_ms: 3000 });
  assert.match(
    await messageOf(atDeadline),
    /one of its statements ran to its deadline and was killed\. /,
  );

  const ended = await beginHeld(gateway);
  const running = ended.query('select sleep(20)');
  type Listed = { readonly requests: readonly { id: string; phase: string }[] };
  const { id } = await eventually('it runs', async () => {
    const { requests } = (await gateway.get('/v1/requests')).json<Listed>();
    return requests.find(({ phase }) => phase === 'running');
  });
  await endRequest(gateway, id);
  await running;
  assert.match(
    await messageOf(ended),
    /: one of its statements was ended with DELETE \/v1\/requests or in the console\. /,
  );
});

test('the server closed its connection, or its worker is gone', async () => {
  const killed = await beginHeld(gateway);
  const reply = await killed.query('select connection_id()');
  const [[id]] = reply.json<{ rows: [[string]] }>().rows;
  await database.query(`kill ${id}`);
  await hasEnded(gateway, 'lost');
  assert.equal(
    await messageOf(killed),
    `The transaction is over: the database server closed its connection. ${undone}`,
  );
  const partly = await beginHeld(gateway);
  await partly.query('insert into kept values (1)');
  const orphan = await beginHeld(gateway);
  const [victim = 0] = gateway.workers();
  signal(victim, 'SIGKILL');
  await eventually('another one is there', () => !gateway.workers().includes(victim));
  assert.equal(
    await messageOf(orphan),
    `The transaction is over: the worker that held it has ended. ${undone}`,
  );
  assert.match(
    await messageOf(partly),
    /the worker that held it has ended\. A part of it may remain\. /,
  );
});

test('a token that is not the client’s names no transaction', async () => {
  const reply = await gateway.post('/v1/query', { sql: 'select 1', transaction: 'made-up' });
  assert.equal(
    reply.json<Problem>().detail,
    'The token names no transaction that this client has begun in this section of this gateway. This request executed nothing.',
  );
});
