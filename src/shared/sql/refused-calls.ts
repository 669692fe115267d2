// The calls that agents may not make although they change nothing: they read files, hold connections, or show other clients' statements.
import { type Pieces, stepsInPiece } from '../pieces.ts';
import { defaultEscapes, type Escapes, Lexer, tokenKinds } from './lexer.ts';
import { toUpperAscii, words } from './vocabulary.ts';

/** Built-in functions that read a file of the server, or do nothing except take time. */
const refusedFunctions = [...words('LOAD_FILE SLEEP BENCHMARK')];

/** Most texts have none of these: a long s is one of the letters that some servers take for another. */
const mayBeRefused = /load_file|sleep|benchmark|for|[^\0-\x7f]/i;

/** Each way in which a session may read the quotes: NO_BACKSLASH_ESCAPES turns backslashes off, ANSI_QUOTES makes "…" a name. */
const readings: readonly Escapes[] = [
  defaultEscapes,
  { single: true, double: false },
  { single: false, double: false },
];

/** The verbs that can ask for the plan of a statement which another session runs. */
const planVerbs = words('EXPLAIN DESCRIBE DESC');
const shownPlans = words('EXPLAIN ANALYZE');

/**
 * Finds such a call in a text, however its name is written; null: there is none. The result is its name for people.
 * In doubt about a name it counts as one of them.
 */
export function* findRefusedCall(sql: string): Pieces<string | null> {
  if (!mayBeRefused.test(sql)) return null;
  for (const escapes of sql.includes('\\') ? readings : [defaultEscapes]) {
    const found = yield* findUnder(sql, escapes);
    if (found !== null) return found;
  }
  return null;
}

function* findUnder(sql: string, escapes: Escapes): Pieces<string | null> {
  const lexer = new Lexer(sql, escapes);
  const plans = new PlanFinder();
  let before = '';
  for (let steps = 1; lexer.next() !== tokenKinds.end; steps += 1) {
    if (steps % stepsInPiece === 0) yield;
    if (lexer.kind === tokenKinds.open) {
      const found = refusedFunctions.find((name) => mayMean(before, name));
      if (found !== undefined) return `${found}()`;
    }
    before = nameOf(sql, lexer);
    const plan = plans.see(before, lexer.kind === tokenKinds.word);
    if (plan !== null) return plan;
  }
  return null;
}

/** The name that a token may be; '' if it cannot be one. A double-quoted text is a name under ANSI_QUOTES. */
function nameOf(sql: string, { kind, start, end }: Lexer): string {
  if (kind === tokenKinds.word) return sql.slice(start, end);
  const isQuoted =
    kind === tokenKinds.quotedName || (kind === tokenKinds.string && sql[start] === '"');
  return isQuoted ? sql.slice(start + 1, end - 1) : '';
}

/** Whether a server may take a name for this one. Its collation may take any letter beyond ASCII for one within. */
function mayMean(name: string, known: string): boolean {
  if (name.length !== known.length) return false;
  const upper = toUpperAscii(name.replace(/[^\0-\x7f]/g, '?'));
  for (let at = 0; at < known.length; at += 1) {
    if (upper[at] !== known[at] && upper[at] !== '?') return false;
  }
  return true;
}

/** Finds EXPLAIN … FOR CONNECTION, and MariaDB's SHOW EXPLAIN FOR and SHOW ANALYZE FOR, in the words of a text. */
class PlanFinder {
  #first = '';
  #second = '';
  #last = '';

  /** Takes the next token. Returns the name of such a statement; null: there is none so far. */
  see(name: string, isWord: boolean): string | null {
    if (!isWord) {
      this.#last = '';
      return null;
    }
    const word = toUpperAscii(name);
    const isFirst = this.#first === '';
    if (isFirst) this.#first = word;
    else if (this.#second === '') this.#second = word;
    const wasFor = this.#last === 'FOR';
    this.#last = word;
    if (isFirst) return null;
    if (planVerbs.has(this.#first) && wasFor && word === 'CONNECTION') {
      return `${this.#first} FOR CONNECTION`;
    }
    const isShown = this.#first === 'SHOW' && shownPlans.has(this.#second);
    return isShown && word === 'FOR' ? `SHOW ${this.#second} FOR` : null;
  }
}
