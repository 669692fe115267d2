// What a trigger's body may do to the session of the statement that fires it: nothing, for the simplest kinds of body.
// Must not know which table it belongs to, nor what the tables that it names are.
import { analyse } from './analyse.ts';
import { Lexer, tokenKinds } from './lexer.ts';
import type { TableName } from './table-names.ts';
import type { BuiltIns } from './vocabulary.ts';

type Piece = { readonly text: string; readonly verb: string; readonly setsNewOnly: boolean };

/**
 * The tables that a body names, when it consists of `SET NEW.column = …` and plain writes alone, or of BEGIN … END
 * around them; null for any other.
 */
export function readTriggerBody(body: string, builtIns: BuiltIns): readonly TableName[] | null {
  const pieces = cut(body);
  if (pieces === null) return null;
  const tables: TableName[] = [];
  for (const piece of pieces) {
    const found = readPiece(piece, builtIns);
    if (found === null) return null;
    tables.push(...found);
  }
  return tables;
}

/** The same of a procedure's body that consists of plain reads and writes alone: the tables that it names, and no others are changed. */
export function readProcedureBody(body: string, builtIns: BuiltIns): readonly TableName[] | null {
  const pieces = cut(body);
  if (pieces === null) return null;
  const tables: TableName[] = [];
  for (const { text, verb } of pieces) {
    const found = analyse(text, builtIns).classification;
    const isExpected = verb !== 'SET' && (found.kind === 'read' || found.kind === 'write');
    if (!isExpected || found.confinedTo === null) return null;
    tables.push(...found.confinedTo);
  }
  return tables;
}

function readPiece({ text, verb, setsNewOnly }: Piece, builtIns: BuiltIns) {
  // The expressions of an assignment are those of a SELECT of the same text.
  const isAssignment = verb === 'SET';
  if (isAssignment && !setsNewOnly) return null;
  const sql = isAssignment ? `SELECT${text.slice('SET'.length)}` : text;
  const { kind, tables, leavesSessionClean, readsEarlierSession } = analyse(
    sql,
    builtIns,
  ).classification;
  const isExpected = kind === (isAssignment ? 'read' : 'write');
  return isExpected && leavesSessionClean && !readsEarlierSession ? tables : null;
}

/** The statements of a body; null where it has no such simple form. */
function cut(body: string): readonly Piece[] | null {
  const lexer = new Lexer(body);
  const pieces: Piece[] = [];
  let isBlock: boolean | null = null;
  let isOver = false;
  let from = -1;
  let verb = '';
  let depth = 0;
  /** Tokens of `NEW.column` that are still due: 2 for NEW, 1 for the point. */
  let due = 0;
  let setsNewOnly = true;
  const endPiece = (end: number) => {
    if (from >= 0)
      pieces.push({ text: body.slice(from, end), verb, setsNewOnly: setsNewOnly && due === 0 });
    from = -1;
  };
  for (let kind = lexer.next(); kind !== tokenKinds.end; kind = lexer.next()) {
    const word = kind === tokenKinds.word ? body.slice(lexer.start, lexer.end).toUpperCase() : '';
    if (isOver) return null;
    if (isBlock === null) {
      isBlock = word === 'BEGIN';
      if (isBlock) continue;
    }
    if (kind === tokenKinds.semicolon) {
      endPiece(lexer.start);
      continue;
    }
    if (from < 0) {
      if (isBlock && word === 'END') {
        isOver = true;
        continue;
      }
      from = lexer.start;
      verb = word;
      depth = 0;
      due = verb === 'SET' ? 2 : 0;
      setsNewOnly = true;
      continue;
    }
    if (kind === tokenKinds.open) depth += 1;
    else if (kind === tokenKinds.close) depth -= 1;
    if (due > 0) {
      if (due === 2 ? word !== 'NEW' : kind !== tokenKinds.dot) setsNewOnly = false;
      due -= 1;
    } else if (verb === 'SET' && depth === 0 && isComma(body, kind, lexer.start)) due = 2;
  }
  if (lexer.doubt !== 0 || lexer.unterminated) return null;
  if (isBlock) return isOver ? pieces : null;
  endPiece(body.length);
  return pieces;
}

function isComma(body: string, kind: number, start: number): boolean {
  return kind === tokenKinds.operator && body.charCodeAt(start) === 0x2c;
}
