// The promise of column descriptions: they say the same as information_schema, from the wire of a real server.
import assert from 'node:assert/strict';
import test, { after, before } from 'node:test';
import { type ColumnDescription, describeColumn } from '../../../src/shared/mysql/column-types.ts';
import type { Connection } from '../../../src/shared/mysql/connection.ts';
import { minArenaBytes, openConnection } from '../../../src/shared/mysql/open-connection.ts';
import type { Column } from '../../../src/shared/mysql/packets.ts';
import { discardResults, QueryCommand } from '../../../src/shared/mysql/query.ts';
import { cellKind, cellKinds } from '../../../src/worker/encode/columns.ts';
import { dbCells } from '../../../src/worker/encode/formats/db.ts';
import { type Database, type Row, startDatabase } from '../../support/database/mariadb.ts';

let database: Database;
let connection: Connection;
before(async () => {
  database = await startDatabase();
  connection = await openConnection(
    {
      ...database,
      database: database.name,
      tls: null,
      serverKeys: [],
      connectTimeoutMs: 10_000,
      arena: Buffer.alloc(minArenaBytes),
    },
    AbortSignal.timeout(20_000),
  );
});
after(async () => {
  connection?.destroy(new Error('the test is over'));
  await database?.stop();
});

function columnsOf(sql: string): Promise<readonly Column[]> {
  return new Promise((resolve, reject) => {
    let found: readonly Column[] = [];
    const columns = (all: readonly Column[]) => {
      found = all;
    };
    const answered = (_clean: boolean, error: { message: string } | null) =>
      error === null ? resolve(found) : reject(new Error(`${sql}: ${error.message}`));
    const sink = { ...discardResults, columns };
    connection.send(new QueryCommand(sql, connection, sink, { answered, lost: reject }));
  });
}

const describe = async (sql: string) => (await columnsOf(sql)).map(describeColumn);

const types = [
  ...['tinyint', 'smallint', 'mediumint', 'int', 'bigint'].flatMap((type) => [
    type,
    `${type} unsigned`,
    `${type}(3) unsigned zerofill not null`,
  ]),
  ...[1, 2, 12, 64, 65].flatMap((precision) =>
    [0, 1, 2, 30]
      .filter((scale) => scale <= precision)
      .flatMap((scale) =>
        ['', ' unsigned', ' not null'].map((rest) => `decimal(${precision},${scale})${rest}`),
      ),
  ),
  ...[
    'float',
    'double',
    'float(7,4)',
    'float unsigned',
    'double unsigned not null',
    'bool',
    'serial',
  ],
  ...[
    'bit(1)',
    'bit(64) not null',
    'date',
    'time',
    'time(3)',
    'datetime',
    'datetime(6) not null',
    'year',
  ],
  ...['timestamp null', 'timestamp(6) not null default current_timestamp(6)'],
  ...['', ' character set latin1', ' character set binary', ' character set ucs2 not null'].flatMap(
    (rest) =>
      [
        'char(3)',
        'varchar(3)',
        'tinytext',
        'text',
        'mediumtext',
        'longtext',
        "enum('a')",
        "set('a')",
      ].map((type) => type + rest),
  ),
  ...[
    'nchar(3)',
    'binary(3)',
    'varbinary(3) not null',
    'tinyblob',
    'blob',
    'mediumblob',
    'longblob',
  ],
  ...['json', 'json not null', 'geometry', 'point not null', 'polygon'],
];
/** Types that some servers lack. */
const newerTypes = ['uuid', 'uuid not null', 'inet4', 'inet6', 'vector(3)', 'vector(3) not null'];
const kindsOfGeometry = ['POINT', 'POLYGON'];

/** The row of information_schema as a description. MariaDB's JSON is a LONGTEXT there. */
function expected(row: Row, declared: string): ColumnDescription {
  const isJson = declared.startsWith('json');
  const isBytes = declared.endsWith('character set binary');
  const found = String(row.type).toUpperCase();
  const isVectorOfMariadb = found === 'VECTOR' && database.flavour === 'mariadb';
  const type = isJson
    ? 'JSON'
    : isVectorOfMariadb
      ? 'VARBINARY'
      : kindsOfGeometry.includes(found)
        ? 'GEOMETRY'
        : found.replace(/^(TINY|MEDIUM|LONG)(TEXT|BLOB)$/, '$2');
  const isUnsigned = String(row.whole).includes('unsigned');
  const isReal = ['DECIMAL', 'FLOAT', 'DOUBLE'].includes(type);
  const isBinary =
    ['BINARY', 'VARBINARY', 'BLOB', 'GEOMETRY', 'VECTOR'].includes(type) ||
    (['ENUM', 'SET'].includes(type) && isBytes);
  return {
    name: String(row.name),
    type,
    ...(type.endsWith('INT') || (isReal && isUnsigned) ? { unsigned: isUnsigned } : {}),
    ...(type === 'DECIMAL' ? { precision: Number(row.digits), scale: Number(row.scale) } : {}),
    nullable: row.nullable === 'YES',
    ...(isBinary ? { encoding: 'base64' } : {}),
  };
}

test('a column of every type is described as information_schema has it', async () => {
  let taken = 0;
  for (const [at, type] of [...types, ...newerTypes].entries()) {
    const table = `t${at}`;
    try {
      await database.query(`create table ${table} (\`c "${at}é\` ${type})`);
    } catch (error) {
      assert.ok(newerTypes.includes(type), `${type}: ${(error as Error).message}`);
      continue;
    }
    taken += 1;
    const [row] = await database.query(
      `select column_name as name, data_type as type, column_type as whole, is_nullable as nullable,
        numeric_precision as digits, numeric_scale as scale from information_schema.columns where table_schema=database() and table_name='${table}'`,
    );
    const found = await describe(`select * from ${table}`);
    assert.deepEqual(found, [expected(row as Row, type)], type);
  }
  assert.ok(taken >= types.length);
});

test('whatever an expression is, base64 is said where base64 is written, and NULL where it may come', async () => {
  await database.query('create table small (id int not null, b varbinary(9) not null)');
  const sql = `select null, 1, -1.5, 1e0, 'a', x'41', true, sum(id), avg(id), now(), cast(1 as unsigned), @nothing, json_array(),
    concat(max(b)), group_concat('a'), repeat('a', 100000), 18446744073709551615, json_extract('[1]', '$[0]') from small`;
  const columns = await columnsOf(sql);
  const found = columns.map(describeColumn);
  assert.deepEqual(
    found.map(({ encoding }) => encoding === 'base64'),
    columns.map((column) => cellKind(column, dbCells(true)) === cellKinds.binary),
  );
  const words = found.map(({ type }) => type.replace(/^(INT|BIGINT)$/, 'integer'));
  assert.deepEqual(
    words.slice(0, 11),
    'NULL integer DECIMAL DOUBLE VARCHAR VARBINARY integer DECIMAL DECIMAL DATETIME integer'.split(
      ' ',
    ),
  );
  assert.deepEqual(
    [words[12], words[13], words[14], words[15], words[16], words[17]],
    ['JSON', 'VARBINARY', 'TEXT', 'TEXT', 'integer', 'JSON'],
  );
  assert.deepEqual([found[2]?.precision, found[2]?.scale], [2, 1]);
  assert.deepEqual(
    [found[0]?.nullable, found[1]?.nullable, found[7]?.nullable],
    [true, false, true],
  );
  const joined = await describe(
    'select s.id, t.id, t.b from small s left join small t on t.id = s.id',
  );
  assert.deepEqual(
    joined.map(({ nullable }) => nullable),
    [false, true, true],
  );
});
