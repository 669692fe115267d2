// A call of a named statement: its parameters are checked, and its SQL gets their values. All that the file decides is prepared once.
import type { Claims } from '../clients/caller.ts';
import { allAtOnce, type Pieces, stepsInPiece } from '../pieces.ts';
import type { Analysis } from '../sql/analyse.ts';
import { encodeLiteral } from '../sql/literal.ts';
import type { BuiltIns } from '../sql/vocabulary.ts';
import { PartWriter } from './part-writer.ts';
import type { EnumValues, Scalar } from './scalar.ts';
import type { Expect, NamedStatement, Parameter } from './statement.ts';
import {
  type BoundValue,
  type CheckedValue,
  check,
  compileValue,
  type ValueCheck,
} from './value-check.ts';

/** A statement that is ready to be called. */
export type CallableStatement = {
  readonly statement: NamedStatement;
  readonly parameters: readonly CallableParameter[];
  readonly indexes: ReadonlyMap<string, number>;
  readonly parts: readonly PartWriter[];
};

type CallableParameter = {
  readonly parameter: Parameter;
  readonly check: ValueCheck;
  /** The default; null: there is none, or it is not known before the values of an enum are. */
  readonly fallback: { readonly value: BoundValue } | null;
};

/** The values of a request: members of a JSON object with all digits of their numbers, or the fields of a query string in order. */
export type GivenValues =
  | { readonly kind: 'json'; readonly params: Readonly<Record<string, unknown>> }
  | { readonly kind: 'text'; readonly fields: readonly (readonly [name: string, value: string])[] };

/**
 * Why a call is refused. `parameter` is its name in the file, or the client's; `message` is for people, names it, and contains no value.
 * `parameter`: the client's fault (400). `claim missing`, `claim invalid`: 403. `enum unknown`: the catalogue is not known yet (503).
 */
export type Refusal = {
  readonly reason: 'parameter' | 'claim missing' | 'claim invalid' | 'enum unknown';
  readonly parameter: string;
  readonly message: string;
};

/** Good values, in the order of the parameters. */
export type CheckedCall =
  | {
      readonly ok: true;
      readonly values: readonly BoundValue[];
      /** The claims among them, as text: part of what a caller owns. '' if there are none. */
      readonly claims: string;
    }
  | { readonly ok: false; readonly refusal: Refusal };

/** SQL with its values, and the analysis of the text. `expect` has numbers only. */
export type CalledPart = {
  readonly sql: string;
  readonly analysis: Analysis;
  readonly step: string | null;
  readonly expect: CalledExpect | null;
  readonly isAnswer: boolean;
};

export type CalledExpect = {
  readonly of: Expect['of'];
  readonly min: number;
  readonly max: number;
  readonly code: string | null;
};

/** The SQL of all parts; `too large`: one would be longer than the server takes. */
export type WrittenCall =
  | { readonly ok: true; readonly parts: readonly CalledPart[] }
  | { readonly ok: false; readonly reason: 'too large' };

/** Prepares a statement. @param enumValues is asked at each call, so that it may learn */
export function prepareStatement(
  statement: NamedStatement,
  enumValues: EnumValues,
): CallableStatement {
  const parameters = statement.parameters.map((parameter): CallableParameter => {
    const compiled = compileValue(parameter.type, enumValues);
    return { parameter, check: compiled, fallback: fallbackOf(parameter, compiled) };
  });
  const indexes = new Map(parameters.map(({ parameter: { name } }, index) => [name, index]));
  const parts = statement.parts.map((part) => new PartWriter(part, statement.parameters, indexes));
  return { statement, parameters, indexes, parts };
}

const nullValue: BoundValue = { kind: 'scalar', value: null };

function fallbackOf({ fallback, type }: Parameter, compiled: ValueCheck) {
  if (fallback.kind === 'null') return { value: nullValue };
  // The values of a column may change: such a default is checked at each call.
  if (fallback.kind !== 'value' || type.kind === 'enum of') return null;
  const checked = allAtOnce(check(compiled, fallback.text, true));
  if (!checked.ok) throw new Error('a default has passed the parser, and is not good');
  return { value: checked.value };
}

const noClaims = '';

/** Checks the values of a request. Never throws. */
export function* checkCall(
  { parameters, indexes }: CallableStatement,
  given: GivenValues,
  claims: Claims,
): Pieces<CheckedCall> {
  const collected = collect(given, parameters, indexes);
  if ('reason' in collected) return { ok: false, refusal: collected };
  const values: BoundValue[] = [];
  const bound: (readonly [string, BoundValue])[] = [];
  for (const [index, callable] of parameters.entries()) {
    const { parameter } = callable;
    const isClaim = parameter.fallback.kind === 'claim';
    const found = yield* isClaim
      ? checkClaim(callable, claims)
      : checkGiven(callable, collected[index], given.kind === 'text');
    if (!found.ok) return found;
    values.push(found.value);
    if (isClaim) bound.push([parameter.name, found.value]);
  }
  return { ok: true, values, claims: bound.length === 0 ? noClaims : JSON.stringify(bound) };
}

function refuse(reason: Refusal['reason'], parameter: string, message: string): Refusal {
  return { reason, parameter, message };
}

const maxShownName = 64;

/** The request's values by the index of their parameter; absent ones are undefined. */
function collect(
  given: GivenValues,
  parameters: readonly CallableParameter[],
  indexes: ReadonlyMap<string, number>,
): readonly unknown[] | Refusal {
  const found: unknown[] = new Array(parameters.length).fill(undefined);
  const entries = given.kind === 'json' ? Object.entries(given.params) : given.fields;
  for (const [name, value] of entries) {
    const index = indexes.get(name);
    const callable = index === undefined ? undefined : parameters[index];
    if (index === undefined || callable === undefined) {
      const shown = name.slice(0, maxShownName);
      return refuse(
        'parameter',
        shown,
        `${JSON.stringify(shown)} is not a parameter of the statement`,
      );
    }
    const { type, fallback } = callable.parameter;
    if (fallback.kind === 'claim') {
      return refuse('parameter', name, `${name} comes from the credentials and cannot be sent`);
    }
    if (given.kind === 'json' || (type.kind !== 'list' && found[index] === undefined)) {
      found[index] = value;
    } else if (type.kind === 'list') {
      const list = (found[index] ?? []) as unknown[];
      list.push(value);
      found[index] = list;
    } else return refuse('parameter', name, `${name} is there more than once, and is not a list`);
  }
  return found;
}

type CheckedParameter =
  | { readonly ok: true; readonly value: BoundValue }
  | { readonly ok: false; readonly refusal: Refusal };

function* checkGiven(
  { parameter, check: compiled, fallback }: CallableParameter,
  given: unknown,
  isText: boolean,
): Pieces<CheckedParameter> {
  const { name } = parameter;
  if (given === undefined) {
    if (fallback !== null) return { ok: true, value: fallback.value };
    if (parameter.fallback.kind === 'value') {
      return fromClient(name, yield* check(compiled, parameter.fallback.text, true));
    }
    return { ok: false, refusal: refuse('parameter', name, `${name} is missing`) };
  }
  if (given === null) {
    if (parameter.fallback.kind === 'null') return { ok: true, value: nullValue };
    return { ok: false, refusal: refuse('parameter', name, `${name} must not be null`) };
  }
  if (compiled.kind === 'quick') {
    return fromClient(name, compiled.check(given, isText));
  }
  return fromClient(name, yield* compiled.check(given, isText));
}

function fromClient(name: string, checked: CheckedValue): CheckedParameter {
  if (checked.ok) return checked;
  if (checked.reason === 'unknown') return unknownEnum(name);
  const message = `${name}${checked.place} must be ${checked.wanted}`;
  return { ok: false, refusal: refuse('parameter', name, message) };
}

function unknownEnum(name: string): CheckedParameter {
  const message = `the values of ${name} are not known yet: the database has not been reached`;
  return { ok: false, refusal: refuse('enum unknown', name, message) };
}

function* checkClaim(
  { parameter: { name, fallback }, check: compiled }: CallableParameter,
  claims: Claims,
): Pieces<CheckedParameter> {
  const path = fallback.kind === 'claim' ? fallback.path : [];
  const shown = path.join('.');
  let claim: unknown = claims;
  for (const segment of path) {
    const isThere = typeof claim === 'object' && claim !== null && Object.hasOwn(claim, segment);
    claim = isThere ? (claim as Claims)[segment] : undefined;
  }
  if (claim === undefined) {
    const message = `the credentials have no claim ${shown}, which ${name} needs`;
    return { ok: false, refusal: refuse('claim missing', name, message) };
  }
  // A claim is never NULL: the statement would be another one.
  const checked = claim === null ? null : yield* check(compiled, claim, false);
  if (checked?.ok === true) return checked;
  if (checked?.reason === 'unknown') return unknownEnum(name);
  const message = `the claim ${shown} of the credentials is not a value of ${name}`;
  return { ok: false, refusal: refuse('claim invalid', name, message) };
}

/** Writes the SQL of a call. @param maxBytes longest text of a statement, as UTF-8 @param builtIns what the server has built in */
export function* writeCall(
  { parts, indexes }: CallableStatement,
  values: readonly BoundValue[],
  maxBytes: number,
  builtIns: BuiltIns,
): Pieces<WrittenCall> {
  const literals: string[] = [];
  for (const value of values) {
    const literal = yield* literalOf(value, maxBytes);
    if (literal === null) return { ok: false, reason: 'too large' };
    literals.push(literal);
  }
  const written: CalledPart[] = [];
  for (const writer of parts) {
    const variant = writer.variantFor(values, builtIns);
    const sql = variant.write(literals, maxBytes);
    if (sql === null) return { ok: false, reason: 'too large' };
    const { part } = writer;
    written.push({
      sql,
      analysis: variant.analysisOf(sql),
      step: part.step,
      expect: part.expect === null ? null : countExpect(part.expect, values, indexes),
      isAnswer: part.isAnswer,
    });
  }
  return { ok: true, parts: written };
}

/** Null: it would be too long. A choice has no literal. */
function* literalOf(value: BoundValue, maxBytes: number): Pieces<string | null> {
  switch (value.kind) {
    case 'scalar':
      return encode(value.value, maxBytes);
    case 'records':
      return encode(value.json, maxBytes);
    case 'choice':
      return '';
    case 'list':
      break;
    default:
      return value satisfies never;
  }
  const literals: string[] = [];
  let left = maxBytes;
  for (const [at, item] of value.values.entries()) {
    if (at % stepsInPiece === 0 && at > 0) yield;
    const literal = encode(item, left);
    if (literal === null) return null;
    left -= literal.length + 1;
    literals.push(literal);
  }
  return literals.join(',');
}

function encode(value: Scalar, maxBytes: number): string | null {
  const literal = encodeLiteral(value, maxBytes);
  if (literal.ok) return literal.sql;
  if (literal.reason === 'too large') return null;
  throw new Error(`a checked value ${literal.fault}`);
}

function countExpect(
  { of, bounds, code }: Expect,
  values: readonly BoundValue[],
  indexes: ReadonlyMap<string, number>,
): CalledExpect {
  if (bounds.kind === 'range') return { of, min: bounds.min, max: bounds.max, code };
  const count = countItems(values[indexes.get(bounds.parameter) ?? -1]);
  return { of, min: count, max: count, code };
}

/** NULL has no items. */
function countItems(value: BoundValue | undefined): number {
  if (value?.kind === 'list') return value.values.length;
  return value?.kind === 'records' ? value.count : 0;
}
