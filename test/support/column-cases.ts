// Every column type of MySQL and MariaDB with its extremes.
import { numericCases } from './column-cases-numbers.ts';
import type { TypeCase } from './column-truth.ts';

const times: readonly TypeCase[] = [
  {
    type: 'date',
    kind: 'plain',
    wire: 'DATE',
    values: [
      'null',
      ["'0000-00-00'", '0000-00-00'],
      ["'2024-00-00'", '2024-00-00'],
      ["'0001-01-01'", '0001-01-01'],
      ["'2024-02-29'", '2024-02-29'],
      ["'9999-12-31'", '9999-12-31'],
    ],
  },
  ...['datetime', 'timestamp'].flatMap((name): TypeCase[] => {
    const wire = name.toUpperCase();
    const zero = '0000-00-00 00:00:00';
    const late = name === 'datetime' ? '9999-12-31 23:59:59' : '2038-01-19 01:14:07';
    return [
      {
        type: `${name} null`,
        kind: 'plain',
        wire,
        values: ['null', [`'${zero}'`, zero], [`'${late}'`, late]],
      },
      {
        type: `${name}(6) null`,
        kind: 'plain',
        wire,
        values: [
          [`'${zero}'`, `${zero}.000000`],
          ["'2024-02-29 23:59:59.000001'", '2024-02-29 23:59:59.000001'],
          [`'${late}.999999'`, `${late}.999999`],
        ],
      },
    ];
  }),
  {
    type: 'time',
    kind: 'plain',
    wire: 'TIME',
    values: [
      'null',
      "'00:00:00'",
      ["'-838:59:59'", '-838:59:59'],
      ["'838:59:59'", '838:59:59'],
      ["'-00:00:01'", '-00:00:01'],
    ],
  },
  {
    type: 'time(6)',
    kind: 'plain',
    wire: 'TIME',
    values: [
      ["'-01:02:03.000001'", '-01:02:03.000001'],
      ["'-00:00:00.5'", '-00:00:00.500000'],
    ],
  },
  { type: 'time(3)', kind: 'plain', wire: 'TIME', values: [["'837:59:59.999'", '837:59:59.999']] },
  {
    type: 'year',
    kind: 'plain',
    wire: 'YEAR',
    values: ['null', ['0', '0000'], ['1901', '1901'], ['2155', '2155'], ["'00'", '2000']],
  },
];

const strings = ['null', "''", "'a'", "'\\0'", "'a\\0b'", "'\\\\\\'\"/<'", "'é誠😀'", "' x'"];
const bytes = ['null', "''", "x'00'", "x'00ff80'", "x'fffefb'", "'text'"];
const texts: readonly TypeCase[] = [
  { type: 'char(20)', kind: 'text', wire: 'STRING', values: strings },
  { type: 'char(0)', kind: 'text', wire: 'STRING', values: ['null', "''"] },
  { type: 'varchar(200)', kind: 'text', wire: 'VAR_STRING', values: strings },
  { type: 'binary(5)', kind: 'binary', wire: 'STRING', values: bytes },
  { type: 'varbinary(300)', kind: 'binary', wire: 'VAR_STRING', values: bytes },
  ...['tiny', '', 'medium', 'long'].flatMap((size): TypeCase[] => [
    { type: `${size}text`, kind: 'text', wire: 'BLOB', values: [...strings, "repeat('x', 255)"] },
    { type: `${size}blob`, kind: 'binary', wire: 'BLOB', values: [...bytes, "repeat('x', 255)"] },
  ]),
  {
    type: "enum('','é','a,b','1')",
    kind: 'text',
    wire: 'STRING',
    values: ['null', "''", "'é'", "'a,b'", '4'],
  },
  {
    type: "set('x','誠','z')",
    kind: 'text',
    wire: 'STRING',
    values: ['null', "''", "'x,z'", "'誠'", '7'],
  },
];

const json = [
  'null',
  "'null'",
  `'{"a":18446744073709551615,"b":1e400}'`,
  `'[1, "é\\\\u0000\\\\"", -0.0, 12345678901234567890123]'`,
];
const point = "ST_GeomFromText('POINT(1 -1.5)')";
const special: readonly TypeCase[] = [
  { type: 'json', kind: 'text', wire: 'BLOB', values: json, on: 'mariadb' },
  {
    type: 'json',
    kind: 'text',
    wire: 'JSON',
    values: ['null', "'null'", `'{"a":18446744073709551615}'`, `'[1, "é\\\\u0000"]'`],
    on: 'mysql',
  },
  ...['geometry', 'point'].map(
    (type): TypeCase => ({ type, kind: 'binary', wire: 'GEOMETRY', values: ['null', point] }),
  ),
  {
    type: 'polygon',
    kind: 'binary',
    wire: 'GEOMETRY',
    values: ["ST_GeomFromText('POLYGON((0 0,0 1,1 1,0 0))')"],
  },
  {
    type: 'geometrycollection',
    kind: 'binary',
    wire: 'GEOMETRY',
    values: ["ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 1),LINESTRING(0 0,1 1))')"],
  },
];

/** All types that the servers of a flavour know. `newTypes` has the types of later versions. */
export const columnCases: readonly TypeCase[] = [...numericCases, ...times, ...texts, ...special];

/** Types that some versions lack. The tests ask the server. */
export const newTypes: readonly TypeCase[] = [
  {
    type: 'uuid',
    kind: 'plain',
    wire: 'STRING',
    values: [
      'null',
      ["'123e4567-e89b-12d3-a456-426655440000'", '123e4567-e89b-12d3-a456-426655440000'],
    ],
    on: 'mariadb',
  },
  {
    type: 'inet6',
    kind: 'plain',
    wire: 'STRING',
    values: [
      'null',
      ["'::'", '::'],
      ["'2001:db8::ff00:42:8329'", '2001:db8::ff00:42:8329'],
      "'::ffff:1.2.3.4'",
    ],
    on: 'mariadb',
  },
  {
    type: 'inet4',
    kind: 'plain',
    wire: 'STRING',
    values: ['null', ["'255.255.255.255'", '255.255.255.255'], "'0.0.0.0'"],
    on: 'mariadb',
  },
  {
    type: 'vector(3)',
    kind: 'binary',
    wire: 'VECTOR',
    values: ["to_vector('[1,-2.5,3e30]')"],
    on: 'mysql',
  },
  {
    type: 'vector(3)',
    kind: 'binary',
    wire: 'VAR_STRING',
    values: ["vec_fromtext('[1,-2.5,3e30]')"],
    on: 'mariadb',
  },
];
