// The promise of drivers = planetscale for values: every column type leaves as the server holds it, and comes back as it was sent.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type Client, cast, type Field } from '@planetscale/database';
import type { Connection, ResultSetHeader } from 'mysql2/promise';
import type { TypeCase } from '../../support/column-truth.ts';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import { createDriver, driverSettings } from '../../support/driver.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { newTypesOf, typesOf } from '../../support/known-types.ts';

let database: Database;
let gateway: Gateway;
let driver: Client;
let connection: Connection;
let tables = 0;
before(async () => {
  database = await startDatabase();
  gateway = await startGateway({ database, settings: { ...driverSettings, workers: 1 } });
  driver = createDriver(gateway);
  connection = await database.connect();
  // Zero dates, and values that are cut to what the type holds.
  await connection.query("set sql_mode=''");
});
after(async () => {
  await connection?.end();
  await gateway?.stop();
  await database?.stop();
});

/** Vitess's name of each type on the wire. Text and bytes share theirs. */
const vitessNames: Readonly<Record<string, readonly string[]>> = {
  TINY: ['INT8', 'UINT8'],
  SHORT: ['INT16', 'UINT16'],
  INT24: ['INT24', 'UINT24'],
  LONG: ['INT32', 'UINT32'],
  LONGLONG: ['INT64', 'UINT64'],
  FLOAT: ['FLOAT32'],
  DOUBLE: ['FLOAT64'],
  NEWDECIMAL: ['DECIMAL'],
  DATE: ['DATE'],
  TIME: ['TIME'],
  DATETIME: ['DATETIME'],
  TIMESTAMP: ['TIMESTAMP'],
  YEAR: ['YEAR'],
  BIT: ['BIT'],
  JSON: ['JSON'],
  GEOMETRY: ['GEOMETRY'],
  VECTOR: ['VECTOR'],
  STRING: ['CHAR', 'BINARY', 'ENUM', 'SET'],
  VAR_STRING: ['VARCHAR', 'VARBINARY'],
  BLOB: ['TEXT', 'BLOB', 'JSON'],
  NULL: ['NULL'],
};

/** The bytes, one character each, without the driver's conversion. */
const raw = (_field: Field, value: string | null) => value;

async function check({ type, wire, values }: TypeCase): Promise<void> {
  const table = `t${tables++}`;
  await connection.query(`create table ${table} (id int primary key, v ${type})`);
  const rows = values.map((value, id) => `(${id},${typeof value === 'string' ? value : value[0]})`);
  await connection.query(`insert into ${table} values ${rows.join(',')}`);
  const sql = `select v, 1 as one from ${table} order by id`;
  const [held] = await connection.query({
    sql,
    rowsAsArray: true,
    typeCast: (field) => field.buffer(),
  });
  const result = await driver.execute(sql, null, { as: 'array', cast: raw });
  assert.deepEqual(
    (result.rows as (string | null)[][]).map(([cell]) =>
      cell === null ? null : Buffer.from(cell ?? '', 'latin1'),
    ),
    (held as (Buffer | null)[][]).map(([cell]) => cell),
    type,
  );
  const [field] = result.fields;
  assert.ok(
    field !== undefined && vitessNames[wire]?.includes(field.type),
    `${type}: ${field?.type}`,
  );
  assert.deepEqual(
    [field.name, field.table, field.orgTable, field.orgName, field.database],
    ['v', table, table, 'v', database.name],
  );
}

test('every column type leaves as the server holds it, under its name', async () => {
  for (const one of typesOf(database)) await check(one);
});

test('the same for the types of newer servers, if the server knows them', async (t) => {
  for (const one of await newTypesOf(database, connection, t)) await check(one);
});

test('fields have the types, flags, character sets and lengths that Vitess gives', async () => {
  await database.query(
    `create table hotels (
      id bigint unsigned not null auto_increment primary key, name varchar(20) not null, stars tinyint,
      price decimal(10,2) unsigned, code binary(3), word varchar(9) collate utf8mb4_bin, kind enum('a','b'),
      tags set('x','y'), about text, photo blob, data json, born year, half float, whole double, seen timestamp null)`,
  );
  const { fields } = await driver.execute(
    'select *, 1 + 1 as two, null as nothing, concat(name, ?) as more from hotels h',
    ['!'],
  );
  const reported = new Map(fields.map((field) => [field.name, field]));
  const names = Object.fromEntries(fields.map(({ name, type }) => [name, type]));
  assert.deepEqual(names, {
    id: 'UINT64',
    name: 'VARCHAR',
    stars: 'INT8',
    price: 'DECIMAL',
    code: 'BINARY',
    word: 'VARBINARY',
    kind: 'ENUM',
    tags: 'SET',
    about: 'TEXT',
    photo: 'BLOB',
    data: 'JSON',
    born: 'YEAR',
    half: 'FLOAT32',
    whole: 'FLOAT64',
    seen: 'TIMESTAMP',
    two: names.two,
    nothing: 'NULL',
    more: 'VARCHAR',
  });
  assert.match(names.two ?? '', /^INT(32|64)$/);
  // The same as in PlanetScale's own documentation.
  assert.deepEqual(reported.get('id'), {
    name: 'id',
    type: 'UINT64',
    table: 'h',
    orgTable: 'hotels',
    database: database.name,
    orgName: 'id',
    columnLength: 20,
    charset: 63,
    flags: 49699,
  });
  const { charset, columnLength, flags } = reported.get('name') ?? {};
  assert.deepEqual([columnLength, flags], [80, 4097]);
  assert.notEqual(charset, 63);
  assert.equal(reported.get('price')?.decimals, 2);
  assert.equal(reported.get('two')?.table, undefined);
});

test("values sent as the driver's own parameters are read back unchanged", async () => {
  await database.query(
    `create table sent (
      id int auto_increment primary key, big bigint unsigned, price decimal(65,30), word text, bytes longblob, data json,
      day date, at datetime(3), clock time(6), yes boolean, x double)`,
  );
  const everyByte = Uint8Array.from({ length: 256 }, (_, byte) => byte);
  const words = [
    "it's",
    '\\',
    "\\'",
    '"',
    '\0\b\t\n\r\x1a%_',
    'é 中 🎉',
    '',
    ' ',
    "'; drop table sent; -- ",
  ];
  const sql = 'insert into sent (big, price, word, bytes, data, day, at, clock, yes, x) values (?)';
  for (const [index, word] of words.entries()) {
    const result = await driver.execute(sql, [
      [
        18446744073709551615n,
        '12345678901234567890123456789012345.123456789012345678901234567890',
        word,
        index === 0 ? new Uint8Array() : everyByte,
        JSON.stringify({ word, nested: [1, null, { a: true }] }),
        '2024-02-29',
        new Date('2024-02-29T23:59:59.123Z'),
        '-838:59:59.000000',
        index % 2 === 0,
        0.1,
      ],
    ]);
    assert.deepEqual([result.rowsAffected, result.insertId], [1, String(index + 1)]);
  }
  const nothing = Array.from({ length: 10 }, () => null);
  await driver.execute(sql, [nothing]);
  const { rows, size } = await driver.execute('select * from sent order by id');
  assert.equal(size, words.length + 1);
  const read = rows as Record<string, unknown>[];
  for (const [index, word] of words.entries()) {
    assert.deepEqual(read[index], {
      id: index + 1,
      big: '18446744073709551615',
      price: '12345678901234567890123456789012345.123456789012345678901234567890',
      word,
      bytes: index === 0 ? new Uint8Array() : everyByte,
      data: { word, nested: [1, null, { a: true }] },
      day: '2024-02-29',
      at: '2024-02-29 23:59:59.123',
      clock: '-838:59:59.000000',
      yes: index % 2 === 0 ? 1 : 0,
      x: 0.1,
    });
  }
  const { id: _id, ...values } = read[words.length] ?? {};
  assert.deepEqual(Object.values(values), nothing);
});

test('rows of any number and size come whole, whichever worker answers', async () => {
  await database.query('create table filled (n int primary key, t mediumtext)');
  await database.query(
    `insert into filled with recursive s(n) as (select 1 union all select n + 1 from s where n < 500)
      select n, repeat(char(65 + n % 26), n * 37) from s`,
  );
  // At most half of a pool, on whichever worker: this process reads none of them while it reads another one.
  const sizes = await Promise.all(
    Array.from({ length: 4 }, async () => {
      const { rows } = await driver.execute('select n, t from filled order by n', null, {
        as: 'array',
        cast,
      });
      for (const [n, text] of rows as [number, string][]) {
        assert.equal(text, String.fromCharCode(65 + (n % 26)).repeat(n * 37));
      }
      return rows.length;
    }),
  );
  assert.deepEqual(new Set(sizes), new Set([500]));
  const empty = await driver.execute('select n, t from filled where n < 0');
  assert.deepEqual([empty.rows, empty.headers], [[], ['n', 't']]);
});

test('affected rows and insert ids are those of MySQL', async () => {
  await database.query(
    'create table counted (id bigint unsigned auto_increment primary key, n int)',
  );
  const first = await driver.execute('insert into counted (n) values (1), (2), (3)');
  assert.deepEqual([first.rowsAffected, first.insertId], [3, '1']);
  const changed = await driver.execute('update counted set n = n + 1 where n > 1');
  assert.deepEqual([changed.rowsAffected, changed.insertId], [2, '0']);
  await driver.execute('insert into counted (id) values (18446744073709551600)');
  const { insertId } = await driver.execute('insert into counted (id, n) values (null, 9)');
  assert.equal(insertId, '18446744073709551601');
  const removed = await driver.execute('delete from counted where n = 9');
  assert.equal(removed.rowsAffected, 1);
});

/**
 * Runs statements with the driver and with mysql2, which sets CLIENT_FOUND_ROWS by default, each on a separate table, and compares the rows
 * that both report. `TABLE` stands for the table.
 */
async function compareFoundRows(
  [here, there]: readonly [here: string, there: string],
  definition: string,
  statements: readonly string[],
): Promise<void> {
  for (const table of [here, there]) await database.query(`create table ${table} ${definition}`);
  const measure = await database.connect();
  const reported: [statement: string, expected: number, rows: number][] = [];
  for (const statement of statements) {
    const [{ affectedRows }] = await measure.query<ResultSetHeader>(
      statement.replaceAll('TABLE', there),
    );
    const { rowsAffected } = await driver.execute(statement.replaceAll('TABLE', here));
    reported.push([statement, affectedRows, rowsAffected]);
  }
  for (const [statement, expected, rows] of reported) assert.equal(rows, expected, statement);
}

test('affected rows are those that a write has found, as with CLIENT_FOUND_ROWS', async () => {
  await compareFoundRows(['here', 'there'], '(id int primary key, n int)', [
    'insert into TABLE values (1, 1), (2, 2), (3, 3)',
    'update TABLE set n = 1 where id = 1',
    'update TABLE set n = 2',
    'update TABLE set n = 5 where id = 9',
    '/* a comment */ update TABLE a join TABLE b using (id) set a.n = 2',
    'insert into TABLE values (1, 2) on duplicate key update n = 2',
    'insert into TABLE values (1, 3) on duplicate key update n = values(n)',
    'insert into TABLE values (1, 3), (2, 7), (4, 4) on duplicate key update n = values(n)',
    'insert into TABLE select id, n from TABLE t on duplicate key update TABLE.n = t.n',
    'insert into TABLE select id, n from TABLE t where id > 9',
    'insert ignore into TABLE values (1, 1), (2, 2), (5, 5), (6, 6)',
    'insert low_priority ignore into TABLE values (1, 1)',
    'replace into TABLE values (1, 3), (7, 7)',
    'delete from TABLE where id > 4',
  ]);
  const inTransaction = await driver.transaction((tx) => tx.execute('update here set n = n'));
  assert.equal(inTransaction.rowsAffected, 4);
});

test('the same with system versioning, also for columns that have no versions', async (t) => {
  if (database.flavour !== 'mariadb') return t.skip('only MariaDB has system versioning');
  const columns = 'id int primary key, n int, bare int without system versioning';
  await compareFoundRows(['kept', 'kept_too'], `(${columns}) with system versioning`, [
    'insert into TABLE values (1, 1, 1), (2, 2, 2), (3, 3, 3)',
    'update TABLE set bare = 1 where id = 1',
    'update TABLE set bare = 1',
    'update TABLE set n = 1, bare = 1',
    'update TABLE a join TABLE b using (id) set a.bare = 1',
    'insert into TABLE values (1, 5, 5) on duplicate key update n = 5',
    'insert into TABLE values (1, 5, 5), (2, 6, 6), (4, 9, 9) on duplicate key update n = values(n)',
    'insert into TABLE values (1, 5, 5), (2, 6, 6), (5, 9, 9) on duplicate key update bare = values(bare)',
    'delete from TABLE where id > 3',
  ]);
});

test('a procedure returns one result set at most, and the effect of what it did after it', async () => {
  await database.query('create table called (n int)');
  await database.query(
    'create procedure one() begin insert into called values (1), (2); select n from called order by n; end',
  );
  await database.query('create procedure two() begin select 1 as a; select 2 as b; end');
  const { rows } = await driver.execute('call one()');
  assert.deepEqual(rows, [{ n: 1 }, { n: 2 }]);
  await assert.rejects(driver.execute('call two()'), {
    name: 'DatabaseError',
    status: 422,
    message: /more than one result set.*executed all the same/,
  });
});
