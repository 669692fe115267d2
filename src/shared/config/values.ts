// Values of keys: their types and ranges, parsing and formatting. Problems never repeat the value, which may be a secret.
import { isAbsolute, normalize } from 'node:path';
import { type HostItem, type ListenAddress, parseHosts, parseListenAddress } from './addresses.ts';

/** The type of a parsed value. */
export type ValueOf<T extends ValueType> = T extends {
  kind: 'choice';
  choices: readonly (infer C)[];
}
  ? C
  : T extends { kind: 'integer' | 'duration' | 'size' | 'mode' | 'date' }
    ? number
    : T extends { kind: 'flag' }
      ? boolean
      : T extends { kind: 'list' }
        ? readonly string[]
        : T extends { kind: 'address' }
          ? ListenAddress
          : T extends { kind: 'hosts' }
            ? readonly HostItem[]
            : string;

type Value = string | number | boolean | readonly string[] | readonly HostItem[] | ListenAddress;
type Parsed =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly problem: string };

const ok = (value: Value): Parsed => ({ ok: true, value });
const bad = (problem: string): Parsed => ({ ok: false, problem });

const durationUnits: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
};
const sizeUnits: Readonly<Record<string, number>> = { '': 1, KiB: 1024, MiB: 1024 ** 2 };

/** Parses the text of a value. */
export function parseValue(type: ValueType, text: string): Parsed {
  if (text === '') return bad('is empty');
  if (text.includes('\0')) return bad('contains a NUL character');
  switch (type.kind) {
    case 'text':
    case 'sql':
      return ok(text);
    case 'path':
      return isAbsolute(text) ? ok(normalize(text)) : bad('must be an absolute path');
    case 'integer':
      return parseQuantity(text, { '': 1 }, type, 'a whole number');
    case 'duration':
      return parseQuantity(text, durationUnits, type, 'a duration such as 500ms, 30s or 5m');
    case 'size':
      return parseQuantity(text, sizeUnits, type, 'a size such as 64KiB or 1MiB');
    case 'mode':
      return /^0?[0-7]{3}$/.test(text)
        ? ok(Number.parseInt(text, 8))
        : bad('must be octal, such as 0660');
    case 'flag':
      return text === 'on' || text === 'off' ? ok(text === 'on') : bad('must be on or off');
    case 'choice':
      return type.choices.includes(text)
        ? ok(text)
        : bad(`must be one of ${type.choices.join(', ')}`);
    case 'list':
      return parseList(text);
    case 'date':
      return parseDate(text);
    case 'address': {
      const address = parseListenAddress(text);
      return typeof address === 'string' ? bad(address) : ok(address);
    }
    case 'hosts': {
      const hosts = parseHosts(text);
      return typeof hosts === 'string' ? bad(hosts) : ok(hosts);
    }
    case 'table':
      return /^[^.`/\\]{1,64}(\.[^.`/\\]{1,64})?$/.test(text)
        ? ok(text)
        : bad('must be a table, or database.table, without quotes');
    default:
      return type satisfies never;
  }
}

function parseQuantity(
  text: string,
  units: Readonly<Record<string, number>>,
  range: { readonly min: number; readonly max: number },
  wanted: string,
): Parsed {
  const match = /^(\d{1,16})\s?([A-Za-z]*)$/.exec(text);
  // Zero needs no unit.
  const factor = match?.[1] === '0' && match[2] === '' ? 1 : units[match?.[2] ?? '?'];
  if (match === null || factor === undefined) return bad(`must be ${wanted}`);
  const value = Number(match[1]) * factor;
  if (value >= range.min && value <= range.max) return ok(value);
  return bad(
    `must be from ${formatQuantity(range.min, units)} to ${formatQuantity(range.max, units)}`,
  );
}

function parseList(text: string): Parsed {
  const items = text.split(/[,\n]/).map((item) => item.trim());
  return items.every((item) => item !== '') ? ok(items) : bad('has an empty entry');
}

/** A day as in ISO 8601, for the moment in UTC at which it begins. */
function parseDate(text: string): Parsed {
  const ms = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(text) : Number.NaN;
  // 2027-02-30 is read as a day in March.
  return !Number.isNaN(ms) && formatDate(ms) === text
    ? ok(ms)
    : bad('must be a day such as 2027-01-01');
}

/** The day of a moment, in UTC. */
export function formatDate(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

function formatQuantity(value: number, units: Readonly<Record<string, number>>): string {
  if (value === 0) return '0';
  let best = `${value}`;
  for (const [unit, factor] of Object.entries(units)) {
    if (value % factor === 0) best = `${value / factor}${unit}`;
  }
  return best;
}

/** A value as it is written in the file. */
export function formatValue(type: ValueType, value: Value): string {
  if (type.kind === 'duration') return formatQuantity(Number(value), durationUnits);
  if (type.kind === 'size') return formatQuantity(Number(value), sizeUnits);
  if (type.kind === 'mode') return `0${Number(value).toString(8)}`;
  if (type.kind === 'flag') return value === true ? 'on' : 'off';
  if (type.kind === 'date') return formatDate(Number(value));
  if (Array.isArray(value)) return value.join(', ');
  return String(value);
}

/** A description of the values that a type accepts. */
export function describeType(type: ValueType): string {
  switch (type.kind) {
    case 'integer':
      return `${type.min} to ${type.max}`;
    case 'duration':
      return `${formatQuantity(type.min, durationUnits)} to ${formatQuantity(type.max, durationUnits)}`;
    case 'size':
      return `${formatQuantity(type.min, sizeUnits)} to ${formatQuantity(type.max, sizeUnits)}`;
    case 'choice':
      return type.choices.map((choice) => `\`${choice}\``).join(', ');
    case 'flag':
      return '`on`, `off`';
    case 'path':
      return 'absolute path';
    case 'mode':
      return 'octal';
    case 'date':
      return '`2027-01-01`';
    case 'sql':
      return 'SQL';
    case 'table':
      return '`table`, `database.table`';
    case 'hosts':
      return '`host`, `host:port`, several';
    case 'text':
    case 'list':
    case 'address':
      return type.kind;
    default:
      return type satisfies never;
  }
}

/** The values that a key accepts, with their range: durations in ms, sizes in bytes. */
export type ValueType =
  | { readonly kind: 'text' }
  | { readonly kind: 'sql' }
  | { readonly kind: 'path' }
  | { readonly kind: 'integer'; readonly min: number; readonly max: number }
  | { readonly kind: 'duration'; readonly min: number; readonly max: number }
  | { readonly kind: 'size'; readonly min: number; readonly max: number }
  | { readonly kind: 'mode' }
  | { readonly kind: 'flag' }
  | { readonly kind: 'choice'; readonly choices: readonly string[] }
  | { readonly kind: 'list' }
  | { readonly kind: 'date' }
  | { readonly kind: 'address' }
  | { readonly kind: 'hosts' }
  | { readonly kind: 'table' };

/** Any text. */
export const text = { kind: 'text' } as const;
/** An absolute path. */
export const path = { kind: 'path' } as const;
/** The name of a table, with or without its database. */
export const table = { kind: 'table' } as const;
/** `on` or `off`. */
export const flag = { kind: 'flag' } as const;
/** Texts, comma-separated. */
export const list = { kind: 'list' } as const;
/** A day in UTC. Its value is the moment in ms at which it begins. */
export const date = { kind: 'date' } as const;
/** A whole number. Both ends belong to the range. */
export const integer = <const T extends number>(min: T, max: number) =>
  ({ kind: 'integer', min, max }) as const;
/** A time with its unit. The range is in ms. */
export const duration = (min: number, max: number) => ({ kind: 'duration', min, max }) as const;
/** A size with its unit. The range is in bytes. */
export const size = (min: number, max: number) => ({ kind: 'size', min, max }) as const;
/** One of some words. */
export const choice = <const C extends readonly string[]>(...choices: C) =>
  ({ kind: 'choice', choices }) as const;
