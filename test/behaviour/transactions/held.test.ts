// Transactions that clients hold: every worker finds them, they never mix with others, end as reported, and nothing runs outside of them.
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import type { Ask } from '../../support/ask.ts';
import { createNumbers, maxNumbers } from '../../support/database/numbers.ts';
import { eventually } from '../../support/eventually.ts';
import { beginHeld, type HeldByClient, holdBy, summarise } from '../../support/held.ts';
import { exchange } from '../../support/http.ts';
import { useGateway } from '../../support/use-gateway.ts';

const token = 'a-token-that-is-long-enough';
const otherToken = 'another-token-that-is-long';
const bearing = (one: string) => ({ Authorization: `Bearer ${one}` });
const over = '409 TRANSACTION_ENDED not_executed';

const { gateway: guarded, database } = useGateway(
  {
    workers: 3,
    pool: 120,
    token: `${token}, ${otherToken}`,
    transaction_idle_timeout: '60s',
    transaction_timeout: '120s',
  },
  {
    prepare: async (database) => {
      await createNumbers(database);
      await database.query(`
        create table notes (id int auto_increment primary key, who int, n int default 0) engine = innodb;
        create table plain (n int) engine = myisam;
        create function writes() returns int begin insert into notes (who) values (72); return 1; end;
        create procedure commits() begin insert into notes (who) values (70); commit; end;
        create procedure restarts() begin insert into notes (who) values (71); commit; start transaction; end`);
    },
  },
);
beforeEach(async () => {
  await database.query('delete from notes');
});

/** Requests with the first token. */
const gateway: Pick<Ask, 'post'> = {
  post: (path, body, options = {}) =>
    guarded.post(path, body, { ...options, headers: { ...bearing(token), ...options.headers } }),
};

const countNotes = async (where = 'true') => {
  const [row] = await database.query(`select count(*) as count from notes where ${where}`);
  return Number(row?.count);
};

test('a transaction is seen by others when it is committed, and not before', async () => {
  const held = await beginHeld(gateway);
  const inserted = await held.query('insert into notes (who) values (:who)', {
    params: { who: 1 },
  });
  assert.equal(inserted.json<{ affected_rows: number }>().affected_rows, 1);
  assert.deepEqual(await held.rows('select who from notes'), [[1]]);
  assert.equal(await countNotes(), 0);
  const committed = await held.commit();
  assert.equal(committed.status, 200);
  assert.deepEqual(committed.json(), { committed: true });
  assert.equal(await countNotes(), 1);
});

test('a reply contains how long it may be idle', async () => {
  const begun = await gateway.post('/v1/transaction', { isolation: 'read committed' });
  assert.equal(begun.status, 201);
  const { transaction, idle_timeout_ms } = begun.json<{
    transaction: string;
    idle_timeout_ms: number;
  }>();
  assert.equal(idle_timeout_ms, 60_000);
  await holdBy(gateway, transaction).rollback();
});

test('what is rolled back is gone, and a rollback may be repeated', async () => {
  const held = await beginHeld(gateway);
  await held.query('insert into notes (who) values (1)');
  for (const _time of [1, 2, 3]) {
    const reply = await held.rollback();
    assert.equal(reply.status, 200);
    assert.deepEqual(reply.json(), { rolled_back: true });
  }
  assert.equal(summarise(await held.query('insert into notes (who) values (2)')), over);
  assert.equal(summarise(await held.commit()), over);
  assert.equal(await countNotes(), 0);
});

test('a commit may be repeated, and a rollback after it does not say that all is undone', async () => {
  const held = await beginHeld(gateway);
  await held.query('insert into notes (who) values (1)');
  for (const _time of [1, 2, 3])
    assert.deepEqual((await held.commit()).json(), { committed: true });
  assert.deepEqual((await held.rollback()).json(), { rolled_back: false, committed: true });
  assert.equal(await countNotes(), 1);
});

test('isolation is that of the request', async () => {
  const blind = await beginHeld(gateway, { isolation: 'repeatable read' });
  const seeing = await beginHeld(gateway, { isolation: 'read committed' });
  for (const held of [blind, seeing])
    assert.deepEqual(await held.rows('select who from notes'), []);
  await database.query('insert into notes (who) values (5)');
  assert.deepEqual(await blind.rows('select who from notes'), []);
  assert.deepEqual(await seeing.rows('select who from notes'), [[5]]);
  await Promise.all([blind.rollback(), seeing.rollback()]);
});

test('a read-only transaction writes nothing', async () => {
  const held = await beginHeld(gateway, { read_only: true });
  assert.deepEqual(await held.rows('select count(*) from notes'), [['0']]);
  const refused = await held.query('insert into notes (who) values (1)');
  assert.equal(refused.status, 403, refused.text);
  assert.equal(refused.json<{ errno: number }>().errno, 1792);
  for (const sql of ['call commits()', '/* x */ CALL restarts()']) {
    assert.equal(summarise(await held.query(sql)), '400 NOT_IN_TRANSACTION not_executed', sql);
  }
  assert.equal((await held.commit()).status, 200);
  assert.equal(await countNotes(), 0);
});

test('a request that only reads writes nothing, whatever its transaction may', async () => {
  const held = await beginHeld(gateway);
  const sql = 'select writes()';
  const asked = { sql, transaction: held.token };
  const refused = [
    await held.query(sql, { read_only: true }),
    await gateway.post('/v1/query', asked, { method: 'QUERY' }),
  ];
  for (const reply of refused)
    assert.equal(summarise(reply), '400 NOT_IN_TRANSACTION not_executed');
  await held.commit();
  assert.equal(await countNotes(), 0);
  const reading = await beginHeld(gateway, { read_only: true });
  const within = { sql: 'select 1', transaction: reading.token };
  assert.equal((await gateway.post('/v1/query', within, { method: 'QUERY' })).status, 200);
  await reading.rollback();
});

test('thirty at once over three workers never mix', async () => {
  const all = await Promise.all(Array.from({ length: 30 }, () => beginHeld(gateway)));
  const one = async (held: HeldByClient, who: number) => {
    const connections = new Set<unknown>();
    await held.query(`set @who = ${who}`);
    for (let step = 0; step < 3; step += 1) {
      await held.query('insert into notes (who, n) values (@who, :step)', { params: { step } });
      const [row] = await held.rows(
        'select connection_id(), @who, count(*), min(who), max(who) from notes where n >= 0 and who = @who',
      );
      connections.add(row?.[0]);
      assert.deepEqual(row?.slice(1).map(Number), [who, step + 1, who, who]);
    }
    assert.equal(connections.size, 1);
    const ended = who % 3 === 0 ? await held.rollback() : await held.commit();
    assert.equal(ended.status, 200, ended.text);
    return [...connections][0];
  };
  const connections = await Promise.all(all.map((held, index) => one(held, index + 1)));
  assert.equal(new Set(connections).size, 30);
  assert.equal(await countNotes(), 3 * 20);
  assert.equal(await countNotes('who % 3 = 0'), 0);
});

test('session state that one client leaves never reaches another', async () => {
  const held = await beginHeld(gateway);
  const [[connection] = []] = await held.rows('select connection_id()');
  await held.query("set @left = 'something'");
  await held.commit();
  const seen = await eventually('the same connection serves another client', async () => {
    const reply = await gateway.post('/v1/query', { sql: 'select connection_id(), @left' });
    const [row] = reply.json<{ rows: readonly (readonly unknown[])[] }>().rows;
    return row?.[0] === connection ? row : null;
  });
  assert.equal(seen[1], null);
});

test('a token that names no transaction runs nothing', async () => {
  const held = await beginHeld(gateway);
  const { token: own } = held;
  const middle = Math.floor(own.length / 2);
  const flipped = own.slice(0, middle) + (own[middle] === 'A' ? 'B' : 'A') + own.slice(middle + 1);
  for (const forged of [flipped, '', 'x', `${own}A`, own.slice(1), 'A'.repeat(own.length)]) {
    const other = holdBy(gateway, forged);
    assert.equal(summarise(await other.query('insert into notes (who) values (9)')), over);
    // Another gateway may have begun it.
    assert.equal(summarise(await other.commit()), '409 TRANSACTION_ENDED unknown');
    assert.deepEqual((await other.rollback()).json(), { rolled_back: false, outcome: 'unknown' });
  }
  assert.equal((await held.commit()).status, 200);
  assert.equal(await countNotes(), 0);
});

test('statements that would end it are refused before they run, and it goes on', async () => {
  const held = await beginHeld(gateway);
  await held.query('insert into notes (who) values (1)');
  for (const sql of [
    'commit',
    'rollback',
    'begin',
    'start transaction',
    'create table more (n int)',
    'drop table notes',
    'set autocommit = 1',
    'lock tables notes write',
    'truncate notes',
    'savepoint dbhttpd_mine',
  ]) {
    const refused = await held.query(sql);
    assert.equal(summarise(refused), '400 NOT_IN_TRANSACTION not_executed', sql);
  }
  for (const more of [{ max_affected: 1 }, { dry_run: true }]) {
    const refused = await held.query('delete from notes', more);
    assert.equal(summarise(refused), '400 NOT_IN_TRANSACTION not_executed');
  }
  assert.equal(await countNotes(), 0);
  await held.commit();
  assert.equal(await countNotes(), 1);
});

test('its client may go back to its own savepoints', async () => {
  const held = await beginHeld(gateway);
  await held.query('insert into notes (who) values (1)');
  await held.query('savepoint inner_one');
  await held.query('insert into notes (who) values (2)');
  await held.query('rollback to savepoint inner_one');
  await held.query('release savepoint inner_one');
  await held.commit();
  assert.equal(await countNotes(), 1);
});

test('an error of a statement leaves it open, with its warnings', async () => {
  const held = await beginHeld(gateway);
  await held.query('insert into notes (id, who) values (1, 1)');
  const refused = await held.query('insert into notes (id, who) values (1, 2)');
  assert.equal(summarise(refused), '409 ER_DUP_ENTRY failed');
  const [warning] = await held.rows('show errors');
  assert.equal(Number(warning?.[1]), 1062);
  await held.query('insert into notes (who) values (3)');
  await held.commit();
  assert.equal(await countNotes(), 2);
});

test('a procedure that commits ends it, and later statements do not run', async () => {
  const held = await beginHeld(gateway);
  await held.query('insert into notes (who) values (1)');
  assert.equal(summarise(await held.query('call commits()')), '409 TRANSACTION_ENDED partial');
  assert.equal(summarise(await held.query('insert into notes (who) values (2)')), over);
  assert.equal(summarise(await held.commit()), over);
  assert.equal(await countNotes('who = 2'), 0);
});

test('COMMIT reveals a procedure that commits and begins again', async () => {
  const held = await beginHeld(gateway);
  await held.query('call restarts()');
  await held.query('insert into notes (who) values (2)');
  assert.equal(summarise(await held.commit()), '409 TRANSACTION_ENDED partial');
  assert.equal(summarise(await held.query('insert into notes (who) values (3)')), over);
  assert.deepEqual(await database.query('select who from notes'), [{ who: 71 }]);
});

test('a rollback that could not undo all reports it', async () => {
  const held = await beginHeld(gateway);
  await held.query('insert into plain values (1)');
  assert.deepEqual((await held.rollback()).json(), { rolled_back: false, outcome: 'partial' });
});

test('a deadlock ends it, and the other one goes on', async () => {
  await database.query('insert into notes (id, who) values (1, 0), (2, 0)');
  const [first, second] = [await beginHeld(gateway), await beginHeld(gateway)];
  await first.query('update notes set who = 1 where id = 1');
  await second.query('update notes set who = 2 where id = 2');
  const replies = await Promise.all([
    first.query('update notes set who = 1 where id = 2'),
    second.query('update notes set who = 2 where id = 1'),
  ]);
  const lost = replies.findIndex(({ status }) => status !== 200);
  const [loser, winner] = lost === 0 ? [first, second] : [second, first];
  assert.equal(summarise(replies[lost] as (typeof replies)[0]), '409 ER_LOCK_DEADLOCK rolled_back');
  assert.equal(summarise(await loser.query('insert into notes (who) values (9)')), over);
  assert.deepEqual((await loser.rollback()).json(), { rolled_back: true });
  assert.equal((await winner.commit()).status, 200);
  assert.equal(await countNotes('who = 9'), 0);
});

test('a statement that passes its deadline ends it, and reports that it is undone', async () => {
  const held = await beginHeld(gateway);
  await held.query('insert into notes (who) values (1)');
  const late = await held.query('select sleep(20)', { timeout_ms: 1000 });
  assert.equal(summarise(late), '504 DEADLINE_RUNNING rolled_back');
  assert.equal(summarise(await held.query('select 1')), over);
  assert.equal(await countNotes(), 0);
});

test('clients that name no host, or have many headers, are served by every worker', async () => {
  const held = await beginHeld(gateway);
  const body = JSON.stringify({ sql: "select 'here'", transaction: held.token });
  const many = Array.from({ length: 96 }, (_, n) => `X-${n}: x\r\n`).join('');
  for (const extra of ['', many]) {
    const head = `POST /v1/query HTTP/1.0\r\nAuthorization: Bearer ${token}\r\n${extra}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`;
    for (let time = 0; time < 8; time += 1) {
      const { status, body: reported } = await exchange(guarded.port, `${head}\r\n${body}`);
      assert.equal(status, 200, reported.toString());
    }
  }
  await held.rollback();
});

test('its rows come in every format, however many they are', async () => {
  const held = await beginHeld(gateway);
  const sql = "select seq, repeat('x', 100) from numbers";
  const options = { headers: { Accept: 'application/x-ndjson' } };
  const asked = { sql, transaction: held.token };
  const lines = (await gateway.post('/v1/query', asked, options)).text.trimEnd().split('\n');
  assert.equal(lines.length, maxNumbers + 2);
  assert.deepEqual(JSON.parse(lines.at(-1) ?? ''), {
    end: { row_count: maxNumbers, truncated: false },
  });
  assert.equal((await held.rows('select 1')).length, 1);
  await held.rollback();
});

test('a token is valid for its own bearer only', async () => {
  const held = await beginHeld(gateway);
  const other = holdBy(gateway, held.token, { headers: bearing(otherToken) });
  assert.equal(summarise(await other.query('select 1')), over);
  assert.equal((await holdBy(guarded, held.token).query('select 1')).status, 401);
  assert.deepEqual(await held.rows("select 'here'"), [['here']]);
  await held.commit();
});

test('a rollback after a statement has ended it, or after an incomplete rollback, reports so at each repetition', async () => {
  const partial = { rolled_back: false, outcome: 'partial' };
  const committing = await beginHeld(gateway);
  await committing.query('insert into notes (who) values (1)');
  assert.equal(
    summarise(await committing.query('call commits()')),
    '409 TRANSACTION_ENDED partial',
  );
  const found = await beginHeld(gateway);
  await found.query('call restarts()');
  assert.equal(summarise(await found.commit()), '409 TRANSACTION_ENDED partial');
  const plain = await beginHeld(gateway);
  await plain.query('insert into plain values (1)');
  for (const held of [committing, found, plain]) {
    for (const _time of [1, 2, 3]) assert.deepEqual((await held.rollback()).json(), partial);
  }
  assert.equal(await countNotes('who = 1'), 1);
});
