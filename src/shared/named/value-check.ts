// Checks the value of one parameter: single values, JSON, lists and records.
import { isLosslessNumber } from 'lossless-json';
import { type Pieces, stepsInPiece } from '../pieces.ts';
import { parseJson, writeJson } from './json-value.ts';
import {
  compileScalar,
  describeScalar,
  type EnumValues,
  type Scalar,
  type ScalarCheck,
} from './scalar.ts';
import type { Field, ParameterType } from './statement.ts';

/** A value that has been checked. NULL is a scalar, whatever the type. */
export type BoundValue =
  | { readonly kind: 'scalar'; readonly value: Scalar }
  | { readonly kind: 'list'; readonly values: readonly Scalar[] }
  /** Bound as one text. */
  | { readonly kind: 'records'; readonly json: string; readonly count: number }
  | { readonly kind: 'choice'; readonly label: string };

/** `place` is the part of the value, as `[3].n`; '' for all of it. `wanted` continues "must be …". */
export type CheckedValue =
  | { readonly ok: true; readonly value: BoundValue }
  | {
      readonly ok: false;
      readonly reason: 'wrong';
      readonly place: string;
      readonly wanted: string;
    }
  | { readonly ok: false; readonly reason: 'unknown'; readonly place: string };

/** The check of a type. A quick one takes a few microseconds, except for long texts. */
export type ValueCheck =
  | { readonly kind: 'quick'; readonly check: (given: unknown, isText: boolean) => CheckedValue }
  | {
      readonly kind: 'long';
      /** @param isText as for a quick check */
      readonly check: (given: unknown, isText: boolean) => Pieces<CheckedValue>;
    };

/** Prepares the check of a type that has passed the parser. */
export function compileValue(type: ParameterType, enumValues: EnumValues): ValueCheck {
  switch (type.kind) {
    case 'choice':
      return { kind: 'quick', check: choiceCheck(type.choices.map(({ label }) => label)) };
    case 'json':
      return { kind: 'long', check: checkJson };
    case 'list': {
      const wanted = `a list of 1 to ${type.maxItems} values`;
      const items = itemsCheck(type.of, enumValues, type.maxItems, 1, wanted);
      return { kind: 'long', check: listCheck(items) };
    }
    case 'records': {
      const wanted = `an array of at most ${type.maxItems} objects`;
      return { kind: 'long', check: recordsCheck(type.fields, enumValues, type.maxItems, wanted) };
    }
    default:
      return quick(compileScalar(type, enumValues));
  }
}

function wrong(place: string, wanted: string): CheckedValue & { readonly ok: false } {
  return { ok: false, reason: 'wrong', place, wanted };
}

function choiceCheck(labels: readonly string[]): (given: unknown) => CheckedValue {
  const known = new Set(labels);
  const fault = wrong('', `one of ${labels.join(', ')}`);
  return (given) =>
    typeof given === 'string' && known.has(given)
      ? { ok: true, value: { kind: 'choice', label: given } }
      : fault;
}

function quick(run: ScalarCheck): ValueCheck {
  return {
    kind: 'quick',
    check: (given, isText) => {
      const checked = run(given, isText);
      return checked.ok ? scalar(checked.value) : { ...checked, place: '' };
    },
  };
}

function scalar(value: Scalar): CheckedValue {
  return { ok: true, value: { kind: 'scalar', value } };
}

function* checkJson(given: unknown, isText: boolean): Pieces<CheckedValue> {
  const parsed = isText && typeof given === 'string' ? parseJson(given) : { value: given };
  const text = parsed === null ? null : yield* writeJson(parsed.value);
  const wanted = `${describeScalar({ kind: 'json' })} of well-formed Unicode, nested at most 64 levels deep`;
  return text === null ? wrong('', wanted) : scalar(text);
}

/** Checks each item, and hands its value to `take`; null: all are good. */
type ItemsCheck = (
  given: unknown,
  isText: boolean,
  take: (value: Scalar) => void,
) => Pieces<(CheckedValue & { readonly ok: false }) | null>;

function itemsCheck(
  type: ParameterType,
  enumValues: EnumValues,
  maxItems: number,
  minItems: number,
  wanted: string,
): ItemsCheck {
  const item = compileValue(type, enumValues);
  return function* checkItems(given, isText, take) {
    if (!Array.isArray(given) || given.length < minItems || given.length > maxItems) {
      return wrong('', wanted);
    }
    for (const [at, one] of given.entries()) {
      if (at % stepsInPiece === 0 && at > 0) yield;
      const checked = yield* check(item, one, isText);
      if (!checked.ok) return { ...checked, place: `[${at}]${checked.place}` };
      if (checked.value.kind === 'scalar') take(checked.value.value);
    }
    return null;
  };
}

/** Checks a value. */
export function* check(
  { kind, check: run }: ValueCheck,
  given: unknown,
  isText: boolean,
): Pieces<CheckedValue> {
  if (kind === 'long') return yield* run(given, isText);
  return run(given, isText);
}

function listCheck(items: ItemsCheck) {
  return function* checkList(given: unknown, isText: boolean): Pieces<CheckedValue> {
    const values: Scalar[] = [];
    // A query string repeats the name. Once is a list of one.
    const list = isText && typeof given === 'string' ? [given] : given;
    const fault = yield* items(list, isText, (value) => values.push(value));
    return fault ?? { ok: true, value: { kind: 'list', values } };
  };
}

function recordsCheck(
  fields: readonly Field[],
  enumValues: EnumValues,
  maxItems: number,
  wanted: string,
) {
  const write = recordsWriter(fields, enumValues, maxItems, wanted);
  return function* checkRecords(given: unknown, isText: boolean): Pieces<CheckedValue> {
    const parsed = isText && typeof given === 'string' ? parseJson(given) : { value: given };
    const out: string[] = [];
    if (parsed === null) return wrong('', wanted);
    const fault = yield* write(out, parsed.value);
    if (fault !== null) return fault;
    const count = (parsed.value as readonly unknown[]).length;
    return { ok: true, value: { kind: 'records', json: out.join(''), count } };
  };
}

/** Checks a value and appends its JSON text; returns what is wrong, or null. */
type Writer = (
  out: string[],
  given: unknown,
) => Pieces<(CheckedValue & { readonly ok: false }) | null>;

function recordsWriter(
  fields: readonly Field[],
  enumValues: EnumValues,
  maxItems: number,
  wanted: string,
): Writer {
  const writers = fields.map(({ name, type }) => ({
    name,
    key: `${JSON.stringify(name)}:`,
    write: writerOf(type, enumValues),
  }));
  const names = new Set(fields.map(({ name }) => name));
  const wantedFields = `an object with the fields ${[...names].join(', ')}`;
  return function* writeRecords(out, given) {
    if (!Array.isArray(given) || given.length > maxItems) return wrong('', wanted);
    out.push('[');
    for (const [at, record] of given.entries()) {
      if (at % recordsInPiece === 0 && at > 0) yield;
      if (!isObject(record)) return wrong(`[${at}]`, wantedFields);
      for (const name of Object.keys(record)) {
        if (!names.has(name)) return wrong(`[${at}]`, `${wantedFields}, and no others`);
      }
      out.push(at === 0 ? '{' : ',{');
      for (const [number, { name, key, write }] of writers.entries()) {
        if (!Object.hasOwn(record, name))
          return wrong(`[${at}]`, `${wantedFields}: ${name} is missing`);
        out.push(number === 0 ? key : `,${key}`);
        const fault = yield* write(out, record[name]);
        if (fault !== null) return { ...fault, place: `[${at}].${name}${fault.place}` };
      }
      out.push('}');
    }
    out.push(']');
    return null;
  };
}

/** Each has a few fields. */
const recordsInPiece = stepsInPiece / 8;

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && !isLosslessNumber(value)
  );
}

function writerOf(type: ParameterType, enumValues: EnumValues): Writer {
  if (type.kind === 'records') {
    const wanted = `an array of at most ${type.maxItems} objects`;
    return recordsWriter(type.fields, enumValues, type.maxItems, wanted);
  }
  if (type.kind === 'list') return listWriter(type.of, enumValues, type.maxItems);
  const compiled = compileValue(type, enumValues);
  return function* writeValue(out, given) {
    const checked = yield* check(compiled, given, false);
    if (!checked.ok) return checked;
    if (checked.value.kind !== 'scalar') throw new Error('a field of a record is no single value');
    const { value } = checked.value;
    // The value of JSON is its text.
    out.push(type.kind === 'json' ? String(value) : scalarText(value));
    return null;
  };
}

function listWriter(type: ParameterType, enumValues: EnumValues, maxItems: number): Writer {
  const write = writerOf(type, enumValues);
  return function* writeList(out, given) {
    if (!Array.isArray(given) || given.length < 1 || given.length > maxItems) {
      return wrong('', `a list of 1 to ${maxItems} values`);
    }
    out.push('[');
    for (const [at, item] of given.entries()) {
      if (at % stepsInPiece === 0 && at > 0) yield;
      if (at > 0) out.push(',');
      const fault = yield* write(out, item);
      if (fault !== null) return { ...fault, place: `[${at}]${fault.place}` };
    }
    out.push(']');
    return null;
  };
}

function scalarText(value: Scalar): string {
  if (isLosslessNumber(value)) return value.value;
  return JSON.stringify(typeof value === 'object' && value !== null ? value.$binary : value);
}
