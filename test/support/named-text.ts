// Prints named statements as a file has them, and draws statements at random.
import type {
  Expect,
  Fallback,
  NamedStatement,
  Parameter,
  ParameterType,
  Range,
} from '../../src/shared/named/statement.ts';
import { fc } from './property.ts';

/** Prints a statement in the grammar's own form. */
export function printStatement(statement: NamedStatement): string {
  const { kind, parameters, errors, refusals, notNullColumns, parts, maxAgeS } = statement;
  const lines = [
    `name: ${statement.name} :${kind}`,
    ...(statement.description === '' ? [] : statement.description.split('\n')),
    `for: ${statement.for === null ? '*' : statement.for.join(', ')}`,
    ...parameters.map(printParameter),
    ...(statement.isKeyRequired ? ['key: required'] : []),
    ...(maxAgeS === null ? [] : [`max_age: ${maxAgeS}s`]),
    ...errors.map(({ errno, status, code, text }) =>
      `error ${errno}: ${status} ${code} ${text}`.trim(),
    ),
    ...refusals.map(({ code, status, text }) => `error ${code}: ${status} ${text}`),
    ...notNullColumns.map((column) => `column ${column}: not null`),
  ];
  const texts = parts.map(({ sql, step, expect, isAnswer }) => {
    const steps = [
      ...(step === null ? [] : [`step: ${step}`]),
      ...(expect === null ? [] : [printExpect(expect)]),
      ...(isAnswer && kind === 'batch' ? ['answer'] : []),
    ];
    return [...steps.map((line) => `-- ${line}`), `${sql};`].join('\n');
  });
  return [...lines.map((line) => `-- ${line}`), ...texts, ''].join('\n');
}

function printParameter({ name, type, fallback }: Parameter): string {
  return `param ${name}: ${printType(type)}${printFallback(fallback, type)}`;
}

function printExpect({ of, bounds, code }: Expect): string {
  const amount =
    bounds.kind === 'count'
      ? `count(${bounds.parameter})`
      : bounds.min === bounds.max
        ? bounds.min
        : `${bounds.min}..${bounds.max}`;
  return `expect: ${of} = ${amount}${code === null ? '' : ` else ${code}`}`;
}

const quote = (text: string) => `'${text.replaceAll("'", "''")}'`;

function printFallback(fallback: Fallback, type: ParameterType): string {
  switch (fallback.kind) {
    case 'required':
      return '';
    case 'null':
      return ' = null';
    case 'claim':
      return ` = claims.${fallback.path.map((name) => (/^[a-z][a-z0-9_]{0,39}$/.test(name) ? name : quote(name))).join('.')}`;
    case 'value': {
      const isQuoted = ['text', 'date', 'datetime', 'time', 'json', 'bytes', 'uuid'];
      return ` = ${isQuoted.includes(type.kind) ? quote(fallback.text) : fallback.text}`;
    }
    default:
      return fallback satisfies never;
  }
}

function printRange({ min, max }: Range, print: (bound: string) => string): string {
  return `${min === null ? '' : print(min)}..${max === null ? '' : print(max)}`;
}

function hasBounds({ min, max }: Range): boolean {
  return min !== null || max !== null;
}

/** Prints a type. */
export function printType(type: ParameterType): string {
  switch (type.kind) {
    case 'int':
    case 'float':
      return hasBounds(type.range)
        ? `${type.kind}(${printRange(type.range, (bound) => bound)})`
        : type.kind;
    case 'date':
    case 'datetime':
    case 'time':
      return hasBounds(type.range) ? `${type.kind}(${printRange(type.range, quote)})` : type.kind;
    case 'decimal': {
      const range = hasBounds(type.range) ? `; ${printRange(type.range, (bound) => bound)}` : '';
      return `decimal(${type.precision},${type.scale}${range})`;
    }
    case 'text':
      return `text(${type.pattern === null ? '' : `/${type.pattern}/, `}${type.maxCharacters})`;
    case 'enum':
      return `enum(${type.values.join(', ')})`;
    case 'enum of':
      return `enum of ${type.table}.${type.column}`;
    case 'choice':
      return `choice(${type.choices.map(({ label, sql }) => `${label}: ${sql}`).join(' | ')})`;
    case 'list':
      return `list(${printType(type.of)}; ${type.maxItems})`;
    case 'records':
      return `records(${type.fields.map(({ name, type: of }) => `${name}: ${printType(of)}`).join(', ')}; ${type.maxItems})`;
    case 'bool':
    case 'json':
    case 'bytes':
    case 'uuid':
      return type.kind;
    default:
      return type satisfies never;
  }
}

/** A type, and good values of it as a body and as a query string have them. `read` is what the server must read, as text. */
export type Sample = {
  readonly type: string;
  readonly values: fc.Arbitrary<{ readonly json: string; readonly read: string }>;
};

const pad = (number: number, digits = 2) => String(number).padStart(digits, '0');
const number = (text: string) => ({ json: text, read: text });

const moment = fc.tuple(
  fc.integer({ min: 1000, max: 9999 }),
  fc.integer({ min: 1, max: 12 }),
  fc.integer({ min: 1, max: 28 }),
  fc.integer({ min: 0, max: 23 }),
  fc.integer({ min: 0, max: 59 }),
  fc.integer({ min: 0, max: 59 }),
);

/** Samples of all single values. @param text how texts are drawn; at most 40 characters */
export function scalarSamples(text: fc.Arbitrary<string>): readonly Sample[] {
  const quoted = (values: fc.Arbitrary<string>) =>
    values.map((value) => ({ json: JSON.stringify(value), read: value }));
  return [
    {
      type: 'int',
      values: fc
        .bigInt({ min: -(2n ** 63n), max: 2n ** 64n - 1n })
        .map((value) => number(value.toString())),
    },
    { type: 'int(-9..9)', values: fc.integer({ min: -9, max: 9 }).map(String).map(number) },
    {
      type: 'decimal(30,10)',
      values: fc
        .tuple(
          fc.bigInt({ min: -(10n ** 19n), max: 10n ** 19n }),
          fc.integer({ min: 0, max: 9_999_999 }),
        )
        .map(([whole, fraction]) => ({
          json: `"${whole}.${pad(fraction, 7)}"`,
          read: `${whole}.${pad(fraction, 7)}000`,
        })),
    },
    {
      type: 'bool',
      values: fc.boolean().map((value) => ({ json: `${value}`, read: value ? '1' : '0' })),
    },
    { type: 'text(40)', values: quoted(text) },
    {
      type: 'date',
      values: quoted(moment.map(([year, month, day]) => `${year}-${pad(month)}-${pad(day)}`)),
    },
    {
      type: 'datetime',
      values: quoted(
        moment.map(
          ([year, month, day, hour, minute, second]) =>
            `${year}-${pad(month)}-${pad(day)} ${pad(hour)}:${pad(minute)}:${pad(second)}.${pad(second)}`,
        ),
      ),
    },
    {
      type: 'time',
      values: quoted(
        moment.map(([, , day, hour, minute]) => `-${day + 10}:${pad(hour)}:${pad(minute)}`),
      ),
    },
    { type: 'uuid', values: quoted(fc.uuid()) },
    { type: 'enum(open, paid-2)', values: quoted(fc.constantFrom('open', 'paid-2')) },
  ];
}
