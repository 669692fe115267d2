// Decides from its text alone what a request may do to data and to its session. In doubt it says: anything.
// Must not know connections: what the server's status flags say is judged elsewhere.
import { type Pieces, stepsInPiece } from '../pieces.ts';
import { isSpaceCode } from './characters.ts';
import { Facts } from './facts.ts';
import { doubts, type Escapes, Lexer } from './lexer.ts';
import type { TableName } from './table-names.ts';
import { tokenKinds } from './tokens.ts';
import { type BuiltIns, builtInEverywhere } from './vocabulary.ts';

/**
 * What the text of a request says about it. Views and triggers are invisible here: what is said holds where the
 * tables that it names are harmless.
 */
export type Classification = {
  /**
   * `read`: nothing can have been applied when it is killed. `write`: INSERT, UPDATE, DELETE, REPLACE.
   * `other`: everything else, and reads that call functions which may write.
   */
  readonly kind: 'read' | 'write' | 'other';
  /**
   * May be sent inside of a READ ONLY transaction if what it calls may. The server itself refuses writes of stored functions
   * there, but not all that they can do.
   */
  readonly readOnlyAllowed: boolean;
  /** It calls something that is not known to be built in. */
  readonly hasUnknownCall: boolean;
  /** Each of its statements begins as one does that servers know, and servers agree on where literals end. */
  readonly isRecognised: boolean;
  /** Leaves nothing in the session but what `readsEarlierSession` of a later one guards. */
  readonly leavesSessionClean: boolean;
  /** Could answer with what an earlier statement of the session left. */
  readonly readsEarlierSession: boolean;
  /** At most one statement; a comment behind a semicolon is a second, as on the server. */
  readonly single: boolean;
  /**
   * One plain read that takes no lock, and whose answer follows from the tables alone: whoever else asks for it may
   * have the same.
   */
  readonly repeatable: boolean;
  /** The tables that are named, each as often as it stands; null where that is not known. */
  readonly tables: readonly TableName[] | null;
  /**
   * The tables that it names, if it changes nothing but rows of these, and what their triggers and views lead to; null: that is not
   * known, or there are several statements.
   */
  readonly confinedTo: readonly TableName[] | null;
  /** Tables, views or triggers may be others after it, or seen by others. */
  readonly mayChangeObjects: boolean;
};

const worst: Classification = {
  kind: 'other',
  readOnlyAllowed: false,
  hasUnknownCall: true,
  isRecognised: false,
  leavesSessionClean: false,
  readsEarlierSession: true,
  single: false,
  repeatable: false,
  tables: null,
  confinedTo: null,
  mayChangeObjects: false,
};

/** Where the text cannot be cut into words for sure, these are looked for anywhere in it. */
const changingText = /alter|call|create|drop|execute|grant|import|install|rename|revoke/i;

/** How else a session may read a backslash: ANSI_QUOTES makes "…" a name, NO_BACKSLASH_ESCAPES touches both. */
const otherEscapes: readonly Escapes[] = [
  { single: true, double: false },
  { single: false, double: false },
];

/** The same where a session is known not to have NO_BACKSLASH_ESCAPES. */
export const onlyAnsiQuotes: readonly Escapes[] = otherEscapes.slice(0, 1);

/** Reads of tables; what SHOW and EXPLAIN tell is the server's, and may be another the next moment. */
const tableVerbs = new Set(['SELECT', 'WITH', 'VALUES', 'TABLE']);

/** Other statements that look at nothing an earlier one left, unless by a function or a variable in them. */
const blindVerbs = new Set([
  'USE',
  'BEGIN',
  'START',
  'COMMIT',
  'ROLLBACK',
  'DO',
  'LOCK',
  'UNLOCK',
  'TRUNCATE',
  'DROP',
]);

/** Other statements that change nothing themselves; a stored function in them may. */
const idleVerbs = new Set(['DO', 'SET', 'SAVEPOINT', 'RELEASE', 'ROLLBACK']);

/** Statements that leave tables, views and triggers what they are, unless by a word in them. */
const settledVerbs = new Set([
  ...blindVerbs,
  ...[
    '',
    'SELECT',
    'WITH',
    'VALUES',
    'TABLE',
    'SHOW',
    'EXPLAIN',
    'DESCRIBE',
    'DESC',
    'ANALYZE',
    'SET',
  ],
  ...[
    'INSERT',
    'UPDATE',
    'DELETE',
    'REPLACE',
    'SAVEPOINT',
    'RELEASE',
    'KILL',
    'CHECK',
    'CHECKSUM',
    'OPTIMIZE',
  ],
  ...['REPAIR', 'HANDLER', 'HELP', 'PREPARE', 'DEALLOCATE', 'FLUSH', 'LOAD', 'CACHE', 'XA'],
]);

/** The other statements of MySQL and MariaDB. */
const changingVerbs = new Set([
  ...['ALTER', 'BACKUP', 'BINLOG', 'CALL', 'CHANGE', 'CLONE', 'CREATE', 'EXECUTE', 'GET', 'GRANT'],
  ...['IF', 'IMPORT', 'INSTALL', 'PURGE', 'RENAME', 'RESET', 'RESIGNAL', 'RESTART', 'REVOKE'],
  ...['SHUTDOWN', 'SIGNAL', 'STOP', 'UNINSTALL', 'CASE', 'FOR', 'LOOP', 'REPEAT', 'WHILE'],
]);

/**
 * Classifies a request's SQL; linear in its length, never throws. Placeholders count as values.
 * @param builtIns what is known to be built in on the server
 * @param escapes how else than usually the session may read a backslash
 */
export function classify(
  sql: string,
  builtIns: BuiltIns = builtInEverywhere,
  escapes: readonly Escapes[] = otherEscapes,
): Classification {
  const first = new Reading(sql, builtIns);
  while (first.readOn(Number.POSITIVE_INFINITY));
  const known = judge(first, sql);
  if (known !== null) return known;
  let all = first.found;
  for (const each of escapes) {
    const other = new Reading(sql, builtIns, each);
    while (other.readOn(Number.POSITIVE_INFINITY));
    all = underBoth(all, other.found);
    if (isTooDoubtful(other)) return { ...worst, mayChangeObjects: changingText.test(sql) };
  }
  return all;
}

/** The same in pieces. */
export function* classifyInPieces(
  sql: string,
  builtIns: BuiltIns,
  escapes: readonly Escapes[] = otherEscapes,
): Pieces<Classification> {
  const first = new Reading(sql, builtIns);
  while (first.readOn(stepsInPiece)) yield;
  const known = judge(first, sql);
  if (known !== null) return known;
  let all = first.found;
  for (const each of escapes) {
    const other = new Reading(sql, builtIns, each);
    while (other.readOn(stepsInPiece)) yield;
    all = underBoth(all, other.found);
    if (isTooDoubtful(other)) return { ...worst, mayChangeObjects: changingText.test(sql) };
  }
  return all;
}

/** What a text is after its first reading; null: where a literal ends depends on sql_mode, and what holds must hold under each. */
function judge({ lexer, found }: Reading, sql: string): Classification | null {
  if (lexer.doubt === 0) return found;
  if (lexer.doubt === doubts.backslash) return null;
  return { ...worst, mayChangeObjects: changingText.test(sql) };
}

function isTooDoubtful({ lexer }: Reading): boolean {
  return (lexer.doubt & ~doubts.backslash) !== 0;
}

/** One reading of a text, which may be interrupted. */
class Reading {
  readonly lexer: Lexer;
  /** Once it is over. */
  found: Classification = worst;
  readonly #sql: string;
  readonly #builtIns: BuiltIns;
  readonly #blankFrom: number;
  readonly #all = new AllTables();
  #facts: Facts;
  #earlier: Classification | null = null;
  #single = true;
  #executableComment = false;

  constructor(sql: string, builtIns: BuiltIns, escapes?: Escapes) {
    this.lexer = new Lexer(sql, escapes);
    this.#sql = sql;
    this.#builtIns = builtIns;
    this.#blankFrom = beginOfBlankEnd(sql);
    this.#facts = new Facts(sql, builtIns);
  }

  /** Reads on by so many tokens at most; returns whether there are more. */
  readOn(mostTokens: number): boolean {
    const { lexer } = this;
    for (let left = mostTokens; left > 0; left -= 1) {
      const kind = lexer.next();
      if (kind === tokenKinds.end || (kind === tokenKinds.semicolon && !this.#beginNext())) {
        this.#finish();
        return false;
      }
      if (kind !== tokenKinds.semicolon) this.#facts.see(kind, lexer.start, lexer.end);
    }
    return true;
  }

  /** At a semicolon: returns whether the text goes on behind it. */
  #beginNext(): boolean {
    if (this.lexer.end >= this.#blankFrom) return false;
    this.#single = false;
    this.#executableComment ||= this.#facts.executableComment;
    const finished = decide(this.#facts, false);
    this.#all.add(finished.tables);
    this.#earlier = this.#earlier === null ? finished : both(this.#earlier, finished);
    this.#facts = new Facts(this.#sql, this.#builtIns);
    return true;
  }

  #finish(): void {
    this.#executableComment ||= this.#facts.executableComment;
    const last = decide(this.#facts, this.#single);
    this.#all.add(last.tables);
    const earlier = this.#earlier;
    const found = earlier === null ? last : { ...both(earlier, last), tables: this.#all.tables };
    const mayChange = this.#executableComment && changingText.test(this.#sql);
    this.found = mayChange ? { ...found, mayChangeObjects: true } : found;
  }
}

/** The tables of statements after one another; null from the first on whose tables are not known. */
class AllTables {
  tables: TableName[] | null = [];

  add(tables: readonly TableName[] | null): void {
    if (tables === null) this.tables = null;
    else for (const table of tables) this.tables?.push(table);
  }
}

function decide(facts: Facts, single: boolean): Classification {
  const reads = isReading(facts);
  const writes = !reads && isWriting(facts.main);
  const tame = !facts.executableComment && !facts.intoElsewhere;
  const unseen = facts.unknownCall || facts.userVariable || facts.executableComment;
  const known = reads || writes || blindVerbs.has(facts.verb);
  const leavesSessionClean =
    single &&
    (reads || writes) &&
    tame &&
    !unseen &&
    !facts.sessionCall &&
    !facts.leavesTraces &&
    !facts.sequence;
  const readsEarlierSession = facts.readsSession || unseen || !known;
  const tables = tablesOf(facts, reads);
  const isConfined =
    (reads || writes || idleVerbs.has(facts.verb)) && tame && !facts.unknownCall && !facts.sequence;
  return {
    kind: decideKind(facts, reads && tame, writes && tame),
    readOnlyAllowed:
      single && reads && tame && !facts.lockingRead && !facts.sessionCall && !facts.sequence,
    hasUnknownCall: facts.unknownCall,
    isRecognised: settledVerbs.has(facts.verb) || changingVerbs.has(facts.verb),
    leavesSessionClean,
    readsEarlierSession,
    single,
    repeatable:
      reads &&
      leavesSessionClean &&
      !readsEarlierSession &&
      !facts.lockingRead &&
      !facts.fickle &&
      tableVerbs.has(facts.verb),
    tables,
    confinedTo: isConfined ? tables : null,
    mayChangeObjects: !settledVerbs.has(facts.verb) || facts.changingWord,
  };
}

/** Of a write with a WITH it is not known which of both its target is; behind USE a name is another table's. */
function tablesOf({ tables, executableComment, verb }: Facts, reads: boolean) {
  const isUnsure = executableComment || verb === 'USE' || (tables.hasCte && !reads);
  return isUnsure ? null : tables.finish();
}

function decideKind(facts: Facts, reads: boolean, writes: boolean): Classification['kind'] {
  if (reads && !facts.unknownCall && !facts.sequence) return 'read';
  return writes ? 'write' : 'other';
}

/** A statement that applies nothing by itself. */
function isReading(facts: Facts): boolean {
  switch (facts.verb) {
    case 'SELECT':
    case 'SHOW':
    case 'VALUES':
    case 'TABLE':
      return true;
    case 'WITH':
      return facts.main === 'SELECT' || facts.main === 'VALUES' || facts.main === 'TABLE';
    case 'EXPLAIN':
    case 'DESCRIBE':
    case 'DESC':
      return !facts.analyzed || facts.main === 'SELECT';
    case 'ANALYZE':
      return facts.main === 'SELECT';
    default:
      return false;
  }
}

function isWriting(main: string): boolean {
  return main === 'INSERT' || main === 'UPDATE' || main === 'DELETE' || main === 'REPLACE';
}

/** What is true of two readings, or of two statements after one another. */
function both(one: Classification, other: Classification): Classification {
  return {
    kind: one.kind === other.kind ? one.kind : 'other',
    readOnlyAllowed: one.readOnlyAllowed && other.readOnlyAllowed,
    hasUnknownCall: one.hasUnknownCall || other.hasUnknownCall,
    isRecognised: one.isRecognised && other.isRecognised,
    leavesSessionClean: one.leavesSessionClean && other.leavesSessionClean,
    readsEarlierSession: one.readsEarlierSession || other.readsEarlierSession,
    single: one.single && other.single,
    repeatable: one.repeatable && other.repeatable,
    tables: null,
    confinedTo: null,
    mayChangeObjects: one.mayChangeObjects || other.mayChangeObjects,
  };
}

/** What is true of a text under two readings. */
function underBoth(one: Classification, other: Classification): Classification {
  return { ...both(one, other), confinedTo: sameTables(one.confinedTo, other.confinedTo) };
}

/** Those of two readings of one text; null where they differ. */
function sameTables(
  one: readonly TableName[] | null,
  other: readonly TableName[] | null,
): readonly TableName[] | null {
  const isSame =
    one?.length === other?.length &&
    one?.every(
      ({ schema, name }, at) => schema === other?.[at]?.schema && name === other[at]?.name,
    );
  return isSame === true ? one : null;
}

/** Where what the server takes off the end begins: spaces and semicolons. */
function beginOfBlankEnd(sql: string): number {
  let from = sql.length;
  for (; from > 0; from -= 1) {
    const code = sql.charCodeAt(from - 1);
    if (code !== 0x3b && !isSpaceCode(code)) return from;
  }
  return from;
}
