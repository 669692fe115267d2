// The kinds of token that SQL text consists of.
// Must not know how they are found.

export const END = 0;
export const WORD = 1;
/** Starts with a digit: a number, or an identifier such as `1a`. */
export const NUMBER = 2;
/** '…' or "…" (the latter is an identifier under ANSI_QUOTES). */
export const STRING = 3;
export const QUOTED_NAME = 4;
export const OPEN = 5;
export const CLOSE = 6;
export const DOT = 7;
export const SEMICOLON = 8;
export const COLON = 9;
/** `?` */
export const PLACEHOLDER = 10;
/** `:name`; the token includes the colon. */
export const NAMED_PLACEHOLDER = 11;
/** `@` of a user variable or an account. */
export const USER_AT = 12;
/** `@@` of a system variable. */
export const SYSTEM_AT = 13;
/** A whole comment of the `/*!` or `/*M!` kind: SQL to some servers, a comment to others. */
export const EXECUTABLE_COMMENT = 14;
export const OPERATOR = 15;
