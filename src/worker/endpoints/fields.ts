// Checks the fields of a request one by one: a message names the field, and not its value.
import type { FailureCode } from '../../shared/failure-codes.ts';
import { isWellFormed } from '../../shared/sql/literal.ts';
import { type Refused, refuse } from '../failure/failure.ts';
import type { ParsedObject } from './json-text.ts';
import { type SectionNames, whyNotSection } from './sections.ts';

/** Why a field cannot be understood; `message` is for people and holds no value. */
export type FieldFault = { readonly code: FailureCode; readonly message: string };

/** A decoded request, or why it is refused; `exact` is its body with every digit of its numbers. */
export type Decoded<Request> =
  | { readonly ok: true; readonly request: Request; readonly exact: () => Fields }
  | Refused;

/** Says what is wrong with a field's value; null: nothing. */
export type FieldCheck = (value: unknown) => string | null;

/** A request's object, or one within it. */
export type Fields = Readonly<Record<string, unknown>>;

/** The fields of a body that are known and not null; or why there are none. */
export type DecodedFields =
  | {
      readonly ok: true;
      readonly fields: Fields;
      /** All of the body, its numbers as LosslessNumbers where a JavaScript number would lose digits. */
      readonly exact: () => Fields;
    }
  | Refused;

/**
 * Decodes a body of /v1: an object whose every field is known and has the right type. Never throws.
 * @param sections what the field `section` may say
 */
export function decodeFields(
  parsed: ParsedObject,
  sections: SectionNames,
  checks: ReadonlyMap<string, FieldCheck>,
): DecodedFields {
  if (!parsed.ok) return refuse(parsed.code, parsed.message);
  const fault = findFault(parsed.object, checks);
  if (fault !== null) return refuse(fault.code, fault.message);
  const fields = present(parsed.object);
  const failure = whyNotSection('section', fields.section, sections);
  if (failure !== null) return { ok: false, failure };
  return { ok: true, fields, exact: parsed.exact };
}

/** The first fault of an object; null: none. A field that is null counts as absent. */
export function findFault(
  object: Fields,
  checks: ReadonlyMap<string, FieldCheck>,
): FieldFault | null {
  for (const [name, value] of Object.entries(object)) {
    const check = checks.get(name);
    if (check === undefined) return unknownField(name, checks);
    const expected = value === null ? null : check(value);
    if (expected !== null) return { code: 'BAD_KEY', message: `${name} must be ${expected}` };
  }
  return null;
}

function unknownField(name: string, checks: ReadonlyMap<string, FieldCheck>): FieldFault {
  const shown = JSON.stringify(name.slice(0, 64));
  return {
    code: 'UNKNOWN_FIELD',
    message: `${shown} is not a field here; there are ${[...checks.keys()].join(', ')}`,
  };
}

/** A string of well-formed Unicode. */
export const isText: FieldCheck = (value) =>
  typeof value === 'string' && isWellFormed(value)
    ? null
    : 'a string of Unicode text, without half surrogate pairs';

export const isBoolean: FieldCheck = (value) =>
  typeof value === 'boolean' ? null : 'true or false';

/** Values for `?` in an array, for `:name` in an object. */
export const isParameters: FieldCheck = (value) =>
  typeof value === 'object' ? null : 'an array or an object';

/** A number of milliseconds. */
export const isDuration: FieldCheck = (value) =>
  typeof value === 'number' && value > 0 && Number.isFinite(value)
    ? null
    : 'a number of milliseconds above 0';

/** A count from 0. */
export const isCount: FieldCheck = (value) =>
  Number.isSafeInteger(value) && (value as number) >= 0 ? null : 'a whole number from 0';

/** One of several words. */
export function isOneOf(...words: readonly string[]): FieldCheck {
  return (value) =>
    words.includes(value as string) ? null : words.map((word) => `"${word}"`).join(' or ');
}

/** The same fields, without those that are null. */
export function present(object: Fields): Fields {
  if (!Object.values(object).includes(null)) return object;
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== null));
}
