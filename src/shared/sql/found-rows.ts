// How many rows a write has found, as clients that connect with CLIENT_FOUND_ROWS are told it, from what a server tells the others. Pure.
// Must not know packets, nor who wants to know.
import { Lexer } from './lexer.ts';
import { tokenKinds } from './tokens.ts';
import { toUpperAscii } from './vocabulary.ts';

/** What a server says of a write: how many rows it has changed, and in words what else was counted. */
export type WriteCounts = { readonly affectedRows: number | bigint; readonly info: string };

/** The number of rows found. */
export type FoundRows = (counts: WriteCounts) => number | bigint;

/** What may stand between INSERT and IGNORE. */
const priorities = new Set(['LOW_PRIORITY', 'DELAYED', 'HIGH_PRIORITY']);

/**
 * How the rows that a statement has found are counted: those that an UPDATE has matched, and for INSERT … ON DUPLICATE KEY UPDATE
 * also a row that is set to what it was, as 1 (MySQL Reference Manual, mysql_affected_rows()). Of every other statement it is the rows
 * affected, as it is of an INSERT IGNORE with ON DUPLICATE KEY UPDATE: from outside it cannot be told.
 */
export function chooseFoundRows(sql: string): FoundRows {
  const lexer = new Lexer(sql);
  const verb = nextWord(sql, lexer);
  if (verb === 'UPDATE' || verb === 'WITH') return matchedRows;
  if (verb !== 'INSERT') return affectedRows;
  let word = nextWord(sql, lexer);
  while (priorities.has(word)) word = nextWord(sql, lexer);
  return word === 'IGNORE' ? affectedRows : insertedOrMet;
}

function nextWord(sql: string, lexer: Lexer): string {
  const isWord = lexer.next() === tokenKinds.word;
  return isWord ? toUpperAscii(sql.slice(lexer.start, lexer.end)) : '';
}

const affectedRows: FoundRows = (counts) => counts.affectedRows;

/** `Rows matched: 2  Changed: 1  Warnings: 0`, in the server's language. */
const matchedRows: FoundRows = (counts) => readNumbers(counts.info)?.[0] ?? counts.affectedRows;

/**
 * `Records: 3  Duplicates: 1  Warnings: 0`, which is missing for a single row: a row that was inserted counts 1 as affected, one that was
 * changed 2, and as a duplicate too; one that was met and stays what it was counts as a record alone.
 */
const insertedOrMet: FoundRows = (counts) => {
  const affected = BigInt(counts.affectedRows);
  const [records, duplicates] = readNumbers(counts.info) ?? [];
  if (records === undefined || duplicates === undefined)
    return affected === 0n ? 1 : counts.affectedRows;
  return affected + records - (affected - duplicates);
};

function readNumbers(info: string): readonly bigint[] | null {
  const found = info.match(/\d+/g);
  return found?.length === 3 ? found.map(BigInt) : null;
}
