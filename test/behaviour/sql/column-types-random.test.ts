// The promise of exactness for arbitrary tables: random columns, random rows, any buffer.
import assert from 'node:assert/strict';
import test, { after } from 'node:test';
import type { Connection } from 'mysql2/promise';
import { type Kind, shown, truth, truthSql } from '../../support/column-truth.ts';
import { type Gateway, startGateway } from '../../support/gateway.ts';
import { anyCharacter, cases, fc } from '../../support/property.ts';
import { at, type JsonValue } from '../../support/strict-json.ts';
import { useGateway } from '../../support/use-gateway.ts';

let streaming: Gateway;
let connection: Connection;
after(async () => {
  await connection?.end();
  await streaming?.stop();
});
const { gateway } = useGateway(
  { workers: 1, buffer: '8MiB' },
  {
    prepare: async (database) => {
      streaming = await startGateway({ database, settings: { workers: 1, buffer: '1KiB' } });
      connection = await database.connect();
      await connection.query("set sql_mode=''");
    },
  },
);

type Generated = {
  readonly type: string;
  readonly kind: Kind;
  readonly value: fc.Arbitrary<string>;
};

const hex = (bytes: string | Uint8Array) => `x'${Buffer.from(bytes as string).toString('hex')}'`;
const integer = (bits: number) =>
  fc.bigInt({ min: -(2n ** BigInt(bits - 1)), max: 2n ** BigInt(bits - 1) - 1n }).map(String);
const unsigned = (bits: number) => fc.bigInt({ min: 0n, max: 2n ** BigInt(bits) - 1n }).map(String);
const decimal = fc
  .tuple(fc.constantFrom('', '-'), fc.stringMatching(/^\d{1,35}$/), fc.stringMatching(/^\d{1,30}$/))
  .map(([sign, whole, fraction]) => `${sign}${whole}.${fraction}`);
const text = fc
  .array(
    fc.oneof(
      fc.string({ unit: anyCharacter, maxLength: 40 }),
      fc.constantFrom('"', '\\', '\0', '\n', '\u2028'),
    ),
    { maxLength: 8 },
  )
  .map((parts) => parts.join(''));
const long = fc
  .tuple(text, fc.constantFrom(1, 1, 1, 7, 300, 3000))
  .map(([part, times]) => `convert(repeat(${hex(part)}, ${times}) using utf8mb4)`);
const bytes = fc.uint8Array({ maxLength: 300 }).map(hex);
const day = fc
  .date({ min: new Date('1000-01-01'), max: new Date('9999-12-31'), noInvalidDate: true })
  .map((date) => `'${date.toISOString().slice(0, 23).replace('T', ' ')}'`);

const columns: readonly Generated[] = [
  { type: 'tinyint', kind: 'number', value: integer(8) },
  { type: 'int unsigned zerofill', kind: 'number', value: unsigned(32) },
  { type: 'bigint', kind: 'number', value: integer(64) },
  { type: 'bigint unsigned', kind: 'number', value: unsigned(64) },
  { type: 'decimal(65,30)', kind: 'number', value: decimal },
  {
    type: 'double',
    kind: 'float',
    value: fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
  },
  {
    type: 'float',
    kind: 'float',
    value: fc.float({ noNaN: true, noDefaultInfinity: true }).map(String),
  },
  { type: 'bit(64)', kind: 'bit', value: unsigned(64) },
  {
    type: 'varchar(400)',
    kind: 'text',
    value: text.map((part) => `convert(${hex(part)} using utf8mb4)`),
  },
  { type: 'longtext', kind: 'text', value: long },
  { type: 'varbinary(300)', kind: 'binary', value: bytes },
  {
    type: 'longblob',
    kind: 'binary',
    value: fc
      .tuple(bytes, fc.constantFrom(1, 1, 500))
      .map(([one, times]) => `repeat(${one}, ${times})`),
  },
  { type: 'datetime(6)', kind: 'plain', value: day },
  { type: 'date', kind: 'plain', value: day },
  {
    type: 'time(6)',
    kind: 'plain',
    value: fc
      .integer({ min: -3_020_399, max: 3_020_399 })
      .map((seconds) => `sec_to_time(${seconds}.25)`),
  },
];

const table = fc
  .array(fc.constantFrom(...columns), { minLength: 1, maxLength: 8 })
  .chain((chosen) =>
    fc.tuple(
      fc.constant(chosen),
      fc.array(
        fc.tuple(
          ...chosen.map(({ value }) =>
            fc.oneof(
              { weight: 1, arbitrary: fc.constant('null') },
              { weight: 6, arbitrary: value },
            ),
          ),
        ),
        { maxLength: 12 },
      ),
    ),
  );

/** Makes a table of these, and holds what both gateways answer against what the server says; gives their replies. */
async function check(chosen: readonly Generated[], rows: readonly (readonly string[])[]) {
  const names = chosen.map((_, index) => `c${index}`);
  const types = chosen.map(({ type }, index) => `c${index} ${type}`);
  await connection.query('drop table if exists random');
  await connection.query(`create table random (id int primary key, ${types})`);
  // One by one: together they could be longer than max_allowed_packet.
  for (const [id, row] of rows.entries()) {
    await connection.query(`insert into random values (${[id, ...row]})`);
  }
  const sql = `select ${names} from random order by id`;
  const asked = chosen.map(({ kind }, index) => truthSql[kind](`c${index}`));
  const [held] = await connection.query({
    sql: `select ${asked} from random order by id`,
    rowsAsArray: true,
    // The server's own text, whatever the type.
    typeCast: (field) => field.string(),
  });
  const expected = (held as unknown[][]).map((row) =>
    row.map((cell, index) => truth(chosen[index]?.kind as Kind, cell)),
  );
  const [whole, stream] = await Promise.all([gateway.db({ SQL: sql }), streaming.db({ SQL: sql })]);
  assert.ok(whole.body.equals(stream.body));
  const found = at(whole.exact(), 'RESULT', 'ROWS') as JsonValue[][];
  assert.deepEqual(
    found.map((row) => row.map((cell, index) => shown(chosen[index]?.kind as Kind, cell))),
    expected,
  );
  return { whole, stream };
}

test('brings any table out as the database holds it, buffered and streamed alike', async () => {
  await fc.assert(
    fc.asyncProperty(table, async ([chosen, rows]) => {
      await check(chosen, rows);
    }),
    { numRuns: cases(25) },
  );
});

test('brings a table of all types out alike where one reply is held back and the other one streamed', async () => {
  // Longer than the small buffer, and than the pieces in which a reply leaves.
  const [sample = []] = fc.sample(fc.tuple(...columns.map(({ value }) => value)), 1);
  const long = sample.map((value, index) =>
    columns[index]?.type === 'longtext' ? "repeat('é\"', 40000)" : value,
  );
  const { whole, stream } = await check(columns, [sample, long, sample]);
  assert.equal(whole.headers['content-length'], String(whole.body.length));
  assert.equal(stream.headers['transfer-encoding'], 'chunked');
});
