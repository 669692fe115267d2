// The server's warnings beside results, for requests with `show_warnings`: by statement, in batches, transactions, streams and stored
// replies.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  describeCreation,
  parseIdempotencyTable,
} from '../../../src/shared/database/idempotency-table.ts';
import { startFakeMysql } from '../../support/database/fake-mysql.ts';
import { eventually } from '../../support/eventually.ts';
import { startGateway } from '../../support/gateway.ts';
import { beginHeld } from '../../support/held.ts';
import { useGateway } from '../../support/use-gateway.ts';

const { gateway, database } = useGateway(
  { workers: 1, coalesce: 'on', idempotency_table: 'request_keys' },
  {
    prepare: async (database) => {
      await database.query(`
        create table notes (id int auto_increment primary key, text varchar(3)) engine = innodb;
        create procedure cuts() begin select 1 as a; insert ignore into notes (text) values ('dddd'); end;
        ${describeCreation(parseIdempotencyTable('request_keys', database.name))}`);
    },
  },
);

type Warning = {
  readonly level: string;
  readonly code: string;
  readonly errno: number;
  readonly message: string;
};
type Result = {
  readonly rows?: readonly (readonly unknown[])[];
  readonly warnings?: number;
  readonly warning_list?: readonly Warning[];
  readonly results?: readonly Result[];
  readonly rolled_back?: true;
  readonly code?: string;
};

/** A warning whose text has the value. */
const divided = (value: string) => `select cast('${value}' as signed) as n`;
const cut = "insert ignore into notes (text) values ('abcd')";
const isCut = /^Data (truncated|too long) for column 'text' at row 1$/;

async function query(sql: string, options: object = {}, headers = {}): Promise<Result> {
  const body = { sql, show_warnings: true, ...options };
  return (await gateway.post('/v1/query', body, { headers })).json<Result>();
}

async function batch(statements: readonly string[], options = {}, headers = {}) {
  const body = { statements: statements.map((sql) => ({ sql })), show_warnings: true, ...options };
  const reply = await gateway.post('/v1/batch', body, { headers });
  return { reply, results: reply.json<{ results: readonly Result[] }>().results };
}

const messages = ({ warning_list: list }: Result) => list?.map(({ message }) => message);

test('a result lists its warnings if the request asks for them', async () => {
  const { warnings, warning_list: list } = await query(divided('ä"x'));
  assert.equal(warnings, 1);
  assert.deepEqual(list, [
    {
      level: 'Warning',
      code: 'ER_TRUNCATED_WRONG_VALUE',
      errno: 1292,
      message: `Truncated incorrect INTEGER value: 'ä"x'`,
    },
  ]);
  assert.deepEqual((await query('select 1')).warning_list, []);
  const unasked = await query(divided('x'), { show_warnings: false });
  assert.deepEqual([unasked.warnings, unasked.warning_list], [1, undefined]);
});

test('a list has the first ten warnings, beside the number of all', async () => {
  const values = Array.from({ length: 12 }, (_, n) => `('abc${n}')`);
  const found = await query(`insert ignore into notes (text) values ${values.join()}`);
  assert.equal(found.warnings, 12);
  assert.equal(found.warning_list?.length, 10);
  assert.match(messages(found)?.[9] ?? '', / at row 10$/);
});

test('a result without warnings lists none of an earlier statement of the session', async () => {
  for (let n = 0; n < 30; n += 1) {
    assert.equal((await query(cut)).warning_list?.length, 1);
    assert.deepEqual((await query('select 1')).warning_list, []);
  }
});

test('parallel requests get the warnings of their own statements, and equal ones too', async () => {
  const values = Array.from({ length: 60 }, (_, n) => `v${n % 20}`);
  const found = await Promise.all(values.map((value) => query(divided(value))));
  assert.deepEqual(
    found.map(messages),
    values.map((value) => [`Truncated incorrect INTEGER value: '${value}'`]),
  );
});

test('a result that is cut, and one of a statement that is undone, list their warnings', async () => {
  const some = `${divided('a')} union all ${divided('b')}`;
  const first = await query(some, { max_rows: 1 });
  assert.deepEqual([first.rows?.length, first.warning_list?.length], [1, 2]);
  const dry = await query(cut, { dry_run: true });
  assert.equal(dry.rolled_back, true);
  assert.match(messages(dry)?.[0] ?? '', isCut);
  assert.match(messages(await query(cut, { max_affected: 1 }))?.[0] ?? '', isCut);
});

test('a CALL lists the warnings of its procedure behind all results', async () => {
  const called = await query('call cuts()');
  assert.equal(called.results?.length, 2);
  assert.match(messages(called)?.[0] ?? '', isCut);
});

test('each result of a batch lists its own warnings, whatever follows', async () => {
  const { results } = await batch([
    divided('x'),
    'call cuts()',
    'select 1 as one',
    cut,
    'select last_insert_id() > 0 as made',
  ]);
  assert.deepEqual(
    results.map(({ warning_list: list }) => list?.map(({ errno }) => errno)),
    [[1292], [1265], [], [1265], []],
  );
  // MySQL calls these numbers BIGINT, and MariaDB INT.
  assert.deepEqual([results[2]?.rows, results[4]?.rows].map(String), ['1', '1']);
});

test('a statement that is a text of its own, for its length, lists its warnings too', async () => {
  const long = `insert ignore into notes (text) values ('${'x'.repeat(300_000)}')`;
  const { results } = await batch([long, 'select 1 as one']);
  assert.deepEqual(
    results.map(({ warning_list: list }) => list?.length),
    [1, 0],
  );
});

test('a list changes no answer of a later statement of its batch', async () => {
  const { results } = await batch([
    cut,
    'select row_count() as n',
    "select sql_calc_found_rows cast('x' as signed) as n from notes limit 1",
    'select found_rows() as n',
  ]);
  assert.deepEqual(results[1]?.rows, [['1']]);
  assert.equal(results[0]?.warning_list, undefined);
  const [{ n: all } = { n: 0 }] = await database.query('select count(*) as n from notes');
  assert.deepEqual(results[3]?.rows, [[String(all)]]);
});

test('a statement in an open transaction lists its warnings, and the transaction goes on', async () => {
  const held = await beginHeld(gateway);
  const listed = async (sql: string) =>
    messages((await held.query(sql, { show_warnings: true })).json<Result>());
  assert.match((await listed(cut))?.[0] ?? '', isCut);
  assert.deepEqual(await listed('select 1'), []);
  assert.match((await listed('call cuts()'))?.[0] ?? '', isCut);
  assert.equal((await held.commit()).status, 200);
});

test('lines of JSON list the warnings in their last line, and CSV has no place for them', async () => {
  const ask = (accept: string, sql = divided('x')) =>
    gateway.post('/v1/query', { sql, show_warnings: true }, { headers: { Accept: accept } });
  const last = async (sql: string) =>
    JSON.parse((await ask('application/x-ndjson', sql)).text.trim().split('\n').at(-1) ?? '');
  const { end } = await last(divided('x'));
  assert.deepEqual(
    { ...end, warning_list: messages(end) },
    {
      row_count: 1,
      truncated: false,
      warnings: 1,
      warning_list: ["Truncated incorrect INTEGER value: 'x'"],
    },
  );
  const many = Array.from({ length: 6 }, () => 'select 0 as n union all select 1');
  const long = `select repeat('x', 60000), cast('x' as signed) from ${many
    .map((one, n) => `(${one}) t${n}`)
    .join()}`;
  const streamed = await last(long);
  assert.equal(streamed.end.row_count, 64);
  assert.ok(streamed.end.warnings > 0);
  assert.equal(streamed.end.warning_list[0].errno, 1292);
  const refused = await ask('text/csv');
  assert.deepEqual([refused.status, refused.json<Result>().code], [406, 'NOT_ACCEPTABLE']);
  assert.equal((await ask('text/csv, application/json;q=0.5')).status, 200);
});

test('a repeated request with a key gets the list of the first one', async () => {
  const headers = { 'Idempotency-Key': 'a-list' };
  const first = await batch([cut], {}, headers);
  assert.match(messages(first.results[0] ?? {})?.[0] ?? '', isCut);
  const again = await batch([cut], {}, headers);
  assert.equal(again.reply.headers['idempotency-replayed'], 'true');
  assert.deepEqual(again.results, first.results);
  const alone = await query(cut, {}, { 'Idempotency-Key': 'a-list-alone' });
  assert.match(messages(alone)?.[0] ?? '', isCut);
});

describe('a server that has done a write', () => {
  const warned = Buffer.from([0, 1, 0, 2, 0, 1, 0]);

  /** The answer to a write if the server does this when the gateway requests the warnings. */
  async function writeWith(behaviour: (destroy: () => void) => void) {
    const server = await startFakeMysql({
      answer: (client, statement) => {
        if (/^show warnings/i.test(statement)) {
          behaviour(() => client.socket.destroy());
          return true;
        }
        if (/^insert/.test(statement)) client.send([warned], 1);
        return /^insert/.test(statement);
      },
    });
    const one = await startGateway({ database: server.target, settings: { workers: 1, pool: 1 } });
    try {
      // At its start the gateway itself uses the one connection.
      await eventually('a statement is answered', async () => {
        return (await one.post('/v1/query', { sql: 'select 1' })).status === 200;
      });
      const body = { sql: 'insert into t values (1)', show_warnings: true, timeout_ms: 2000 };
      const reply = await one.post('/v1/query', body);
      return { status: reply.status, ...reply.json<Result & { affected_rows: number }>() };
    } finally {
      await one.stop();
      await server.stop();
    }
  }

  const written = { status: 200, affected_rows: 1, warnings: 1, warning_list: [] };

  test('and never answers for its warnings: the reply reports the write, with an empty list', async () => {
    const {
      request_id: _,
      section: __,
      insert_id: ___,
      ...reply
    } = (await writeWith(() => {})) as Record<string, unknown>;
    assert.deepEqual(reply, written);
  });

  test('and is lost instead: the same', async () => {
    const {
      request_id: _,
      section: __,
      insert_id: ___,
      ...reply
    } = (await writeWith((destroy) => destroy())) as Record<string, unknown>;
    assert.deepEqual(reply, written);
  });
});
