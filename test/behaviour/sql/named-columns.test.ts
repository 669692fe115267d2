// The promise of the columns of named statements: the server prepares every variant, its refusals have a line, and no column that is
// called not null has a NULL in it.
import assert from 'node:assert/strict';
import test, { after, before } from 'node:test';
import { fetchEnumAnswers } from '../../../src/shared/database/enum-values.ts';
import {
  type DescribedStatement,
  describeStatements,
  type NamedColumn,
} from '../../../src/shared/database/named-columns.ts';
import { fetchRows } from '../../../src/shared/mysql/commands.ts';
import type { Connection } from '../../../src/shared/mysql/connection.ts';
import { parseFile } from '../../../src/shared/named/parse-file.ts';
import type { NamedStatement } from '../../../src/shared/named/statement.ts';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import { openWireConnection } from '../../support/database/wire-connection.ts';

let database: Database;
let connection: Connection;
before(async () => {
  database = await startDatabase();
  connection = await openWireConnection(database);
  // Columns beside aggregates without GROUP BY are among what is tried.
  await fetchRows(connection, "set session sql_mode = ''");
  for (const sql of tables) await database.query(sql);
});
after(async () => {
  connection?.destroy(new Error('the tests are over'));
  await database?.stop();
});

/** Orders with and without a customer, and views that hide an outer join. */
const tables = [
  'create table customer (id int primary key, name varchar(50) not null, level int)',
  "create table orders (id int primary key, customer int, status enum('open','it''s','a,b','back\\\\slash') not null, total decimal(10,2) not null, note text)",
  "insert into customer values (1, 'Ann', null)",
  "insert into orders values (1, 1, 'open', 5, null), (2, null, 'open', 7, 'x')",
  'create view level_of as select id, name, coalesce(level, 0) level, 1 one from customer',
  'create view order_level as select o.id, l.level, l.one, l.name from orders o left join level_of l on l.id = o.customer',
  'create view order_level_again as select * from order_level',
  'create view seconds as select o.id, l.level, l.one, l.name from customer c right join level_of l on l.id = c.level right join orders o on o.customer = l.id',
  'create view totals as select customer, count(*) n from orders group by customer with rollup',
];

function parse(text: string): readonly NamedStatement[] {
  const parsed = parseFile(text, 'shop.sql', { hasIdempotencyTable: true });
  assert.ok(parsed.ok, JSON.stringify(parsed));
  return parsed.statements;
}

async function describeAll(text: string): Promise<readonly DescribedStatement[]> {
  const statements = parse(text);
  const enums = await fetchEnumAnswers(connection, statements);
  return describeStatements(connection, statements, enums.valuesOf);
}

/** One statement of this SQL. @param head further lines */
async function describe(sql: string, head: readonly string[] = []): Promise<DescribedStatement> {
  const lines = ['-- name: a :many', '-- for: *', ...head.map((line) => `-- ${line}`), `${sql};`];
  const [only] = await describeAll(`${lines.join('\n')}\n`);
  assert.ok(only !== undefined);
  return only;
}

/** `name TYPE null` each. */
function brief(columns: readonly NamedColumn[] | null): readonly string[] {
  assert.ok(columns !== null);
  return columns.map(({ name, type, nullable }) => `${name} ${type}${nullable ? ' null' : ''}`);
}

test('columns have the types of /v1, and are not null where the server is right', async () => {
  const { answer, faults, warnings } = await describe(
    'select id, customer, status, total, note, total + :extra more from orders where id > :after',
    ['param extra: int(1..9)', 'param after: int = null'],
  );
  assert.deepEqual(brief(answer), [
    'id INT',
    'customer INT null',
    'status ENUM',
    'total DECIMAL',
    'note TEXT null',
    'more DECIMAL',
  ]);
  const total = answer?.[3];
  assert.deepEqual([total?.precision, total?.scale], [10, 2]);
  assert.deepEqual([faults, warnings], [[], []]);
});

/** Each has a NULL in a column of which a server may think that it has none. */
const doubtful = [
  'select customer, count(*) n from orders group by customer with rollup',
  'select name, level, one from seconds',
  'select l.name, l.level from customer c right join level_of l on l.id = c.level right join orders o on o.customer = l.id',
  'select d.name from customer c right join (select * from customer) d on d.id = c.level right join orders o on o.customer = d.id',
  'with d as (select * from customer) select d.name from customer c right join d on d.id = c.level right join orders on orders.customer = d.id',
  'select max(orders.level) m, orders.name from level_of orders where orders.id > 99',
  'select min(level) m, name, level from level_of where id > 99',
  'select name from level_of where id > 99 having count(*) = 0',
  'select o.id, o.id + 1 n, (select max(o.total) from customer c where c.id = 1) m from orders o where o.id > 99',
  'select id, status from orders o where id > 99 having (select min(total) from customer c limit 1) is null',
  'select status, sum(total) s from orders group by status with rollup',
  'select o.id, x.one from orders o left join (select 1 one, id from customer) x on x.id = o.customer',
  'select o.id, x.l from orders o left join (select coalesce(level, 2) l, id from customer) x on x.id = o.customer',
  'select o.id, x.one from (select 1 one, id from customer) x right outer join orders o on x.id = o.customer',
  'with x as (select 1 one, id from customer) select o.id, x.one from orders o left join x on x.id = o.customer',
  'select o.id, l.level, l.one, l.name from orders o left join level_of l on l.id = o.customer',
  'select o.id, c.name, c.level from orders o left join customer c on c.id = o.customer',
  'select * from order_level',
  'select * from order_level_again',
  'select x.one, x.level from (select * from order_level) x',
  'with x as (select * from order_level) select * from x',
  'select one, level from order_level group by one, level',
  'select distinct one, level, name from order_level',
  'select one from order_level union select 2',
  'select one from order_level union all select one from order_level',
  'select max(one) m, min(level) n from order_level where id = 2',
  'select (select one from order_level where id = 2) s',
  'select one + 1 p, concat(one) c, coalesce(one, one) o, if(1, one, 2) i from order_level',
  'select * from totals',
  'select (select name from customer where id = 9) name',
  'select max(id) m, count(*) c from orders where id > 100',
  'select id from orders union select customer from orders',
  'select lag(id) over (order by id) l, row_number() over (order by id) r from orders',
  'select nullif(id, id) n, id / 0 d, cast(id as date) t from orders',
];

test('no column that is called not null has a NULL in it', async () => {
  let known = 0;
  for (const sql of doubtful) {
    const { answer, faults } = await describe(sql);
    assert.deepEqual(faults, [], sql);
    const rows = await fetchRows(connection, sql);
    for (const [at, column] of (answer ?? []).entries()) {
      if (column.nullable) continue;
      known += 1;
      assert.ok(
        rows.every((row) => row[at] !== null),
        `${column.name} of ${sql}`,
      );
    }
  }
  assert.ok(known >= 5, `only ${known} columns are not null`);
});

test('a column of a table is not null beside an outer join, and -- column states what no server knows', async () => {
  const sql =
    'select o.id, l.one, 5 five from orders o left join level_of l on l.id = o.customer where l.id = 1';
  const [id, , five] = brief((await describe(sql)).answer);
  assert.deepEqual([id?.replace(/ .*INT/, ''), five?.endsWith(' null')], ['id', true]);
  const stated = await describe(sql, ['column one: not null']);
  assert.equal(stated.answer?.[1]?.nullable, false);
  const wrong = await describe(sql, ['column two: not null']);
  assert.deepEqual(wrong.faults, [
    { line: 1, problem: '`-- column two: not null` of `a`: the answer has no such column' },
  ]);
});

test('a column of a table remains not null beside joins, groups and aggregates of its subqueries', async () => {
  const certain = [
    'select orders.id, c.level from orders left join customer c on c.id = orders.customer',
    'select id, name from level_of union all select id, name from customer',
    'select o.status, count(*) n from orders o left join customer c on c.id = o.customer group by o.status',
    'select o.id, (select count(*) from customer) n from orders o join customer c on c.id = o.customer',
    'with c as (select * from customer) select o.id from orders o join c on c.id = o.customer',
    'select o.id from orders o where exists (select 1 from (select max(level) m from customer) x)',
  ];
  // MySQL itself does not say so.
  if (database.flavour === 'mariadb') {
    certain.push(
      'select o.id, (select max(c.level) from customer c where c.id = o.customer) l from orders o',
    );
  }
  for (const sql of certain) {
    const [first] = (await describe(sql)).answer ?? [];
    assert.equal(first?.nullable, false, sql);
  }
});

test('a type that depends on a value is unknown, and so is the name of an expression without one', async () => {
  const head = ['param n: int', 'param t: text(5) = null'];
  const { answer, warnings } = await describe('select :n n, :t t, :n + 1 from orders', head);
  // Every integer in a text is a BIGINT on MySQL.
  const n = database.flavour === 'mariadb' ? 'n null' : 'n BIGINT';
  assert.deepEqual(brief(answer).slice(0, 2), [n, 't VARCHAR null']);
  assert.equal(warnings.length, 1);
  assert.match(warnings[0]?.problem ?? '', /the name of column 3 depends on the values/);
});

test('each choice is tried, and a refusal has the line of the file and the choice', async () => {
  const file = [
    '-- name: good :many',
    '-- for: *',
    '-- param sort: choice(newest: id desc | largest: total desc, id desc) = newest',
    '-- param size: int(1..100) = 20',
    'select id from orders order by :sort limit :size;',
    '-- name: bad_choice :many',
    '-- for: *',
    '-- param sort: choice(newest: id desc | largest: totl desc)',
    'select id from orders order by :sort;',
    '-- name: bad_syntax :many',
    '-- for: *',
    'select id',
    '  from orders',
    '  wher id = 1;',
    '-- name: bad_table :exec',
    '-- for: *',
    '-- param n: int',
    'update ordrs set total = :n;',
    '-- name: twice :one',
    '-- for: *',
    'select id, note as id from orders;',
  ].join('\n');
  const faults = (await describeAll(file)).flatMap((one) => one.faults);
  assert.deepEqual(
    faults.map(({ line }) => line),
    [9, 14, 18, 21],
  );
  const [choice = '', syntax = '', table = '', twice = ''] = faults.map(({ problem }) => problem);
  assert.match(choice, /^`bad_choice` \(sort: largest\) is refused .*totl.*\(1054\)$/);
  assert.match(syntax, /^`bad_syntax` is refused .*\(1064\)$/);
  assert.doesNotMatch(syntax, /at line/);
  assert.match(table, /^`bad_table` is refused .*ordrs.*\(1146\)$/);
  assert.match(twice, /two columns are named `id`/);
});

test('a sample that a server cannot evaluate is no fault, and neither is a place that takes no ?', async () => {
  const pattern = await describe('select id from orders where note regexp concat(:p, :p)', [
    'param p: text(9)',
  ]);
  assert.deepEqual(pattern.faults, []);
  // The text `a` is no path of JSON, which a server may see while it prepares.
  const path = await describe("select json_extract('{}', :p) j", ['param p: text(9)']);
  assert.deepEqual(path.faults, []);
  const separator = await describe(
    'select group_concat(distinct id order by id limit :n) g from orders',
    ['param n: int'],
  );
  if (database.flavour === 'mariadb') assert.deepEqual(separator.faults, []);
  const introducer = await describe(
    "select count(*) c from orders where note = 'a' and id in (:l)",
    ['param l: list(int; 5)'],
  );
  assert.deepEqual([introducer.faults, brief(introducer.answer)], [[], ['c BIGINT']]);
});

test('all parts of a batch are tried, and records are read by json_table', async () => {
  const [batch] = await describeAll(
    [
      '-- name: place :batch',
      '-- for: *',
      '-- param lines: records(product: int, n: int(1..99); 50)',
      "insert into orders (id, status, total) select product, 'open', n from json_table(:lines, '$[*]' columns(product int path '$.product', n int path '$.n')) i;",
      '-- step: all',
      'select count(*) n from orders;',
      '-- answer',
      'select id from orders;',
      'delete from nowhere;',
    ].join('\n'),
  );
  assert.deepEqual(
    batch?.parts.map((part) => (part === null ? null : brief(part))),
    [null, ['n BIGINT'], ['id INT'], null],
  );
  assert.deepEqual(brief(batch?.answer ?? null), ['id INT']);
  assert.deepEqual(
    batch?.faults.map(({ line }) => line),
    [9],
  );
});

test('the values of an enum come from the catalogue, and what is no ENUM is named', async () => {
  const statements = parse(
    [
      '-- name: a :many',
      '-- for: *',
      '-- param s: enum of orders.status',
      '-- param l: list(enum of orders.STATUS; 3)',
      '-- param t: enum of ordrs.status = null',
      '-- param c: enum of orders.stat = null',
      '-- param n: enum of orders.total = null',
      'select id from orders where status in (:s, :t, :c, :n) and status in (:l);',
    ].join('\n'),
  );
  const answers = await fetchEnumAnswers(connection, statements);
  assert.deepEqual(
    [...(answers.valuesOf('orders', 'status') ?? [])],
    ['open', "it's", 'a,b', 'back\\slash'],
  );
  assert.equal(answers.valuesOf('orders', 'STATUS')?.size, 4);
  const kind = (table: string, column: string) => answers.find({ table, column })?.kind;
  assert.deepEqual(
    [kind('ordrs', 'status'), kind('orders', 'stat'), kind('orders', 'total'), kind('x', 'y')],
    ['no table', 'no column', 'no enum', undefined],
  );
});

test('a thousand statements are described, and leave no prepared statement behind', async () => {
  const count = async () => {
    // Other tests prepare statements on the same server: these counters are of this connection alone.
    const rows = await fetchRows(
      connection,
      "show session status where variable_name in ('Com_stmt_prepare', 'Com_stmt_close')",
    );
    const [closed = 0, prepared = 0] = rows.toSorted().map(([, value]) => Number(value));
    return { prepared, open: prepared - closed };
  };
  const text = Array.from(
    { length: 1000 },
    (_, at) =>
      `-- name: s${at} :many\n-- for: *\n-- param id: int\nselect id from orders where id = :id;`,
  ).join('\n');
  const before = await count();
  const described = await describeAll(text);
  assert.equal(described.length, 1000);
  assert.ok(described.every(({ answer, faults }) => answer !== null && faults.length === 0));
  const after = await count();
  assert.ok(after.prepared >= before.prepared + 1000);
  assert.equal(after.open, before.open);
});
