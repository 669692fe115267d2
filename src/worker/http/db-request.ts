// Decodes what a client asks of /db, from the URL or from a body, into one checked shape.
// Must not know how a request is answered, nor what its SQL says.
import { isUtf8 } from 'node:buffer';
import type { Parameters } from '../sql/bind.ts';
import { isWellFormed } from '../sql/literal.ts';
import { parseObject } from './json-text.ts';
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

/** Why a request cannot be understood; `message` is for people and holds no value. */
export type RequestFailure = {
  readonly status: 400;
  readonly code: string;
  readonly message: string;
};

/** What is asked for, or why it cannot be told. */
export type Decoded =
  | { readonly ok: true; readonly request: DbRequest }
  | { readonly ok: false; readonly failure: RequestFailure };

const noMetadata: readonly MetadataKey[] = [];
const hint = 'ask for /db?{"SQL":"select 1"} (URL-encoded), or POST the same object';

/**
 * Decodes a GET: everything behind the first `?`, one character a byte, is the JSON text.
 * `section` is what SERVER must name. Never throws.
 */
export function decodeDbQueryString(rawQueryLatin1: string, section: string): Decoded {
  return decodeText(decodeQueryString(rawQueryLatin1), section);
}

/** Decodes a POST: UTF-8 and nothing else, a byte order mark tolerated. Never throws. */
export function decodeDbBody(body: Buffer, section: string): Decoded {
  if (!isUtf8(body)) return failed('BAD_ENCODING', 'the body is not UTF-8');
  const marked = body.length >= 3 && body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf;
  return decodeText(body.toString('utf8', marked ? 3 : 0), section);
}

function decodeText(text: string, section: string): Decoded {
  const parsed = parseObject(text);
  if (!parsed.ok) return failed(parsed.code, `${parsed.message}; ${hint}`);
  const object = parsed.object;
  const fault = findFault(object, section);
  if (fault !== null) return fault;
  const sql = isBlank(object.SQL) ? null : (object.SQL as string);
  const metadata = readMetadata(object);
  if (sql === null && metadata.length === 0)
    return failed('NO_SQL', `the request has no SQL; ${hint}`);
  const hasParams = object.PARAMS !== undefined;
  return {
    ok: true,
    request: {
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

/** The first key whose value has the wrong type; keys that mean nothing here are let pass, as DBSlayer did. */
function findFault(object: Readonly<Record<string, unknown>>, section: string): Decoded | null {
  const { SQL, PARAMS, TIMEOUT, READ_ONLY, NUMBERS, ROLLBACK_ON_ERROR, SERVER } = object;
  if (SQL !== undefined && typeof SQL !== 'string') return wrong('SQL', 'a string');
  if (typeof SQL === 'string' && !isWellFormed(SQL))
    return wrong('SQL', 'Unicode text, without half surrogate pairs');
  if (PARAMS !== undefined && (typeof PARAMS !== 'object' || PARAMS === null))
    return wrong('PARAMS', 'an array or an object');
  if (TIMEOUT !== undefined && !isDuration(TIMEOUT))
    return wrong('TIMEOUT', 'a number of milliseconds above 0');
  if (READ_ONLY !== undefined && typeof READ_ONLY !== 'boolean')
    return wrong('READ_ONLY', 'true or false');
  if (NUMBERS !== undefined && NUMBERS !== 'string') return wrong('NUMBERS', '"string"');
  if (ROLLBACK_ON_ERROR !== undefined && typeof ROLLBACK_ON_ERROR !== 'boolean') {
    return wrong('ROLLBACK_ON_ERROR', 'true or false');
  }
  for (const key of metadataKeys) {
    if (object[key] !== undefined && typeof object[key] !== 'boolean')
      return wrong(key, 'true or false');
  }
  if (SERVER !== undefined && SERVER !== section) {
    return failed('WRONG_SERVER', 'SERVER is not the name of the section that is served here');
  }
  return null;
}

function isDuration(value: unknown): boolean {
  return typeof value === 'number' && value > 0 && Number.isFinite(value);
}

function readMetadata(object: Readonly<Record<string, unknown>>): readonly MetadataKey[] {
  let found: MetadataKey[] | null = null;
  for (const key of metadataKeys) {
    if (object[key] !== true) continue;
    found ??= [];
    found.push(key);
  }
  return found ?? noMetadata;
}

/** Nothing but JSON's idea of space; an empty SQL is no SQL. */
function isBlank(sql: unknown): boolean {
  return typeof sql !== 'string' || sql.trim() === '';
}

function wrong(key: string, expected: string): Decoded {
  return failed('BAD_KEY', `${key} must be ${expected}`);
}

function failed(code: string, message: string): Decoded & { readonly ok: false } {
  return { ok: false, failure: { status: 400, code, message } };
}
