// Which statements may stand in a transaction of the gateway's: those that are known not to end it. Pure.
// Must not know connections. What a CALL does is not seen here, and must be found out by whoever runs it.
import { type Pieces, stepsInPiece } from '../pieces.ts';
import { describeDoubt } from './doubt.ts';
import { Facts } from './facts.ts';
import { defaultEscapes, doubts, type Escapes, Lexer } from './lexer.ts';
import { tokenKinds } from './tokens.ts';
import { builtInEverywhere, toUpperAscii } from './vocabulary.ts';

/** What the names of the gateway's own savepoints begin with. */
export const savepointPrefix = 'dbhttpd_';

/** Statements whose first word says enough: on no server, in no version, do they commit. */
const plainVerbs = new Set([
  'SELECT',
  'TABLE',
  'VALUES',
  'INSERT',
  'REPLACE',
  'UPDATE',
  'DELETE',
  'CALL',
  'DO',
  'SHOW',
]);

/** What a WITH may lead to. */
const actingVerbs = new Set(['SELECT', 'TABLE', 'VALUES', 'INSERT', 'REPLACE', 'UPDATE', 'DELETE']);

/** They describe, or run what is in `actingVerbs` (EXPLAIN ANALYZE) without applying it; what else follows is a syntax error. */
const explainingVerbs = new Set(['EXPLAIN', 'DESCRIBE', 'DESC']);

/** Variables of the session that neither end a transaction nor change how a text is read, or whose session it is. */
const harmlessVariables = new Set([
  'DIV_PRECISION_INCREMENT',
  'FOREIGN_KEY_CHECKS',
  'GROUP_CONCAT_MAX_LEN',
  'INNODB_LOCK_WAIT_TIMEOUT',
  'INSERT_ID',
  'LAST_INSERT_ID',
  'LC_TIME_NAMES',
  'LOCK_WAIT_TIMEOUT',
  'MAX_EXECUTION_TIME',
  'MAX_STATEMENT_TIME',
  'RAND_SEED1',
  'RAND_SEED2',
  'SQL_SAFE_UPDATES',
  'TIMESTAMP',
  'TIME_ZONE',
  'UNIQUE_CHECKS',
]);

type Token = { readonly kind: number; readonly text: string; readonly word: string };

/**
 * Why a statement may not stand in a transaction of the gateway's, for people and without any of its text; null: it may.
 * In doubt it may not. `sql` is one statement; linear in its length, never throws.
 * @param readings how the session may read backslashes, where that is known: each of them must be harmless. Null: it is not known
 * @param isReadOnly whether the transaction is to write nothing
 */
export function whyNotInTransaction(
  sql: string,
  readings: readonly Escapes[] | null = null,
  isReadOnly = false,
): string | null {
  for (const { escapes, cleared } of readingsOf(readings)) {
    const reading = new Reading(sql, escapes, isReadOnly);
    while (reading.readOn(Number.POSITIVE_INFINITY));
    const reason = whyNot(reading, cleared, isReadOnly);
    if (reason !== null) return reason;
  }
  return null;
}

/** The same in pieces. */
export function* whyNotInPieces(
  sql: string,
  readings: readonly Escapes[] | null = null,
  isReadOnly = false,
): Pieces<string | null> {
  for (const { escapes, cleared } of readingsOf(readings)) {
    const reading = new Reading(sql, escapes, isReadOnly);
    while (reading.readOn(stepsInPiece)) yield;
    const reason = whyNot(reading, cleared, isReadOnly);
    if (reason !== null) return reason;
  }
  return null;
}

/** Each reading with the doubts that it clears. */
function readingsOf(readings: readonly Escapes[] | null) {
  if (readings === null) return [{ escapes: defaultEscapes, cleared: 0 }];
  return readings.map((escapes) => ({ escapes, cleared: doubts.backslash }));
}

function whyNot(reading: Reading, cleared: number, isReadOnly: boolean): string | null {
  const { tokens, firstWord: word } = reading;
  const doubt = describeDoubt(reading.lexer, cleared);
  if (doubt !== null) return doubt;
  if (reading.hasExecutableComment) return 'an executable comment is SQL to some servers only';
  if (reading.writesFile) return 'a file that it writes stays when the transaction is undone';
  if (isReadOnly && word === 'CALL') return 'it only reads, and a procedure may end it, and write';
  const notReading = reading.whyNotReading();
  if (notReading !== null) return notReading;
  if (plainVerbs.has(word)) return isDelayed(tokens) ? 'DELAYED is outside of transactions' : null;
  if (explainingVerbs.has(word)) return null;
  if (word === 'WITH') return isActing(tokens) ? null : 'what its WITH leads to is not known';
  if (word === 'SET') return whyNotSet(tokens.slice(1));
  const savepoint = savepointOf(tokens);
  if (savepoint === null) return 'it might end the transaction; there are other ways to run it';
  return isOurs(savepoint) ? `savepoints ${savepointPrefix}… are the gateway's own` : null;
}

/** One reading of a text, which may be interrupted. Of statements whose first word says enough, few tokens are kept. */
class Reading {
  readonly lexer: Lexer;
  readonly tokens: Token[] = [];
  /** Behind opening parentheses; '': it is none. */
  firstWord = '';
  hasExecutableComment = false;
  writesFile = false;
  readonly #sql: string;
  /** Null: the transaction may write. */
  readonly #facts: Facts | null;
  #hasBegun = false;
  #lastWord = '';

  constructor(sql: string, escapes: Escapes, isReadOnly: boolean) {
    this.#sql = sql;
    this.lexer = new Lexer(sql, escapes);
    this.#facts = isReadOnly ? new Facts(sql, builtInEverywhere) : null;
  }

  /** Reads on by so many tokens at most; returns whether there are more. */
  readOn(mostTokens: number): boolean {
    for (let left = mostTokens; left > 0; left -= 1) {
      const kind = this.lexer.next();
      if (kind === tokenKinds.end) return false;
      if (kind !== tokenKinds.semicolon) this.#see(kind);
    }
    return true;
  }

  /** Locks are no writes to a server: READ ONLY stops none of them. */
  whyNotReading(): string | null {
    if (this.#facts === null) return null;
    const { lockingRead, sessionCall } = this.#facts;
    if (lockingRead) return 'it only reads, and the statement locks the rows that it reads';
    return sessionCall ? 'it only reads, and the statement takes or releases a lock' : null;
  }

  #see(kind: number): void {
    const { start, end } = this.lexer;
    this.#facts?.see(kind, start, end);
    if (kind === tokenKinds.executableComment) this.hasExecutableComment = true;
    const isKept = this.tokens.length < 2 || !this.#saysEnough;
    const isWord = kind === tokenKinds.word;
    const text = isKept || isWord ? this.#sql.slice(start, end) : '';
    const word = isWord ? toUpperAscii(text) : '';
    if (!this.#hasBegun && kind !== tokenKinds.open) {
      this.#hasBegun = true;
      this.firstWord = word;
    }
    if (this.#lastWord === 'INTO' && (word === 'OUTFILE' || word === 'DUMPFILE')) {
      this.writesFile = true;
    }
    this.#lastWord = word;
    if (isKept) this.tokens.push({ kind, text, word });
  }

  get #saysEnough(): boolean {
    return plainVerbs.has(this.firstWord) || explainingVerbs.has(this.firstWord);
  }
}

/** INSERT DELAYED is done later, by another thread. */
function isDelayed([first, second]: readonly Token[]): boolean {
  return (first?.word === 'INSERT' || first?.word === 'REPLACE') && second?.word === 'DELAYED';
}

/** Whether a verb that is in no parentheses follows the WITH. */
function isActing(tokens: readonly Token[]): boolean {
  let depth = 0;
  for (const { kind, word } of tokens) {
    if (kind === tokenKinds.open) depth += 1;
    else if (kind === tokenKinds.close) depth -= 1;
    else if (depth === 0 && actingVerbs.has(word)) return true;
  }
  return false;
}

/** `SET @a = …, timestamp = …`: every target must be known to be harmless. */
function whyNotSet(tokens: readonly Token[]): string | null {
  const refused = 'SET is taken of user variables, and of a few that change nothing but answers';
  let at = 0;
  while (at < tokens.length) {
    const after = endOfTarget(tokens, at);
    if (after === null || !/^:?=$/.test(tokens[after]?.text ?? '')) return refused;
    at = endOfExpression(tokens, after + 1);
  }
  return tokens.length === 0 ? refused : null;
}

function endOfTarget(tokens: readonly Token[], from: number): number | null {
  if (tokens[from]?.kind === tokenKinds.userAt) return endOfUserVariable(tokens, from + 1);
  let at = from;
  const isMarked = tokens[at]?.kind === tokenKinds.systemAt;
  if (isMarked) at += 1;
  if (tokens[at]?.word === 'SESSION' || tokens[at]?.word === 'LOCAL') {
    at += 1;
    if (isMarked && tokens[at]?.kind !== tokenKinds.dot) return null;
    if (isMarked) at += 1;
  }
  return harmlessVariables.has(tokens[at]?.word ?? '') ? at + 1 : null;
}

/** A name may have dots in it: `@a.b`. */
function endOfUserVariable(tokens: readonly Token[], from: number): number {
  let at = from;
  while (at < tokens.length && tokens[at]?.text !== ':' && !/^:?=$/.test(tokens[at]?.text ?? '')) {
    if (tokens[at]?.text === ',') return from;
    at += 1;
  }
  return at;
}

/** Behind the comma that ends it. */
function endOfExpression(tokens: readonly Token[], from: number): number {
  let depth = 0;
  for (let at = from; at < tokens.length; at += 1) {
    const { kind, text } = tokens[at] as Token;
    if (kind === tokenKinds.open) depth += 1;
    else if (kind === tokenKinds.close) depth -= 1;
    else if (depth === 0 && text === ',') return at + 1;
  }
  return tokens.length;
}

/** The savepoint that a statement sets, releases or goes back to; null: it is none of these. */
function savepointOf(tokens: readonly Token[]): Token | null {
  const name = tokens.at(-1);
  if (name === undefined) return null;
  if (name.kind !== tokenKinds.word && name.kind !== tokenKinds.quotedName) return null;
  const before = tokens.slice(0, -1).map(({ word }) => word || '?');
  const isKnown = /^(SAVEPOINT|RELEASE SAVEPOINT|ROLLBACK( WORK)? TO( SAVEPOINT)?)$/.test(
    before.join(' '),
  );
  return isKnown ? name : null;
}

function isOurs({ text }: Token): boolean {
  return text.replaceAll('`', '').toLowerCase().startsWith(savepointPrefix);
}
