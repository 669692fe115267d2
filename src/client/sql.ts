// SQL with its parameters: tagged templates, whose values never become text, and parameters as JSON.

declare const rowType: unique symbol;

/**
 * A piece of SQL with its values, for use in a template or a batch. Only `sql` creates it, so parsed data can never pass for one.
 */
export class Fragment<Row = unknown> {
  /** The type of its rows, for the compiler only. */
  declare readonly [rowType]?: Row;
  readonly #texts: readonly string[];
  readonly #values: readonly (ParameterOrList | Fragment)[];
  #rendered: Rendered | null = null;

  /** @param texts one more than values: each value stands between two of them */
  constructor(texts: readonly string[], values: readonly (ParameterOrList | Fragment)[]) {
    this.#texts = texts;
    this.#values = values;
  }

  /** The SQL with `?` for each value. */
  get text(): string {
    return this.#render().text;
  }

  get params(): readonly ParameterOrList[] {
    return this.#render().params;
  }

  /** Whether a value is a Fragment; an object of the same shape is not. */
  static isOne(value: unknown): value is Fragment {
    return typeof value === 'object' && value !== null && #texts in value;
  }

  #render(): Rendered {
    this.#rendered ??= Fragment.#renderAll(this);
    return this.#rendered;
  }

  /**
   * Walks the pieces once, from the outermost. Rendering each piece when it is made would copy the inner ones again and again (72 s for
   * 40,000 rows that are added one by one), and recursion would exhaust the stack.
   */
  static #renderAll(whole: Fragment): Rendered {
    const texts: string[] = [];
    const params: ParameterOrList[] = [];
    const open: { readonly of: Fragment; next: number }[] = [{ of: whole, next: 0 }];
    for (let top = open.at(-1); top !== undefined; top = open.at(-1)) {
      const { of, next } = top;
      texts.push(of.#texts[next] ?? '');
      if (next === of.#values.length) {
        open.pop();
        continue;
      }
      top.next += 1;
      const value = of.#values[next] as ParameterOrList | Fragment;
      if (Fragment.isOne(value)) {
        open.push({ of: value, next: 0 });
      } else {
        texts.push('?');
        params.push(value);
      }
    }
    return { text: texts.join(''), params };
  }
}

type Rendered = { readonly text: string; readonly params: readonly ParameterOrList[] };

/** A value for a placeholder, or a piece of SQL. */
export type Value = ParameterOrList | Fragment;

/** The tag for a statement of a batch or a piece of SQL, with functions for pieces that a template cannot express. */
export type Sql = {
  /** A statement of a batch, or a piece of SQL for a template: `` db.query`select … where ${isOpen ? sql`closed is null` : sql`true`}` ``. */
  <Row = Record<string, unknown>>(
    strings: TemplateStringsArray,
    ...values: readonly Value[]
  ): Fragment<Row>;
  /** Puts a piece (a comma by default) between values or pieces. Throws a TypeError for an empty list. */
  readonly join: (list: readonly Value[], separator?: Fragment) => Fragment;
  /** The name of a table or column in backticks; several are joined by dots: `sql.id('shop', 'city')`. */
  readonly id: (...names: readonly [string, ...string[]]) => Fragment;
  /** The rows of an INSERT, `(?, ?), (?, ?)`. Throws a TypeError without rows, or if their lengths differ. */
  readonly values: (rows: readonly (readonly (Parameter | Fragment)[])[]) => Fragment;
  /** Text that becomes SQL as it is. Never pass it anything that comes from outside the program. */
  readonly raw: (text: string) => Fragment;
};

export const sql: Sql = Object.assign(renderTemplate, {
  join: joinPieces,
  id: quoteName,
  values: listRows,
  raw: (text: string) => new Fragment([checkText(text, 'sql.raw')], []),
});

function joinPieces(list: readonly Value[], separator = new Fragment([', '], [])): Fragment {
  if (!Fragment.isOne(separator)) throw new TypeError('the separator must be sql`…`');
  if (!Array.isArray(list) || list.length === 0) {
    throw new TypeError('sql.join needs an array of at least one value');
  }
  const values = list.flatMap((value, index) => (index === 0 ? [value] : [separator, value]));
  return new Fragment(new Array<string>(values.length + 1).fill(''), values);
}

function quoteName(...names: readonly [string, ...string[]]): Fragment {
  const quoted = names.map((name) => {
    const text = checkText(name, 'sql.id');
    if (text === '' || text.includes('\0')) throw new TypeError('a name must not be empty');
    return `\`${text.replaceAll('`', '``')}\``;
  });
  if (quoted.length === 0) throw new TypeError('sql.id needs a name');
  return new Fragment([quoted.join('.')], []);
}

function listRows(rows: readonly (readonly (Parameter | Fragment)[])[]): Fragment {
  const length = rows[0]?.length ?? 0;
  if (length === 0) throw new TypeError('sql.values needs at least one row with one value');
  const odd = rows.findIndex((row) => row.length !== length);
  if (odd >= 0) {
    throw new TypeError(`row ${odd} has ${rows[odd]?.length} values, and row 0 has ${length}`);
  }
  const between = new Array<string>(length - 1).fill(', ');
  return joinPieces(rows.map((row) => new Fragment(['(', ...between, ')'], row)));
}

function checkText(text: unknown, name: string): string {
  if (typeof text === 'string') return text;
  throw new TypeError(`${name} needs a string`);
}

/** Whether a function was called as a tag: a parsed array has no `raw`. */
export function isTemplate(value: unknown): value is TemplateStringsArray {
  return Array.isArray(value) && Array.isArray((value as { raw?: unknown }).raw);
}

/** The statement of a template. Throws a TypeError for an invalid escape, and if it is not called as a tag. */
export function renderTemplate<Row>(
  strings: TemplateStringsArray,
  ...values: readonly Value[]
): Fragment<Row> {
  if (!isTemplate(strings)) {
    throw new TypeError('sql is a tag: write sql`…` without parentheses, or sql.raw(text)');
  }
  if ((strings as readonly (string | undefined)[]).includes(undefined)) {
    throw new TypeError('the template has an invalid escape');
  }
  return new Fragment(strings, values);
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

/** As deep as the gateway reads JSON. */
const maxLevels = 64;

/**
 * The JSON text of a named statement's parameters. Bytes become base64, and members that are undefined are absent. Throws a TypeError that
 * names the place, not the value.
 */
export function encodeNamedParameters(params: unknown = {}, of = ''): string {
  const place = of === '' ? '' : `${of}, `;
  if (!isPlainObject(params)) throw new TypeError(`${place}the parameters must be an object`);
  return encodeMembers(params, (name) => `${place}parameter ${name}`, 0);
}

function encodeMembers(value: object, placeOf: (name: string) => string, level: number): string {
  const members = Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .map(([name, member]) => `${JSON.stringify(name)}:${encodeJson(member, placeOf(name), level)}`);
  return `{${members.join(',')}}`;
}

function encodeJson(value: unknown, place: string, level: number): string {
  if (value instanceof Uint8Array) return JSON.stringify(toBase64(value));
  if (level > maxLevels) throw new TypeError(`${place} is nested too deep`);
  if (Array.isArray(value)) {
    const items = value.map((item, at) => encodeJson(item, `${place}[${at}]`, level + 1));
    return `[${items.join(',')}]`;
  }
  if (isPlainObject(value)) {
    return encodeMembers(value, (name) => `${place}.${name}`, level + 1);
  }
  return encodeOne(value, place);
}

/** An object of a class may have another text than its members. */
function isPlainObject(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
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
