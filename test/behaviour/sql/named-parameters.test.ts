// The promise of parameters of named statements against a real server: a value that passes is the value that the server reads, under
// every sql_mode and in several character sets.
import assert from 'node:assert/strict';
import test, { after, before } from 'node:test';
import { parse as parseLossless } from 'lossless-json';
import type { Connection } from 'mysql2/promise';
import { checkCall, prepareStatement, writeCall } from '../../../src/shared/named/call.ts';
import { parseFile } from '../../../src/shared/named/parse-file.ts';
import { allAtOnce } from '../../../src/shared/pieces.ts';
import { builtInEverywhere } from '../../../src/shared/sql/vocabulary.ts';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import { scalarSamples } from '../../support/named-text.ts';
import { anyCharacter, cases, fc } from '../../support/property.ts';

const plenty = 16 * 1024 * 1024;
/** Modes in which a text is read in another way, and all of them together. */
const modes = [
  '',
  'ANSI_QUOTES',
  'NO_BACKSLASH_ESCAPES',
  'EMPTY_STRING_IS_NULL',
  'ORACLE',
  'TRADITIONAL',
  'PIPES_AS_CONCAT,ANSI_QUOTES,NO_BACKSLASH_ESCAPES,IGNORE_SPACE,HIGH_NOT_PRECEDENCE',
];
const charsets = ['utf8mb4', 'latin1', 'gbk', 'sjis'];

let database: Database;
before(async () => {
  database = await startDatabase();
});
after(() => database.stop());

type Session = { readonly name: string; readonly connection: Connection };

async function inEverySession(work: (session: Session) => Promise<void>): Promise<void> {
  const connection = await database.connect({ rowsAsArray: true, multipleStatements: false });
  let tried = 0;
  try {
    for (const mode of modes) {
      for (const charset of charsets) {
        await connection.query(`set names ${charset}`);
        try {
          await connection.query(`set sql_mode='${mode}'`);
        } catch (error) {
          // 1231: the server does not know the mode.
          assert.equal((error as { errno: number }).errno, 1231);
          continue;
        }
        tried += 1;
        await work({ name: `${mode} ${charset}`, connection });
      }
    }
  } finally {
    await connection.end();
  }
  assert.ok(tried > 15, `only ${tried} sessions`);
}

function prepare(text: string) {
  const file = parseFile(text, 'a.sql', { hasIdempotencyTable: false });
  assert.ok(file.ok, JSON.stringify(file));
  const [statement] = file.statements;
  assert.ok(statement !== undefined);
  return prepareStatement(statement, () => null);
}

function write(callable: ReturnType<typeof prepare>, body: string): string {
  const params = parseLossless(body) as Record<string, unknown>;
  const checked = allAtOnce(checkCall(callable, { kind: 'json', params }, {}));
  assert.ok(checked.ok, `${body}: ${JSON.stringify(checked)}`);
  const call = allAtOnce(writeCall(callable, checked.values, plenty, builtInEverywhere));
  assert.ok(call.ok);
  return call.parts[0]?.sql ?? '';
}

/** The one row, as text: servers have different types for the same number. */
async function read(connection: Connection, sql: string): Promise<string[]> {
  const [rows] = await connection.query({ sql, rowsAsArray: true });
  return ((rows as unknown[][])[0] ?? []).map(String);
}

const hex = (text: string) => Buffer.from(text).toString('hex').toUpperCase();
const marks = [
  "'",
  '"',
  '`',
  '\\',
  '?',
  ':x',
  '--',
  ' ',
  '/*',
  '*/',
  ';',
  '\0',
  '#',
  '\n',
  '誠',
  '表',
];
const text = fc
  .array(fc.oneof(fc.constantFrom(...marks), fc.string({ unit: anyCharacter, maxLength: 2 })), {
    maxLength: 10,
  })
  .map((parts) => parts.join(''));

test('the server reads each value as it was sent: alone, in a list and in records', async () => {
  const samples = scalarSamples(text).map(({ type, values }) => ({
    type,
    values,
    callable: prepare(`-- name: a :many
-- for: *
-- param x: ${type}
-- param y: list(${type}; 3)
-- param z: records(a: ${type}; 3)
-- param s: choice(up: 1 | down: 2 desc) = down
select hex(convert(:x using utf8mb4)), :x in (:y), ':x' /* :y */ -- :z
  , (select hex(convert(group_concat(i.a separator '') using utf8mb4)) from json_table(:z, '$[*]' columns(a varchar(99) character set utf8mb4 path '$.a')) i)
  order by :s;`),
  }));
  await inEverySession(async ({ name, connection }) => {
    for (const { type, values, callable } of samples) {
      await fc.assert(
        fc.asyncProperty(values, values, async (one, other) => {
          const body = `{"x":${one.json},"y":[${other.json},${one.json}],"z":[{"a":${one.json}}]}`;
          const sql = write(callable, body);
          const found = await read(connection, sql);
          // JSON_TABLE has a number as JSON has it: a decimal keeps its zeros or not, true is 1 or the word.
          const inRecords = /text|date|time|uuid|enum/.test(type) ? hex(one.read) : found[3];
          assert.deepEqual(found, [hex(one.read), '1', ':x', inRecords], `${name} ${type}: ${sql}`);
        }),
        { numRuns: cases(3), includeErrorInReport: true },
      );
    }
  });
});

test('the server reads floats, bytes and JSON as they were sent', async () => {
  const callable = prepare(`-- name: a :many
-- for: *
-- param f: float
-- param b: bytes
-- param j: json
-- param d: decimal(40,20)
select :f+0e0, hex(:b), length(:b), json_valid(:j), hex(convert(:j using utf8mb4)), convert(:d using utf8mb4);`);
  await inEverySession(async ({ name, connection }) => {
    await fc.assert(
      fc.asyncProperty(
        fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e300, max: 1e300 }),
        fc.uint8Array({ maxLength: 20 }),
        fc.dictionary(text, fc.oneof(text, fc.integer(), fc.boolean(), fc.constant(null)), {
          maxKeys: 3,
        }),
        async (float, bytes, object) => {
          const json = JSON.stringify({ ...object, exact: 'X' }).replace(
            '"X"',
            '[9007199254740993,1.10]',
          );
          const binary = Buffer.from(bytes);
          const body = `{"f":${float},"b":"${binary.toString('base64')}","j":${json},"d":"-1.50"}`;
          const sql = write(callable, body);
          const found = await read(connection, sql);
          assert.deepEqual(
            found.slice(1),
            [
              binary.toString('hex').toUpperCase(),
              String(binary.length),
              '1',
              hex(json),
              '-1.50000000000000000000',
            ],
            `${name}: ${sql}`,
          );
          // Servers show 15 to 17 digits of a double.
          assert.ok(
            Math.abs(Number(found[0]) - float) <= Math.abs(float) * 1e-13,
            `${name}: ${found[0]} instead of ${float}`,
          );
        },
      ),
      { numRuns: cases(8), includeErrorInReport: true },
    );
  });
});

test('an optional filter uses the index, since the server sees the value', async () => {
  const connection = await database.connect({ rowsAsArray: false });
  await connection.query(
    'create table filtered (id int primary key, status varchar(20), note text, key(status)) character set utf8mb4',
  );
  const rows = Array.from({ length: 500 }, (_, at) => `(${at},'s${at % 50}','')`).join(',');
  await connection.query(`insert into filtered values ${rows}`);
  await connection.query('analyze table filtered');
  const callable = prepare(`-- name: a :many
-- for: *
-- param status: text(20) = null
-- param after: int = null
explain format=traditional select * from filtered where (:status is null or status = :status) and (:after is null or id < :after);`);
  const keyOf = async (body: string) => {
    const [plan] = await connection.query(write(callable, body));
    return (plan as { key: string | null }[])[0]?.key;
  };
  assert.equal(await keyOf('{"status":"s7"}'), 'status');
  assert.equal(await keyOf('{"after":3}'), 'PRIMARY');
  assert.equal(await keyOf('{}'), null);
  await connection.end();
});
