// A result as a CSV text, as the gateway writes it. Its own could not say that it was cut. Pure.
import { Digits, type Exact, parseExact } from './exact-json.ts';

/** The columns of a result, and its rows as arrays in JSON. */
type Table = {
  readonly columns: readonly { readonly name: string; readonly type: string }[];
  readonly lines: readonly string[];
};

const yearDigits = 4;

/**
 * Writes the names of the columns and the rows. NULL is an empty field, and an empty text is quoted.
 * @see https://www.rfc-editor.org/rfc/rfc4180
 */
export function writeCsv({ columns, lines }: Table): string {
  const header = columns.map(({ name }) => quoteIfNeeded(name));
  const rows = lines.map((line) => {
    const cells = parseExact(line) as readonly Exact[];
    return cells.map((cell, at) => writeField(cell, columns[at]?.type ?? ''));
  });
  return [header, ...rows].map((fields) => `${fields.join(',')}\r\n`).join('');
}

function writeField(cell: Exact, type: string): string {
  if (cell === null) return '';
  if (typeof cell === 'string') return quoteIfNeeded(cell);
  const text = cell instanceof Digits ? cell.text : String(cell);
  return type === 'YEAR' ? text.padStart(yearDigits, '0') : text;
}

function quoteIfNeeded(text: string): string {
  return text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
