// The schema of a statement's rows, from its columns: real rows of /v1 satisfy it, for every type, with NULL and without.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describeStatements } from '../../../src/shared/database/named-columns.ts';
import { schemaOfRow } from '../../../src/shared/database/row-schema.ts';
import type { Connection } from '../../../src/shared/mysql/connection.ts';
import { parseFile } from '../../../src/shared/named/parse-file.ts';
import { openWireConnection } from '../../support/database/wire-connection.ts';
import { useSharedGateway } from '../../support/use-gateway.ts';

let connection: Connection;
const { gateway, database } = useSharedGateway({
  ready: async () => {
    connection = await openWireConnection(database);
  },
});
after(() => connection?.destroy(new Error('the tests are over')));

/** A type, and one of its values as SQL. */
const cases = {
  tinyint: '-1',
  'tinyint unsigned': '255',
  smallint: '1',
  mediumint: '1',
  int: '-2147483648',
  bigint: '-9223372036854775808',
  'bigint unsigned': '18446744073709551615',
  'decimal(30,10)': '-1.5',
  'decimal(5,0)': '7',
  float: '1.5',
  double: '-1e300',
  year: '2026',
  'bit(9)': "b'100000001'",
  date: "'0001-01-01'",
  datetime: "'2026-02-28 10:30:00'",
  timestamp: "'2026-02-28 10:30:00'",
  'time(3)': "'-10:30:00.5'",
  'char(3)': "'é'",
  'varchar(9)': "''",
  text: "'a'",
  'binary(2)': "x'00ff'",
  blob: "x'ff'",
  "enum('a','b')": "'b'",
  "set('a','b')": "'a,b'",
  json: `'{"a":[1]}'`,
  point: 'point(1,2)',
} as const;

test('rows of every type satisfy the schema of their columns, and others do not', async () => {
  const table = `${database.name}.every_type`;
  const types = Object.keys(cases);
  const columns = types.flatMap((type, at) => {
    const isLong = type === 'timestamp';
    return [`n${at} ${type} not null`, `o${at} ${type}${isLong ? ' null default null' : ''}`];
  });
  await database.query(`create table every_type (${columns.join(', ')})`);
  const values = Object.values(cases);
  const insert = (nullable: (value: string) => string) =>
    database.query(
      `insert into every_type values (${values.map((value) => `${value}, ${nullable(value)}`).join(', ')})`,
    );
  await insert((value) => value);
  await insert(() => 'null');
  const sql = `select every_type.*, null as nothing from ${table}`;
  const parsed = parseFile(`-- name: a :many\n-- for: *\n${sql};\n`, 'a.sql', {
    hasIdempotencyTable: false,
  });
  assert.ok(parsed.ok);
  const [described] = await describeStatements(connection, parsed.statements, () => null);
  const schema = schemaOfRow(described?.answer ?? null);
  const validate = new Ajv2020({ strict: true, allowUnionTypes: true }).compile(schema);
  const reply = await gateway.post('/v1/query', { sql, rows: 'object' });
  const { rows } = reply.json<{ rows: Record<string, unknown>[] }>();
  assert.equal(rows.length, 2);
  for (const row of rows) assert.ok(validate(row), JSON.stringify(validate.errors));

  const [row = {}] = rows;
  assert.ok(!validate({ ...row, more: 1 }), 'a column that is not there');
  for (const [at, type] of types.entries()) {
    if (type === 'json') continue;
    assert.ok(!validate({ ...row, [`n${at}`]: null }), `NULL in ${type} not null`);
    assert.ok(!validate({ ...row, [`o${at}`]: true }), `true in ${type}`);
  }
});

test('columns that are not known allow every object', () => {
  assert.deepEqual(schemaOfRow(null), { type: 'object' });
  const column = { name: 'a', type: null, nullable: true };
  assert.deepEqual(schemaOfRow([column]).properties, { a: {} });
});
