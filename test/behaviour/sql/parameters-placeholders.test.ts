// The promise of finding placeholders: those that the server's own PREPARE finds in the same text, no other.
import assert from 'node:assert/strict';
import test, { after, before } from 'node:test';
import mysql, { type Connection, type FieldPacket } from 'mysql2/promise';
import { type Bound, bind } from '../../../src/shared/sql/bind.ts';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import { cases, fc } from '../../support/property.ts';

let database: Database;
before(async () => {
  database = await startDatabase();
});
after(() => database.stop());

const plenty = 16 * 1024 * 1024;
const modes = [
  '',
  'ANSI_QUOTES',
  'NO_BACKSLASH_ESCAPES',
  'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT',
];
const piece = fc.constantFrom(
  ...[
    '?',
    '?',
    '?',
    ',',
    ',',
    "'",
    "'",
    '"',
    '"',
    '`',
    '\\',
    "''",
    '#',
    '\n',
    '-- ',
    '--',
    '-',
    '/*',
    '*/',
    '/*!',
    '/*!99999 ',
    '/*M!',
    '/*+',
  ],
  ...[
    'a',
    '1',
    ' ',
    ' ',
    '+',
    '(',
    ')',
    ' as ',
    ':a',
    '@',
    '$',
    '||',
    'X',
    'N',
    '_utf8mb4',
    '\t',
    '\r',
    ';',
    '?,?',
    "'?'",
    '"?"',
    '/*?*/',
    '*',
    '/',
    '.',
  ],
);
const text = fc
  .array(piece, { minLength: 1, maxLength: 10 })
  .map((parts) => `select ${parts.join('')}`);

/** The number of placeholders that the server finds; null if it refuses the text. */
async function prepare(connection: Connection, sql: string): Promise<number | null> {
  try {
    const statement = await connection.prepare(sql);
    const inner = (statement as unknown as { statement: { parameters: unknown[] } }).statement;
    const count = inner.parameters.length;
    await statement.close();
    return count;
  } catch {
    return null;
  }
}

/**
 * All values as text, or the number of MySQL's error. A DECIMAL is compared by its value: MySQL 9 prepares `? + .1` as one, with 30 digits,
 * where the text's sum is a DOUBLE.
 */
async function answer(asked: Promise<[unknown, FieldPacket[]]>): Promise<string> {
  try {
    const [rows, fields] = await asked;
    const isDecimal = fields.map(({ columnType }) => columnType === mysql.Types.NEWDECIMAL);
    const tell = (value: unknown, column: number) =>
      String(isDecimal[column] === true && value !== null ? Number(value) : value);
    return JSON.stringify((rows as unknown[][]).map((row) => row.map(tell)));
  } catch (error) {
    return String((error as { errno: number }).errno);
  }
}

/** Found by binding: more and more values until they fit; null when the text takes no value, wherever its `?` are. */
function countByBinding(sql: string): number | null {
  const one = bind(sql, [1], plenty);
  if (!one.ok && one.failure.code !== 'PARAMS_COUNT') return null;
  for (let count = 0; count <= 20; count += 1) {
    const bound: Bound = bind(sql, Array(count).fill(1), plenty);
    if (bound.ok) return count;
    if (bound.failure.code !== 'PARAMS_COUNT') return null;
  }
  return null;
}

test('a doubtful text without values is sent unchanged', async () => {
  for (const sql of ['select /*M!?*/', "select /*!'a'*/"]) {
    assert.deepEqual(bind(sql, [], plenty), { ok: true, sql });
    const refused = bind(sql, ['?'], plenty);
    assert.equal(refused.ok ? null : refused.failure.code, 'PARAMS_TEXT');
  }
});

test('finds the placeholders that the server finds, and answers the same, under every sql_mode', async (t) => {
  let compared = 0;
  for (const mode of modes) {
    // mysql2 keeps prepared statements by their text, so each mode has a separate connection.
    const connection = await database.connect({ multipleStatements: false });
    await connection.query('set names utf8mb4');
    await connection.query(`set sql_mode='${mode}'`);
    await fc.assert(
      fc.asyncProperty(text, async (sql) => {
        const ours = countByBinding(sql);
        if (ours === null) return;
        const theirs = await prepare(connection, sql);
        if (theirs === null) return;
        compared += 1;
        assert.equal(ours, theirs, JSON.stringify(sql));
        const values = Array.from({ length: ours }, (_, at) => `'"\`\\${at}`);
        const bound = bind(sql, values, plenty);
        assert.ok(bound.ok);
        const found = await answer(connection.query({ sql: bound.sql, rowsAsArray: true }));
        const expected = await answer(connection.execute({ sql, rowsAsArray: true }, values));
        assert.equal(found, expected, `${JSON.stringify(sql)} became ${JSON.stringify(bound.sql)}`);
      }),
      { numRuns: cases(1500) },
    );
    await connection.end();
  }
  t.diagnostic(`${compared} texts were accepted`);
  assert.ok(compared > 150, `only ${compared} texts were accepted by the server`);
});
