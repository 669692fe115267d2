// The statements of a text as the server cuts them, and the statement of each result.
import type { Facts } from './facts.ts';
import { isSpaceCode, tokenKinds } from './lexer.ts';
import { type Effect, effectOf } from './rollback.ts';
import { words } from './vocabulary.ts';

/** The kind of a statement's answer, and its effect on data. */
export type StatementShape = {
  /** CALL or a compound statement: any number of result sets, then one OK of its own. */
  readonly isCall: boolean;
  readonly effect: Effect;
};

/** One statement, as positions in the text (`end` is exclusive, before the semicolon). */
export type Statement = StatementShape & {
  readonly start: number;
  readonly end: number;
  /** First keyword in upper case; '' if there are only comments. */
  readonly verb: string;
};

const openers = words('IF LOOP REPEAT WHILE FOR CASE BEGIN');
const beforeStatement = words('THEN ELSE DO LOOP REPEAT BEGIN ATOMIC');
const routines = words('PROCEDURE FUNCTION TRIGGER EVENT PACKAGE');

/** Reserved words: no label is one of them. */
const plainVerbs = words('SELECT INSERT UPDATE DELETE REPLACE WITH SHOW SET CALL');

/** `plain`: ordinary statement; `definition`: CREATE or ALTER of a routine; `compound`: a block of its own. */
type Mode = 'unknown' | 'plain' | 'create' | 'definition' | 'begin' | 'label' | 'compound';

/**
 * Cuts a text at its semicolons while its tokens go by. Semicolons in a body (BEGIN … END and the like) do not end a
 * statement. If a block never ends, the cutter has misread it, and every semicolon of the text counts.
 */
export class StatementCutter {
  readonly #sql: string;
  #mode: Mode = 'unknown';
  /** Depth of nested blocks. */
  #depth = 0;
  #parentheses = 0;
  #previous = '';
  /** The facts of the statement at hand, or of the first piece of a block; null: there are none yet. */
  #facts: Facts | null = null;
  /** The places where the current statement begins, and where its last piece between semicolons does. */
  #from = 0;
  #pieceFrom = 0;
  readonly #statements: Statement[] = [];
  /** The text cut at every semicolon; null: that makes no difference so far. */
  #pieces: Statement[] | null = null;

  constructor(sql: string) {
    this.#sql = sql;
  }

  /** Whether `see` must get the tokens of this statement: it may be a block. */
  get isWatching(): boolean {
    return this.#mode !== 'plain';
  }

  /** Takes one token, except a semicolon. @param verb the first keyword so far */
  see(kind: number, start: number, end: number, verb: string): void {
    if (this.#mode === 'unknown') this.#seeFirst(kind, kind === tokenKinds.word ? verb : '');
    else if (this.#mode === 'label' && kind !== tokenKinds.colon && this.#previous !== ':') {
      // Most statements.
      this.#mode = 'plain';
    } else {
      const word = kind === tokenKinds.word ? this.#sql.slice(start, end).toUpperCase() : '';
      this.#seeMore(kind, word);
    }
  }

  /** Takes a semicolon. @param facts those since the last one */
  cut(start: number, end: number, facts: Facts): void {
    this.#note(facts);
    if (this.#depth > 0) {
      this.#startPieces().push(describe(this.#sql, this.#pieceFrom, start, facts));
      this.#previous = ';';
    } else {
      this.#add(start, facts);
      this.#mode = 'unknown';
      this.#parentheses = 0;
      this.#previous = '';
      this.#from = end;
      this.#facts = null;
    }
    this.#pieceFrom = end;
  }

  /** All statements. @param limit where the text ends */
  finish(limit: number, facts: Facts): readonly Statement[] {
    const isOpen = this.#depth > 0;
    if (isOpen) this.#startPieces();
    this.#note(facts);
    if (this.#pieceFrom < limit) this.#add(limit, facts);
    return (isOpen ? this.#pieces : null) ?? this.#statements;
  }

  #startPieces(): Statement[] {
    this.#pieces ??= this.#statements.map((one) => ({ ...one, isCall: one.verb === 'CALL' }));
    return this.#pieces;
  }

  #note(facts: Facts): void {
    if (this.#facts === null || this.#facts.verb === '') this.#facts = facts;
  }

  #add(end: number, pieceFacts: Facts): void {
    const whole = describe(this.#sql, this.#from, end, this.#facts ?? pieceFacts);
    this.#statements.push(
      this.#mode === 'compound' ? { ...asProgram(whole), isCall: true } : whole,
    );
    this.#pieces?.push(describe(this.#sql, this.#pieceFrom, end, pieceFacts));
  }

  #seeFirst(kind: number, word: string): void {
    if (word === 'CREATE' || word === 'ALTER') this.#mode = 'create';
    else if (word === 'BEGIN') this.#mode = 'begin';
    else if (openers.has(word)) this.#enterCompound();
    else if (kind === tokenKinds.word || kind === tokenKinds.quotedName) this.#mode = 'label';
    else this.#mode = 'plain';
    this.#previous = word;
  }

  #seeMore(kind: number, word: string): void {
    if (kind === tokenKinds.open) this.#parentheses += 1;
    if (kind === tokenKinds.close) this.#parentheses -= 1;
    switch (this.#mode) {
      case 'begin':
        if (word === 'NOT') this.#enterCompound();
        else this.#mode = 'plain';
        break;
      case 'label':
        if (this.#previous !== ':') break;
        if (openers.has(word)) this.#enterCompound();
        else this.#mode = 'plain';
        break;
      case 'create':
        if (routines.has(word)) this.#mode = 'definition';
        else if (kind === tokenKinds.open) this.#mode = 'plain';
        break;
      case 'definition':
      case 'compound':
        this.#seeInside(word);
        break;
      default:
    }
    this.#previous = kind === tokenKinds.colon ? ':' : word;
  }

  #enterCompound(): void {
    this.#mode = 'compound';
    this.#depth = 1;
  }

  #seeInside(word: string): void {
    if (this.#parentheses > 0) return;
    if (word === 'END') this.#depth = Math.max(0, this.#depth - 1);
    else if (this.#previous !== 'END' && this.#opens(word)) this.#depth += 1;
  }

  #opens(word: string): boolean {
    if (word === 'BEGIN') return true;
    if (this.#depth === 0) return false;
    if (word === 'CASE') return true;
    return (
      openers.has(word) &&
      (this.#previous === ';' || this.#previous === ':' || beforeStatement.has(this.#previous))
    );
  }
}

function describe(sql: string, from: number, end: number, facts: Facts): Statement {
  const { verb } = facts;
  let start = from;
  while (start < end && isSpaceCode(sql.charCodeAt(start))) start += 1;
  return { start, end, verb, isCall: verb === 'CALL', effect: effectOf(facts) };
}

/** The same, which may contain others. */
export function asProgram(statement: Statement): Statement {
  return { ...statement, effect: 'program' };
}

/** The statements of a text without a semicolon and without a block. @param limit where it ends */
export function onlyStatement(sql: string, limit: number, facts: Facts): readonly Statement[] {
  return limit === 0 ? [] : [describe(sql, 0, limit, facts)];
}

/** Whether a statement that begins with this word may be a block or contain one. */
export function mayBeBlock(verb: string): boolean {
  return !plainVerbs.has(verb);
}

/** Finds the statement of each result as the results come in. */
export type ResultMap = {
  /** Index of the statement that the next result (a result set, or an OK) belongs to; an error counts as a result. */
  readonly next: (isResultSet: boolean) => number;
};

/** Creates the map for the results of one text. */
export function createResultMap(statements: readonly StatementShape[]): ResultMap {
  let index = 0;
  return {
    next: (isResultSet) => {
      const at = Math.min(index, Math.max(statements.length - 1, 0));
      const stays = isResultSet && statements[at]?.isCall === true;
      if (!stays) index += 1;
      return at;
    },
  };
}
