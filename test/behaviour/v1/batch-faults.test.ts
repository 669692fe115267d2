// Batches on bad days: deadlocks, deadlines, clients that leave, connections that are lost at each step, a full queue, a stop.
import assert from 'node:assert/strict';
import { after, beforeEach, test } from 'node:test';
import { waiting } from '../../support/busy-pool.ts';
import type { Fault } from '../../support/database/fault-proxy.ts';
import { closeGate, createGate } from '../../support/database/gate.ts';
import { openProcesslist, type Processlist } from '../../support/database/processlist.ts';
import { eventually } from '../../support/eventually.ts';
import { startGateway } from '../../support/gateway.ts';
import { openRaw } from '../../support/http.ts';
import { getReport } from '../../support/reports.ts';
import { useProxiedGateway } from '../../support/use-gateway.ts';

const { gateway, database, proxy } = useProxiedGateway(
  { workers: 1, pool: 4, queue: 1, statement_timeout: '20s' },
  {
    prepare: async (database) => {
      await createGate(database);
      await database.query(`
        create table t (id int primary key, v int) engine = innodb;
        create table plain (n int) engine = myisam;
        create procedure commits() begin insert into t values (70, 0); commit; do sleep(60); end;
        create procedure swallows() begin
          declare continue handler for 1213 begin end;
          update t set v = v + 1 where id = 2;
        end`);
    },
    ready: async () => {
      processlist = await openProcesslist(database);
    },
  },
);
let processlist: Processlist;
after(() => processlist?.close());
beforeEach(async () => {
  await database.query('delete from t; delete from plain; insert into t values (1, 0), (2, 0)');
});

type Reported = {
  readonly status?: number;
  readonly code?: string;
  readonly outcome?: string;
  readonly statement?: number;
  readonly retryable?: boolean;
  readonly committed?: boolean;
  readonly retries?: number;
};

const bodyOf = (statements: readonly string[], options = {}) => ({
  statements: statements.map((sql) => ({ sql })),
  ...options,
});

async function batch(statements: readonly string[], options = {}): Promise<Reported> {
  return (await gateway.post('/v1/batch', bodyOf(statements, options))).json<Reported>();
}

/** Sends a batch and gives the connection to the caller. */
async function send(statements: readonly string[]) {
  const connection = await openRaw(gateway.port);
  const body = JSON.stringify(bodyOf(statements));
  connection.send(
    `POST /v1/batch HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
  return connection;
}

const reported = ({ status, code, outcome, statement }: Reported) => [
  status,
  code,
  outcome,
  statement,
];
const write = 'insert into t values (3, 0)';

async function values(): Promise<unknown[]> {
  return (await database.query('select id, v from t order by id')).map(({ id, v }) => [id, v]);
}
const untouched = [
  [1, 0],
  [2, 0],
];

/** Two batches that want each other's row: both are at the gate when it is opened. */
async function deadlock(
  one: readonly string[],
  other: readonly string[],
  options = {},
): Promise<[Reported, Reported]> {
  const gate = await closeGate(database);
  const wait = `select ${gate.zero}`;
  const both = [one, other].map((statements) =>
    batch([statements[0] ?? '', wait, ...statements.slice(1)], options),
  );
  try {
    await processlist.started(gate.zero, 2);
  } finally {
    await gate.open();
  }
  return (await Promise.all(both)) as [Reported, Reported];
}

/** Row 2, and more: of two that deadlock the one that has changed fewer rows is the victim. */
const heavy =
  'insert into t values (2, 0), (21, 0), (22, 0), (23, 0), (24, 0), (25, 0), (26, 0) on duplicate key update v = v + 1';

const add = (id: number) => `update t set v = v + 1 where id = ${id}`;

test('two clients that deadlock on purpose both commit', async () => {
  const both = await deadlock([add(1), add(2)], [add(2), add(1)]);
  assert.deepEqual(
    both.map(({ committed }) => committed),
    [true, true],
  );
  assert.equal((both[0].retries ?? 0) + (both[1].retries ?? 0), 1);
  assert.deepEqual(await values(), [
    [1, 2],
    [2, 2],
  ]);
});

test('a rerun finds no trace of the earlier run in the session', async () => {
  const light = ['insert into t select 50 + ifnull(@n, 0), 0', 'set @n = ifnull(@n, 0) + 1'];
  const gate = await closeGate(database);
  const wait = `select ${gate.zero}`;
  const lost = batch([...light, add(1), wait, add(2)]);
  const other = batch([heavy, wait, add(1)]);
  try {
    await processlist.started(gate.zero, 2);
  } finally {
    await gate.open();
  }
  assert.deepEqual([(await lost).retries, (await other).retries], [1, 0]);
  assert.deepEqual(
    (await values()).map((row) => (row as unknown[])[0]).filter((id) => Number(id) >= 50),
    [50],
  );
});

test('without reruns, the batch that lost reports that it may be repeated', async () => {
  const both = await deadlock([add(1), add(2)], [add(2), add(1)], { retry: 0 });
  const lost = both.filter(({ committed }) => committed !== true);
  assert.equal(lost.length, 1);
  assert.deepEqual(reported(lost[0] ?? {}), [409, 'ER_LOCK_DEADLOCK', 'rolled_back', 2]);
  assert.equal(lost[0]?.retryable, true);
  assert.deepEqual(await values(), [
    [1, 1],
    [2, 1],
  ]);
});

test('a deadline that meets a deadlock: all is undone, and it is said', async () => {
  const gate = await closeGate(database);
  const wait = `select ${gate.zero}`;
  const rule = proxy.on(/'late'/, { kind: 'stall' }, { times: 1 });
  // The server's answer, that it has undone all, comes behind the deadline.
  const answerTooLate = (statement: string) => {
    if (statement.startsWith('KILL QUERY')) proxy.release();
    return false;
  };
  const atDeadline = proxy.on(answerTooLate, { kind: 'stall' });
  const late = batch(["select 'late'", add(1), wait, add(2)], { timeout_ms: 3000 });
  const other = batch([heavy, wait, add(1)]);
  try {
    await processlist.started(gate.zero, 2);
  } finally {
    await gate.open();
  }
  assert.equal((await other).committed, true);
  assert.deepEqual(reported(await late), [504, 'DEADLINE_RUNNING', 'rolled_back', undefined]);
  rule.remove();
  atDeadline.remove();
});

test('a deadlock that a procedure swallows is noticed: partial, and not run again', async () => {
  const both = await deadlock([add(1), 'call swallows()'], [heavy, add(1)]);
  assert.deepEqual(reported(both[0]), [409, 'TRANSACTION_ENDED', 'partial', 2]);
  assert.equal(both[1].committed, true);
});

test('a deadlock that could not undo all is partial, and not run again', async () => {
  const light = [add(1), 'insert into plain values (1)', add(2)];
  // InnoDB spares a transaction that has changed such a table: both have.
  const heavier = [heavy, 'insert into plain values (2)', add(1)];
  const [victim, other] = await deadlock(light, heavier);
  assert.equal(other.committed, true);
  assert.deepEqual(reported(victim), [409, 'ER_LOCK_DEADLOCK', 'partial', 3]);
  assert.equal(victim.retryable, false);
  const [row] = await database.query('select count(*) as n from plain');
  assert.equal(Number(row?.n), 2);
});

/** MySQL waits for a second, MariaDB not at all. */
const waitAsLittle = () => `set innodb_lock_wait_timeout = ${database.flavour === 'mysql' ? 1 : 0}`;

test('a lock that is waited for too long: all is undone', async () => {
  const keeper = await database.connect();
  try {
    await keeper.query('begin');
    await keeper.query(add(2));
    const statements = [write, waitAsLittle(), add(2)];
    const problem = await batch(statements, { retry: 0 });
    assert.deepEqual(reported(problem), [409, 'ER_LOCK_WAIT_TIMEOUT', 'rolled_back', 2]);
  } finally {
    await keeper.query('rollback');
    keeper.destroy();
  }
  assert.deepEqual(await values(), untouched);
});

test('a lock that is free by the time of the rerun: committed, and it is said that it was run again', async () => {
  const keeper = await database.connect();
  proxy.on(/where id = 2/, { kind: 'delay', ms: 1 }, { times: 1 });
  const again = proxy.on(/where id = 2/, { kind: 'hold' }, { times: 1 });
  try {
    await keeper.query('begin');
    await keeper.query(add(2));
    const waiting = batch([write, 'set innodb_lock_wait_timeout = 1', add(2)], { retry: 1 });
    await eventually('it is run again', () => again.hits() === 1);
    await keeper.query('rollback');
    proxy.release();
    const { committed, retries } = await waiting;
    assert.deepEqual([committed, retries], [true, 1]);
  } finally {
    keeper.destroy();
  }
  assert.deepEqual(await values(), [
    [1, 0],
    [2, 1],
    [3, 0],
  ]);
});

test('a batch that always finds its lock taken is run four times where it does not say how often', async () => {
  const keeper = await database.connect();
  const rule = proxy.on(/where id = 2/, { kind: 'delay', ms: 1 });
  try {
    await keeper.query('begin');
    await keeper.query(add(2));
    const problem = await batch([write, waitAsLittle(), add(2)]);
    assert.deepEqual(reported(problem), [409, 'ER_LOCK_WAIT_TIMEOUT', 'rolled_back', 2]);
    assert.equal(problem.retryable, true);
    assert.equal(rule.hits(), 4);
    const late = await batch([write, 'set innodb_lock_wait_timeout = 1', add(2)], {
      retry: 100,
      timeout_ms: 1500,
    });
    assert.deepEqual(reported(late), [504, 'DEADLINE_RUNNING', 'rolled_back', undefined]);
  } finally {
    rule.remove();
    await keeper.query('rollback');
    keeper.destroy();
  }
  assert.deepEqual(await values(), untouched);
});

test('a row that has changed since the snapshot: the batch is run again', async (t) => {
  const [variable] = await database.query("show variables like 'innodb_snapshot_isolation'");
  if (variable === undefined) return t.skip('this server has no innodb_snapshot_isolation');
  const own = await startGateway({
    database,
    settings: { workers: 1, init_sql: 'set innodb_snapshot_isolation = 1' },
  });
  const gate = await closeGate(database);
  const statements = ['select v from t where id = 1', `select ${gate.zero}`, add(1)];
  try {
    const reply = own.post('/v1/batch', bodyOf(statements, { isolation: 'repeatable read' }));
    try {
      await processlist.started(gate.zero);
      await database.query(add(1));
    } finally {
      await gate.open();
    }
    const { committed, retries } = (await reply).json<Reported>();
    assert.deepEqual([committed, retries], [true, 1]);
  } finally {
    await own.stop();
  }
  assert.deepEqual(await values(), [
    [1, 2],
    [2, 0],
  ]);
});

test('a deadline undoes all that was done, and reports it', async () => {
  const problem = await batch([write, 'do sleep(60)'], { timeout_ms: 1000 });
  assert.deepEqual(reported(problem), [504, 'DEADLINE_RUNNING', 'rolled_back', undefined]);
  assert.equal(problem.retryable, true);
  assert.deepEqual(await values(), untouched);
  const dry = await gateway.post('/v1/query', {
    sql: 'update t set v = sleep(60)',
    dry_run: true,
    timeout_ms: 1000,
  });
  assert.deepEqual(reported(dry.json<Reported>()), [
    504,
    'DEADLINE_RUNNING',
    'rolled_back',
    undefined,
  ]);
  assert.deepEqual(await values(), untouched);
});

test('a deadline in a procedure that has committed is partial', async () => {
  const problem = await batch([write, 'call commits()'], { timeout_ms: 1000 });
  assert.deepEqual(reported(problem).slice(0, 3), [504, 'DEADLINE_RUNNING', 'partial']);
  assert.equal((await values()).length, 4);
});

for (const leave of ['close', 'reset'] as const) {
  test(`a client that leaves (${leave}) before COMMIT leaves no trace`, async () => {
    const gate = await closeGate(database);
    try {
      const client = await send([write, `select ${gate.zero}`]);
      await processlist.started(gate.zero);
      client[leave]();
      await processlist.ended(gate.zero);
    } finally {
      await gate.open();
    }
    assert.deepEqual(await values(), untouched);
    assert.equal((await batch([write])).committed, true);
  });
}

test('a client that leaves after COMMIT was sent: it runs to its end', async () => {
  const rule = proxy.on(/^COMMIT$/, { kind: 'delay', ms: 300 }, { times: 1 });
  const client = await send([write]);
  await eventually('COMMIT is under way', () => rule.hits() === 1);
  client.close();
  await eventually('it is there', async () => (await values()).length === 3);
  rule.remove();
});

test('a deadline while COMMIT runs: no reply claims that the batch was not applied', async () => {
  const rule = proxy.on(/^COMMIT$/, { kind: 'stall' }, { times: 1 });
  const problem = await batch([write], { timeout_ms: 1500 });
  assert.deepEqual(reported(problem), [504, 'DEADLINE_RUNNING', 'unknown', undefined]);
  assert.equal(problem.retryable, false);
  assert.equal((await values()).length, 3);
  rule.remove();
  proxy.release();
});

const cuts: readonly Fault[] = [
  { kind: 'cut-request' },
  { kind: 'cut-request', afterBytes: 20 },
  { kind: 'cut-after-request' },
  { kind: 'cut-reply', afterBytes: 0 },
  { kind: 'cut-reply', afterBytes: 5, how: 'fin' },
];

test('a connection that is lost at any step: no reply claims that nothing was applied', async () => {
  const steps = [/START TRANSACTION/, /id = 1$/, /RELEASE SAVEPOINT/, /^COMMIT$/];
  for (const matches of steps) {
    for (const fault of cuts) {
      await database.query('delete from t; insert into t values (1, 0), (2, 0)');
      const rule = proxy.on(matches, fault, { times: 1 });
      const reply = await gateway.post('/v1/batch', {
        statements: [
          { sql: write, expect: { affected_rows: 1 } },
          { sql: add(1), expect: { affected_rows: 1 } },
          { sql: add(2) },
        ],
      });
      const what = `${matches} ${JSON.stringify(fault)}`;
      if (rule.hits() > 0) {
        assert.deepEqual(
          reported(reply.json<Reported>()),
          [502, 'CONNECTION_LOST', 'unknown', undefined],
          what,
        );
        assert.equal(reply.json<Reported>().retryable, false);
      } else {
        assert.equal(reply.status, 200, what);
      }
      rule.remove();
      const found = JSON.stringify(await values());
      const none = JSON.stringify(untouched);
      const all = JSON.stringify([
        [1, 1],
        [2, 1],
        [3, 0],
      ]);
      assert.ok(
        found === none ||
          (String(matches) === String(/^COMMIT$/) && found === all) ||
          rule.hits() === 0,
        `${what}: ${found}`,
      );
    }
  }
});

test('a connection that is lost while all is undone is unknown', async () => {
  const rule = proxy.on(/^ROLLBACK TO/, { kind: 'cut-request' }, { times: 1 });
  const problem = await batch([write, 'insert into t values (1, 0)']);
  assert.deepEqual(reported(problem).slice(2), ['unknown', 1]);
  rule.remove();
  await eventually('the server has undone it', async () => (await values()).length === 2);
});

test('a full queue refuses a batch, and a waiting one is withdrawn at a quarter of its deadline', async () => {
  const gate = await closeGate(database);
  try {
    const held = Array.from({ length: 4 }, () => batch([`select ${gate.zero}`]));
    await processlist.started(gate.zero, 4);
    const withdrawn = await batch([write], { timeout_ms: 4_000 });
    assert.deepEqual(reported(withdrawn), [503, 'WAITED_TOO_LONG', 'not_executed', undefined]);
    const waits = batch(['select 1']);
    await waiting(gateway, 1);
    const refused = await batch([write]);
    assert.deepEqual(reported(refused), [503, 'QUEUE_FULL', 'not_executed', undefined]);
    await gate.open();
    assert.deepEqual(
      (await Promise.all([...held, waits])).map(({ committed }) => committed),
      [true, true, true, true, true],
    );
  } finally {
    await gate.open().catch(() => undefined);
  }
  assert.deepEqual(await values(), untouched);
});

test('a stop lets a batch run to its end', async () => {
  const other = await startGateway({ database, settings: { workers: 1, pool: 2 } });
  const gate = await closeGate(database);
  const reply = other.post('/v1/batch', bodyOf([write, `select ${gate.zero}`, add(1)]));
  await processlist.started(gate.zero);
  const stopped = other.stop();
  await eventually('the stop has begun', () => /stopp|drain/.test(other.log()));
  await gate.open();
  assert.equal((await reply).json<Reported>().committed, true);
  await stopped;
  assert.deepEqual(await values(), [
    [1, 1],
    [2, 0],
    [3, 0],
  ]);
});

test('the traces of a batch in its session are gone, and requests are counted', async () => {
  await batch(['set @left = 1']);
  for (let at = 0; at < 8; at += 1) {
    const reply = await gateway.post('/v1/query', { sql: 'select @left' });
    assert.match(reply.text, /\[\[null\]\]/);
  }
  const { text } = await getReport(gateway, '/metrics');
  assert.match(text, /endpoint="v1_batch"/);
});
