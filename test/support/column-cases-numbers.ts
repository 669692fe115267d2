// The numeric column types of MySQL and MariaDB with their extremes.
import type { TypeCase } from './column-truth.ts';

const integers = (
  [
    ['tinyint', 'TINY', 8],
    ['smallint', 'SHORT', 16],
    ['mediumint', 'INT24', 24],
    ['int', 'LONG', 32],
    ['bigint', 'LONGLONG', 64],
  ] as const
).flatMap(([name, wire, bits]): TypeCase[] => {
  const top = 2n ** BigInt(bits);
  const half = top / 2n;
  const exact = (value: bigint): [string, string] => [String(value), String(value)];
  const unsigned = ['null', exact(0n), exact(half), exact(top - 1n)];
  return [
    {
      type: name,
      kind: 'number',
      wire,
      values: ['null', exact(-half), exact(-1n), exact(0n), exact(half - 1n)],
    },
    { type: `${name} unsigned`, kind: 'number', wire, values: unsigned },
    {
      type: `${name} zerofill`,
      kind: 'number',
      wire,
      values: [...unsigned, exact(7n), exact(10n)],
    },
    { type: `${name}(30) unsigned zerofill`, kind: 'number', wire, values: unsigned },
  ];
});

const nines = '9'.repeat(35);
const decimals: readonly TypeCase[] = [
  ['decimal(65,30)', [`${nines}.${'9'.repeat(30)}`, `-${nines}.${'9'.repeat(30)}`]],
  ['decimal(65,0)', ['9'.repeat(65), `-${'9'.repeat(65)}`]],
  ['decimal(30,30)', [`0.${'1'.repeat(30)}`, `-0.${'0'.repeat(29)}1`]],
  ['decimal(10,2)', ['0.00', '-0.01', '12345678.90']],
].map(([type, values]) => ({
  type: String(type),
  kind: 'number',
  wire: 'NEWDECIMAL',
  values: ['null', '0', '-0.0', ...(values as string[]).map((one) => [one, one] as const)],
}));

const approximate: readonly TypeCase[] = [
  {
    type: 'double',
    kind: 'number',
    wire: 'DOUBLE',
    values: [
      'null',
      '0',
      '-0e0',
      ['1e308', '1e308'],
      ['-1.7976931348623157e308', '-1.7976931348623157e308'],
      ['2.2250738585072014e-308', '2.2250738585072014e-308'],
      ['5e-324', '5e-324'],
      ['0.1', '0.1'],
      ['9007199254740993', '9.007199254740992e15'],
      '1e15',
      '1e14',
      '-1e-5',
      '123456789012345678',
      'pi()',
    ],
  },
  {
    type: 'float',
    kind: 'number',
    wire: 'FLOAT',
    values: ['null', '0', '-0e0', '3.402823466e38', '-3.402823466e38', '1.175494351e-38', '1e-45'],
  },
  {
    type: 'float',
    kind: 'number',
    wire: 'FLOAT',
    values: ['16777217', '0.1', '-123456.7', '1e10'],
  },
  { type: 'float unsigned', kind: 'number', wire: 'FLOAT', values: ['0', '0.5'] },
  { type: 'double zerofill', kind: 'number', wire: 'DOUBLE', values: ['0', '0.5', '7', '1e300'] },
  { type: 'double(20,5) zerofill', kind: 'number', wire: 'DOUBLE', values: ['0', '0.5', '1234.5'] },
  { type: 'float zerofill', kind: 'number', wire: 'FLOAT', values: ['0', '0.5', '1e20', '42'] },
  { type: 'double(255,30)', kind: 'number', wire: 'DOUBLE', values: ['0', '-1e200', '1e-20'] },
  { type: 'decimal(20,5) zerofill', kind: 'number', wire: 'NEWDECIMAL', values: ['0', '0.5', '7'] },
];

const bits: readonly TypeCase[] = [1, 7, 8, 9, 33, 63, 64].map((size) => ({
  type: `bit(${size})`,
  kind: 'bit',
  wire: 'BIT',
  values: [
    'null',
    ["b'0'", '0'],
    ["b'1'", '1'],
    [`b'${'1'.repeat(size)}'`, String(2n ** BigInt(size) - 1n)],
  ],
}));

/** Integers, decimals, floating point and BIT. */
export const numericCases: readonly TypeCase[] = [
  ...integers,
  ...decimals,
  ...approximate,
  ...bits,
];
