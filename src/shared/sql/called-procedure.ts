// The procedure that a CALL names, if nothing but the procedure itself can change something. Pure.
// Must not know what the procedure does.
import { classify } from './classify.ts';
import { defaultEscapes, Lexer } from './lexer.ts';
import type { TableName } from './table-names.ts';
import { tokenKinds } from './tokens.ts';

/** Null: it is no CALL, its name cannot be told for sure, or an argument may change something. `sql` is one statement. */
export function findCalledProcedure(sql: string): TableName | null {
  const lexer = new Lexer(sql, defaultEscapes);
  if (lexer.next() !== tokenKinds.word) return null;
  if (sql.slice(lexer.start, lexer.end).toUpperCase() !== 'CALL') return null;
  const first = readName(sql, lexer, lexer.next());
  let kind = lexer.next();
  let schema: string | null = null;
  let name = first;
  if (kind === tokenKinds.dot) {
    schema = first;
    name = readName(sql, lexer, lexer.next());
    kind = lexer.next();
  }
  if (name === null || (kind !== tokenKinds.end && kind !== tokenKinds.open)) return null;
  const isPlain = kind === tokenKinds.end || arePlain(sql.slice(lexer.end).trimEnd());
  return isPlain ? { schema, name } : null;
}

/** Arguments, up to the parenthesis that ends them: those of a DO may be the same. */
function arePlain(text: string): boolean {
  const inner = text.endsWith(')') ? text.slice(0, -1).trim() : null;
  if (inner === null || inner === '') return inner === '';
  return classify(`DO ${inner}`).confinedTo?.length === 0;
}

function readName(sql: string, { start, end }: Lexer, kind: number): string | null {
  const text = sql.slice(start, end);
  if (kind === tokenKinds.word) return text;
  const isQuoted = kind === tokenKinds.quotedName && text.endsWith('`');
  return isQuoted ? text.slice(1, -1).replaceAll('``', '`') : null;
}
