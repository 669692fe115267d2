// Columns of type BIT whose cells may come as decimal text: which they are, and which of two readings is likelier.
// Must not know cells.
import { type Column, columnFlags, columnName } from './packets.ts';

/** The kind of server that sends the columns. */
export type Flavour = 'mariadb' | 'mysql';

/** MYSQL_TYPE_BIT */
const bitType = 16;

/** MySQL's functions that send a BIT as its decimal digits (seen on 9.7); all others send its bytes. */
const textFunctions = /\b(?:any_value|coalesce|greatest|ifnull|least)\b/i;
/** The expressions whose BITs MariaDB sends as bytes (seen on 10.11 and 11.8); it sends all others as decimal digits. */
const byteFunctions = /\b(?:over|last_value)\b/i;

/** What is read from a UNION is read from a temporary table. */
const union = /\bunion\b/i;

/**
 * Whether the cells of a column may be the decimal digits of a BIT. What is read from a table, also a temporary one, always comes as
 * bytes. MariaDB marks everything else as binary. MySQL names the database of a table's columns; a temporary table's have a name
 * but no table.
 */
function isDoubtful({ type, flags, origin }: Column, flavour: Flavour): boolean {
  if (type !== bitType) return false;
  if (flavour === 'mariadb') return (flags & columnFlags.binary) !== 0;
  const isOfTemporary = origin.table.length === 0 && origin.originalName.length > 0;
  return origin.database.length === 0 && !isOfTemporary;
}

/** Whether some of the columns are doubtful. */
export function hasDoubtfulBits(columns: readonly Column[], flavour: Flavour): boolean {
  return columns.some((column) => isDoubtful(column, flavour));
}

/**
 * For each column how a cell is read that could be both, as one letter: `t`ext, `b`ytes, or `-` where there is no doubt. A column
 * without alias has its expression for a name; else the statement must do.
 */
export function guessBits(columns: readonly Column[], flavour: Flavour, sql: string): string {
  let guesses = '';
  for (const column of columns) {
    if (!isDoubtful(column, flavour)) {
      guesses += '-';
      continue;
    }
    guesses += isRatherText(column, flavour, sql) ? 't' : 'b';
  }
  return guesses;
}

function isRatherText(column: Column, flavour: Flavour, sql: string): boolean {
  const name = columnName(column);
  const text = name.includes('(') ? name : sql;
  if (flavour === 'mariadb') return !byteFunctions.test(text);
  const isMaterialised = column.origin.table.length > 0 && union.test(sql);
  return !isMaterialised && textFunctions.test(text);
}

/** The columns with what was guessed of them. */
export function withGuesses(columns: readonly Column[], guesses: string): readonly Column[] {
  return columns.map((column, at) => {
    const guess = guesses[at];
    if (guess === '-' || guess === undefined) return column;
    return { ...column, doubtfulBits: guess === 't' ? 'text' : 'bytes' };
  });
}
