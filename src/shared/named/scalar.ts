// Checks single values: a value of JSON, or the text of a query string, becomes the value to bind.
import { isLosslessNumber, LosslessNumber } from 'lossless-json';
import { isWellFormed } from '../sql/literal.ts';
import {
  compareDecimals,
  type Decimal,
  formatDecimal,
  parseDecimal,
  wholeDigits,
} from './decimal.ts';
import { compareMoments, parseDate, parseDateTime, parseTime } from './moments.ts';
import { compilePattern, type Pattern } from './pattern.ts';
import type { Range, ScalarType } from './statement.ts';

/** A value that can be bound as one literal. */
export type Scalar =
  | string
  | number
  | boolean
  | null
  | LosslessNumber
  | { readonly $binary: string };

/** The value to bind. `wanted` continues "must be …", and contains no value. `unknown`: the allowed values are not known yet. */
export type CheckedScalar =
  | { readonly ok: true; readonly value: Scalar }
  | { readonly ok: false; readonly reason: 'wrong'; readonly wanted: string }
  | { readonly ok: false; readonly reason: 'unknown' };

/** @param isText whether the value comes from a query string, where everything is text */
export type ScalarCheck = (given: unknown, isText: boolean) => CheckedScalar;

/** The values of an ENUM column; null: they are not known yet. */
export type EnumValues = (table: string, column: string) => ReadonlySet<string> | null;

/** BIGINT, signed or unsigned. */
const minInt: Decimal = { unscaled: -(2n ** 63n), scale: 0 };
const maxInt: Decimal = { unscaled: 2n ** 64n - 1n, scale: 0 };
/** A JavaScript number keeps so many digits of a decimal. */
const exactDigits = 15;

type Bounds<Value> = { readonly min: Value | null; readonly max: Value | null };

/** Prepares the check of a type that is not JSON. The type has passed the parser: its bounds and its pattern are good. */
export function compileScalar(
  type: Exclude<ScalarType, { kind: 'json' }>,
  enumValues: EnumValues,
): ScalarCheck {
  const wanted: CheckedScalar = { ok: false, reason: 'wrong', wanted: describeScalar(type) };
  switch (type.kind) {
    case 'int':
      return intCheck(decimalBounds(type.range), wanted);
    case 'decimal':
      return decimalCheck(type, decimalBounds(type.range), wanted);
    case 'float':
      return floatCheck(type.range, wanted);
    case 'bool':
      return (given, isText) => {
        if (typeof given === 'boolean') return { ok: true, value: given };
        const isWord = isText && (given === 'true' || given === 'false');
        return isWord ? { ok: true, value: given === 'true' } : wanted;
      };
    case 'text':
      return textCheck(type.maxCharacters, patternOf(type.pattern), wanted);
    case 'date':
    case 'datetime':
    case 'time':
      return momentCheck(type, wanted);
    case 'bytes':
      return (given) => (isBase64(given) ? { ok: true, value: { $binary: given } } : wanted);
    case 'uuid':
      return (given) =>
        typeof given === 'string' && uuid.test(given)
          ? { ok: true, value: given.toLowerCase() }
          : wanted;
    case 'enum': {
      const values = new Set(type.values);
      return (given) =>
        typeof given === 'string' && values.has(given) ? { ok: true, value: given } : wanted;
    }
    case 'enum of':
      return (given) => {
        const values = enumValues(type.table, type.column);
        if (values === null) return { ok: false, reason: 'unknown' };
        return typeof given === 'string' && values.has(given) ? { ok: true, value: given } : wanted;
      };
    default:
      return type satisfies never;
  }
}

const uuid = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/i;

function isBase64(given: unknown): given is string {
  // Node skips characters that are not base64: only a text that encodes to itself is well-formed.
  return typeof given === 'string' && Buffer.from(given, 'base64').toString('base64') === given;
}

function patternOf(source: string | null): Pattern | null {
  if (source === null) return null;
  const pattern = compilePattern(source);
  if (typeof pattern === 'string') throw new Error(`a pattern passed the parser: ${pattern}`);
  return pattern;
}

function intCheck({ min, max }: Bounds<Decimal>, wanted: CheckedScalar): ScalarCheck {
  const [low, high] = [min ?? minInt, max ?? maxInt];
  // Most integers are small: their bounds are compared without big numbers.
  const [lowNumber, highNumber] = [Number(low.unscaled), Number(high.unscaled)];
  return (given) => {
    if (typeof given === 'number' && Number.isSafeInteger(given)) {
      return given >= lowNumber && given <= highNumber ? { ok: true, value: given + 0 } : wanted;
    }
    const found = decimalOf(given);
    if (found === null || found.scale > 0 || !isWithin(found, low, high)) return wanted;
    return { ok: true, value: new LosslessNumber(found.unscaled.toString()) };
  };
}

function decimalCheck(
  { precision, scale }: { readonly precision: number; readonly scale: number },
  { min, max }: Bounds<Decimal>,
  wanted: CheckedScalar,
): ScalarCheck {
  return (given) => {
    const found = decimalOf(given);
    if (found === null || found.scale > scale) return wanted;
    if (wholeDigits(found) > precision - scale || !isWithin(found, min, max)) return wanted;
    // All digits after the point: the type of the literal must not depend on the value.
    return { ok: true, value: new LosslessNumber(formatDecimal(found, scale)) };
  };
}

function isWithin(value: Decimal, min: Decimal | null, max: Decimal | null): boolean {
  return (
    (min === null || compareDecimals(value, min) >= 0) &&
    (max === null || compareDecimals(value, max) <= 0)
  );
}

/** Texts count too: replies have BIGINT and DECIMAL as strings. Null: no number, or one whose digits JavaScript has cut. */
function decimalOf(given: unknown): Decimal | null {
  if (isLosslessNumber(given)) return parseDecimal(given.value);
  if (typeof given === 'string') return parseDecimal(given);
  if (typeof given !== 'number') return null;
  const text = String(given);
  const isExact = Number.isSafeInteger(given) || text.replace(/\D/g, '').length <= exactDigits;
  return isExact ? parseDecimal(text) : null;
}

function floatCheck({ min, max }: Range, wanted: CheckedScalar): ScalarCheck {
  const low = min === null ? Number.NEGATIVE_INFINITY : Number(min);
  const high = max === null ? Number.POSITIVE_INFINITY : Number(max);
  return (given, isText) => {
    const value = isLosslessNumber(given)
      ? Number(given.value)
      : isText && typeof given === 'string' && jsonNumber.test(given)
        ? Number(given)
        : given;
    if (typeof value !== 'number' || !Number.isFinite(value)) return wanted;
    if (value < low || value > high) return wanted;
    const digits = String(value);
    // A literal without an exponent is a DECIMAL.
    return { ok: true, value: new LosslessNumber(digits.includes('e') ? digits : `${digits}e0`) };
  };
}

const jsonNumber = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

function textCheck(
  maxCharacters: number,
  pattern: Pattern | null,
  wanted: CheckedScalar,
): ScalarCheck {
  return (given) => {
    if (typeof given !== 'string' || !isWellFormed(given)) return wanted;
    if (given.length > maxCharacters && hasMoreCharacters(given, maxCharacters)) return wanted;
    return pattern === null || pattern(given) ? { ok: true, value: given } : wanted;
  };
}

/** A character outside of the basic plane has two UTF-16 units. */
function hasMoreCharacters(text: string, max: number): boolean {
  if (text.length > 2 * max) return true;
  let count = 0;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit < 0xdc00 || unit > 0xdfff) count += 1;
  }
  return count > max;
}

type Moment = Extract<ScalarType, { kind: 'date' | 'datetime' | 'time' }>;

const momentParsers = { date: parseDate, datetime: parseDateTime, time: parseTime };

function momentCheck({ kind, range: { min, max } }: Moment, wanted: CheckedScalar): ScalarCheck {
  const parse = momentParsers[kind];
  return (given) => {
    const value = typeof given === 'string' ? parse(given) : null;
    if (value === null) return wanted;
    if (min !== null && compareMoments(kind, value, min) < 0) return wanted;
    if (max !== null && compareMoments(kind, value, max) > 0) return wanted;
    return { ok: true, value };
  };
}

function decimalBounds({ min, max }: Range): Bounds<Decimal> {
  return {
    min: min === null ? null : parseDecimal(min),
    max: max === null ? null : parseDecimal(max),
  };
}

/** The values of a type, for people, behind "must be". */
export function describeScalar(type: ScalarType): string {
  switch (type.kind) {
    case 'int':
      return `a whole number${describeRange(type.range)}`;
    case 'decimal': {
      const digits = `at most ${type.precision - type.scale} digits before the point and ${type.scale} after it`;
      return `a number with ${digits}${describeRange(type.range)}`;
    }
    case 'float':
      return `a number${describeRange(type.range)}`;
    case 'bool':
      return 'true or false';
    case 'text': {
      const matching = type.pattern === null ? '' : ` that matches ${type.pattern}`;
      return `a text of at most ${type.maxCharacters} characters${matching}`;
    }
    case 'date':
      return `a date that exists, as 2026-02-28${describeRange(type.range)}`;
    case 'datetime':
      return `a date and time that exist, as 2026-02-28 10:30:00${describeRange(type.range)}`;
    case 'time':
      return `a time, as 10:30:00${describeRange(type.range)}`;
    case 'json':
      return 'JSON';
    case 'bytes':
      return 'bytes as padded base64';
    case 'uuid':
      return 'a UUID, as 123e4567-e89b-12d3-a456-426614174000';
    case 'enum':
      return `one of ${type.values.join(', ')}`;
    case 'enum of':
      // The names of tables and columns are not for every client.
      return 'one of the values that the statement accepts';
    default:
      return type satisfies never;
  }
}

function describeRange({ min, max }: Range): string {
  if (min !== null && max !== null) return ` from ${min} to ${max}`;
  if (min !== null) return ` from ${min}`;
  return max === null ? '' : ` to ${max}`;
}
