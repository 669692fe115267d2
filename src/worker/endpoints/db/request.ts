// Decodes what a client asks of /db, from the URL or from a body, into one checked shape.
import type { Pieces } from '../../../shared/pieces.ts';
import type { Parameters } from '../../../shared/sql/bind.ts';
import { type Refused, refuse } from '../../failure/failure.ts';
import { escapeControls, plainKeys, type Rules } from '../../request/compat.ts';
import {
  type FieldCheck,
  type Fields,
  isBoolean,
  isDuration,
  isOneOf,
  isParameters,
  isText,
} from '../fields.ts';
import { type ParsedObject, parseText } from '../json-text.ts';
import { type SectionNames, whyNotSection } from '../sections.ts';
import { decodeQueryString } from './query-string.ts';

/** DBSlayer's questions about the server and the gateway, in the order of its replies. */
export const metadataKeys = [
  'STAT',
  'CLIENT_INFO',
  'HOST_INFO',
  'SERVER_VERSION',
  'CLIENT_VERSION',
  'SERVER_NAME',
  'SLAYER_HELP',
] as const;

/** One of them. */
export type MetadataKey = (typeof metadataKeys)[number];

/** A request to /db whose every key has the right type. */
export type DbRequest = {
  /** The section that SERVER names; null: none. */
  readonly section: string | null;
  /** Null when only metadata is asked for. */
  readonly sql: string | null;
  /** Numbers are LosslessNumbers where a JavaScript number would lose digits. */
  readonly params: Parameters | null;
  /** As asked for; the caller limits it to its own. */
  readonly timeoutMs: number | null;
  readonly readOnly: boolean;
  readonly exactNumbersAsStrings: boolean;
  readonly rollbackOnError: boolean;
  /** In the order of DBSlayer's reply. */
  readonly metadata: readonly MetadataKey[];
};

/** A decoded request, or why it is refused. The message holds no value. */
export type Decoded = { readonly ok: true; readonly request: DbRequest } | Refused;

const metadataNames: ReadonlySet<string> = new Set(metadataKeys);
const flags: ReadonlySet<string> = new Set(['READ_ONLY', 'ROLLBACK_ON_ERROR', ...metadataKeys]);
const noMetadata: readonly MetadataKey[] = [];
const hint = 'ask for /db?{"SQL":"select 1"} (URL-encoded), or POST the same object';

/** Parses a URL: everything after the first `?`, one character a byte, is the JSON text. A long one is parsed in pieces. */
export function* parseDbQueryString(
  rawQueryLatin1: string,
  rules: Rules,
  isLong: boolean,
): Pieces<ParsedObject> {
  const text = decodeQueryString(rawQueryLatin1);
  if (isLong) yield;
  return yield* parseText(rules.rawControls ? escapeControls(text) : text, isLong);
}

/** Decodes the object of a URL or of a POST. `sections` is what SERVER may name. Never throws. */
export function decodeDb(parsed: ParsedObject, sections: SectionNames, rules: Rules): Decoded {
  if (!parsed.ok) return refuse(parsed.code, `${parsed.message}; ${hint}`);
  const object = rules.looseKeys ? plainKeys(parsed.object, flags) : parsed.object;
  const fault = findFault(object);
  if (fault !== null) return fault;
  const { SERVER: section } = object;
  const failure = whyNotSection('SERVER', section, sections);
  if (failure !== null) return { ok: false, failure };
  const sql = isBlank(object.SQL) ? null : (object.SQL as string);
  const metadata = readMetadata(object);
  if (sql === null && metadata.length === 0)
    return refuse('NO_SQL', `the request has no SQL; ${hint}`);
  const hasParams = object.PARAMS !== undefined;
  return {
    ok: true,
    request: {
      section: (section as string | undefined) ?? null,
      sql,
      params: hasParams ? (parsed.exact().PARAMS as Parameters) : null,
      timeoutMs: (object.TIMEOUT as number | undefined) ?? null,
      readOnly: object.READ_ONLY === true,
      exactNumbersAsStrings: object.NUMBERS === 'string',
      rollbackOnError: object.ROLLBACK_ON_ERROR === true,
      metadata,
    },
  };
}

/** The checks of values. Other keys mean nothing here and are ignored, as DBSlayer did, unless only their letters' case differs. */
const checks: ReadonlyMap<string, FieldCheck> = new Map<string, FieldCheck>([
  ['SQL', isText],
  ['PARAMS', (value) => (value === null ? 'an array or an object' : isParameters(value))],
  ['TIMEOUT', isDuration],
  ['NUMBERS', isOneOf('string')],
  ['FORMAT', (value) => (isJsonFormat(value) ? null : '"json": there is no other')],
  ...[...flags].map((key) => [key, isBoolean] as const),
  ['SERVER', () => null],
]);

/** The first key whose value has the wrong type, or whose letters have the wrong case. */
function findFault(object: Fields): Refused | null {
  for (const [key, value] of Object.entries(object)) {
    const expected = checks.get(key)?.(value) ?? null;
    if (expected !== null) return refuse('BAD_KEY', `${key} must be ${expected}`);
    // If it were ignored, the request would run without what it asks for.
    const capitals = key.toUpperCase();
    if (!checks.has(key) && checks.has(capitals))
      return refuse('BAD_KEY', `${capitals} must be written in capitals`);
  }
  return null;
}

/** DBSlayer also wrote XML, when asked for just "xml". */
function isJsonFormat(value: unknown): boolean {
  return typeof value === 'string' && value.toLowerCase() === 'json';
}

function readMetadata(object: Fields): readonly MetadataKey[] {
  if (!Object.keys(object).some((key) => metadataNames.has(key))) return noMetadata;
  return metadataKeys.filter((key) => object[key] === true);
}

/** Whether there is no SQL: it is missing, empty or blank. */
function isBlank(sql: unknown): boolean {
  return typeof sql !== 'string' || sql.trim() === '';
}
