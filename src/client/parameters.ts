// Parameters as JSON text: every digit of a BigInt, bytes as base64, and nothing whose meaning would be a guess.

/** A value for a placeholder. A Date is none: MySQL's date and time types have no zone, so its text is the caller's to choose. */
export type Parameter = string | number | bigint | boolean | null | Uint8Array;

/** A value for `?` or `:name`; an array stands inside `IN (?)`. */
export type ParameterOrList = Parameter | readonly Parameter[];

/** For `?` in an array, for `:name` in an object. */
export type Parameters = readonly ParameterOrList[] | { readonly [name: string]: ParameterOrList };

/** As many bytes become characters at once: more arguments than that are too many for some engines. */
const bytesAtOnce = 4096;

/** The JSON text of parameters. Throws a TypeError that names the place, not the value. @param of where they stand */
export function encodeParameters(params: Parameters, of = ''): string {
  if (Array.isArray(params)) {
    const list = params as readonly ParameterOrList[];
    return `[${list.map((value, index) => encode(value, `${of}parameter ${index + 1}`)).join(',')}]`;
  }
  const named = Object.entries(params).map(
    ([name, value]) => `${JSON.stringify(name)}:${encode(value, `${of}parameter :${name}`)}`,
  );
  return `{${named.join(',')}}`;
}

function encode(value: unknown, place: string): string {
  if (Array.isArray(value)) return `[${value.map((each) => encodeOne(each, place)).join(',')}]`;
  return encodeOne(value, place);
}

function encodeOne(value: unknown, place: string): string {
  if (typeof value === 'bigint') return value.toString();
  if (typeof value === 'string' || typeof value === 'boolean' || value === null) {
    return JSON.stringify(value);
  }
  if (typeof value === 'number' && Number.isFinite(value)) return JSON.stringify(value);
  if (value instanceof Uint8Array) return `{"$binary":"${toBase64(value)}"}`;
  throw new TypeError(`${place} is ${describe(value)}, which is no value of SQL's`);
}

function describe(value: unknown): string {
  if (value instanceof Date) return 'a Date (its text depends on a time zone: pass the text)';
  if (typeof value === 'number') return 'a number that is not finite';
  return value === undefined ? 'undefined (NULL is null)' : `of type ${typeof value}`;
}

function toBase64(bytes: Uint8Array): string {
  let binary = '';
  for (let from = 0; from < bytes.length; from += bytesAtOnce) {
    binary += String.fromCharCode(...bytes.subarray(from, from + bytesAtOnce));
  }
  return btoa(binary);
}
