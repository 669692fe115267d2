// Where MySQL's comments end, and which of them another server or version would read as SQL.
// Must not know tokens or statements.

/** What a block comment is beside its extent. */
export type SpecialComment = {
  /** `/*! …` or `/*M! …`: SQL to a server of the right kind and version. */
  readonly executable: boolean;
  /** True when every server ends it at the same place and nothing inside could matter. */
  readonly plain: boolean;
};

const quotes = '\'"`';
const executableRisks = '\'"`#-?:;$\\\0/';
const ordinary: SpecialComment = { executable: false, plain: true };

/** The end of a `#` or `-- ` comment starting at `at`, its line feed excluded; -1 when none starts there. */
export function endOfLineComment(sql: string, code: number, at: number): number {
  if (code !== 0x23 && !(code === 0x2d && startsDashComment(sql, at))) return -1;
  // A NUL ends a line comment too; the caller sees it there.
  for (let end = at + 1; end < sql.length; end += 1) {
    const found = sql.charCodeAt(end);
    if (found === 0x0a || found === 0) return end;
  }
  return sql.length;
}

/** `--` counts only before a blank, a control character or the end of the text. */
function startsDashComment(sql: string, at: number): boolean {
  if (sql.charCodeAt(at + 1) !== 0x2d) return false;
  if (at + 2 >= sql.length) return true;
  const following = sql.charCodeAt(at + 2);
  return following <= 0x20 || following === 0x7f;
}

/** The position behind the block comment that starts at `at`; -1 when it is never closed. */
export function endOfBlockComment(sql: string, at: number): number {
  const close = sql.indexOf('*/', at + 2);
  return close < 0 ? -1 : close + 2;
}

/** Tells ordinary comments from executable ones and optimizer hints. `end` is behind its first end mark. */
export function inspectSpecialComment(sql: string, at: number, end: number): SpecialComment {
  const third = sql.charCodeAt(at + 2);
  if (third === 0x2b) return { executable: false, plain: !hasAny(sql, at + 3, end, quotes) };
  const mariadb = (third | 0x20) === 0x6d && sql.charCodeAt(at + 3) === 0x21;
  if (third !== 0x21 && !mariadb) return ordinary;
  // Read as SQL, a literal or a nested comment could carry it past the first end mark;
  // skipped for its version, a nested comment could too.
  return { executable: true, plain: !hasAny(sql, at + 3, end - 2, executableRisks) };
}

function hasAny(sql: string, from: number, to: number, characters: string): boolean {
  for (let at = from; at < to; at += 1) {
    if (characters.includes(sql.charAt(at))) return true;
  }
  return false;
}
