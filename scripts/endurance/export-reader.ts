// Reads an export row by row by parsers that share nothing with the gateway, and compares each row with what it must be.
import { type CsvField, parseStrictCsv } from '../../test/support/strict-csv.ts';
import { JsonNumber, type JsonValue, parseStrictJson } from '../../test/support/strict-json.ts';
import { ndjson } from '../../test/support/v1-streams.ts';

/** The expected export: the fields of each row as text, for row numbers from 0. */
export type Expected = {
  readonly columns: readonly string[];
  readonly row: (n: number) => readonly CsvField[];
};

/** How the received part ends. CSV has no sign for its end, so a reply that was not cut is complete. */
export type ExportEnd =
  | { readonly kind: 'whole' }
  | { readonly kind: 'error'; readonly code: string }
  | { readonly kind: 'cut' };

/** Reads an export in pieces of any size. */
export type ExportReader = {
  /** Throws SyntaxError or WrongRow at anything but the export. */
  readonly take: (piece: Buffer) => void;
  /** The number of right rows so far. */
  readonly rows: () => number;
  /** Returns how the export ends. @param isCut whether the reply was cut. Throws if it ends in the middle of a record without being cut. */
  readonly end: (isCut: boolean) => ExportEnd;
};

/** A row that differs from the expected one. */
export class WrongRow extends Error {}

/** Creates a reader of one export. @param type `application/x-ndjson` or `text/csv` */
export function createExportReader(type: string, expected: Expected): ExportReader {
  return type === ndjson ? createLineReader(expected) : createCsvReader(expected);
}

function check(found: readonly CsvField[], wanted: readonly CsvField[], what: string): void {
  const isRight =
    found.length === wanted.length && found.every((field, index) => field === wanted[index]);
  if (!isRight) throw new WrongRow(`${what}: ${JSON.stringify(found).slice(0, 300)}`);
}

function createLineReader({ columns, row }: Expected): ExportReader {
  let rest: Buffer = Buffer.alloc(0);
  let rows = -1;
  let last: ExportEnd = { kind: 'cut' };
  const readLine = (line: Buffer) => {
    if (last.kind !== 'cut') throw new SyntaxError('a line after the last one');
    const value = parseStrictJson(line);
    if (rows < 0) check(namesOf(value), columns, 'columns');
    else if (value instanceof Map) {
      last = readLast(value, rows);
      return;
    } else check(fieldsOf(value), row(rows), `row ${rows}`);
    rows += 1;
  };
  return {
    take: (piece) => {
      const bytes = rest.length === 0 ? piece : Buffer.concat([rest, piece]);
      let from = 0;
      for (let to = bytes.indexOf(0x0a); to >= 0; to = bytes.indexOf(0x0a, from)) {
        readLine(bytes.subarray(from, to));
        from = to + 1;
      }
      rest = bytes.subarray(from);
    },
    rows: () => Math.max(0, rows),
    end: (isCut) => {
      if (!isCut && rest.length > 0) throw new SyntaxError('a line without end');
      return last;
    },
  };
}

function namesOf(head: JsonValue): CsvField[] {
  const columns = head instanceof Map ? head.get('columns') : null;
  if (!Array.isArray(columns)) throw new WrongRow('no columns');
  return columns.map((column) => (column instanceof Map ? String(column.get('name')) : null));
}

function fieldsOf(value: JsonValue): CsvField[] {
  if (!Array.isArray(value)) throw new WrongRow('a row that is no array');
  return value.map((cell) => (cell instanceof JsonNumber ? cell.text : (cell as CsvField)));
}

function readLast(value: ReadonlyMap<string, JsonValue>, rows: number): ExportEnd {
  const [end, error] = [value.get('end'), value.get('error')];
  if (error instanceof Map) return { kind: 'error', code: String(error.get('code')) };
  const count = end instanceof Map ? end.get('row_count') : undefined;
  if (!(count instanceof JsonNumber) || Number(count.text) !== rows) {
    throw new WrongRow(`after ${rows} rows: ${JSON.stringify([...value])}`);
  }
  return { kind: 'whole' };
}

function createCsvReader({ columns, row }: Expected): ExportReader {
  const splitter = createRecordSplitter();
  let rows = -1;
  return {
    take: (piece) => {
      for (const record of parseStrictCsv(splitter.take(piece))) {
        if (rows < 0) check(record, columns, 'columns');
        else check(record, row(rows), `row ${rows}`);
        rows += 1;
      }
    },
    rows: () => Math.max(0, rows),
    end: (isCut) => {
      if (isCut) return { kind: 'cut' };
      if (splitter.rest() > 0 || rows < 0) throw new SyntaxError('a record without end');
      return { kind: 'whole' };
    },
  };
}

/** Keeps incomplete records back. A line break outside of quotes ends a record. */
function createRecordSplitter() {
  let rest: Buffer = Buffer.alloc(0);
  let seen = 0;
  let isQuoted = false;
  return {
    take: (piece: Buffer): Buffer => {
      const bytes = rest.length === 0 ? piece : Buffer.concat([rest, piece]);
      let whole = 0;
      for (; seen < bytes.length; seen += 1) {
        const byte = bytes[seen];
        if (byte === 0x22) isQuoted = !isQuoted;
        else if (byte === 0x0a && !isQuoted) whole = seen + 1;
      }
      rest = bytes.subarray(whole);
      seen = rest.length;
      return bytes.subarray(0, whole);
    },
    rest: () => rest.length,
  };
}
