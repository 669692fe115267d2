// A cell's content by the database itself, and by a reply, in one comparable form.
import { JsonNumber, type JsonValue } from './strict-json.ts';

/** The promised form of a column's cells. */
export type Kind = 'number' | 'float' | 'plain' | 'text' | 'binary' | 'bit';

/** A type under test, its cells as SQL literals; with `is`, what must come out beyond all doubt. */
export type TypeCase = {
  readonly type: string;
  readonly kind: Kind;
  /** The name in TYPES, without MYSQL_TYPE_. */
  readonly wire: string;
  readonly values: readonly (string | readonly [literal: string, is: string])[];
  readonly on?: 'mariadb' | 'mysql';
};

/** The expression that returns a column's content as ASCII or, for `plain`, as it is. */
export const truthSql: Readonly<Record<Kind, (column: string) => string>> = {
  number: (column) => `cast(${column} as char)`,
  // MySQL spells it otherwise in CAST (1e-15) than as a column (0.000000000000001).
  float: (column) => column,
  plain: (column) => `cast(${column} as char)`,
  text: (column) => `hex(convert(${column} using utf8mb4))`,
  binary: (column) => `hex(${column})`,
  bit: (column) => `cast(${column} + 0 as char)`,
};

/** The server's answer, without the zeros of ZEROFILL. */
export function truth(kind: Kind, said: unknown): string | null {
  if (said === null) return null;
  return kind === 'number' ? String(said).replace(/^0+(?=\d)/, '') : String(said);
}

/** A cell of a reply in the same form. Throws when it is not of the JSON type that is promised. */
export function shown(kind: Kind, cell: JsonValue): string | null {
  if (cell === null) return null;
  if (kind === 'number' || kind === 'float') {
    if (cell instanceof JsonNumber) return cell.text;
    throw new TypeError(`no number: ${JSON.stringify(cell)}`);
  }
  if (typeof cell !== 'string') throw new TypeError(`no string: ${JSON.stringify(cell)}`);
  if (kind === 'text') return Buffer.from(cell).toString('hex').toUpperCase();
  if (kind === 'binary') return Buffer.from(cell, 'base64').toString('hex').toUpperCase();
  return cell;
}
