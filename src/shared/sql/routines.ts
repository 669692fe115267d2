// The possible effects of the bodies of stored routines, triggers and views: the tables and routines that they name, and whether they do
// something that a READ ONLY transaction does not stop.

import { analyse } from './analyse.ts';
import { defaultEscapes, doubts, type Escapes, Lexer, tokenKinds } from './lexer.ts';
import type { TableName } from './table-names.ts';
import { type BuiltIns, findWord, toUpperAscii, wordFlags, words } from './vocabulary.ts';

/** A called routine as the text names it: `f`, `db.f`, `package.f` or `db.package.f`, without quotes. */
export type CallName = readonly string[];

/** The tables and routines that a text may reach. */
export type Reach = {
  /** Calls of anything but a known built-in. */
  readonly calls: readonly CallName[];
  /** Every other name: a table, a view, or something else. */
  readonly names: readonly TableName[];
};

type Token = { readonly kind: number; readonly text: string; readonly start: number };
/** A token that may be a name. A word is in upper case in `word`; a quoted name has none. */
type Name = { readonly text: string; readonly word: string };

/** Longer texts are not read: that would take more than 50 ms. */
const maxTokens = 50_000;

/** Every way in which a session may read a backslash and a double quote. */
const allReadings: readonly Escapes[] = [
  defaultEscapes,
  { single: true, double: false },
  { single: false, double: false },
];

/** MariaDB's schemas of built-in functions: `mariadb_schema.get_lock('x', 0)` is GET_LOCK. */
const builtInSchemas = words('MARIADB_SCHEMA ORACLE_SCHEMA MAXDB_SCHEMA');

/** Loadable functions of the plugins of MySQL and MariaDB, and of lib_mysqludf_sys, that change something. */
const actingFunctions = words(
  `ASYNCHRONOUS_CONNECTION_FAILOVER_ADD_MANAGED ASYNCHRONOUS_CONNECTION_FAILOVER_ADD_SOURCE
   ASYNCHRONOUS_CONNECTION_FAILOVER_DELETE_MANAGED ASYNCHRONOUS_CONNECTION_FAILOVER_DELETE_SOURCE
   ASYNCHRONOUS_CONNECTION_FAILOVER_RESET AUDIT_LOG_ENCRYPTION_PASSWORD_SET AUDIT_LOG_FILTER_FLUSH
   AUDIT_LOG_FILTER_REMOVE_FILTER AUDIT_LOG_FILTER_REMOVE_USER AUDIT_LOG_FILTER_SET_FILTER AUDIT_LOG_FILTER_SET_USER
   AUDIT_LOG_ROTATE FIREWALL_GROUP_DELIST FIREWALL_GROUP_ENLIST GEN_DICTIONARY_DROP GEN_DICTIONARY_LOAD
   GROUP_REPLICATION_DISABLE_MEMBER_ACTION GROUP_REPLICATION_ENABLE_MEMBER_ACTION
   GROUP_REPLICATION_RESET_MEMBER_ACTIONS GROUP_REPLICATION_SET_AS_PRIMARY
   GROUP_REPLICATION_SET_COMMUNICATION_PROTOCOL GROUP_REPLICATION_SET_WRITE_CONCURRENCY
   GROUP_REPLICATION_SWITCH_TO_MULTI_PRIMARY_MODE GROUP_REPLICATION_SWITCH_TO_SINGLE_PRIMARY_MODE KEYRING_KEY_GENERATE
   KEYRING_KEY_REMOVE KEYRING_KEY_STORE LOAD_REWRITE_RULES MASKING_DICTIONARIES_FLUSH MASKING_DICTIONARY_REMOVE
   MASKING_DICTIONARY_TERM_ADD MASKING_DICTIONARY_TERM_REMOVE MROONGA_COMMAND MYSQL_FIREWALL_FLUSH_STATUS
   READ_FIREWALL_GROUPS READ_FIREWALL_GROUP_ALLOWLIST READ_FIREWALL_USERS READ_FIREWALL_WHITELIST
   SERVICE_GET_READ_LOCKS SERVICE_GET_WRITE_LOCKS SERVICE_RELEASE_LOCKS SET_FIREWALL_GROUP_MODE SET_FIREWALL_MODE
   SPIDER_BG_DIRECT_SQL SPIDER_COPY_TABLES SPIDER_DIRECT_SQL SPIDER_FLUSH_TABLE_MON_CACHE SYS_EVAL SYS_EXEC SYS_SET
   VERSION_TOKENS_DELETE VERSION_TOKENS_EDIT VERSION_TOKENS_LOCK_EXCLUSIVE VERSION_TOKENS_LOCK_SHARED
   VERSION_TOKENS_SET VERSION_TOKENS_UNLOCK`,
);

/** Harmless functions of the schema `sys`, whose bodies a plain account does not see. Its procedures may do anything. */
const sysFunctions = words(
  `EXTRACT_SCHEMA_FROM_FILE_NAME EXTRACT_TABLE_FROM_FILE_NAME FORMAT_BYTES FORMAT_PATH FORMAT_STATEMENT FORMAT_TIME LIST_ADD
   LIST_DROP PS_IS_ACCOUNT_ENABLED PS_IS_CONSUMER_ENABLED PS_IS_INSTRUMENT_DEFAULT_ENABLED PS_IS_INSTRUMENT_DEFAULT_TIMED
   PS_IS_THREAD_INSTRUMENTED PS_THREAD_ACCOUNT PS_THREAD_ID PS_THREAD_STACK PS_THREAD_TRX_INFO QUOTE_IDENTIFIER
   SYS_GET_CONFIG VERSION_MAJOR VERSION_MINOR VERSION_PATCH`,
);

/** Words that a statement of a routine may begin with. Writes to tables are among them: the server refuses those itself. */
const routineVerbs = words(
  `AS BEGIN CALL CASE CLOSE CONTINUE CURSOR DECLARE DELETE DO ELSE ELSEIF ELSIF END EXCEPTION EXIT FETCH FOR FUNCTION GET
   GOTO IF INSERT IS ITERATE LEAVE LOOP NULL OPEN PRAGMA PROCEDURE RAISE REPEAT REPLACE RESIGNAL RETURN SELECT SET SIGNAL
   TABLE TYPE UNTIL UPDATE VALUES WHEN WHILE WITH`,
);
/** Words after which a statement may begin. */
const leadingWords = words('BEGIN DO ELSE LOOP REPEAT THEN');
/** Words that may follow a name in an expression, or in a declaration of Oracle's mode. */
const followingWords = words(
  `AND AS BETWEEN BIGINT BLOB BOOL BOOLEAN CASE CHAR CLOB COLLATE CONSTANT CURSOR DATE DATETIME DEC DECIMAL DIV
   DOUBLE ELSE END ESCAPE EXCEPTION EXISTS FLOAT FROM IN INT INTEGER INTERVAL IS JSON LIKE LONGTEXT LOOP MEDIUMTEXT MOD
   NOT NUMBER NUMERIC OR PLS_INTEGER RAW REAL REGEXP RETURN RLIKE ROW SMALLINT TEXT THEN TIME TIMESTAMP TINYINT VARCHAR
   VARCHAR2 WHEN XOR YEAR`,
);
/** Words of an expression that an operand may follow without an operator. */
const unaryWords = words('B BINARY DATE DISTINCT EXISTS INTERVAL N NOT TIME TIMESTAMP X');
/** Words of statements that can change something in spite of READ ONLY, in the same transaction or in the whole server. */
const actingWords = words('DUMPFILE KILL OUTFILE TRANSACTION TRANSACTION_READ_ONLY TX_READ_ONLY');
/** After SET these are not variables, unless a value follows. */
const settingWords = words('DEFAULT RESOURCE ROLE STATEMENT');
const conditionWords = words('NOT SQLSTATE VALUE');
const globalWords = words('GLOBAL PERSIST PERSIST_ONLY');

/** The reach of a statement or a view, under every reading of its backslashes; null: it is unknown, or the statement acts. */
export function reachOfStatement(sql: string, builtIns: BuiltIns): Reach | null {
  const all: { calls: CallName[]; names: TableName[] } = { calls: [], names: [] };
  for (const reading of allReadings) {
    const lexer = new Lexer(sql, reading);
    const tokens = tokensOf(sql, lexer, true);
    // A session with this reading refuses it.
    if (lexer.unterminated) continue;
    const found = tokens === null ? null : reachOf(tokens, builtIns);
    if (found === null) return null;
    all.calls.push(...found.calls);
    all.names.push(...found.names);
    if ((lexer.doubt & doubts.backslash) === 0) break;
  }
  return all;
}

/**
 * The reach of the body of a stored function, procedure or package; null: it is unknown, or the body does something that READ ONLY does not
 * stop.
 * @param sqlMode the sql_mode at its creation
 */
export function reachOfRoutine(body: string, sqlMode: string, builtIns: BuiltIns): Reach | null {
  const modes = new Set(sqlMode.split(','));
  const single = !modes.has('NO_BACKSLASH_ESCAPES');
  const lexer = new Lexer(body, { single, double: single && !modes.has('ANSI_QUOTES') });
  const tokens = tokensOf(body, lexer, false);
  return tokens === null || tokens.some((_one, at) => acts(tokens, at))
    ? null
    : reachOf(tokens, builtIns);
}

/**
 * The tokens of a text; null: another server or sql_mode would cut it differently, or it is too long.
 * @param joinsValues whether a run of numbers, strings and operators may be one token: a list of values can be long
 */
function tokensOf(sql: string, lexer: Lexer, joinsValues: boolean): Token[] | null {
  const tokens: Token[] = [];
  let wasValue = false;
  for (let kind = lexer.next(); kind !== tokenKinds.end; kind = lexer.next()) {
    if (kind === tokenKinds.executableComment || tokens.length === maxTokens) return null;
    const { start, end } = lexer;
    const isValue = joinsValues && isValueAt(sql, kind, start);
    if (!isValue || !wasValue) tokens.push({ kind, text: sql.slice(start, end), start });
    wasValue = isValue;
  }
  return lexer.unterminated || (lexer.doubt & ~doubts.backslash) !== 0 ? null : tokens;
}

function isValueAt(sql: string, kind: number, start: number): boolean {
  if (kind === tokenKinds.string) return sql.charCodeAt(start) === 0x27;
  return kind === tokenKinds.number || kind === tokenKinds.operator;
}

function reachOf(tokens: readonly Token[], builtIns: BuiltIns): Reach | null {
  const calls: CallName[] = [];
  const names: TableName[] = [];
  for (let at = 0; at < tokens.length; ) {
    const parts = partsAt(tokens, at);
    const [first] = parts;
    if (first === undefined) {
      at += 1;
      continue;
    }
    const after = at + 2 * parts.length - 1;
    const isCalled = tokens[after]?.kind === tokenKinds.open || wordAt(tokens, at - 1) === 'CALL';
    const isVariable = isKind(tokens[at - 1], tokenKinds.userAt, tokenKinds.systemAt);
    if (isCalled && !isVariable) {
      const reached = judgeCall(parts, isTouching(tokens, after), builtIns);
      if (reached === 'acts') return null;
      if (reached === 'unknown') calls.push(parts.map(({ text }) => text));
    } else if (!isVariable && !(parts.length === 1 && findText(first.word) !== null)) {
      const [schema, name] = parts.length === 1 ? [null, first.text] : [first.text, parts[1]?.text];
      names.push({ schema, name: name ?? '' });
    }
    at = after;
  }
  return { calls, names };
}

function judgeCall(
  parts: readonly Name[],
  isTouching: boolean,
  builtIns: BuiltIns,
): 'acts' | 'built in' | 'unknown' {
  const [first, last] = [parts[0] as Name, parts.at(-1) as Name];
  const name = toUpperAscii(last.text);
  const flags = findText(name)?.flags ?? 0;
  if (flags & wordFlags.sessionFunction || actingFunctions.has(name)) return 'acts';
  if (parts.length > 1) {
    const schema = toUpperAscii(first.text);
    const isOfServer = schema === 'SYS' && parts.length === 2 && sysFunctions.has(name);
    return builtInSchemas.has(schema) || isOfServer ? 'built in' : 'unknown';
  }
  const known = wordFlags.beforeParenthesis | wordFlags.readingFunction | builtIns;
  const isBuiltIn = last.word !== '' && (flags & known) !== 0;
  return isBuiltIn && (isTouching || !(flags & wordFlags.touchingFunction))
    ? 'built in'
    : 'unknown';
}

/** Whether a routine does something at this token that a READ ONLY transaction does not stop. */
function acts(tokens: readonly Token[], at: number): boolean {
  const word = wordAt(tokens, at);
  const [before, after] = [tokens[at - 1], tokens[at + 1]];
  if (beginsStatement(tokens, at) && !mayBegin(tokens, at)) return true;
  if (word === '' || before?.kind === tokenKinds.dot) return false;
  if (before?.kind === tokenKinds.systemAt) {
    // Only a value that is set: `SET @@global.x = …`, `SET a = …, @@persist.x = …`.
    const isTarget = wordAt(tokens, at - 2) === 'SET' || tokens[at - 2]?.text === ',';
    return isTarget && (globalWords.has(word) || actingWords.has(word) || isReadOnlyAt(tokens, at));
  }
  if (actingWords.has(word)) return true;
  const following = wordAt(tokens, at + 1);
  if (wordAt(tokens, at - 1) === 'SET') {
    // SET PASSWORD = … is a statement too.
    const isAssigned = /^:?=$/.test(after?.text ?? '');
    if (word === 'PASSWORD' || (settingWords.has(word) && !isAssigned)) return true;
  }
  if (word === 'HANDLER' && following === 'FOR') {
    return !routineVerbs.has(wordAt(tokens, endOfConditions(tokens, at + 2)));
  }
  if (word === 'FOR') return following === 'UPDATE' || following === 'SHARE';
  if (word === 'LOCK') return following === 'IN';
  return globalWords.has(word) && after?.kind !== tokenKinds.dot && following !== 'FROM';
}

/** The place where the statement of a handler begins: after `NOT FOUND, SQLSTATE VALUE '23000', 1062, name`. */
function endOfConditions(tokens: readonly Token[], from: number): number {
  let at = from;
  while (conditionWords.has(wordAt(tokens, at))) at += 1;
  return tokens[at + 1]?.text === ',' ? endOfConditions(tokens, at + 2) : at + 1;
}

/** `@@session.tx_read_only` */
function isReadOnlyAt(tokens: readonly Token[], at: number): boolean {
  return tokens[at + 1]?.kind === tokenKinds.dot && actingWords.has(wordAt(tokens, at + 2));
}

function beginsStatement(tokens: readonly Token[], at: number): boolean {
  const before = tokens[at - 1];
  if (before === undefined || before.kind === tokenKinds.semicolon) return true;
  if (before.kind === tokenKinds.colon) return true;
  // `END LOOP label` does not begin one.
  const isLeading = leadingWords.has(wordAt(tokens, at - 1)) && wordAt(tokens, at - 2) !== 'END';
  return isLeading && tokens[at - 2]?.kind !== tokenKinds.dot;
}

/** A known statement; or the beginning of an expression, a label, an assignment or a declaration. */
function mayBegin(tokens: readonly Token[], at: number): boolean {
  const word = wordAt(tokens, at);
  if (word === '' || routineVerbs.has(word) || unaryWords.has(word) || word.startsWith('_'))
    return true;
  const after = tokens[at + 1];
  if (after === undefined) return false;
  const following = wordAt(tokens, at + 1);
  if (following !== '') {
    const isDeclared = tokens[at + 2]?.kind === tokenKinds.dot || tokens[at + 2]?.text === '%';
    return followingWords.has(following) || isDeclared;
  }
  return !isKind(
    after,
    ...[tokenKinds.number, tokenKinds.string, tokenKinds.quotedName, tokenKinds.semicolon],
    ...[tokenKinds.userAt, tokenKinds.systemAt],
  );
}

/** The parts of the name that begins at a token; empty: no name begins there. */
function partsAt(tokens: readonly Token[], from: number): readonly Name[] {
  const parts: Name[] = [];
  for (let at = from; ; at += 2) {
    const name = nameOf(tokens[at]);
    if (name === null) return parts;
    parts.push(name);
    if (tokens[at + 1]?.kind !== tokenKinds.dot || nameOf(tokens[at + 2]) === null) return parts;
  }
}

/** A string in double quotes is a name under ANSI_QUOTES. */
function nameOf(token: Token | undefined): Name | null {
  if (token === undefined) return null;
  const { kind, text } = token;
  if (kind === tokenKinds.word) return { text, word: toUpperAscii(text) };
  const quote = text.charAt(0);
  const isQuoted = kind === tokenKinds.quotedName || (kind === tokenKinds.string && quote === '"');
  return isQuoted ? { text: text.slice(1, -1).replaceAll(quote + quote, quote), word: '' } : null;
}

function wordAt(tokens: readonly Token[], at: number): string {
  const token = tokens[at];
  return token?.kind === tokenKinds.word ? toUpperAscii(token.text) : '';
}

function isTouching(tokens: readonly Token[], at: number): boolean {
  const before = tokens[at - 1];
  return before !== undefined && before.start + before.text.length === tokens[at]?.start;
}

function isKind(token: Token | undefined, ...kinds: readonly number[]): boolean {
  return token !== undefined && kinds.includes(token.kind);
}

function findText(word: string) {
  return findWord(word, 0, word.length);
}

type BodyStatement = {
  readonly text: string;
  readonly verb: string;
  readonly setsNewOnly: boolean;
};

/**
 * The tables that a trigger's body names, if it consists only of `SET NEW.column = …` and plain writes, or of BEGIN … END around
 * them: then it does nothing to the session. Null for any other body.
 */
export function readTriggerBody(body: string, builtIns: BuiltIns): readonly TableName[] | null {
  const statements = statementsOf(body);
  if (statements === null) return null;
  const tables: TableName[] = [];
  for (const statement of statements) {
    const found = readStatement(statement, builtIns);
    if (found === null) return null;
    tables.push(...found);
  }
  return tables;
}

/** The tables that a procedure's body names, if it consists only of plain reads and writes: it changes no others. Null for any other body. */
export function readProcedureBody(body: string, builtIns: BuiltIns): readonly TableName[] | null {
  const statements = statementsOf(body);
  if (statements === null) return null;
  const tables: TableName[] = [];
  for (const { text, verb } of statements) {
    const found = analyse(text, builtIns).classification;
    const isExpected = verb !== 'SET' && (found.kind === 'read' || found.kind === 'write');
    if (!isExpected || found.confinedTo === null) return null;
    tables.push(...found.confinedTo);
  }
  return tables;
}

function readStatement({ text, verb, setsNewOnly }: BodyStatement, builtIns: BuiltIns) {
  // The expressions of an assignment are those of a SELECT of the same text.
  const isAssignment = verb === 'SET';
  if (isAssignment && !setsNewOnly) return null;
  const sql = isAssignment ? `SELECT${text.slice('SET'.length)}` : text;
  const { kind, tables, leavesSessionClean, readsEarlierSession } = analyse(
    sql,
    builtIns,
  ).classification;
  const isExpected = kind === (isAssignment ? 'read' : 'write');
  return isExpected && leavesSessionClean && !readsEarlierSession ? tables : null;
}

/** The statements of a body; null unless it is one statement, or a block of statements without blocks of their own. */
function statementsOf(body: string): readonly BodyStatement[] | null {
  const lexer = new Lexer(body);
  const tokens = tokensOf(body, lexer, false);
  if (tokens === null || lexer.doubt !== 0) return null;
  const isBlock = wordAt(tokens, 0) === 'BEGIN';
  if (isBlock && wordAt(tokens, tokens.length - 1) !== 'END') return null;
  const inner = isBlock ? tokens.slice(1, -1) : tokens;
  if (isBlock && inner.length > 0 && inner.at(-1)?.kind !== tokenKinds.semicolon) return null;
  const statements: BodyStatement[] = [];
  let from = 0;
  for (let at = 0; at <= inner.length; at += 1) {
    if (at < inner.length && inner[at]?.kind !== tokenKinds.semicolon) continue;
    const own = inner.slice(from, at);
    const [first, last] = [own[0], own.at(-1)];
    if (first !== undefined && last !== undefined) {
      const text = body.slice(first.start, last.start + last.text.length);
      statements.push({ text, verb: wordAt(own, 0), setsNewOnly: setsNewOnly(own) });
    }
    from = at + 1;
  }
  return statements;
}

/** Whether each target of a SET is a column of NEW. */
function setsNewOnly(tokens: readonly Token[]): boolean {
  let depth = 0;
  return tokens.every(({ kind, text }, at) => {
    if (kind === tokenKinds.open) depth += 1;
    else if (kind === tokenKinds.close) depth -= 1;
    const precedesTarget = at === 0 || (depth === 0 && text === ',');
    return (
      !precedesTarget ||
      (wordAt(tokens, at + 1) === 'NEW' && tokens[at + 2]?.kind === tokenKinds.dot)
    );
  });
}
