// A CSV parser that shares nothing with the gateway: RFC 4180 to the letter, with NULL distinct from an empty string.
import { isUtf8 } from 'node:buffer';

/** A field; null is one that is empty and not quoted. */
export type CsvField = string | null;

const quote = '"';
/** RFC 4180's TEXTDATA, and what is beyond ASCII: no quote, comma, CR or LF. */
const plain = /[^",\r\n]*/y;
const quoted = /"((?:[^"]|"")*)"/y;

/**
 * Parses a document of records of the same length, each ended by CRLF. Throws SyntaxError with the position at anything else, and at a
 * field that is quoted without need.
 */
export function parseStrictCsv(document: Uint8Array): CsvField[][] {
  if (!isUtf8(document)) throw new SyntaxError('not UTF-8');
  const text = Buffer.from(document).toString();
  const records: CsvField[][] = [];
  let at = 0;
  while (at < text.length) {
    const record: CsvField[] = [];
    for (;;) {
      const [field, past] = readField(text, at);
      record.push(field);
      at = past + 1;
      if (text[past] !== ',') break;
    }
    if (text.slice(at - 1, at + 1) !== '\r\n') throw new SyntaxError(`no CRLF at ${at - 1}`);
    at += 1;
    const width = records[0]?.length ?? record.length;
    if (record.length !== width) throw new SyntaxError(`${record.length} fields before ${at}`);
    records.push(record);
  }
  return records;
}

function readField(text: string, at: number): [CsvField, number] {
  const grammar = text[at] === quote ? quoted : plain;
  grammar.lastIndex = at;
  const match = grammar.exec(text);
  if (match === null) throw new SyntaxError(`a quote that is not closed at ${at}`);
  const past = at + match[0].length;
  if (grammar === plain) return [match[0] === '' ? null : match[0], past];
  const value = (match[1] ?? '').replaceAll('""', quote);
  if (value !== '' && !/[",\r\n]/.test(value)) throw new SyntaxError(`needless quotes at ${at}`);
  return [value, past];
}
