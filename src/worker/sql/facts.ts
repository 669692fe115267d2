// Gathers what matters about one statement while its tokens go by.
// Must not decide anything: that is classification's part.
import {
  CLOSE,
  DOT,
  EXECUTABLE_COMMENT,
  NUMBER,
  OPEN,
  QUOTED_NAME,
  STRING,
  SYSTEM_AT,
  USER_AT,
  WORD,
} from './tokens.ts';
import {
  BEFORE_PARENTHESIS,
  CLASSIFIED,
  flagsOf,
  HARMLESS_FUNCTION,
  leadsToAnother,
  READING_FUNCTION,
  READING_WORD,
  SESSION_FUNCTION,
  SESSION_WORD,
  showsThePast,
  toUpperAscii,
} from './vocabulary.ts';

/** Whether a name that is no function may stand here, or has just stood: `INTO t (`, `AS c (`, `) d (`. */
const NO_NAME = 0;
const NAME_MAY_FOLLOW = 1;
const NAME_SEEN = 2;

const NAMING = new Set(['AS', 'WITH', 'RECURSIVE']);
const MODIFIERS = new Set(['LOW_PRIORITY', 'DELAYED', 'HIGH_PRIORITY', 'IGNORE']);
const ACTING = new Set(['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'REPLACE', 'VALUES', 'TABLE']);

/** Feed it every token of one statement with `see`, then read its fields. */
export class Facts {
  /** First keyword in upper case; '' while there was none. */
  verb = '';
  /** The keyword that acts: what WITH, EXPLAIN and ANALYZE lead to, else the verb. */
  main = '';
  /** EXPLAIN ANALYZE or ANALYZE: the explained statement runs. */
  analyzed = false;
  /** A call of anything but a known built-in: a stored function, a loadable one, a newer built-in. */
  unknownCall = false;
  /** GET_LOCK and its kin. */
  sessionCall = false;
  /** SQL_CALC_FOUND_ROWS, LAST_INSERT_ID(n): later statements of the session will see it. */
  leavesTraces = false;
  /** A sequence is moved or asked. */
  sequence = false;
  /** INTO that does not name the table of an INSERT: a variable or a file. */
  intoElsewhere = false;
  lockingRead = false;
  userVariable = false;
  executableComment = false;
  readsSession = false;

  private readonly sql: string;
  private depth = 0;
  private verbDepth = 0;
  private name = NO_NAME;
  private dotted = false;
  private intoTable = false;
  private previousKind = 0;
  private previousFlags = 0;
  private previousWord = '';
  private awaitsArguments = false;

  constructor(sql: string) {
    this.sql = sql;
  }

  see(kind: number, start: number, end: number): void {
    if (this.awaitsArguments) {
      this.awaitsArguments = false;
      // LAST_INSERT_ID(n) sets what LAST_INSERT_ID() answers.
      if (kind !== CLOSE) this.leavesTraces = true;
    }
    if (kind === WORD) this.seeWord(start, end);
    else this.seeOther(kind, start, end);
    this.previousKind = kind;
  }

  private seeOther(kind: number, start: number, end: number): void {
    let name = NO_NAME;
    if (kind === OPEN) {
      this.seeOpen();
      this.depth++;
    } else if (kind === CLOSE) {
      this.depth--;
      // In an expression an operator or a keyword has to follow: what is called cannot stand here.
      name = NAME_MAY_FOLLOW;
    } else if (kind === DOT) {
      if (this.name === NAME_SEEN) name = NAME_MAY_FOLLOW;
    } else if (kind === QUOTED_NAME || kind === STRING) {
      if (kind === QUOTED_NAME || this.sql.charCodeAt(start) === 0x22) this.seeQuoted(start, end);
      if (this.name === NAME_MAY_FOLLOW) name = NAME_SEEN;
    } else if (kind === USER_AT) this.userVariable = true;
    else if (kind === SYSTEM_AT) this.readsSession = true;
    else if (kind === EXECUTABLE_COMMENT) this.executableComment = true;
    this.name = name;
    this.dotted = false;
    this.previousWord = '';
  }

  private seeWord(start: number, end: number): void {
    const text = this.sql.slice(start, end);
    const flags = flagsOf(text);
    const qualified = this.previousKind === DOT;
    let name = this.name === NAME_MAY_FOLLOW ? NAME_SEEN : NO_NAME;
    let word = '';
    if (this.verb === '') {
      word = toUpperAscii(text);
      name = this.seeVerb(word);
    } else if (flags !== 0) {
      if (flags & SESSION_WORD) this.leavesTraces = true;
      if (flags & READING_WORD) this.readsSession = true;
      // A sequence's words are the only ones that do both.
      if (flags & SESSION_WORD && flags & READING_WORD) this.sequence = true;
      if (flags & CLASSIFIED && !qualified) {
        word = toUpperAscii(text);
        if (this.seeClassified(word)) name = NAME_MAY_FOLLOW;
      }
    }
    this.dotted = qualified;
    this.name = name;
    this.previousWord = word;
    this.previousFlags = flags;
  }

  private seeVerb(word: string): number {
    this.verb = word;
    this.verbDepth = this.depth;
    if (!leadsToAnother(word)) this.main = word;
    if (word === 'ANALYZE') this.analyzed = true;
    return word === 'INSERT' || word === 'REPLACE' || word === 'WITH' ? NAME_MAY_FOLLOW : NO_NAME;
  }

  /** Answers whether a name that is no function may follow. */
  private seeClassified(word: string): boolean {
    const previous = this.previousWord;
    if (word === 'INTO') return this.seeInto();
    if (NAMING.has(word)) return true;
    // INSERT IGNORE t (…) names its table without INTO.
    if (MODIFIERS.has(word)) return this.name === NAME_MAY_FOLLOW;
    if (previous === 'FOR' && (word === 'UPDATE' || word === 'SHARE')) this.lockingRead = true;
    else if (ACTING.has(word)) this.seeMain(word);
    else if (word === 'IN' && previous === 'LOCK') this.lockingRead = true;
    else if (word === 'VALUE' && previous === 'NEXT') this.sequence = true;
    else if (word === 'ANALYZE' && this.main === '') this.analyzed = true;
    else if (this.verb === 'SHOW' && showsThePast(word)) this.readsSession = true;
    return false;
  }

  private seeMain(word: string): void {
    if (this.main === '' && this.depth === this.verbDepth) this.main = word;
  }

  private seeInto(): boolean {
    const table = !this.intoTable && (this.main === 'INSERT' || this.main === 'REPLACE');
    if (table) this.intoTable = true;
    else this.intoElsewhere = true;
    return table;
  }

  private seeQuoted(start: number, end: number): void {
    if (end - start > 32) return;
    if (flagsOf(this.sql.slice(start + 1, end - 1)) & READING_WORD) this.readsSession = true;
  }

  /** A parenthesis behind a name is a call, unless the name is a keyword or stands where only names can. */
  private seeOpen(): void {
    const before = this.previousKind;
    if (this.name === NAME_SEEN) return;
    if (before === QUOTED_NAME || before === STRING || before === NUMBER) {
      this.unknownCall = true;
      return;
    }
    if (before !== WORD) return;
    const flags = this.previousFlags;
    if (this.dotted) this.unknownCall = true;
    else if (flags & READING_FUNCTION) {
      this.readsSession = true;
      this.awaitsArguments = true;
    } else if (flags & SESSION_FUNCTION) this.sessionCall = true;
    else if ((flags & (BEFORE_PARENTHESIS | HARMLESS_FUNCTION)) === 0) this.unknownCall = true;
  }
}
