// The promise of PARAMS against a real server: a value arrives as it was sent, whatever the session's
// sql_mode and charset, and never touches the SQL around it.
import assert from 'node:assert/strict';
import test, { after, before } from 'node:test';
import { parse as parseLossless } from 'lossless-json';
import type { Connection } from 'mysql2/promise';
import { bind, type Parameters } from '../../../src/shared/sql/bind.ts';
import { type Database, startDatabase } from '../../support/database/mariadb.ts';
import { anyCharacter, fc } from '../../support/property.ts';

const modes = [
  '',
  'ANSI_QUOTES',
  'NO_BACKSLASH_ESCAPES',
  'PIPES_AS_CONCAT,ANSI_QUOTES,NO_BACKSLASH_ESCAPES',
];
const plenty = 16 * 1024 * 1024;
const charsets = ['utf8mb4', 'latin1', 'gbk'];

let database: Database;
before(async () => {
  database = await startDatabase();
});
after(() => database.stop());

type Session = { readonly mode: string; readonly charset: string; readonly connection: Connection };

async function inEverySession(work: (session: Session) => Promise<void>): Promise<void> {
  const connection = await database.connect({ rowsAsArray: true, multipleStatements: false });
  try {
    for (const mode of modes) {
      for (const charset of charsets) {
        await connection.query(`set names ${charset}`);
        await connection.query(`set sql_mode='${mode}'`);
        await work({ mode, charset, connection });
      }
    }
  } finally {
    await connection.end();
  }
}

function bound(sql: string, params: Parameters): string {
  const result = bind(sql, params, plenty);
  assert.ok(result.ok, JSON.stringify(result));
  return result.sql;
}

async function row(connection: Connection, sql: string): Promise<unknown[]> {
  const [rows] = await connection.query({ sql, rowsAsArray: true });
  return (rows as unknown[][])[0] as unknown[];
}

const hex = (text: string) => Buffer.from(text).toString('hex').toUpperCase();
const character = fc.oneof(
  fc.constantFrom(
    "'",
    '"',
    '`',
    '\\',
    '?',
    ':a',
    '--',
    ' ',
    '/*',
    '*/',
    ';',
    '\0',
    '#',
    '\n',
    '%',
    '_',
    '\x1a',
    '誠',
    '縗',
  ),
  fc.string({ unit: anyCharacter, maxLength: 2 }),
);
const value = fc.array(character, { maxLength: 12 }).map((parts) => parts.join(''));
/** Text in which no quote, backslash, NUL or star could end the surrounding literal or comment. */
const inner = fc
  .array(fc.constantFrom('?', ':a', ' ', '--', '-', '#', ';', 'x', '@', '(', '/', '!', '+', ','), {
    maxLength: 8,
  })
  .map((parts) => `.${parts.join('')}.`);

test('brings back any string, byte for byte, under every sql_mode and charset', async () => {
  await inEverySession(async ({ connection }) => {
    await fc.assert(
      fc.asyncProperty(fc.array(value, { minLength: 1, maxLength: 4 }), async (values) => {
        const list = values.map(() => 'hex(?)').join(',');
        assert.deepEqual(await row(connection, bound(`select ${list}`, values)), values.map(hex));
      }),
      { numRuns: 60 },
    );
  });
});

test('leaves literals, names and comments around a value as they are', async () => {
  const noise = fc.oneof(
    inner.map((text) => ({ sql: `'${text}''' as a`, result: `${text}'` })),
    inner.map((text) => ({ sql: `'x' as "${text}"`, result: 'x' })),
    inner.map((text) => ({ sql: `'x' as \`${text}\``, result: 'x' })),
    inner.map((text) => ({ sql: `/* ${text} ' " \` */ 'x'`, result: 'x' })),
    inner.map((text) => ({ sql: `'x' -- ${text} ' "\n`, result: 'x' })),
    inner.map((text) => ({ sql: `# ${text} ' /*\n'x'`, result: 'x' })),
    fc.constant({ sql: "'x' 'y' as z", result: 'xy' }),
  );
  const column = fc.oneof(
    noise,
    value.map((given) => ({ given })),
  );
  await inEverySession(async ({ connection }) => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(column, { minLength: 1, maxLength: 6 }),
        fc.boolean(),
        async (columns, named) => {
          const values = columns.flatMap((item) => ('given' in item ? [item.given] : []));
          let count = 0;
          const list = columns.map((item) =>
            'given' in item ? `hex(${named ? `:p${count++}` : '?'})` : item.sql,
          );
          const params = named
            ? Object.fromEntries(values.map((given, at) => [`p${at}`, given]))
            : values;
          const expected = columns.map((item) => ('given' in item ? hex(item.given) : item.result));
          assert.deepEqual(
            await row(connection, bound(`select ${list.join(',')}`, params)),
            expected,
          );
        },
      ),
      { numRuns: 60 },
    );
  });
});

test('keeps every digit of a number', async () => {
  const connection = await database.connect();
  const digits = fc
    .tuple(
      fc.boolean(),
      fc.bigInt({ min: 0n, max: 10n ** 35n - 1n }),
      fc.stringMatching(/^\d{0,30}$/),
    )
    .map(
      ([minus, whole, fraction]) =>
        `${minus && whole > 0n ? '-' : ''}${whole}${fraction === '' ? '' : `.${fraction}`}`,
    );
  await fc.assert(
    fc.asyncProperty(digits, async (text) => {
      const params = parseLossless(`[${text}]`) as unknown[];
      const [found] = await row(connection, bound('select cast(? as char)', params));
      assert.equal(found, text);
    }),
    { numRuns: 300 },
  );
  await connection.end();
});

test('works in the place of any expression, and uses the index of a column of any charset', async () => {
  const connection = await database.connect({ rowsAsArray: true });
  // The same as in the gateway's sessions: a collation other than the charset's default would clash with the values'.
  await connection.query('set names utf8mb4');
  await connection.query(
    `create table words (l varchar(20) character set latin1, u varchar(20) character set utf8mb3, b varchar(20) collate utf8mb4_bin,
      g varchar(20) collate utf8mb4_unicode_ci, v varbinary(20), d datetime, n int, key(l), key(u), key(b), key(g), key(v), key(d)) character set utf8mb4`,
  );
  const names = Array.from(
    { length: 300 },
    (_, at) =>
      `('é${at}','é${at}','é${at}','é${at}','é${at}','2020-01-01' + interval ${at} day,${at})`,
  );
  await connection.query(`insert into words values ${names.join(',')}`);
  for (const column of ['l', 'u', 'b', 'g', 'v', 'd']) {
    const sought = column === 'd' ? '2020-01-08' : 'é7';
    const sql = `select n from words where ${column} = ?`;
    assert.deepEqual(await row(connection, bound(sql, [sought])), [7], column);
    const [plan] = await connection.query({
      sql: bound(`explain format=traditional ${sql}`, [sought]),
      rowsAsArray: false,
    });
    assert.equal((plan as { key: string }[])[0]?.key, column);
  }
  const answers: [string, Parameters, unknown[]][] = [
    ['select n from words order by n limit ? offset ?', [1, 5], [5]],
    ['select count(*) from words where l like ?', ['é7%'], [11]],
    ['select ? like ? escape ?', ['a%b', 'a|%b', '|'], [1]],
    ['select json_unquote(json_extract(?, ?))', ['{"a":"é"}', '$.a'], ['é']],
    ['select cast(? as date) + interval ? day', ['2020-01-01', 2], ['2020-01-03']],
    ['select date_add(?, interval ? day)', ['2020-01-01', '2'], ['2020-01-03']],
    ["select ? in ('a','b'), ? between 'a' and 'c', ? <=> ?", ['A', 'b', null, null], [1, 1, 1]],
    ['select ?+?, ? * 2, ? = 9, -?', ['1', 2, '5', '9', -3], [3, 10, 1, 3]],
    ['select case ? when ? then ? else ? end', [true, 1, 'y', 'n'], ['y']],
    ["select ? 'b'", ['a'], ['a']],
    ['select ? collate utf8mb4_bin = ?', ['a', 'A'], [0]],
    ["select ? union select 'z'", ['a'], ['a']],
    ['select char_length(?), length(?), ? regexp ?', ['é', 'é', 'é', '^.$'], [1, 2, 1]],
  ];
  for (const [sql, params, expected] of answers) {
    const found = await row(connection, bound(sql, params));
    assert.deepEqual(found.map(String), expected.map(String), sql);
  }
  await connection.query(
    bound('insert into words (n, l) values (?, ?) on duplicate key update l = ?', [999, 'ñ', 'x']),
  );
  await connection.query(
    bound('update words set l = concat(l, ?), d = ? where n = ?', [
      '!',
      '2021-01-01 10:11:12',
      999,
    ]),
  );
  assert.deepEqual(await row(connection, 'select hex(l), cast(d as char) from words where n=999'), [
    'F121',
    '2021-01-01 10:11:12',
  ]);
  await connection.end();
});
