// The analysis of a SQL text in one pass: its statements, what they may do to data and to the session, and the tables that they name.
// In doubt a statement may do anything.
import { allAtOnce, type Pieces, stepsInPiece } from '../pieces.ts';
import { Facts, type Token } from './facts.ts';
import {
  defaultEscapes,
  doubts,
  type Escapes,
  endOfText,
  Lexer,
  type LexerState,
  tokenKinds,
} from './lexer.ts';
import {
  asProgram,
  mayBeBlock,
  onlyStatement,
  type Statement,
  StatementCutter,
} from './statements.ts';
import type { TableName } from './table-names.ts';
import { type BuiltIns, builtInEverywhere, words } from './vocabulary.ts';

/** A text, and what requests need to know about it. */
export type Analysis = {
  readonly sql: string;
  /**
   * In order. As on the server, spaces and semicolons at the very end do not count, but a comment after a semicolon is a statement,
   * and so is an empty text between two semicolons. The body of a routine, or a compound statement, is one statement.
   */
  readonly statements: readonly Statement[];
  readonly classification: Classification;
  /** One for each way in which the session may read the text, the usual one first. */
  readonly readings: readonly [Reading, ...Reading[]];
  readonly modes: SqlModes;
};

/** A text under one sql_mode: the facts of its first statement, and the doubts of the lexer. */
export type Reading = { readonly facts: Facts; readonly lexer: LexerState };

/** `any`: the session may have every sql_mode. `escaping`: all of these except NO_BACKSLASH_ESCAPES. */
export type SqlModes = 'any' | 'escaping';

/**
 * The classification by the text alone. It does not show views and triggers, so this holds only if the tables that it names are harmless.
 */
export type Classification = {
  /**
   * `read`: if it is killed, it has applied nothing. `write`: INSERT, UPDATE, DELETE, REPLACE. `other`: everything else, and reads
   * that call functions which may write.
   */
  readonly kind: 'read' | 'write' | 'other';
  /**
   * A READ ONLY transaction may contain it if it may contain what it calls. The server refuses writes of stored functions there, but
   * not everything else that they can do.
   */
  readonly readOnlyAllowed: boolean;
  /** It calls something that is not known to be built in. */
  readonly hasUnknownCall: boolean;
  /** Servers know each of its statements by the first word, and agree on where literals end. */
  readonly isRecognised: boolean;
  /** It leaves nothing in the session that a later statement could see, unless that one has `readsEarlierSession`. */
  readonly leavesSessionClean: boolean;
  /** Its answer may depend on what an earlier statement left in the session. */
  readonly readsEarlierSession: boolean;
  /** At most one statement; a comment after a semicolon is a second, as on the server. */
  readonly single: boolean;
  /** One plain read that takes no lock, and whose answer depends on the tables alone: other clients may get the same reply. */
  readonly repeatable: boolean;
  /** The tables that it names, each as often as it does; null: they are not known. */
  readonly tables: readonly TableName[] | null;
  /**
   * The tables that it names, if it changes only rows of these, and what their triggers and views lead to; null: that is not known, or
   * there are several statements.
   */
  readonly confinedTo: readonly TableName[] | null;
  /** The procedure that it calls, if nothing except that procedure can change something; null: there is none, or that is not known. */
  readonly procedure: TableName | null;
  /** It may change tables, views or triggers, or who may see them. */
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
  procedure: null,
  mayChangeObjects: false,
};

/** Words that may change objects, anywhere in a text whose tokens are in doubt. */
const changingText = /alter|call|create|drop|execute|grant|import|install|rename|revoke/i;

/** How else a session may read a backslash: ANSI_QUOTES makes "…" a name, NO_BACKSLASH_ESCAPES touches both quotes. */
const otherEscapes: Readonly<Record<SqlModes, readonly Escapes[]>> = {
  any: [
    { single: true, double: false },
    { single: false, double: false },
  ],
  escaping: [{ single: true, double: false }],
};

/** Reads of tables. SHOW and EXPLAIN report the server's state, which may be different the next moment. */
const tableVerbs = words('SELECT WITH VALUES TABLE');

/** Other statements that do not depend on what an earlier one left, unless a function or variable in them does. */
const blindVerbs = words('USE BEGIN START COMMIT ROLLBACK DO LOCK UNLOCK TRUNCATE DROP');

/** Other statements that change nothing themselves; a stored function in them may. */
const idleVerbs = words('DO SET SAVEPOINT RELEASE ROLLBACK');

/** Statements that do not change tables, views and triggers, unless a word in them says so. */
const settledVerbs = new Set([
  '',
  ...blindVerbs,
  ...words(
    `SELECT WITH VALUES TABLE SHOW EXPLAIN DESCRIBE DESC ANALYZE SET INSERT UPDATE DELETE REPLACE SAVEPOINT RELEASE KILL CHECK
   CHECKSUM OPTIMIZE REPAIR HANDLER HELP PREPARE DEALLOCATE FLUSH LOAD CACHE XA`,
  ),
]);

/** The other statements of MySQL and MariaDB. */
const changingVerbs = words(
  `ALTER BACKUP BINLOG CALL CHANGE CLONE CREATE EXECUTE GET GRANT IF IMPORT INSTALL PURGE RENAME RESET RESIGNAL RESTART REVOKE
   SHUTDOWN SIGNAL STOP UNINSTALL CASE FOR LOOP REPEAT WHILE`,
);

/** Whether MySQL or MariaDB has statements that begin with this word, in upper case. */
export function isKnownVerb(verb: string): boolean {
  return settledVerbs.has(verb) || changingVerbs.has(verb);
}

/**
 * Analyses a request's SQL; linear in its length, never throws. Placeholders count as values.
 * @param builtIns what is known to be built in on the server
 * @param modes the sql_modes that the session may have
 */
export function analyse(
  sql: string,
  builtIns: BuiltIns = builtInEverywhere,
  modes: SqlModes = 'any',
): Analysis {
  return allAtOnce(analyseInPieces(sql, builtIns, modes));
}

/** The same in pieces. */
export function* analyseInPieces(
  sql: string,
  builtIns: BuiltIns = builtInEverywhere,
  modes: SqlModes = 'any',
): Pieces<Analysis> {
  const first = new Pass(sql, builtIns, defaultEscapes);
  while (first.readOn(stepsInPiece)) yield;
  const others = otherPasses(sql, builtIns, first, modes);
  for (const other of others) while (other.readOn(stepsInPiece)) yield;
  return conclude(sql, first, others, modes);
}

/** A text reads differently under another sql_mode only if a backslash decides where a literal ends. */
function otherPasses(
  sql: string,
  builtIns: BuiltIns,
  { lexer }: Pass,
  modes: SqlModes,
): readonly Pass[] {
  if (lexer.doubt !== doubts.backslash) return [];
  return otherEscapes[modes].map((escapes) => new Pass(sql, builtIns, escapes));
}

/** Only what holds under each reading holds for the text. */
function conclude(sql: string, first: Pass, others: readonly Pass[], modes: SqlModes): Analysis {
  const {
    statements,
    found,
    lexer: { doubt },
  } = first;
  if (doubt === 0) return { sql, statements, classification: found, readings: [first], modes };
  const readings = [first, ...others] as const;
  const isDoubtful = readings.some(({ lexer }) => (lexer.doubt & ~doubts.backslash) !== 0);
  const classification = isDoubtful
    ? { ...worst, mayChangeObjects: changingText.test(sql) }
    : others.reduce((all, other) => underBoth(all, other.found), found);
  const isCutAlike = !isDoubtful && others.every((other) => cutsAs(statements, other));
  return {
    sql,
    statements: isCutAlike ? statements : statements.map(asProgram),
    classification,
    readings,
    modes,
  };
}

/** Whether a reading has the same statements. A session refuses a text whose literal is not closed. */
function cutsAs(statements: readonly Statement[], { lexer, statements: own }: Pass): boolean {
  const isSame = statements.every(({ start }, at) => start === own[at]?.start);
  return lexer.unterminated || (isSame && statements.length === own.length);
}

/** One reading of a text, which may be interrupted. */
class Pass implements Reading {
  readonly lexer: Lexer;
  /** Those of the first statement. */
  readonly facts: Facts;
  /** Known once the pass is over, as `statements`. */
  found: Classification = worst;
  statements: readonly Statement[] = [];
  readonly #sql: string;
  readonly #builtIns: BuiltIns;
  readonly #limit: number;
  /** Null: the text has been one plain statement so far. */
  #cutter: StatementCutter | null = null;
  #isBeginning = true;
  /** Those of the statement at hand. */
  #facts: Facts;
  /** The verdict on the statements before it; null: it is the first. */
  #earlier: Classification | null = null;
  /** Their tables; null from the first statement on whose tables are not known. */
  #tables: TableName[] | null = [];
  #executableComment = false;

  constructor(sql: string, builtIns: BuiltIns, escapes: Escapes) {
    this.lexer = new Lexer(sql, escapes);
    this.facts = new Facts(sql, builtIns);
    this.#facts = this.facts;
    this.#sql = sql;
    this.#builtIns = builtIns;
    this.#limit = endOfText(sql);
  }

  /** Reads on by at most this many tokens; returns whether there are more. */
  readOn(maxTokens: number): boolean {
    const lexer = this.lexer;
    for (let left = maxTokens; left > 0; left -= 1) {
      const kind = lexer.next();
      if (kind === tokenKinds.end || lexer.start >= this.#limit) {
        this.#finish();
        return false;
      }
      if (kind === tokenKinds.semicolon) this.#cut();
      else {
        this.#facts.see(kind, lexer.start, lexer.end);
        if (this.#isBeginning) this.#begin(kind);
        else if (this.#cutter?.isWatching === true)
          this.#cutter.see(kind, lexer.start, lexer.end, this.#facts.verb);
      }
    }
    return true;
  }

  /** Takes the first token. Most statements cannot have a block. A label is a word, too. */
  #begin(kind: number): void {
    this.#isBeginning = false;
    const { verb } = this.#facts;
    if (kind === tokenKinds.word ? !mayBeBlock(verb) : kind !== tokenKinds.quotedName) return;
    this.#cutter = new StatementCutter(this.#sql);
    this.#cutter.see(kind, this.lexer.start, this.lexer.end, verb);
  }

  #cut(): void {
    const facts = this.#facts;
    this.#isBeginning = false;
    this.#cutter ??= new StatementCutter(this.#sql);
    this.#cutter.cut(this.lexer.start, this.lexer.end, facts);
    this.#executableComment ||= facts.executableComment;
    const found = decide(facts, false);
    this.#addTables(found.tables);
    this.#earlier = this.#earlier === null ? found : both(this.#earlier, found);
    this.#facts = new Facts(this.#sql, this.#builtIns);
  }

  #finish(): void {
    const facts = this.#facts;
    this.statements =
      this.#cutter === null
        ? onlyStatement(this.#sql, this.#limit, facts)
        : this.#cutter.finish(this.#limit, facts);
    this.found = decide(facts, this.#earlier === null);
    if (this.#earlier !== null) {
      this.#addTables(this.found.tables);
      this.found = { ...both(this.#earlier, this.found), tables: this.#tables };
    }
    const hasComment = this.#executableComment || facts.executableComment;
    if (hasComment && changingText.test(this.#sql)) {
      this.found = { ...this.found, mayChangeObjects: true };
    }
  }

  #addTables(tables: readonly TableName[] | null): void {
    if (tables === null) this.#tables = null;
    else for (const table of tables) this.#tables?.push(table);
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
  const tables = tablesOf(facts);
  const isConfined =
    (reads || writes || idleVerbs.has(facts.verb)) && tame && !facts.unknownCall && !facts.sequence;
  return {
    kind: decideKind(facts, reads && tame, writes && tame),
    readOnlyAllowed:
      single &&
      reads &&
      tame &&
      !facts.lockingRead &&
      !facts.sessionCall &&
      !facts.sequence &&
      !facts.namesSchema,
    hasUnknownCall: facts.unknownCall || facts.verb === 'CALL',
    isRecognised: isKnownVerb(facts.verb),
    leavesSessionClean,
    readsEarlierSession,
    single,
    repeatable:
      reads &&
      leavesSessionClean &&
      !readsEarlierSession &&
      !facts.lockingRead &&
      !facts.nondeterministic &&
      tableVerbs.has(facts.verb),
    tables,
    confinedTo: isConfined ? tables : null,
    procedure: facts.verb === 'CALL' && tame && tables?.length === 0 ? procedureOf(facts) : null,
    mayChangeObjects: !settledVerbs.has(facts.verb) || facts.changingWord,
  };
}

/** Null: the tables are not known. After USE, and with FOR SCHEMA, a name means another table. */
function tablesOf({ tables, executableComment, namesSchema, verb }: Facts) {
  return executableComment || namesSchema || verb === 'USE' ? null : tables.finish();
}

/** Null: the name is not certain, or an argument may change something. */
function procedureOf(facts: Facts): TableName | null {
  const [, first, second, third, fourth] = facts.kept;
  const isQualified = second?.kind === tokenKinds.dot;
  const schema = isQualified ? nameOf(first) : null;
  const name = nameOf(isQualified ? third : first);
  const after = isQualified ? fourth : second;
  const isWhole =
    after === undefined || (after.kind === tokenKinds.open && facts.endsWithParenthesis);
  if (name === null || (isQualified && schema === null) || !isWhole) return null;
  return facts.unknownCall || facts.sequence ? null : { schema, name };
}

function nameOf(token: Token | undefined): string | null {
  if (token?.kind === tokenKinds.word) return token.text;
  if (token?.kind !== tokenKinds.quotedName) return null;
  return token.text.slice(1, -1).replaceAll('``', '`');
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

/** The properties that hold for both of two readings, or for two statements that run one after another. */
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
    procedure: null,
    mayChangeObjects: one.mayChangeObjects || other.mayChangeObjects,
  };
}

/** The properties of a text that hold under two readings. */
function underBoth(one: Classification, other: Classification): Classification {
  const confinedTo = sameTables(one.confinedTo, other.confinedTo);
  const procedure = other.procedure === null ? null : one.procedure;
  return { ...both(one, other), confinedTo, procedure };
}

/** The tables that both readings of a text name; null: they differ. */
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
