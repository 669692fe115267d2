// Values of JSON as the text that a statement gets, with every digit of their numbers.
import { isLosslessNumber, parse } from 'lossless-json';
import { shapeOf } from '../json-shape.ts';
import { type Pieces, stepsInPiece } from '../pieces.ts';
import { isWellFormed } from '../sql/literal.ts';

/** As deep as requests may be. MySQL's limit is 100. */
const maxLevels = 64;

/** A parsed text with numbers that keep their digits; null: it is not JSON, or nested too deep. */
export function parseJson(text: string): { readonly value: unknown } | null {
  if (shapeOf(text).depth > maxLevels) return null;
  try {
    // The other parser also accepts a key twice, with this option, but it is not meant for texts that are not JSON.
    JSON.parse(text);
    return { value: parse(text, undefined, { onDuplicateKey: ({ newValue }) => newValue }) };
  } catch {
    return null;
  }
}

/** The same for a text that must be one object; null: it is none. */
export function parseJsonObject(text: string): Readonly<Record<string, unknown>> | null {
  const value = parseJson(text)?.value;
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isObject && !isLosslessNumber(value) ? (value as Readonly<Record<string, unknown>>) : null;
}

/** The text of a value; null: MySQL would not read it (half of a surrogate pair, nested too deep). */
export function* writeJson(value: unknown): Pieces<string | null> {
  const out: string[] = [];
  const isGood = yield* writeInto(out, value, 0);
  return isGood ? out.join('') : null;
}

function* writeInto(out: string[], value: unknown, level: number): Pieces<boolean> {
  if (typeof value !== 'object' || value === null || isLosslessNumber(value)) {
    const text = writeScalar(value);
    if (text === null) return false;
    out.push(text);
    return true;
  }
  if (level === maxLevels) return false;
  const isArray = Array.isArray(value);
  out.push(isArray ? '[' : '{');
  let isFirst = true;
  for (const [key, item] of isArray ? value.entries() : Object.entries(value)) {
    if (out.length % stepsInPiece < 4) yield;
    if (!isFirst) out.push(',');
    isFirst = false;
    if (typeof key === 'string') {
      if (!isWellFormed(key)) return false;
      out.push(JSON.stringify(key), ':');
    }
    const text = writeScalar(item);
    if (text !== null) out.push(text);
    else if (!(yield* writeInto(out, item, level + 1))) return false;
  }
  out.push(isArray ? ']' : '}');
  return true;
}

/** Null: it is no scalar, or not a good one. */
function writeScalar(value: unknown): string | null {
  if (typeof value === 'string') return isWellFormed(value) ? JSON.stringify(value) : null;
  if (typeof value === 'number') return Number.isFinite(value) ? String(value) : null;
  if (isLosslessNumber(value)) return value.value;
  return value === null || typeof value === 'boolean' ? String(value) : null;
}
