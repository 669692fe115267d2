// The texts by which a server is asked about one SQL statement of a named statement: each of its choices once, with values in the places
// of its parameters.
import { LosslessNumber } from 'lossless-json';
import { encodeLiteral } from '../sql/literal.ts';
import { placeLiteral } from '../sql/placement.ts';
import { formatDecimal, parseDecimal } from './decimal.ts';
import type { EnumValues, Scalar } from './scalar.ts';
import type { Parameter, ParameterType, Part, ScalarType } from './statement.ts';
import { type Choices, listVariants, type Variant, writeVariant } from './variants.ts';

/** One variant of a text. */
export type Probe = {
  /** The labels of its choices, as `sort: newest`; '' if it has none. */
  readonly choices: string;
  /** With `?` in the places of the parameters. */
  readonly marked: string;
  /**
   * With values as a call writes them, because types and NULL follow from them: the smallest values, the greatest, and NULL where it is
   * allowed. Each text once.
   */
  readonly texts: readonly [string, ...string[]];
};

type Extent = 'small' | 'great';

/** Lists the texts for a part. @param parameters those of its statement @param enumValues asked for the values of columns */
export function listProbes(
  { sql, placeholders }: Part,
  parameters: readonly Parameter[],
  enumValues: EnumValues,
): readonly Probe[] {
  const used = new Set(placeholders.map(({ name }) => name));
  const own = parameters.filter(({ name }) => used.has(name));
  const [small, great] = (['small', 'great'] as const).map(
    (extent) => new Map(own.map(({ name, type }) => [name, literalOf(type, extent, enumValues)])),
  ) as [Map<string, string>, Map<string, string>];
  const isNullable = ({ fallback }: Parameter) => fallback.kind === 'null';
  const withNull = new Map([
    ...small,
    ...own.filter(isNullable).map(({ name }) => [name, 'NULL'] as const),
  ]);
  const types = new Map(own.map(({ name, type }) => [name, type]));
  return listVariants(placeholders, types).map((choices) => {
    const variant = writeVariant(sql, placeholders, choices);
    const first = fill(variant, small);
    const others = [fill(variant, great), fill(variant, withNull)];
    const texts = new Set(others.filter((text) => text !== first));
    return {
      choices: describeChoices(choices, types),
      marked: fill(variant, null),
      texts: [first, ...texts],
    };
  });
}

/** @param literals null: a `?` each */
function fill(
  { sql, placeholders }: Variant,
  literals: ReadonlyMap<string, string> | null,
): string {
  let out = '';
  let copied = 0;
  for (const { name, start, end } of placeholders) {
    const literal = literals?.get(name) ?? '?';
    const { before, after } = placeLiteral(sql, start, end, literal.startsWith('-'));
    out += sql.slice(copied, start) + before + literal + after;
    copied = end;
  }
  return out + sql.slice(copied);
}

function describeChoices(choices: Choices, types: ReadonlyMap<string, ParameterType>): string {
  return [...choices]
    .map(([name, sql]) => {
      const type = types.get(name);
      const all = type?.kind === 'choice' ? type.choices : [];
      return `${name}: ${all.find((choice) => choice.sql === sql)?.label ?? ''}`;
    })
    .join(', ');
}

const maxLiteralBytes = 1024;

function literalOf(type: ParameterType, extent: Extent, enumValues: EnumValues): string {
  if (type.kind === 'list') return literalOf(type.of, extent, enumValues);
  // SQL of the file takes the place of a choice.
  if (type.kind === 'choice') return '';
  const value = type.kind === 'records' ? '[]' : sampleOf(type, extent, enumValues);
  const literal = encodeLiteral(value, maxLiteralBytes);
  if (!literal.ok) throw new Error('a sample of a parameter is no literal');
  return literal.sql;
}

/** A value of the type. It need not match a pattern, which the server never sees. */
function sampleOf(type: ScalarType, extent: Extent, enumValues: EnumValues): Scalar {
  const isSmall = extent === 'small';
  switch (type.kind) {
    case 'int':
      return numberIn(type.range, isSmall, '0', '9223372036854775807', 0);
    case 'decimal': {
      const { precision, scale } = type;
      const most = `${'9'.repeat(precision - scale) || '0'}.${'9'.repeat(scale) || '0'}`;
      return numberIn(type.range, isSmall, '0', most, scale);
    }
    case 'float':
      return new LosslessNumber(isSmall ? '0e0' : '1e0');
    case 'bool':
      return isSmall;
    case 'text':
      return 'a';
    case 'date':
      return '2000-01-01';
    case 'datetime':
      return '2000-01-01 00:00:00';
    case 'time':
      return '00:00:00';
    case 'json':
      return '{}';
    case 'bytes':
      return { $binary: 'AA==' };
    case 'uuid':
      return '00000000-0000-0000-0000-000000000000';
    case 'enum':
      return type.values[0] ?? '';
    case 'enum of': {
      const [first = 'a'] = enumValues(type.table, type.column) ?? [];
      return first;
    }
    default:
      return type satisfies never;
  }
}

function numberIn(
  { min, max }: { readonly min: string | null; readonly max: string | null },
  isSmall: boolean,
  least: string,
  most: string,
  scale: number,
): Scalar {
  const text = isSmall ? (min ?? (max?.startsWith('-') ? max : least)) : (max ?? most);
  const decimal = parseDecimal(text);
  if (decimal === null) throw new Error('a bound has passed the parser, and is no number');
  return new LosslessNumber(formatDecimal(decimal, scale));
}
