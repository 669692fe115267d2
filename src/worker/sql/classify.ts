// Decides from its text alone what a request may do to data and to its session. In doubt it says: anything.
// Must not know connections: what the server's status flags say is judged elsewhere.
import { isSpaceCode } from './characters.ts';
import { Facts } from './facts.ts';
import { doubts, type Escapes, Lexer } from './lexer.ts';
import { tokenKinds } from './tokens.ts';

/** What the text of a request says about it. Views and triggers are invisible here. */
export type Classification = {
  /**
   * `read`: nothing can have been applied when it is killed. `write`: INSERT, UPDATE, DELETE, REPLACE.
   * `other`: everything else, and reads that call functions which may write.
   */
  readonly kind: 'read' | 'write' | 'other';
  /**
   * May be sent inside of a READ ONLY transaction. Stored functions may be called: the server itself
   * refuses their writes there.
   */
  readonly readOnlyAllowed: boolean;
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
};

const worst: Classification = {
  kind: 'other',
  readOnlyAllowed: false,
  leavesSessionClean: false,
  readsEarlierSession: true,
  single: false,
  repeatable: false,
};

/** How else a session may read a backslash: ANSI_QUOTES makes "…" a name, NO_BACKSLASH_ESCAPES touches both. */
const otherEscapes: readonly Escapes[] = [
  { single: true, double: false },
  { single: false, double: false },
];

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

/** Classifies a request's SQL; linear in its length, never throws. Placeholders count as values. */
export function classify(sql: string): Classification {
  const lexer = new Lexer(sql);
  const found = read(sql, lexer);
  if (lexer.doubt === 0) return found;
  if (lexer.doubt !== doubts.backslash) return worst;
  // Where a literal ends depends on sql_mode: what holds must hold under each.
  let all = found;
  for (const escapes of otherEscapes) {
    const other = new Lexer(sql, escapes);
    all = both(all, read(sql, other));
    if (other.doubt & ~doubts.backslash) return worst;
  }
  return all;
}

function read(sql: string, lexer: Lexer): Classification {
  let facts = new Facts(sql);
  let earlier: Classification | null = null;
  let single = true;
  for (let kind = lexer.next(); kind !== tokenKinds.end; kind = lexer.next()) {
    if (kind !== tokenKinds.semicolon) {
      facts.see(kind, lexer.start, lexer.end);
      continue;
    }
    if (isBlankFrom(sql, lexer.end)) break;
    single = false;
    const finished = decide(facts, false);
    earlier = earlier === null ? finished : both(earlier, finished);
    facts = new Facts(sql);
  }
  const last = decide(facts, single);
  return earlier === null ? last : both(earlier, last);
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
  return {
    kind: decideKind(facts, reads && tame, writes && tame),
    readOnlyAllowed:
      single && reads && tame && !facts.lockingRead && !facts.sessionCall && !facts.sequence,
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
  };
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
    leavesSessionClean: one.leavesSessionClean && other.leavesSessionClean,
    readsEarlierSession: one.readsEarlierSession || other.readsEarlierSession,
    single: one.single && other.single,
    repeatable: one.repeatable && other.repeatable,
  };
}

/** Whether only what the server takes off the end follows: spaces and semicolons. */
function isBlankFrom(sql: string, from: number): boolean {
  for (let at = from; at < sql.length; at += 1) {
    const code = sql.charCodeAt(at);
    if (code !== 0x3b && !isSpaceCode(code)) return false;
  }
  return true;
}
