// Decodes what a client asks of /db, from the URL or from a body, into one checked shape.
import { isUtf8 } from 'node:buffer';
import type { Pieces } from '../../../shared/pieces.ts';
import type { Parameters } from '../../../shared/sql/bind.ts';
import { isWellFormed } from '../../../shared/sql/literal.ts';
import { type Refused, refuse } from '../../failure/failure.ts';
import { escapeControls, plainKeys, type Rules, rulesOf } from '../../request/compat.ts';
import { type ParsedObject, parseObject, parseObjectInPieces } from '../json-text.ts';
import { describeUnknown } from '../sections.ts';
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

/**
 * Decodes a URL: everything after the first `?`, one character a byte, is the JSON text.
 * `sections` is what SERVER may name. Never throws.
 */
export function decodeDbQueryString(
  rawQueryLatin1: string,
  sections: readonly string[],
  rules: Rules = rulesOf.off,
): Decoded {
  const text = decodeQueryString(rawQueryLatin1);
  return decodeText(rules.rawControls ? escapeControls(text) : text, sections, rules);
}

/** Decodes a POST: UTF-8, perhaps with a byte order mark. Never throws. @param known the parsed body, if it is known already */
export function decodeDbBody(
  body: Buffer,
  sections: readonly string[],
  rules: Rules = rulesOf.off,
  known: ParsedObject | null = null,
): Decoded {
  if (known !== null) return decodeParsed(known, sections, rules);
  if (!isUtf8(body)) return refuse('BAD_ENCODING', 'the body is not UTF-8');
  const marked = body.length >= 3 && body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf;
  return decodeText(body.toString('utf8', marked ? 3 : 0), sections, rules);
}

/** Decodes a long URL in pieces. */
export function* decodeDbQueryStringInPieces(
  rawQueryLatin1: string,
  sections: readonly string[],
  rules: Rules,
): Pieces<Decoded> {
  const text = decodeQueryString(rawQueryLatin1);
  yield;
  const parsed = yield* parseObjectInPieces(rules.rawControls ? escapeControls(text) : text);
  return decodeParsed(parsed, sections, rules);
}

function decodeText(text: string, sections: readonly string[], rules: Rules): Decoded {
  return decodeParsed(parseObject(text), sections, rules);
}

function decodeParsed(parsed: ParsedObject, sections: readonly string[], rules: Rules): Decoded {
  if (!parsed.ok) return refuse(parsed.code, `${parsed.message}; ${hint}`);
  const object = rules.looseKeys ? plainKeys(parsed.object, flags) : parsed.object;
  const keys = Object.keys(object);
  const fault = findFault(object, keys, sections);
  if (fault !== null) return fault;
  const sql = isBlank(object.SQL) ? null : (object.SQL as string);
  const metadata = readMetadata(object, keys);
  if (sql === null && metadata.length === 0)
    return refuse('NO_SQL', `the request has no SQL; ${hint}`);
  const hasParams = object.PARAMS !== undefined;
  return {
    ok: true,
    request: {
      section: (object.SERVER as string | undefined) ?? null,
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

type Check = (value: unknown, sections: readonly string[]) => Refused | null;

const booleanKey = (key: string): [string, Check] => [
  key,
  (value) => (typeof value === 'boolean' ? null : wrong(key, 'true or false')),
];

/** The checks of values. Other keys mean nothing here and are ignored, as DBSlayer did, unless only their letters' case differs. */
const checks: ReadonlyMap<string, Check> = new Map<string, Check>([
  ['SQL', checkSql],
  [
    'PARAMS',
    (value) =>
      typeof value === 'object' && value !== null ? null : wrong('PARAMS', 'an array or an object'),
  ],
  [
    'TIMEOUT',
    (value) => (isDuration(value) ? null : wrong('TIMEOUT', 'a number of milliseconds above 0')),
  ],
  ['NUMBERS', (value) => (value === 'string' ? null : wrong('NUMBERS', '"string"'))],
  [
    'FORMAT',
    (value) => (isJsonFormat(value) ? null : wrong('FORMAT', '"json": there is no other')),
  ],
  ...[...flags].map(booleanKey),
  ['SERVER', checkServer],
]);

function checkSql(value: unknown): Refused | null {
  if (typeof value !== 'string') return wrong('SQL', 'a string');
  return isWellFormed(value) ? null : wrong('SQL', 'Unicode text, without half surrogate pairs');
}

function checkServer(value: unknown, sections: readonly string[]): Refused | null {
  if (sections.includes(value as string)) return null;
  return refuse('WRONG_SERVER', describeUnknown('SERVER', sections));
}

/** The first key whose value has the wrong type, or whose letters have the wrong case. */
function findFault(
  object: Readonly<Record<string, unknown>>,
  keys: readonly string[],
  sections: readonly string[],
): Refused | null {
  for (const key of keys) {
    const check = checks.get(key);
    const fault = check === undefined ? checkUnknown(key) : check(object[key], sections);
    if (fault !== null) return fault;
  }
  return null;
}

/** A key that is ignored because of its letters' case would have a request run without what it asks for. */
function checkUnknown(key: string): Refused | null {
  const capitals = key.toUpperCase();
  return checks.has(capitals) ? refuse('BAD_KEY', `${capitals} must be written in capitals`) : null;
}

/** DBSlayer also wrote XML, when asked for just "xml". */
function isJsonFormat(value: unknown): boolean {
  return typeof value === 'string' && value.toLowerCase() === 'json';
}

function isDuration(value: unknown): boolean {
  return typeof value === 'number' && value > 0 && Number.isFinite(value);
}

function readMetadata(
  object: Readonly<Record<string, unknown>>,
  keys: readonly string[],
): readonly MetadataKey[] {
  if (!keys.some((key) => metadataNames.has(key))) return noMetadata;
  return metadataKeys.filter((key) => object[key] === true);
}

/** Whether there is no SQL: it is missing, empty or blank. */
function isBlank(sql: unknown): boolean {
  return typeof sql !== 'string' || sql.trim() === '';
}

function wrong(key: string, expected: string): Refused {
  return refuse('BAD_KEY', `${key} must be ${expected}`);
}
