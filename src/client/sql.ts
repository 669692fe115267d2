// SQL with its parameters: tagged templates, whose values never become text, and parameters as JSON.

declare const rowType: unique symbol;

/**
 * A piece of SQL with its values, for use in a template or a batch. Only `sql` creates it, so parsed data can never pass for one.
 */
export class Fragment<Row = unknown> {
  /** The type of its rows, for the compiler only. */
  declare readonly [rowType]?: Row;
  readonly #text: string;
  readonly #params: readonly ParameterOrList[];

  constructor(text: string, params: readonly ParameterOrList[]) {
    this.#text = text;
    this.#params = params;
  }

  get text(): string {
    return this.#text;
  }

  get params(): readonly ParameterOrList[] {
    return this.#params;
  }

  /** Whether a value is a Fragment; an object of the same shape is not. */
  static isOne(value: unknown): value is Fragment {
    return typeof value === 'object' && value !== null && #text in value;
  }
}

/** A statement of a batch, or a piece of SQL for a template: `` db.query`select … where ${isOpen ? sql`closed is null` : sql`true`}` ``. */
export function sql<Row = Record<string, unknown>>(
  strings: TemplateStringsArray,
  ...values: readonly (ParameterOrList | Fragment)[]
): Fragment<Row> {
  return renderTemplate<Row>(strings, values);
}

/** Whether a function was called as a tag: a parsed array has no `raw`. */
export function isTemplate(value: unknown): value is TemplateStringsArray {
  return Array.isArray(value) && Array.isArray((value as { raw?: unknown }).raw);
}

/** The statement with `?` for each value. Throws a TypeError for an invalid escape. */
export function renderTemplate<Row>(
  strings: TemplateStringsArray,
  values: readonly (ParameterOrList | Fragment)[],
): Fragment<Row> {
  let text = cooked(strings, 0);
  const params: ParameterOrList[] = [];
  for (const [index, value] of values.entries()) {
    if (Fragment.isOne(value)) {
      text += value.text;
      params.push(...value.params);
    } else {
      text += '?';
      params.push(value);
    }
    text += cooked(strings, index + 1);
  }
  return new Fragment(text, params);
}

function cooked(strings: TemplateStringsArray, index: number): string {
  const text: string | undefined = strings[index];
  if (text === undefined) throw new TypeError('the template has an invalid escape');
  return text;
}

/** A value for a placeholder. Dates are not allowed: MySQL's date and time types have no zone, so the caller chooses the text. */
export type Parameter = string | number | bigint | boolean | null | Uint8Array;

/** A value for `?` or `:name`; an array is for `IN (?)`. */
export type ParameterOrList = Parameter | readonly Parameter[];

/** An array for `?`, or an object for `:name`. */
export type Parameters = readonly ParameterOrList[] | { readonly [name: string]: ParameterOrList };

/** Bytes that become characters in one call: some engines do not allow more arguments. */
const bytesAtOnce = 4096;

/** The JSON text of parameters. Throws a TypeError that names the place, not the value. @param of the statement that they belong to */
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
  throw new TypeError(`${place} is ${describe(value)}, which is not a value for SQL`);
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
