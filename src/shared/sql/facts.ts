// The facts about one statement, gathered while its tokens go by. Other files decide what follows from them.
import { tokenKinds } from './lexer.ts';
import { TableNames } from './table-names.ts';

import { type BuiltIns, findWord, toUpperAscii, wordFlags, words } from './vocabulary.ts';

/** Whether a name that is not a function may come here, or has just come: `INTO t (`, `AS c (`, `) d (`. */
const noName = 0;
const nameMayFollow = 1;
const nameSeen = 2;
type NameState = typeof noName | typeof nameMayFollow | typeof nameSeen;

/** Words of a `SHOW …` that shows what earlier statements of the session did. */
const pastWords = words('WARNINGS ERRORS COUNT STATUS VARIABLES PROFILE PROFILES');
/** Verbs before the statement that acts. */
const leadingVerbs = words('WITH EXPLAIN DESCRIBE DESC ANALYZE');
const namingWords = words('AS WITH RECURSIVE');
/** Verbs before a name that a parenthesis may follow. */
const namedVerbs = words('CALL INSERT REPLACE WITH');
const modifiers = words('LOW_PRIORITY DELAYED HIGH_PRIORITY IGNORE');
const actingVerbs = words('SELECT INSERT UPDATE DELETE REPLACE VALUES TABLE');

/** Statements whose words are kept: they concern the transaction, the session or accounts, or name a procedure. */
const keptVerbs = words(
  'SET CALL SAVEPOINT RELEASE ROLLBACK COMMIT BEGIN START XA CREATE ALTER DROP RENAME GRANT REVOKE FLUSH BACKUP',
);
/** No clause of these statements that matters has more tokens after the verb or a comma. */
const maxKeptTokens = 24;

/** A token, and the depth of the parentheses after it. */
export type Token = {
  readonly kind: number;
  readonly text: string;
  /** In upper case; '' unless it is a word. */
  readonly word: string;
  readonly depth: number;
};

const noTokens: readonly Token[] = [];

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
  /** GET_LOCK and similar functions. */
  sessionCall = false;
  /** SQL_CALC_FOUND_ROWS, LAST_INSERT_ID(n): later statements of the session will see it. */
  leavesTraces = false;
  /** It moves or reads a sequence. */
  sequence = false;
  /** INTO that does not name the table of an INSERT: a variable or a file. */
  intoElsewhere = false;
  /** INTO OUTFILE or INTO DUMPFILE. */
  writesFile = false;
  /** INSERT DELAYED: another thread applies it later. */
  delayed = false;
  /** INSERT IGNORE or REPLACE IGNORE. */
  ignoresErrors = false;
  lockingRead = false;
  userVariable = false;
  executableComment = false;
  readsSession = false;
  /** NOW(), RAND() and similar functions: the answer may differ though nothing has changed. */
  nondeterministic = false;
  /** A word of statements that change tables, views or triggers, or that call what may. */
  changingWord = false;
  /** EXPLAIN … FOR SCHEMA: names without a schema are of that one. */
  namesSchema = false;
  /** It sets a sequence to a value. */
  setsSequence = false;
  /** The verb is the first token, or comes right after a parenthesis. */
  beginsWithVerb = false;
  /** The tables that it names. */
  readonly tables: TableNames;

  readonly #sql: string;
  readonly #builtIns: BuiltIns;
  #depth = 0;
  #verbDepth = 0;
  #name: NameState = noName;
  #dotted = false;
  #intoTable = false;
  #previousKind = 0;
  #previousStart = 0;
  #previousEnd = 0;
  #previousFlags = 0;
  #previousWord = '';
  #awaitsArguments = false;
  /** How many tokens of this clause may still be kept. */
  #keptLeft = 0;
  #kept: Token[] | null = null;

  constructor(sql: string, builtIns: BuiltIns) {
    this.#sql = sql;
    this.#builtIns = builtIns;
    this.tables = new TableNames(sql);
  }

  get endsWithParenthesis(): boolean {
    return this.#previousKind === tokenKinds.close;
  }

  /** The beginnings of all clauses of a statement whose words are kept; empty for any other statement. */
  get kept(): readonly Token[] {
    return this.#kept ?? noTokens;
  }

  see(kind: number, start: number, end: number): void {
    if (this.#awaitsArguments) {
      this.#awaitsArguments = false;
      // LAST_INSERT_ID(n) sets what LAST_INSERT_ID() answers.
      if (kind !== tokenKinds.close) this.leavesTraces = true;
    }
    if (kind === tokenKinds.word) this.#seeWord(start, end);
    else {
      this.#seeOther(kind, start, end);
      this.tables.seeOther(kind, start, end);
    }
    if (this.#kept !== null) this.#keep(this.#kept, kind, start, end);
    this.#previousKind = kind;
    this.#previousStart = start;
    this.#previousEnd = end;
  }

  #seeOther(kind: number, start: number, end: number): void {
    let name: NameState = noName;
    if (kind === tokenKinds.open) {
      this.#seeOpen(start);
      this.#depth += 1;
    } else if (kind === tokenKinds.close) {
      this.#depth -= 1;
      // In an expression an operator or a keyword has to follow: a call cannot come here.
      name = nameMayFollow;
    } else if (kind === tokenKinds.dot) {
      if (this.#name === nameSeen) name = nameMayFollow;
    } else if (kind === tokenKinds.quotedName || kind === tokenKinds.string) {
      if (kind === tokenKinds.quotedName || this.#sql.charCodeAt(start) === 0x22)
        this.#seeQuoted(start, end);
      if (this.#name === nameMayFollow) name = nameSeen;
      // As behind a parenthesis: '$' COLUMNS (
      else if (kind === tokenKinds.string) name = nameMayFollow;
    } else if (kind === tokenKinds.userAt) this.userVariable = true;
    else if (kind === tokenKinds.systemAt) this.readsSession = true;
    else if (kind === tokenKinds.executableComment) this.executableComment = true;
    this.#name = name;
    this.#dotted = false;
    this.#previousWord = '';
  }

  #seeWord(start: number, end: number): void {
    const known = findWord(this.#sql, start, end);
    const flags = known?.flags ?? 0;
    const qualified = this.#previousKind === tokenKinds.dot;
    this.tables.seeWord(
      start,
      end,
      known !== null && flags & wordFlags.tableWord && !qualified ? known.text : '',
    );
    if (flags & wordFlags.changingWord && !qualified) this.changingWord = true;
    let name: NameState = this.#name === nameMayFollow ? nameSeen : noName;
    let word = '';
    if (this.verb === '') {
      word = known?.text ?? toUpperAscii(this.#sql.slice(start, end));
      name = this.#seeVerb(word);
    } else if (known !== null) {
      if (flags & wordFlags.sessionWord) this.#seeSessionWord(known.text);
      if (flags & wordFlags.readingWord) this.readsSession = true;
      if (flags & wordFlags.nondeterministicWord) this.nondeterministic = true;
      // A sequence's words are the only ones that do both.
      if (flags & wordFlags.sessionWord && flags & wordFlags.readingWord) {
        this.sequence = true;
        if (known.text === 'SETVAL') this.setsSequence = true;
      }
      if (flags & wordFlags.classified && !qualified) {
        word = known.text;
        if (this.#seeClassified(word)) name = nameMayFollow;
      }
    }
    this.#dotted = qualified;
    this.#name = name;
    this.#previousWord = word;
    this.#previousFlags = flags;
  }

  #seeSessionWord(word: string): void {
    this.leavesTraces = true;
    if (this.#previousWord === 'INTO' && (word === 'OUTFILE' || word === 'DUMPFILE'))
      this.writesFile = true;
  }

  #seeVerb(word: string): NameState {
    this.verb = word;
    this.#verbDepth = this.#depth;
    if (!leadingVerbs.has(word)) this.main = word;
    if (word === 'ANALYZE') this.analyzed = true;
    this.beginsWithVerb = this.#previousKind === 0 || this.#previousKind === tokenKinds.open;
    if (this.#previousKind === 0 && keptVerbs.has(word)) {
      this.#kept = [];
      this.#keptLeft = maxKeptTokens;
    }
    return namedVerbs.has(word) ? nameMayFollow : noName;
  }

  #keep(kept: Token[], kind: number, start: number, end: number): void {
    const text = this.#sql.slice(start, end);
    if (text === ',' && this.#depth === 0) this.#keptLeft = maxKeptTokens;
    if (this.#keptLeft === 0) return;
    this.#keptLeft -= 1;
    const word = kind === tokenKinds.word ? toUpperAscii(text) : '';
    kept.push({ kind, text, word, depth: this.#depth });
  }

  /** Returns whether a name that is not a function may follow. */
  #seeClassified(word: string): boolean {
    const previous = this.#previousWord;
    if (word === 'INTO') return this.#seeInto();
    if (namingWords.has(word)) return true;
    // INSERT IGNORE t (…) names its table without INTO.
    if (modifiers.has(word)) return this.#seeModifier(word);
    if (previous === 'FOR' && (word === 'UPDATE' || word === 'SHARE')) this.lockingRead = true;
    else if (previous === 'FOR' && (word === 'SCHEMA' || word === 'DATABASE'))
      this.namesSchema = true;
    else if (actingVerbs.has(word)) this.#seeMain(word);
    else if (word === 'IN' && previous === 'LOCK') this.lockingRead = true;
    else if (word === 'VALUE' && previous === 'NEXT') this.sequence = true;
    else if (word === 'ANALYZE' && this.main === '') this.analyzed = true;
    else if (this.verb === 'SHOW' && pastWords.has(word)) this.readsSession = true;
    return false;
  }

  #seeModifier(word: string): boolean {
    if (this.#name !== nameMayFollow) return false;
    const previous = this.#previousWord;
    const belongsToVerb = previous === this.verb || modifiers.has(previous);
    if (word === 'DELAYED' && belongsToVerb) this.delayed = true;
    if (word === 'IGNORE' && belongsToVerb) this.ignoresErrors = true;
    return true;
  }

  #seeMain(word: string): void {
    if (this.main === '' && this.#depth === this.#verbDepth) this.main = word;
  }

  #seeInto(): boolean {
    const table = !this.#intoTable && (this.main === 'INSERT' || this.main === 'REPLACE');
    if (table) this.#intoTable = true;
    else this.intoElsewhere = true;
    return table;
  }

  #seeQuoted(start: number, end: number): void {
    const known = findWord(this.#sql, start + 1, end - 1);
    if (known !== null && known.flags & wordFlags.readingWord) this.readsSession = true;
  }

  /** A parenthesis after a name is a call, unless the name is a keyword or its place allows only names. */
  #seeOpen(start: number): void {
    const before = this.#previousKind;
    if (this.#name === nameSeen) return;
    if (
      before === tokenKinds.quotedName ||
      before === tokenKinds.string ||
      before === tokenKinds.number
    ) {
      this.unknownCall = true;
      if (before !== tokenKinds.number) this.#seeQuotedCall();
      return;
    }
    if (before !== tokenKinds.word) return;
    const flags = this.#previousFlags;
    if (flags & wordFlags.nondeterministicFunction) this.nondeterministic = true;
    if (this.#dotted) {
      this.unknownCall = true;
      // MariaDB's built-ins have schemas: mariadb_schema.get_lock('x', 0).
      if (flags & wordFlags.sessionFunction) this.sessionCall = true;
    } else if (flags & wordFlags.readingFunction) {
      this.readsSession = true;
      this.#awaitsArguments = true;
    } else if (flags & wordFlags.sessionFunction) this.sessionCall = true;
    else if ((flags & (wordFlags.beforeParenthesis | this.#builtIns)) === 0)
      this.unknownCall ||= !this.tables.hasTableFunction;
    else if (flags & wordFlags.touchingFunction && start !== this.#previousEnd)
      this.unknownCall = true;
  }

  /** A built-in may be quoted, unless it is a word of the grammar. */
  #seeQuotedCall(): void {
    const known = findWord(this.#sql, this.#previousStart + 1, this.#previousEnd - 1);
    if (known !== null && known.flags & wordFlags.sessionFunction) this.sessionCall = true;
  }
}
