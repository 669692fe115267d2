// Decodes what a client asks of /v1/batch into one checked shape.
import type { Pieces } from '../../../shared/pieces.ts';
import type { Parameters } from '../../../shared/sql/bind.ts';
import { type Isolation, isolationLevels } from '../../../shared/sql/transactions.ts';
import type { V1Layout } from '../../encode/formats/v1-heads.ts';
import type { Expectation } from '../../execution/work.ts';
import { refusal, refuse } from '../../failure/failure.ts';
import {
  type Decoded,
  decodeFields,
  type FieldCheck,
  type FieldFault,
  type Fields,
  findFault,
  isBoolean,
  isCount,
  isDuration,
  isOneOf,
  isParameters,
  isText,
  present,
} from '../fields.ts';
import type { ParsedObject } from '../json-text.ts';
import type { SectionNames } from '../sections.ts';
import { layoutChecks, layoutOf } from './layout.ts';
import { isNamedParams } from './named-request.ts';

/** One of a batch's statements: a text of SQL, or a named statement. */
export type AskedStatement = AskedSql | AskedNamed;

/** A text of SQL. */
export type AskedSql = {
  readonly kind: 'sql';
  readonly sql: string;
  /** Numbers are LosslessNumbers where a JavaScript number would lose digits. */
  readonly params: Parameters;
  readonly expect: Expectation | null;
};

/** A call of a named statement. Its values are not checked. */
export type AskedNamed = {
  readonly kind: 'named';
  readonly name: string;
  /** As for SQL. */
  readonly params: Fields;
};

/** A request whose every field has the right type. */
export type BatchRequest = {
  /** Null: it names none. */
  readonly section: string | null;
  readonly statements: readonly AskedStatement[];
  readonly isAtomic: boolean;
  readonly isolation: Isolation | null;
  readonly readOnly: boolean;
  readonly retry: number;
  /** Whether each result lists the server's warnings. */
  readonly showWarnings: boolean;
  /** As asked for; the caller limits it to its own. */
  readonly timeoutMs: number | null;
  readonly layout: V1Layout;
};

/** Each takes a microsecond or two. */
const statementsInPiece = 256;
/** How often a batch runs again, if the request does not say. */
const usualRetry = 3;

const isObject: FieldCheck = (value) =>
  typeof value === 'object' && !Array.isArray(value) ? null : 'an object';

const isStatements: FieldCheck = (value) =>
  Array.isArray(value) && value.length > 0 ? null : 'an array of at least one statement';

const isCountOrRange: FieldCheck = (value) =>
  isCount(value) === null || isObject(value) === null
    ? null
    : 'a whole number from 0, or {"min":…,"max":…}';

const checks: ReadonlyMap<string, FieldCheck> = new Map<string, FieldCheck>([
  ['statements', isStatements],
  ['atomic', isBoolean],
  ['isolation', isOneOf(...isolationLevels)],
  ['read_only', isBoolean],
  ['retry', isCount],
  ['show_warnings', isBoolean],
  ['timeout_ms', isDuration],
  ...layoutChecks,
  ['section', isText],
]);

const statementChecks: ReadonlyMap<string, FieldCheck> = new Map([
  ['sql', isText],
  ['named', isText],
  ['params', isParameters],
  ['expect', isObject],
]);

/** The fields of a request, and of one of its statements. */
export const batchFields: readonly string[] = [...checks.keys()];
export const batchStatementFields: readonly string[] = [...statementChecks.keys()];

const expectChecks: ReadonlyMap<string, FieldCheck> = new Map([
  ['affected_rows', isCountOrRange],
  ['row_count', isCountOrRange],
]);

const rangeChecks: ReadonlyMap<string, FieldCheck> = new Map([
  ['min', isCount],
  ['max', isCount],
]);

/** `sections` is what the field `section` may say. Never throws. */
export function* decodeBatch(
  parsed: ParsedObject,
  sections: SectionNames,
): Pieces<Decoded<BatchRequest>> {
  const decoded = decodeFields(parsed, sections, checks);
  if (!decoded.ok) return decoded;
  const { fields, exact } = decoded;
  const isAtomic = fields.atomic !== false;
  const needsTransaction = ['isolation', 'retry'].find((name) => fields[name] !== undefined);
  if (!isAtomic && needsTransaction !== undefined) {
    return refuse('BAD_KEY', `${needsTransaction} needs a transaction, and atomic is false`);
  }
  const asked = fields.statements as readonly unknown[] | undefined;
  if (asked === undefined) return refuse('NO_SQL', 'statements is missing');
  const params = () => exact().statements as readonly Fields[];
  const statements: AskedStatement[] = [];
  for (const [number, one] of asked.entries()) {
    if (number % statementsInPiece === 0) yield;
    const statement = decodeStatement(one, () => params()[number]?.params as Parameters);
    if (!statement.ok) {
      const { code, message } = statement.fault;
      const failure = refusal(code, `statements[${number}]: ${message}`);
      return { ok: false, failure: { ...failure, place: { statement: number } } };
    }
    statements.push(statement.statement);
  }
  return {
    ok: true,
    exact,
    request: {
      section: (fields.section as string | undefined) ?? null,
      statements,
      isAtomic,
      isolation: (fields.isolation as Isolation | undefined) ?? null,
      readOnly: fields.read_only === true,
      retry: (fields.retry as number | undefined) ?? usualRetry,
      showWarnings: fields.show_warnings === true,
      timeoutMs: (fields.timeout_ms as number | undefined) ?? null,
      layout: layoutOf(fields),
    },
  };
}

type DecodedStatement =
  | { readonly ok: true; readonly statement: AskedStatement }
  | { readonly ok: false; readonly fault: FieldFault };

function decodeStatement(value: unknown, exactParams: () => Parameters): DecodedStatement {
  if (value === null || isObject(value) !== null) {
    const example = typeof value === 'string' ? ', as in {"sql":"select 1"}' : '';
    return misfit('BAD_KEY', `it must be an object${example}`);
  }
  const fault = findFault(value as Fields, statementChecks);
  if (fault !== null) return { ok: false, fault };
  const fields = present(value as Fields);
  if (fields.named !== undefined) return decodeNamed(fields, exactParams);
  const sql = (fields.sql as string | undefined) ?? '';
  if (sql.trim() === '') {
    return misfit('NO_SQL', 'sql is missing, or empty');
  }
  const expected = decodeExpectation(fields.expect as Fields | undefined);
  if (!expected.ok) return expected;
  const params = fields.params === undefined ? [] : exactParams();
  return { ok: true, statement: { kind: 'sql', sql, params, expect: expected.expect } };
}

function decodeNamed(fields: Fields, exactParams: () => Parameters): DecodedStatement {
  for (const other of ['sql', 'expect']) {
    if (fields[other] !== undefined)
      return misfit('BAD_KEY', `${other} is not allowed beside named`);
  }
  const wrong = fields.params === undefined ? null : isNamedParams(fields.params);
  if (wrong !== null) return misfit('BAD_KEY', `params must be ${wrong}`);
  const params = fields.params === undefined ? {} : (exactParams() as Fields);
  return { ok: true, statement: { kind: 'named', name: fields.named as string, params } };
}

type DecodedExpectation =
  | { readonly ok: true; readonly expect: Expectation | null }
  | { readonly ok: false; readonly fault: FieldFault };

function decodeExpectation(object: Fields | undefined): DecodedExpectation {
  if (object === undefined) return { ok: true, expect: null };
  const fault = findFault(object, expectChecks);
  if (fault !== null) return misfit(fault.code, `expect: ${fault.message}`);
  const wanted = Object.entries(present(object));
  const [of, bounds] = wanted[0] ?? [];
  if (wanted.length !== 1 || of === undefined) {
    return misfit('BAD_KEY', 'expect takes one of affected_rows and row_count');
  }
  const about = { of: of as Expectation['of'], code: 'EXPECTATION_FAILED' } as const;
  if (typeof bounds === 'number') {
    return { ok: true, expect: { ...about, min: bounds, max: bounds } };
  }
  const wrong = findFault(bounds as Fields, rangeChecks);
  if (wrong !== null) return misfit(wrong.code, `expect.${of}: ${wrong.message}`);
  const { min = 0, max = Number.POSITIVE_INFINITY } = present(bounds as Fields);
  return { ok: true, expect: { ...about, min: min as number, max: max as number } };
}

function misfit(code: FieldFault['code'], message: string) {
  return { ok: false, fault: { code, message } } as const;
}
