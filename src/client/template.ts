// Tagged templates: what stands in the source is SQL, what stands in ${…} is a value and never becomes text.
import type { ParameterOrList } from './parameters.ts';

declare const rowType: unique symbol;

/**
 * A piece of SQL with its values, for use inside a template, or in a batch. Only `sql` makes one: nothing that was parsed can look
 * like it.
 */
export class Fragment<Row = unknown> {
  /** What its rows are said to be; for the compiler alone. */
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

  /** Whether a value was made here: an object of the same shape was not. */
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

/** Whether a function was called as a tag: an array that somebody has parsed has no `raw`. */
export function isTemplate(value: unknown): value is TemplateStringsArray {
  return Array.isArray(value) && Array.isArray((value as { raw?: unknown }).raw);
}

/** The statement with `?` for each value. Throws a TypeError for an escape that JavaScript does not know. */
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
  if (text === undefined) throw new TypeError('the template has an escape that is none');
  return text;
}
