// The tag `sql` and its functions: what they become, what they refuse, and that building a long statement takes linear time.
// A fetch that is made up shows what would be sent.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect, type Fragment, sql } from '../../../src/client/client.ts';

const rendered = ({ text, params }: Fragment) => [text, params];

test('pieces are rendered in their order, with the values of each', () => {
  const inner = sql`b = ${2} and ${sql`c = ${3}`}`;
  assert.deepEqual(rendered(sql`select ${1}, ${inner}, ${inner} limit ${[4, 5]}`), [
    'select ?, b = ? and c = ?, b = ? and c = ? limit ?',
    [1, 2, 3, 2, 3, [4, 5]],
  ]);
});

test('a statement grows by one row at a time in linear time, and no stack limits its length', () => {
  const count = 40_000;
  let rows = sql`(${0}, ${'x'})`;
  for (let id = 1; id < count; id += 1) rows = sql`${rows}, (${id}, ${'x'})`;
  const { text, params } = sql`insert into t (id, v) values ${rows}`;
  assert.equal(params.length, 2 * count);
  assert.equal(params.at(-2), count - 1);
  assert.equal(text, `insert into t (id, v) values ${new Array(count).fill('(?, ?)').join(', ')}`);
  const flat = Array.from({ length: 200_000 }, (_, id) => id);
  assert.equal(sql`select 1 where 1 in (${sql.join(flat)})`.params.length, flat.length);
});

test('join puts a comma between values and pieces, or another piece', () => {
  assert.deepEqual(rendered(sql.join([1, sql`now()`, 'x'])), ['?, now(), ?', [1, 'x']]);
  const conditions = [sql`a = ${1}`, sql`b = ${2}`];
  assert.deepEqual(rendered(sql.join(conditions, sql` and `)), ['a = ? and b = ?', [1, 2]]);
  assert.throws(() => sql.join([]), /at least one value/);
  assert.throws(() => sql.join(conditions, ' and ' as never), /separator must be sql/);
});

test('a name is quoted, whatever it contains', () => {
  const hostile = 'x`; drop table t; -- ';
  assert.equal(sql.id('shop', 'city').text, '`shop`.`city`');
  assert.equal(sql.id(hostile).text, '`x``; drop table t; -- `');
  for (const wrong of ['', 'a\0b', 7, undefined, null]) {
    assert.throws(() => sql.id(wrong as string), TypeError);
  }
  assert.throws(() => (sql.id as () => unknown)(), /needs a name/);
});

test('rows of an INSERT have the same number of values', () => {
  const rows = [
    [1, 'x'],
    [2, sql`upper(${'y'})`],
  ] as const;
  assert.deepEqual(rendered(sql`insert into t values ${sql.values(rows)}`), [
    'insert into t values (?, ?), (?, upper(?))',
    [1, 'x', 2, 'y'],
  ]);
  assert.throws(() => sql.values([]), /at least one row/);
  assert.throws(() => sql.values([[]]), /at least one row/);
  assert.throws(() => sql.values([[1, 2], [3]]), /row 1 has 1 values, and row 0 has 2/);
});

test('raw text becomes SQL unchanged, and sql itself does not take a text', () => {
  assert.deepEqual(rendered(sql`select 1 ${sql.raw('order by id desc')}`), [
    'select 1 order by id desc',
    [],
  ]);
  assert.throws(() => sql.raw(7 as never), /sql.raw needs a string/);
  assert.throws(() => sql('select 1' as never), /sql is a tag/);
});

test('a template in parentheses is refused before it is sent, and so is every text without parameters', async () => {
  let sent = 0;
  const db = connect({
    url: 'http://gateway',
    fetch: async () => {
      sent += 1;
      return new Response();
    },
  });
  const id = "1' or '1'='1";
  const named = { name: 'TypeError', message: /write it without parentheses/ };
  const asText = db as unknown as Record<
    'query' | 'one' | 'maybeOne' | 'stream' | 'csv',
    (text: string, params?: unknown) => PromiseLike<unknown> & AsyncGenerator
  >;
  for (const method of ['query', 'one', 'maybeOne'] as const) {
    await assert.rejects(async () => asText[method](`select * from t where id = '${id}'`), named);
    await assert.rejects(async () => asText[method]('select 1', null), named);
  }
  for (const method of ['stream', 'csv'] as const) {
    await assert.rejects(asText[method](`select * from t where id = '${id}'`).next(), named);
  }
  assert.equal(sent, 0);
});
