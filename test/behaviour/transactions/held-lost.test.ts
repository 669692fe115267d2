// Transactions that clients hold, when something goes wrong: what is lost never runs outside, and an unknown COMMIT is reported as unknown.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, beforeEach, type TestContext, test } from 'node:test';
import { workerSocketPath } from '../../../src/shared/process/socket-paths.ts';
import type { Reply } from '../../support/ask.ts';
import { createAsk } from '../../support/ask.ts';
import { createAuthority } from '../../support/certificates.ts';
import { closeGate, createGate } from '../../support/database/gate.ts';
import { eventually } from '../../support/eventually.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import {
  beginHeld,
  type HeldByClient,
  holdBy,
  type Reported,
  summarise,
} from '../../support/held.ts';
import { openRaw, type RawReply } from '../../support/http.ts';
import { enterPipeline } from '../../support/pipeline.ts';
import { signal } from '../../support/processes.ts';
import { getReport } from '../../support/reports.ts';
import { readMetric } from '../../support/scrape.ts';
import { useProxiedGateway } from '../../support/use-gateway.ts';
import { beginAt, formatRequest, openAtEach } from '../../support/worker-connections.ts';
import { fillBacklog, hasPlace } from './support/full-backlog.ts';
import { longInsert, sendBehind } from './support/overtaking.ts';

const over = '409 TRANSACTION_ENDED not_executed';
const unknown = '502 CONNECTION_LOST unknown';

/** A gateway with few sessions, each of which counts. */
let small: Gateway;
after(() => small?.stop());

const { gateway, database, proxy } = useProxiedGateway(
  { workers: 2, pool: 24, transaction_idle_timeout: '30s' },
  {
    prepare: async (database) => {
      await createGate(database);
      await database.query(`
        create table notes (id int auto_increment primary key, who int) engine = innodb;
        create table plain (n int) engine = myisam;
        create function writes() returns int begin insert into plain values (1); return 1; end;
        create procedure restarts() begin insert into notes (who) values (71); commit; start transaction; end`);
    },
    ready: async () => {
      small = await startGateway({
        database,
        settings: { workers: 1, pool: 4, transaction_idle_timeout: '60s' },
      });
    },
  },
);
beforeEach(async () => {
  await database.query('delete from notes');
});

const written = async () => {
  const rows = await database.query('select who from notes order by who');
  return rows.map(({ who }) => who);
};

type Request = { readonly worker: number; readonly phase: string };

const requests = async (from: Gateway): Promise<readonly Request[]> =>
  (await getReport(from, '/v1/requests')).json<{ requests: readonly Request[] }>().requests;

const pidOf = async (from: Gateway, worker: number): Promise<number> => {
  const { workers } = (await getReport(from, '/v1/stats')).json<{
    workers: readonly { pid: number }[];
  }>();
  return workers[worker]?.pid ?? 0;
};

/** Runs a statement in it for as long as `meanwhile` takes. */
async function whileItRuns<Found>(
  held: HeldByClient,
  meanwhile: (running: Request) => Found | Promise<Found>,
): Promise<Found> {
  const gate = await closeGate(database);
  try {
    const reply = held.query(`select ${gate.zero}`);
    const running = await eventually('it runs', async () =>
      (await requests(gateway)).find(({ phase }) => phase === 'running'),
    );
    const found = await meanwhile(running);
    await gate.open();
    assert.equal((await reply).status, 200);
    return found;
  } finally {
    await gate.open();
  }
}

function summariseRaw({ status, body }: RawReply): string {
  const { code, outcome } = JSON.parse(body.toString()) as Reported;
  return `${status} ${code} ${outcome}`;
}

/** The process that holds it, from the list of running requests. */
const ownerOf = (held: HeldByClient): Promise<number> =>
  whileItRuns(held, ({ worker }) => pidOf(gateway, worker));

/** Asserts that every request in the transaction reports its end, and that a rollback reports that nothing of it is left. */
async function assertIsOver(held: HeldByClient): Promise<void> {
  assert.equal(summarise(await held.query('insert into notes (who) values (99)')), over);
  assert.equal(summarise(await held.commit()), over);
  assert.deepEqual((await held.rollback()).json(), { rolled_back: true });
}

async function withGateway(
  settings: Parameters<typeof startGateway>[0]['settings'],
  work: (own: Gateway) => Promise<void>,
): Promise<void> {
  const own = await startGateway({ database, settings: settings ?? {} });
  try {
    await work(own);
  } finally {
    await own.stop();
  }
}

test('a killed worker loses only its own transactions', async () => {
  const all = await Promise.all(Array.from({ length: 9 }, () => beginHeld(gateway)));
  for (const [who, held] of all.entries()) {
    await held.query('insert into notes (who) values (:who)', { params: { who } });
  }
  const victim = await ownerOf(all[0] as HeldByClient);
  signal(victim, 'SIGKILL');
  await eventually('another one is there', () => {
    const workers = gateway.workers();
    return workers.length === 2 && !workers.includes(victim);
  });
  const kept: number[] = [];
  for (const [who, held] of all.entries()) {
    const reply = await held.query('select who from notes where who = :who', { params: { who } });
    if (reply.status === 200) {
      assert.deepEqual((await held.commit()).json(), { committed: true });
      kept.push(who);
    } else await assertIsOver(held);
  }
  assert.equal(kept.includes(0), false);
  assert.deepEqual(await written(), kept);
});

test('one that lies idle ends with its connection: its place is free, and nothing runs outside', async () => {
  const held = await beginHeld(small);
  await held.query('insert into notes (who) values (1)');
  const [[connection] = []] = await held.rows('select connection_id()');
  await database.query(`kill ${connection}`);
  await eventually('it has ended', async () => {
    const left = await readMetric(small, 'dbhttpd_transactions_held');
    return (
      left === 0 && (await readMetric(small, 'dbhttpd_pool_connections', { state: 'busy' })) === 0
    );
  });
  await assertIsOver(held);
  assert.deepEqual(await written(), []);
});

/** The reply to a rollback if it is not proven that everything was undone. */
const unproven = { rolled_back: false, outcome: 'unknown' };
/** Each may leave something that no ROLLBACK undoes. */
const leaving = [
  'insert into plain values (1)',
  'select writes()',
  'insert into notes (who) values (writes())',
  'call restarts()',
];

test('a rollback reports that all is undone only if nothing can have been committed when the connection was lost', async () => {
  for (const sql of leaving) {
    const held = await beginHeld(gateway);
    const [[connection] = []] = await held.rows('select connection_id()');
    assert.equal((await held.query(sql)).status, 200, sql);
    await held.query('insert into notes (who) values (1)');
    await database.query(`kill ${connection}`);
    await eventually('it has ended', async () => (await held.query('select 1')).status !== 200);
    for (const _time of [1, 2]) assert.deepEqual((await held.rollback()).json(), unproven, sql);
    assert.equal(summarise(await held.commit()), over, sql);
  }
});

test('the same if the connection is lost under a statement, or before COMMIT', async () => {
  const written = await beginHeld(gateway);
  proxy.on(/^insert into plain/, { kind: 'cut-reply', afterBytes: 0 }, { times: 1 });
  assert.equal(summarise(await written.query('insert into plain values (1)')), unknown);
  assert.deepEqual((await written.rollback()).json(), unproven);
  const ending = await beginHeld(gateway);
  await ending.query('insert into plain values (1)');
  proxy.on(/^RELEASE SAVEPOINT/, { kind: 'cut-reply', afterBytes: 0 }, { times: 1 });
  assert.equal(summarise(await ending.commit()), '409 TRANSACTION_ENDED unknown');
  assert.deepEqual((await ending.rollback()).json(), unproven);
});

test('the same if the worker is killed', async () => {
  const all = await Promise.all(leaving.map(() => beginHeld(gateway)));
  for (const [at, sql] of leaving.entries()) await all[at]?.query(sql);
  const plain = await beginHeld(gateway);
  await plain.query('insert into notes (who) values (1)');
  for (const pid of gateway.workers()) signal(pid, 'SIGKILL');
  await eventually('others are there', async () => (await plain.query('select 1')).status === 409);
  for (const held of all) assert.deepEqual((await held.rollback()).json(), unproven);
  assert.deepEqual((await plain.rollback()).json(), { rolled_back: true });
});

test('the idle timeout reveals a procedure that commits and begins again', async () => {
  await withGateway({ transaction_idle_timeout: '4s' }, async (own) => {
    const held = await beginHeld(own);
    await held.query('call restarts()');
    await eventually('it has ended', async () => {
      return (await readMetric(own, 'dbhttpd_transactions_held')) === 0;
    });
    assert.deepEqual((await held.rollback()).json(), { rolled_back: false, outcome: 'partial' });
  });
});

test('a deadlock does not say that all was rolled back if something before it may have stayed', async () => {
  await database.query('insert into notes (id, who) values (1, 0), (2, 0)');
  for (const [sql, outcome] of [
    ['call restarts()', 'unknown'],
    ['insert into plain values (1)', 'partial'],
    ['select writes()', 'partial'],
    ['insert into notes (who) values (1)', 'rolled_back'],
  ] as const) {
    const [first, second] = [await beginHeld(gateway), await beginHeld(gateway)];
    for (const held of [first, second]) await held.query(sql);
    await first.query('update notes set who = 1 where id = 1');
    await second.query('update notes set who = 2 where id = 2');
    const replies = await Promise.all([
      first.query('update notes set who = 1 where id = 2'),
      second.query('update notes set who = 2 where id = 1'),
    ]);
    const lost = replies.findIndex(({ status }) => status !== 200);
    assert.equal(summarise(replies[lost] as Reply), `409 ER_LOCK_DEADLOCK ${outcome}`, sql);
    await Promise.all([first, second].map(({ rollback }) => rollback()));
  }
});

test('a COMMIT whose reply is cut is unknown, to commit and to rollback, for every client', async () => {
  const held = await beginHeld(gateway);
  await held.query('insert into notes (who) values (1)');
  proxy.on(/^COMMIT$/, { kind: 'cut-reply', afterBytes: 0 }, { times: 1 });
  assert.equal(summarise(await held.commit()), unknown);
  for (const _time of [1, 2, 3, 4]) {
    assert.equal(summarise(await held.commit()), unknown);
    assert.equal(summarise(await held.rollback()), unknown);
  }
  assert.equal(summarise(await held.query('insert into notes (who) values (2)')), over);
  await eventually('the server has done it', async () => (await written()).length === 1);
});

test('a gateway does not report the outcome of a transaction that another gateway has begun', async () => {
  const held = await beginHeld(gateway);
  await held.query('insert into notes (who) values (1)');
  const lost = proxy.on(/^COMMIT$/, { kind: 'cut-reply', afterBytes: 0 }, { times: 1 });
  assert.equal(summarise(await held.commit()), unknown);
  assert.equal(lost.hits(), 1);
  await eventually('the server has done it', async () => (await written()).length === 1);
  const moved = holdBy(small, held.token);
  assert.equal(summarise(await moved.query('select 1')), over);
  assert.equal(summarise(await moved.commit()), '409 TRANSACTION_ENDED unknown');
  assert.deepEqual((await moved.rollback()).json(), { rolled_back: false, outcome: 'unknown' });
});

/** COMMIT is on its way, and a second one, a rollback and a statement wait behind it. */
async function crowdCommit(held: HeldByClient) {
  const stalled = proxy.on(/^COMMIT$/, { kind: 'stall' }, { times: 1 });
  const all = [held.commit()];
  await eventually('COMMIT is on its way', () => stalled.hits() === 1);
  const more = [held.commit, held.rollback, () => held.query('insert into notes (who) values (2)')];
  for (const [behind, ask] of more.entries()) {
    all.push(ask());
    await eventually('it waits', async () => {
      const phases = (await requests(gateway)).map(({ phase }) => phase);
      return phases.filter((phase) => phase === 'waiting').length === behind + 1;
    });
  }
  return all;
}

test('a request that waits behind a COMMIT learns how it ended', async () => {
  const held = await beginHeld(gateway);
  await held.query('insert into notes (who) values (1)');
  const all = await crowdCommit(held);
  proxy.release();
  const [first, second, rollback, statement] = await Promise.all(all);
  assert.deepEqual(first?.json(), { committed: true });
  assert.deepEqual(second?.json(), { committed: true });
  assert.deepEqual(rollback?.json(), { rolled_back: false, committed: true });
  assert.equal(summarise(statement as Reply), over);
  assert.deepEqual(await written(), [1]);
});

test('a commit or a rollback that is requested while a COMMIT runs, and given up, is unknown', async () => {
  const held = await beginHeld(gateway);
  await held.query('insert into notes (who) values (1)');
  const stalled = proxy.on(/^COMMIT$/, { kind: 'stall' }, { times: 1 });
  const first = held.commit();
  await eventually('COMMIT is on its way', () => stalled.hits() === 1);
  const asked = { transaction: held.token, timeout_ms: 200 };
  for (const verb of ['commit', 'rollback', 'commit']) {
    const again = await gateway.post(`/v1/transaction/${verb}`, asked);
    assert.equal(summarise(again), '502 COMMIT_RUNNING unknown', verb);
  }
  const statement = await held.query('insert into notes (who) values (2)', { timeout_ms: 200 });
  assert.equal(summarise(statement), '503 DEADLINE_WAITING not_executed');
  proxy.release();
  assert.deepEqual((await first).json(), { committed: true });
  assert.deepEqual((await held.rollback()).json(), { rolled_back: false, committed: true });
  assert.deepEqual(await written(), [1]);
});

/** A transaction, its worker's process, and a connection to the other worker. */
async function beginBeside(t: TestContext) {
  await eventually('both workers serve', async () => {
    const { workers } = (await gateway.get('/v1/stats')).json<{ workers: { state: string }[] }>();
    return workers.filter(({ state }) => state === 'serving').length === 2;
  });
  const [one, other] = await openAtEach(gateway.port, 2);
  assert.ok(one && other);
  t.after(() => {
    for (const { socket } of [one, other]) socket.destroy();
  });
  const held = holdBy(gateway, await beginAt(one));
  return { held, owner: await ownerOf(held), other };
}

/** Stops a worker, so that the others cannot reach it, while `act` runs. They can again when this resolves. */
async function whileOutOfReach(worker: number, act: () => Promise<void>): Promise<void> {
  const path = workerSocketPath(gateway.pidfile, worker);
  signal(worker, 'SIGSTOP');
  try {
    const leave = await fillBacklog(path);
    await act().finally(leave);
  } finally {
    signal(worker, 'SIGCONT');
  }
  await eventually('it can be reached', () => hasPlace(path));
}

test('a commit that is requested while its worker takes nothing is unknown if a COMMIT runs there', async (t) => {
  const { held, owner, other } = await beginBeside(t);
  await held.query('insert into notes (who) values (1)');
  const stalled = proxy.on(/^COMMIT$/, { kind: 'stall' }, { times: 1 });
  const first = held.commit();
  await eventually('COMMIT is on its way', () => stalled.hits() === 1);
  await whileOutOfReach(owner, async () => {
    other.send(formatRequest('POST', '/v1/transaction/commit', { transaction: held.token }));
    assert.equal(summariseRaw(await other.reply()), '502 COMMIT_RUNNING unknown');
  });
  const again = held.commit();
  proxy.release();
  for (const reply of [await first, await again]) {
    assert.deepEqual(reply.json(), { committed: true });
  }
  assert.deepEqual(await written(), [1]);
});

test('a request that waits behind a lost COMMIT learns that it is unknown', async () => {
  const held = await beginHeld(gateway);
  const [[connection] = []] = await held.rows('select connection_id()');
  await held.query('insert into notes (who) values (1)');
  const all = await crowdCommit(held);
  await database.query(`kill ${connection}`);
  await eventually('it is gone', async () => {
    const sql = `select 1 from information_schema.processlist where id = ${connection}`;
    return (await database.query(sql)).length === 0;
  });
  proxy.release();
  const reported = (await Promise.all(all)).map(summarise);
  assert.deepEqual(reported, [unknown, unknown, unknown, over]);
});

test('committed work remains committed when its worker is gone', async () => {
  const held = await beginHeld(gateway);
  await held.query('insert into notes (who) values (1)');
  const owner = await ownerOf(held);
  await held.commit();
  signal(owner, 'SIGKILL');
  await eventually('another one is there', () => {
    const workers = gateway.workers();
    return workers.length === 2 && !workers.includes(owner);
  });
  for (const _time of [1, 2, 3]) {
    assert.deepEqual((await held.commit()).json(), { committed: true });
    assert.deepEqual((await held.rollback()).json(), { rolled_back: false, committed: true });
  }
});

test('a worker that cannot be reached for now does not count as gone', async (t) => {
  const { held, owner, other } = await beginBeside(t);
  const write = { sql: 'insert into notes (who) values (1)', transaction: held.token };
  const ends = ['commit', 'rollback'].map((verb) => [`/v1/transaction/${verb}`] as const);
  await whileOutOfReach(owner, async () => {
    for (const [path, body = { transaction: held.token }] of [
      ['/v1/query', write],
      ...ends,
    ] as const) {
      other.send(formatRequest('POST', path, body));
      assert.equal(summariseRaw(await other.reply()), '503 QUEUE_FULL not_executed', path);
    }
  });
  assert.equal((await held.query(write.sql)).status, 200);
  assert.deepEqual((await held.commit()).json(), { committed: true });
  assert.deepEqual(await written(), [1]);
});

test('a deadline that passes before COMMIT is sent undoes all, and reports it', async () => {
  const held = await beginHeld(gateway);
  await held.query('insert into notes (who) values (1)');
  proxy.on(/^RELEASE SAVEPOINT/, { kind: 'stall' }, { times: 1 });
  const answerTooLate = (statement: string) => {
    if (statement.startsWith('KILL QUERY')) proxy.release();
    return false;
  };
  const rule = proxy.on(answerTooLate, { kind: 'stall' });
  const asked = { transaction: held.token, timeout_ms: 1000 };
  const late = await gateway.post('/v1/transaction/commit', asked);
  rule.remove();
  assert.equal(summarise(late), '504 DEADLINE_RUNNING rolled_back');
  await assertIsOver(held);
  assert.deepEqual(await written(), []);
});

test('a deadline that passes in COMMIT reports unknown, and the outcome can be requested later', async () => {
  const held = await beginHeld(gateway);
  await held.query('insert into notes (who) values (1)');
  proxy.on(/^COMMIT$/, { kind: 'stall' }, { times: 1 });
  // COMMIT has been sent by then, however busy this machine is.
  const asked = { transaction: held.token, timeout_ms: 3000 };
  const late = await gateway.post('/v1/transaction/commit', asked);
  assert.equal(summarise(late), '504 DEADLINE_RUNNING unknown');
  proxy.release();
  await eventually('it is known', async () => {
    const again = await held.commit();
    return again.status === 200 && again.json<{ committed: boolean }>().committed;
  });
  assert.deepEqual(await written(), [1]);
});

/** Resolves once a request waits at the small gateway. */
const waits = () =>
  eventually('it waits', async () =>
    (await requests(small)).some(({ phase }) => phase === 'waiting'),
  );

test('transactions have half of a pool; more wait, and plain requests do not', async (t) => {
  const all = [await beginHeld(small), await beginHeld(small)];
  t.after(() => Promise.all(all.map(({ rollback }) => rollback())));
  const refused = await small.post('/v1/transaction', { timeout_ms: 4_000 });
  assert.equal(summarise(refused), '503 WAITED_TOO_LONG not_executed');
  assert.equal((await small.post('/v1/query', { sql: 'select 1' })).status, 200);
  const waiting = beginHeld(small);
  await waits();
  await all[0]?.commit();
  await (await waiting).commit();
});

test('a transaction that waits for room gets the session that the pipeline gives back', async () => {
  // On a machine that pauses, the pipeline has given it back before: then nothing waits.
  await eventually('one waits', async () => {
    await enterPipeline(small, 'select who from notes where id = 1');
    const held = await beginHeld(small);
    const waiting = beginHeld(small, { timeout_ms: 15_000 });
    const wasSeen = waits().then(
      () => true,
      () => false,
    );
    const hasWaited = await Promise.race([wasSeen, waiting.then(() => false)]);
    for (const one of [await waiting, held]) assert.equal((await one.commit()).status, 200);
    return hasWaited;
  });
});

test('requests of one transaction run in the order of their arrival', async () => {
  const held = await beginHeld(gateway);
  const waitingNow = async (count: number) =>
    (await requests(gateway)).filter(({ phase }) => phase === 'waiting').length === count;
  const others: Promise<unknown>[] = [];
  await whileItRuns(held, async () => {
    for (const who of [1, 2, 3, 4]) {
      others.push(held.query('insert into notes (who) values (:who)', { params: { who } }));
      await eventually('it waits', () => waitingNow(who));
    }
  });
  await Promise.all(others);
  assert.deepEqual(await held.rows('select who from notes order by id'), [[1], [2], [3], [4]]);
  await held.commit();
});

test('a short request does not overtake a long one of its transaction', async () => {
  const { port } = small;
  const { token: transaction } = await beginHeld(small);
  const connections = [await openRaw(port), await openRaw(port), await openRaw(port)];
  const replies = await sendBehind(port, connections, [
    formatRequest('POST', '/v1/query', { sql: longInsert, transaction }),
    formatRequest('POST', '/v1/query', { sql: 'insert into notes (who) values (2)', transaction }),
    formatRequest('POST', '/v1/transaction/commit', { transaction }),
  ]);
  for (const connection of connections) connection.close();
  assert.deepEqual(
    replies.map(({ status, body }) => (status === 200 ? '' : body.toString())),
    ['', '', ''],
  );
  const rows = await database.query('select who from notes order by id');
  assert.deepEqual(
    rows.map(({ who }) => who),
    [1, 2],
  );
});

test('a client that leaves under a statement has its transaction rolled back', async () => {
  const held = await beginHeld(gateway);
  await held.query('insert into notes (who) values (1)');
  const leaving = new AbortController();
  const body = JSON.stringify({ sql: 'select sleep(20)', transaction: held.token });
  const headers = { 'Content-Type': 'application/json' };
  const asked = fetch(`${gateway.url}/v1/query`, {
    method: 'POST',
    headers,
    body,
    signal: leaving.signal,
  });
  asked.catch(() => {});
  await eventually('it runs', async () =>
    (await requests(gateway)).some(({ phase }) => phase === 'running'),
  );
  leaving.abort();
  await assert.rejects(asked);
  await eventually('it is over', async () => (await held.query('select 1')).status === 409);
  await assertIsOver(held);
  assert.deepEqual(await written(), []);
});

test('a hanging worker has until the deadline of the request that was passed on to it', async () => {
  const held = await beginHeld(gateway);
  await held.query('insert into notes (who) values (1)');
  const owner = await ownerOf(held);
  signal(owner, 'SIGSTOP');
  try {
    await eventually('another worker has taken the request', async () => {
      const late = await held
        .query('select 1', { timeout_ms: 200 })
        .then(summarise, () => 'hung too');
      return late === '504 DEADLINE_RUNNING unknown';
    });
  } finally {
    signal(owner, 'SIGCONT');
  }
  await held.rollback();
});

test('behind TLS, and with a pidfile of a long path, every worker finds them', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'held-'));
  const deep = join(
    directory,
    'a-directory-with-a-long-name'.repeat(4),
    'and-another-one'.repeat(4),
  );
  mkdirSync(deep, { recursive: true });
  const { cert, key } = createAuthority(directory).issue('localhost');
  try {
    const settings = {
      workers: 2,
      pidfile: join(deep, 'gateway.pid'),
      https_cert: cert,
      https_key: key,
    };
    await withGateway(settings, async (own) => {
      const ask = createAsk(own.url.replace('http:', 'https:'));
      const held = await beginHeld(ask);
      for (const who of [1, 2, 3, 4, 5, 6, 7, 8, 9]) {
        const reply = await held.query('insert into notes (who) values (:who)', {
          params: { who },
        });
        assert.equal(reply.status, 200, reply.text);
      }
      assert.deepEqual((await held.commit()).json(), { committed: true });
      const sockets = readdirSync(deep).filter((name) => name.includes('worker'));
      assert.equal(sockets.length, 2);
      for (const name of sockets) assert.equal(statSync(join(deep, name)).mode & 0o777, 0o600);
    });
    assert.deepEqual(
      readdirSync(deep).filter((name) => name.endsWith('.sock')),
      [],
    );
    assert.equal((await written()).length, 9);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test('a BEGIN whose connection is lost twice is not executed, and its place is free again', async () => {
  for (let n = 0; n < 3; n += 1) {
    const rule = proxy.on(/SAVEPOINT/, { kind: 'cut-after-request' }, { times: 2 });
    const reply = await gateway.post('/v1/transaction', {});
    assert.deepEqual([summarise(reply), rule.hits()], ['503 DATABASE_UNREACHABLE not_executed', 2]);
  }
  const held = await Promise.all(Array.from({ length: 12 }, () => beginHeld(gateway)));
  await Promise.all(held.map(({ rollback }) => rollback()));
});
