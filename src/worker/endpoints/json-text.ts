// Parses a request's JSON text, within a depth, and keeps the digits of its numbers on demand.
import { isUtf8 } from 'node:buffer';
import { parse as parseLossless } from 'lossless-json';
import type { FailureCode } from '../../shared/failure-codes.ts';
import { isExact, shapeOf } from '../../shared/json-shape.ts';
import type { Pieces } from '../../shared/pieces.ts';
import { JsonFault, maxMembers, parseInPieces } from './json-pieces.ts';

/** Deeper than any request needs, far from the stack's end. */
const maxLevels = 64;

/** A parsed object and, lazily and once, the same with every number as a LosslessNumber; or a failure. */
export type ParsedObject =
  | {
      readonly ok: true;
      readonly object: Readonly<Record<string, unknown>>;
      readonly exact: () => Readonly<Record<string, unknown>>;
    }
  | { readonly ok: false; readonly code: FailureCode; readonly message: string };

const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf]);

/** Parses a request's body: UTF-8 that must be one JSON object. A long one is parsed in pieces. */
export function* parseBody(
  body: Buffer,
  isLong: boolean,
  toleratesMark = false,
): Pieces<ParsedObject> {
  if (!isUtf8(body)) return failed('BAD_ENCODING', 'the body is not UTF-8');
  const isMarked = toleratesMark && body.subarray(0, 3).equals(byteOrderMark);
  const text = body.toString('utf8', isMarked ? 3 : 0);
  return isLong ? yield* parseText(text, isLong) : parseObject(text);
}

/** The same for a text. */
export function* parseText(text: string, isLong: boolean): Pieces<ParsedObject> {
  if (!isLong) return parseObject(text);
  yield;
  return yield* parseObjectInPieces(text);
}

/**
 * Parses a text that must be one JSON object. Of a repeated key the last value counts; `__proto__` is a
 * key like any other. Never throws.
 */
export function parseObject(text: string): ParsedObject {
  const shape = shapeOf(text);
  if (shape.depth > maxLevels) return tooDeep;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { ok: false, code: 'BAD_JSON', message: `the request is not JSON${position(error)}` };
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return noObject;
  }
  const object = value as Readonly<Record<string, unknown>>;
  let exact = shape.isLossy ? null : object;
  return {
    ok: true,
    object,
    exact: () => {
      exact ??= parseExact(text);
      return exact;
    },
  };
}

/** The same in pieces, for long texts. An object of more than 65,535 members is refused. */
export function* parseObjectInPieces(text: string): Pieces<ParsedObject> {
  let isLossy = false;
  const isExactNumber = (digits: string) => {
    const isKept = isExact(digits, 0, digits.length);
    isLossy ||= !isKept;
    return isKept;
  };
  try {
    const exact = yield* parseInPieces(text, maxLevels, isExactNumber);
    if (typeof exact !== 'object' || exact === null || Array.isArray(exact)) return noObject;
    const object = isLossy ? yield* parseInPieces(text, maxLevels, null) : exact;
    return { ok: true, object: object as Members, exact: () => exact as Members };
  } catch (cause) {
    if (cause instanceof JsonFault) return faultOf(cause);
    throw cause;
  }
}

type Members = Readonly<Record<string, unknown>>;

function faultOf({ kind, position }: JsonFault): ParsedObject & { readonly ok: false } {
  switch (kind) {
    case 'syntax':
      return failed('BAD_JSON', `the request is not JSON (at position ${position})`);
    case 'depth':
      return tooDeep;
    case 'members':
      return failed(
        'TOO_MANY_PARAMETERS',
        `an object of the request has more than ${maxMembers} members`,
      );
    default:
      return kind satisfies never;
  }
}

function failed(code: FailureCode, message: string): ParsedObject & { readonly ok: false } {
  return { ok: false, code, message };
}

const tooDeep = failed('BAD_JSON', `the request is nested deeper than ${maxLevels} levels`);
const noObject = failed('BAD_JSON', 'the request is not a JSON object');

/** Only for text that JSON.parse has accepted: both have the same grammar. */
function parseExact(text: string): Readonly<Record<string, unknown>> {
  const options = { onDuplicateKey: ({ newValue }: { newValue: unknown }) => newValue };
  return parseLossless(text, undefined, options) as Readonly<Record<string, unknown>>;
}

/** V8's message quotes the text; only the position goes on. */
function position(error: unknown): string {
  const found = /at position (\d+)/.exec(error instanceof Error ? error.message : '');
  return found === null ? '' : ` (at position ${found[1]})`;
}
