// Decodes what a client asks of /v1/named/<name>: a body of JSON, or the text after `?`.
import type { GivenValues } from '../../../shared/named/call.ts';
import { type Pieces, stepsInPiece } from '../../../shared/pieces.ts';
import { isWellFormed } from '../../../shared/sql/literal.ts';
import type { V1Layout } from '../../encode/formats/v1-heads.ts';
import { type Refused, refuse } from '../../failure/failure.ts';
import {
  type Decoded,
  decodeFields,
  type FieldCheck,
  type Fields,
  isBoolean,
  isDuration,
  isOneOf,
  isText,
} from '../fields.ts';
import type { ParsedObject } from '../json-text.ts';
import { type SectionNames, whyNotSection } from '../sections.ts';
import { layoutOf } from './layout.ts';

/** A call whose fields have the right types. Its values are not checked. */
export type NamedRequest<Given extends GivenValues = GivenValues> = {
  /** Null: it names none. */
  readonly section: string | null;
  readonly given: Given;
  /** As asked for; the caller limits it to its own. */
  readonly timeoutMs: number | null;
  /** Whether it must only read. */
  readonly readOnly: boolean;
  readonly layout: V1Layout;
  /** The token of the transaction that it runs in; null: in none. */
  readonly transaction: string | null;
};

const rowsAsObjects = layoutOf({ rows: 'object' });

/** The values of a call by name. */
export const isNamedParams: FieldCheck = (value) =>
  typeof value === 'object' && !Array.isArray(value) ? null : 'an object';

const checks: ReadonlyMap<string, FieldCheck> = new Map<string, FieldCheck>([
  ['params', isNamedParams],
  ['timeout_ms', isDuration],
  ['read_only', isBoolean],
  ['rows', isOneOf('array', 'object')],
  ['section', isText],
  ['transaction', isText],
]);

/** Decodes a body. @param sections what the field `section` may say */
export function decodeNamedPost(
  parsed: ParsedObject,
  sections: SectionNames,
): Decoded<NamedRequest> {
  const decoded = decodeFields(parsed, sections, checks);
  if (!decoded.ok) return decoded;
  const { fields, exact } = decoded;
  return {
    ok: true,
    exact,
    request: {
      section: (fields.section as string | undefined) ?? null,
      given: {
        kind: 'json',
        params: fields.params === undefined ? {} : (exact().params as Fields),
      },
      timeoutMs: (fields.timeout_ms as number | undefined) ?? null,
      readOnly: fields.read_only === true,
      layout: layoutOf({ rows: fields.rows ?? 'object' }),
      transaction: (fields.transaction as string | undefined) ?? null,
    },
  };
}

const noFields: Fields = {};

/** Decodes the text after `?` (WHATWG's application/x-www-form-urlencoded, except that bytes which are not UTF-8 are a fault). */
export function* decodeNamedQuery(
  text: string,
  sections: SectionNames,
): Pieces<Decoded<NamedRequest>> {
  const fields: (readonly [string, string])[] = [];
  const own = new Map<string, string>();
  for (const [at, pair] of text.split('&').entries()) {
    if (at % stepsInPiece === 0 && at > 0) yield;
    if (pair === '') continue;
    const mark = pair.indexOf('=');
    const name = decodePart(mark < 0 ? pair : pair.slice(0, mark));
    const value = decodePart(mark < 0 ? '' : pair.slice(mark + 1));
    if (name === null || value === null) return notText;
    if (!name.startsWith('_')) fields.push([name, value]);
    else if (own.has(name)) return refuse('BAD_KEY', `${name} is there more than once`);
    else if (name === '_section' || name === '_timeout_ms') own.set(name, value);
    else return refuse('UNKNOWN_FIELD', 'beside parameters there are _section and _timeout_ms');
  }
  const refused = checkSection(own, sections);
  if (refused !== null) return refused;
  const timeout = own.get('_timeout_ms') ?? null;
  const timeoutMs = timeout === null ? null : Number(timeout);
  const wrong = timeout === null ? null : isDuration(/^[\d.]+$/.test(timeout) ? timeoutMs : null);
  if (wrong !== null) return refuse('BAD_KEY', `_timeout_ms must be ${wrong}`);
  const section = own.get('_section') ?? null;
  const given = { kind: 'text', fields } as const;
  return {
    ok: true,
    exact: () => noFields,
    request: {
      section,
      given,
      timeoutMs,
      readOnly: true,
      layout: rowsAsObjects,
      transaction: null,
    },
  };
}

function checkSection(own: ReadonlyMap<string, string>, sections: SectionNames): Refused | null {
  const failure = whyNotSection('_section', own.get('_section'), sections);
  return failure === null ? null : { ok: false, failure };
}

const notText = refuse(
  'BAD_ENCODING',
  'the text after ? is not UTF-8, or has a % without two digits',
);

/** Null: it is no text. @param raw as node hands it out, one character a byte */
function decodePart(raw: string): string | null {
  try {
    const text = decodeURIComponent(raw.replaceAll('+', ' '));
    return hasRawBytes.test(raw) || !isWellFormed(text) ? null : text;
  } catch {
    return null;
  }
}

/** Bytes beyond ASCII that are not encoded as RFC 3986 asks for. */
const hasRawBytes = /[^\0-\x7f]/;
