// Whether a server's NOT NULL can be believed. Each doubt was seen on MariaDB 10.11 and 11.8, and most on MySQL 9.7 too.
import { fetchRows, RefusedError } from '../mysql/commands.ts';
import type { Connection } from '../mysql/connection.ts';
import type { Column } from '../mysql/packets.ts';
import { Lexer, tokenKinds } from '../sql/lexer.ts';

/** The names of a connection's database and server on which it depends whether a column is a table's own. */
export type Catalogue = {
  /** The connection's database. */
  readonly database: string;
  readonly tables: ReadonlySet<string>;
  /** In lower case. */
  readonly views: ReadonlySet<string>;
  /** Other databases, in lower case. */
  readonly schemas: ReadonlySet<string>;
};

/** Reads the names. Rejects if the connection is lost. A server that refuses leaves nothing known. */
export async function fetchCatalogue(connection: Connection): Promise<Catalogue> {
  const tables = new Set<string>();
  const views = new Set<string>();
  const schemas = new Set<string>();
  try {
    const [[database] = []] = await fetchRows(connection, 'SELECT DATABASE()');
    const rows = await fetchRows(
      connection,
      `SELECT TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()
        UNION ALL SELECT SCHEMA_NAME, 'SCHEMA' FROM information_schema.SCHEMATA WHERE SCHEMA_NAME <> DATABASE()`,
    );
    for (const [name, type] of rows) {
      if (type === 'SCHEMA') schemas.add((name ?? '').toLowerCase());
      else if (type === 'BASE TABLE') tables.add(name ?? '');
      else views.add((name ?? '').toLowerCase());
    }
    return { database: database ?? '', tables, views, schemas };
  } catch (error) {
    if (error instanceof RefusedError) return { database: '', tables, views, schemas };
    throw error;
  }
}

/** The parts of a text after which a server may be wrong about NULL. */
export type Doubts = {
  /** The server may be wrong about every column: of ROLLUP, or if a subquery has an aggregate of the query around it. */
  readonly isHopeless: boolean;
  readonly hasOuterJoin: boolean;
  /** The server may be wrong about columns of derived tables and of views, which it takes for those of tables. */
  readonly isIndirect: boolean;
  /** In lower case: the names that may be aliases. */
  readonly aliases: ReadonlySet<string>;
  readonly catalogue: Catalogue;
};

const words = (text: string): ReadonlySet<string> => new Set(text.split(' '));

const aggregates = words(
  'ANY_VALUE AVG BIT_AND BIT_OR BIT_XOR COUNT GROUP_CONCAT JSON_ARRAYAGG JSON_OBJECTAGG MAX MIN ST_COLLECT STD STDDEV STDDEV_POP STDDEV_SAMP SUM VARIANCE VAR_POP VAR_SAMP',
);
/** Words before a name that is no alias. */
const beforeNames = words(
  'ALL AND BETWEEN BY CASE CROSS DISTINCT DIV ELSE FROM HAVING IN INNER INTO IS JOIN LIKE MOD NATURAL NOT ON OR OUTER RETURNING SELECT SET STRAIGHT_JOIN TABLE THEN UPDATE WHEN WHERE XOR',
);
/** Words before the bracket of a query that cannot use the columns around it. */
const beforeQueries = words('ALL AS DISTINCT EXCEPT FROM INTERSECT JOIN STRAIGHT_JOIN UNION');
/** Words in the argument of an aggregate that are no names. */
const inArguments = words(
  'AND ASC BY CASE DESC DISTINCT DIV ELSE END FALSE IN IS LIKE LIMIT MOD NOT NULL OR ORDER SEPARATOR THEN TRUE WHEN XOR',
);

/** A query or something else in brackets. */
type Block = {
  /** Whether it is a query that can use the columns around it. Null: it is no query. */
  isSubquery: boolean | null;
  readonly isAggregate: boolean;
  /** Words that stand behind FROM, in lower case: its tables and their aliases are among them. */
  readonly names: Set<string>;
  hasFrom: boolean;
  /** The names in the arguments of its aggregates: the tables, in lower case; null: a column without one. */
  readonly used: (string | null)[];
};

/** Finds the doubts of a text, in one pass. */
export function findDoubts(sql: string, catalogue: Catalogue): Doubts {
  const finder = new DoubtFinder(sql, catalogue);
  finder.run();
  const { isHopeless, hasOuterJoin, isIndirect, aliases } = finder;
  return {
    isHopeless,
    hasOuterJoin,
    isIndirect: isIndirect || hasOuterJoin,
    aliases,
    catalogue,
  };
}

class DoubtFinder {
  isHopeless = false;
  hasOuterJoin = false;
  isIndirect = false;
  readonly aliases = new Set<string>();
  readonly #lexer: Lexer;
  readonly #sql: string;
  readonly #catalogue: Catalogue;
  readonly #blocks: Block[] = [openBlock(false)];
  #hasCte = false;
  /** The token before: its kind, and its text if it is a name. Words are in upper case. */
  #before: { readonly kind: number; readonly name: string } = { kind: tokenKinds.end, name: '' };
  /** A name whose meaning the next token shows. Null: there is none. */
  #pending: string | null = null;

  constructor(sql: string, catalogue: Catalogue) {
    this.#lexer = new Lexer(sql);
    this.#sql = sql;
    this.#catalogue = catalogue;
  }

  run(): void {
    const lexer = this.#lexer;
    for (let kind = lexer.next(); kind !== tokenKinds.end; kind = lexer.next()) {
      const token = this.#sql.slice(lexer.start, lexer.end);
      const isWord = kind === tokenKinds.word;
      const isName = isWord || kind === tokenKinds.quotedName;
      const name = isName ? nameOf(token) : '';
      const { kind: kindBefore, name: before } = this.#before;
      // LEFT(…) and RIGHT(…) are functions.
      const isJoin = before === 'LEFT' || before === 'RIGHT';
      if (isJoin && kind !== tokenKinds.open) this.hasOuterJoin = true;
      this.#settle(kind, before);
      if (kind === tokenKinds.open) this.#open(before, kindBefore);
      else if (kind === tokenKinds.close) this.#close();
      else if (isName) this.#see(name, isWord ? name.toUpperCase() : '');
      this.#before = { kind, name: isWord ? name.toUpperCase() : name };
    }
  }

  #see(name: string, word: string): void {
    const { kind, name: before } = this.#before;
    const lower = name.toLowerCase();
    const block = this.#query();
    if (word === 'ROLLUP') this.isHopeless = true;
    if (word === 'WITH') this.#hasCte = true;
    if (word === 'FROM') block.hasFrom = true;
    const top = this.#blocks.at(-1) as Block;
    const isFirst = kind === tokenKinds.open && (word === 'SELECT' || word === 'WITH');
    if (isFirst && top.isSubquery === null) top.isSubquery = !beforeQueries.has(this.#opener);
    if (this.#catalogue.views.has(lower)) this.isIndirect = true;
    const isAfterName = kind === tokenKinds.word || kind === tokenKinds.quotedName;
    const mayBeAlias = isAfterName ? !beforeNames.has(before) : kind === tokenKinds.close;
    if (mayBeAlias || this.#hasCte) this.aliases.add(lower);
    if (kind !== tokenKinds.dot)
      this.#pending = word !== '' && inArguments.has(word) ? null : lower;
  }

  /** The word before the last bracket that was opened. */
  #opener = '';

  #open(before: string, kindBefore: number): void {
    const isCall = kindBefore === tokenKinds.word && aggregates.has(before);
    if (isCall) this.isIndirect = true;
    this.#opener = kindBefore === tokenKinds.end ? 'UNION' : before;
    this.#blocks.push(openBlock(isCall));
  }

  #close(): void {
    if (this.#blocks.length === 1) return;
    const { isSubquery, used, names } = this.#blocks.pop() as Block;
    if (isSubquery !== true) return;
    if (used.some((table) => table === null || !names.has(table))) this.isHopeless = true;
  }

  /** Gives the name before this token its meaning. */
  #settle(kind: number, before: string): void {
    const name = this.#pending;
    this.#pending = null;
    if (kind === tokenKinds.dot && this.#catalogue.schemas.has(before.toLowerCase())) {
      this.isIndirect = true;
    }
    if (name === null || kind === tokenKinds.open) return;
    const block = this.#query();
    if (this.#isInAggregate()) block.used.push(kind === tokenKinds.dot ? name : null);
    else if (block.hasFrom && kind !== tokenKinds.dot) block.names.add(name);
  }

  /** The innermost query. */
  #query(): Block {
    return (this.#blocks.findLast(({ isSubquery }) => isSubquery !== null) ??
      this.#blocks[0]) as Block;
  }

  #isInAggregate(): boolean {
    const query = this.#blocks.indexOf(this.#query());
    return this.#blocks.slice(query + 1).some(({ isAggregate }) => isAggregate);
  }
}

function openBlock(isAggregate: boolean): Block {
  return { isSubquery: null, isAggregate, names: new Set(), hasFrom: false, used: [] };
}

function nameOf(token: string): string {
  return token.startsWith('`') ? token.slice(1, -1).replaceAll('``', '`') : token;
}

/**
 * Whether the server's NOT NULL can be believed. It says so of every column under ROLLUP, and if `(select max(o.n) from t)` makes the query
 * around it one of groups (`o` is that query's): without rows, its one group has NULL everywhere. It also says so of literals and COALESCE of a derived table or of
 * a view under an outer join, which may be inside a view and so not be seen here; and of columns of merged derived tables and views, if
 * two outer joins follow each other, or if an aggregate without GROUP BY has no row. Their origin is an alias, as that of a table.
 */
export function isCertain({ origin }: Column, doubts: Doubts): boolean {
  if (doubts.isHopeless) return false;
  const [database, table, original] = [origin.database, origin.table, origin.originalTable].map(
    String,
  ) as [string, string, string];
  // A column of a derived table without a database is an expression there.
  if (table === '') return !doubts.hasOuterJoin;
  if (database === '' || origin.originalName.length === 0) return false;
  if (table !== original) return true;
  const { catalogue, aliases, isIndirect } = doubts;
  if (database !== catalogue.database) return false;
  const isOwn = catalogue.tables.has(table) && !aliases.has(table.toLowerCase());
  return isOwn || !isIndirect;
}
