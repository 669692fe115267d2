// Follows BEGIN … END and its kin, so that semicolons inside of a body do not cut the statement.
// Must not know what the statements mean; when in doubt it sees no block.
import { tokenKinds } from './tokens.ts';

/** Watches the tokens of one statement. */
export type Blocks = {
  readonly see: (kind: number, start: number, end: number) => void;
  /** Inside of a body: a semicolon here ends nothing. */
  readonly isOpen: () => boolean;
  /** The statement itself is a block (BEGIN NOT ATOMIC, IF, LOOP …), not the definition of a routine. */
  readonly isCompound: () => boolean;
  readonly reset: () => void;
};

const openers = new Set(['IF', 'LOOP', 'REPEAT', 'WHILE', 'FOR', 'CASE', 'BEGIN']);
const beforeStatement = new Set(['THEN', 'ELSE', 'DO', 'LOOP', 'REPEAT', 'BEGIN', 'ATOMIC']);
const routines = new Set(['PROCEDURE', 'FUNCTION', 'TRIGGER', 'EVENT', 'PACKAGE']);

/** `plain`: ordinary statement; `definition`: CREATE or ALTER of a routine; `compound`: a block of its own. */
type Mode = 'unknown' | 'plain' | 'create' | 'definition' | 'begin' | 'label' | 'compound';

/** Creates the watcher for the statements of `sql`; `reset` starts the next one. */
export function createBlocks(sql: string): Blocks {
  let mode: Mode = 'unknown';
  let depth = 0;
  let parentheses = 0;
  let previous = '';

  const seeFirst = (kind: number, word: string): void => {
    if (word === 'CREATE' || word === 'ALTER') mode = 'create';
    else if (word === 'BEGIN') mode = 'begin';
    else if (word !== '' && openers.has(word)) enterCompound();
    else mode = kind === tokenKinds.word || kind === tokenKinds.quotedName ? 'label' : 'plain';
  };
  const enterCompound = (): void => {
    mode = 'compound';
    depth = 1;
  };
  const seeInside = (word: string): void => {
    if (parentheses > 0) return;
    if (word === 'END') depth = Math.max(0, depth - 1);
    else if (previous !== 'END' && opens(word)) depth += 1;
  };
  const opens = (word: string): boolean => {
    if (word === 'BEGIN') return true;
    if (depth === 0) return false;
    if (word === 'CASE') return true;
    return (
      openers.has(word) && (previous === ';' || previous === ':' || beforeStatement.has(previous))
    );
  };

  return {
    see: (kind, start, end) => {
      if (mode === 'plain') return;
      const word = kind === tokenKinds.word ? sql.slice(start, end).toUpperCase() : '';
      if (kind === tokenKinds.open) parentheses += 1;
      if (kind === tokenKinds.close) parentheses -= 1;
      if (mode === 'unknown') seeFirst(kind, word);
      else if (mode === 'begin') seeAfterBegin(word);
      else if (mode === 'label') seeLabel(kind, word);
      else if (mode === 'create') seeDefinition(kind, word);
      else seeInside(word);
      previous = kind === tokenKinds.semicolon ? ';' : kind === tokenKinds.colon ? ':' : word;
    },
    isOpen: () => depth > 0,
    isCompound: () => mode === 'compound',
    reset: () => {
      mode = 'unknown';
      depth = 0;
      parentheses = 0;
      previous = '';
    },
  };

  function seeAfterBegin(word: string): void {
    if (word === 'NOT') enterCompound();
    else mode = 'plain';
  }

  function seeDefinition(kind: number, word: string): void {
    if (routines.has(word)) mode = 'definition';
    else if (kind === tokenKinds.open) mode = 'plain';
  }

  function seeLabel(kind: number, word: string): void {
    if (kind === tokenKinds.colon && previous !== ':') return;
    if (previous === ':' && openers.has(word)) enterCompound();
    else mode = 'plain';
  }
}
