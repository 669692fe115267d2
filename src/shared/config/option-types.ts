// What kinds of value a configuration key may have, with their ranges.
// Must not know the keys, nor how a value is read.

/** What a key's value may be, with its range; durations in ms, sizes in bytes. */
export type ValueType =
  | { readonly kind: 'text' }
  | { readonly kind: 'sql' }
  | { readonly kind: 'path' }
  | { readonly kind: 'integer'; readonly min: number; readonly max: number }
  | { readonly kind: 'duration'; readonly min: number; readonly max: number }
  | { readonly kind: 'size'; readonly min: number; readonly max: number }
  | { readonly kind: 'mode' }
  | { readonly kind: 'flag' }
  | { readonly kind: 'choice'; readonly choices: readonly string[] }
  | { readonly kind: 'list' }
  | { readonly kind: 'address' }
  | { readonly kind: 'hosts' }
  | { readonly kind: 'table' };

/** Any text. */
export const text = { kind: 'text' } as const;
/** An absolute path. */
export const path = { kind: 'path' } as const;
/** A table's name, alone or behind its database's and a point. */
export const table = { kind: 'table' } as const;
/** `on` or `off`. */
export const flag = { kind: 'flag' } as const;
/** Texts, comma-separated. */
export const list = { kind: 'list' } as const;
/** A whole number; both ends belong to the range. */
export const integer = <const T extends number>(min: T, max: number) =>
  ({ kind: 'integer', min, max }) as const;
/** A time with its unit; the range in ms. */
export const duration = (min: number, max: number) => ({ kind: 'duration', min, max }) as const;
/** A size with its unit; the range in bytes. */
export const size = (min: number, max: number) => ({ kind: 'size', min, max }) as const;
/** One of some words. */
export const choice = <const C extends readonly string[]>(...choices: C) =>
  ({ kind: 'choice', choices }) as const;
