// Cuts a file into tokens of SQL and comment lines, by the lexer of SQL texts.
import {
  endOfBlockComment,
  endOfLineComment,
  isSpaceCode,
  Lexer,
  tokenKinds,
} from '../sql/lexer.ts';

/** A token of the lexer's. `doubt`: why servers may read it differently. */
export type Token = {
  readonly kind: number;
  readonly start: number;
  readonly end: number;
  readonly doubt: number;
};

/** A `-- …` comment. */
export type CommentItem = {
  readonly kind: 'comment';
  readonly start: number;
  /** Behind `--`. */
  readonly text: string;
  /** Whether nothing except blanks is before it on its line. */
  readonly isWholeLine: boolean;
};

/** A quote or comment that is never closed. The rest of its statement is lost. */
export type OpenItem = { readonly kind: 'open'; readonly start: number; readonly problem: string };

export type FileItem = Token | CommentItem | OpenItem;

/**
 * Cuts a file. A quote or comment that is not closed before the head of another statement is a fault, and cutting goes on at that head,
 * so that the faults after it are found, too. No string may contain a head: it would hide a statement.
 */
export function cutFile(text: string): readonly FileItem[] {
  const heads = [...text.matchAll(/^[ \t]*(?=--[ \t]*name[ \t]*:)/gim)].map(
    ({ index, 0: blanks }) => index + blanks.length,
  );
  const items: FileItem[] = [];
  let from: number | null = 0;
  while (from !== null) from = cutFrom(text, from, heads, items);
  return items;
}

/** Returns where to go on after something that is not closed; null: the text is at its end. */
function cutFrom(
  text: string,
  from: number,
  heads: readonly number[],
  items: FileItem[],
): number | null {
  const lexer = new Lexer(text);
  lexer.end = from;
  let next = heads.findIndex((head) => head >= from);
  for (;;) {
    const before = lexer.end;
    lexer.doubt = 0;
    const kind = lexer.next();
    const open = readGap(text, before, lexer.start, items);
    if (open >= 0) {
      items.push({
        kind: 'open',
        start: open,
        problem: 'the comment that begins here is not closed',
      });
      return heads.find((head) => head > open) ?? null;
    }
    if (kind === tokenKinds.end) return null;
    const { start, end, doubt } = lexer;
    while (next >= 0 && (heads[next] ?? Number.POSITIVE_INFINITY) < start) next += 1;
    const isQuoted = kind === tokenKinds.string || kind === tokenKinds.quotedName;
    const head = heads[next] ?? null;
    const isHiding = isQuoted && next >= 0 && head !== null && head < end;
    if (lexer.unterminated || isHiding) {
      const what = isQuoted ? 'quote' : 'comment';
      const where = isHiding ? ' before the next statement' : '';
      const problem = `the ${what} that begins here is not closed${where}`;
      items.push({ kind: 'open', start, problem });
      return heads.find((one) => one > start) ?? null;
    }
    items.push({ kind, start, end, doubt });
  }
}

/** Adds the comment lines between two tokens; returns where a comment begins that is never closed, or -1. */
function readGap(text: string, from: number, to: number, items: FileItem[]): number {
  for (let at = from; at < to; ) {
    const code = text.charCodeAt(at);
    if (isSpaceCode(code)) {
      at += 1;
      continue;
    }
    const lineEnd = endOfLineComment(text, code, at);
    if (lineEnd >= 0) {
      if (code === 0x2d) items.push(commentAt(text, at, lineEnd));
      at = lineEnd;
    } else {
      const end = endOfBlockComment(text, at);
      if (end < 0) return at;
      at = end;
    }
  }
  return -1;
}

function commentAt(text: string, start: number, end: number): CommentItem {
  const lineStart = text.lastIndexOf('\n', start - 1) + 1;
  const isWholeLine = text.slice(lineStart, start).trim() === '';
  return { kind: 'comment', start, text: text.slice(start + 2, end), isWholeLine };
}
