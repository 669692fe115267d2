// The kinds of token that SQL text consists of.
// Must not know how they are found.

/** A kind for each token; small numbers, so that a character's class fits into a byte. */
export const tokenKinds = {
  end: 0,
  word: 1,
  /** Starts with a digit: a number, or an identifier such as `1a`. */
  number: 2,
  /** '…' or "…" (the latter is an identifier under ANSI_QUOTES). */
  string: 3,
  quotedName: 4,
  open: 5,
  close: 6,
  dot: 7,
  semicolon: 8,
  colon: 9,
  /** `?` */
  placeholder: 10,
  /** `:name`; the token includes the colon. */
  namedPlaceholder: 11,
  /** `@` of a user variable or an account. */
  userAt: 12,
  /** `@@` of a system variable. */
  systemAt: 13,
  /** A whole comment of the `/*!` or `/*M!` kind: SQL to some servers, a comment to others. */
  executableComment: 14,
  operator: 15,
} as const;
