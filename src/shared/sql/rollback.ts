// The effects of statements as far as a ROLLBACK is concerned: which ones it undoes, after one of them failed. The text does not show what
// a procedure does, so in doubt something remains.
import type { Facts, Token } from './facts.ts';
import { clausesOf, isLasting } from './set-clauses.ts';
import { words } from './vocabulary.ts';

/**
 * The effect of a statement on data and on its transaction:
 * - `nothing`: it changes no data, and leaves the transaction as it is;
 * - `boundary`: BEGIN, START TRANSACTION, COMMIT. They commit what was changed before;
 * - `rollback`: ROLLBACK, also to a savepoint;
 * - `change`: a ROLLBACK undoes it until it is committed, and it commits nothing itself;
 * - `commit`: it may commit, or change what no ROLLBACK undoes;
 * - `commit in part`: the same, and if it fails, a part of it may remain;
 * - `program`: the same, because it runs other statements. One of these may be the one with a syntax error.
 * @see https://dev.mysql.com/doc/refman/8.4/en/implicit-commit.html
 */
export type Effect =
  | 'nothing'
  | 'boundary'
  | 'rollback'
  | 'change'
  | 'commit'
  | 'commit in part'
  | 'program';

/** Verbs of statements that do nothing, unless a function or a clause in them does. */
const idleVerbs = words('SELECT VALUES TABLE SHOW DO EXPLAIN DESCRIBE DESC SET');
const settledVerbs = words('USE SAVEPOINT RELEASE');
const changingVerbs = words('INSERT UPDATE DELETE REPLACE');
const queryVerbs = words('SELECT VALUES TABLE');
/** In Oracle's mode a block begins with BEGIN or DECLARE. */
const programVerbs = words('CALL EXECUTE BEGIN DECLARE IF CASE FOR WHILE LOOP REPEAT');
/** After CREATE OR REPLACE: nothing is dropped before the view can be made. */
const viewWords = words('VIEW ALGORITHM SQL');
const accountWords = words('USER ROLE');
/** Statements about accounts, and the words that their accounts follow. */
const accountVerbs: ReadonlyMap<string, ReadonlySet<string>> = new Map([
  ['CREATE', accountWords],
  ['ALTER', accountWords],
  ['RENAME', accountWords],
  ['GRANT', words('TO')],
  ['REVOKE', words('FROM')],
]);

/** The effect of a statement that is not a block. */
export function effectOf(facts: Facts): Effect {
  const { verb } = facts;
  if (facts.setsSequence) return 'commit in part';
  if (facts.beginsWithVerb || !facts.executableComment) {
    if (idleVerbs.has(verb)) return effectOfIdle(facts);
    if (changingVerbs.has(verb)) return 'change';
    if (verb === 'WITH') return queryVerbs.has(facts.main) ? effectOfIdle(facts) : 'change';
  }
  // Only some servers see what is in the comment.
  return facts.executableComment ? 'program' : effectOfOther(facts);
}

/** A stored function may write. */
function effectOfIdle(facts: Facts): Effect {
  const { verb, kept, writesFile, executableComment, unknownCall, sequence } = facts;
  if (verb === 'SET' && kept[1]?.word === 'STATEMENT') return effectOfSetStatement(kept);
  const clauses = verb === 'SET' ? clausesOf(kept) : [];
  // A clause takes effect before the next one fails.
  if (clauses.some(isLasting)) return clauses.length > 1 ? 'commit in part' : 'commit';
  if (writesFile || executableComment) return 'commit';
  return unknownCall || sequence ? 'change' : 'nothing';
}

/** MariaDB's SET STATEMENT … FOR a statement. */
function effectOfSetStatement(kept: readonly Token[]): Effect {
  const at = kept.findIndex(({ word, depth }) => word === 'FOR' && depth === 0);
  const verb = kept[at + 1]?.word ?? '';
  return changingVerbs.has(verb) || queryVerbs.has(verb) ? 'change' : 'program';
}

function effectOfOther({ verb, kept }: Facts): Effect {
  if (verb === '' || settledVerbs.has(verb)) return 'nothing';
  if (verb === 'ROLLBACK') return 'rollback';
  if (isBoundary(verb, kept)) return 'boundary';
  if (programVerbs.has(verb)) return 'program';
  const isInPart = verb === 'DROP' || replaces(kept) || namesAccounts(verb, kept);
  return isInPart ? 'commit in part' : 'commit';
}

function isBoundary(verb: string, [, second]: readonly Token[]): boolean {
  if (verb === 'BEGIN') return second === undefined || second.word === 'WORK';
  return verb === 'COMMIT' || (verb === 'START' && second?.word === 'TRANSACTION');
}

/** MariaDB drops what it replaces, and may then fail to make the other. */
function replaces([create, or, replace, what]: readonly Token[]): boolean {
  const isReplacing = create?.word === 'CREATE' && or?.word === 'OR' && replace?.word === 'REPLACE';
  return isReplacing && !viewWords.has(what?.word ?? '');
}

/** Whether it may concern several accounts: MariaDB, and MySQL before 8, take one after another. */
function namesAccounts(verb: string, kept: readonly Token[]): boolean {
  const before = accountVerbs.get(verb);
  if (before === undefined) return false;
  const from = kept.findIndex(({ word, depth }) => before.has(word) && depth === 0);
  // Long lists of privileges are not kept.
  if (from < 0) return verb === 'GRANT' || verb === 'REVOKE';
  return kept.slice(from).some(({ text, depth }) => text === ',' && depth === 0);
}

/** Whether a part of a statement with this effect may remain if it fails. */
export function mayRemainInPart(effect: Effect): boolean {
  return effect === 'commit in part' || effect === 'program';
}

/** A statement that succeeded. */
export type Applied = {
  readonly effect: Effect;
  /** Whether a transaction was open after it. */
  readonly inTransaction: boolean;
  /** The number of its warnings. */
  readonly warnings: number;
};

/** They change nothing if nothing was changed before them. */
const harmless: ReadonlySet<Effect> = new Set(['nothing', 'boundary', 'rollback']);
/** They do not commit earlier changes, whether they succeed or fail. */
const neverCommitting: ReadonlySet<Effect> = new Set(['nothing', 'rollback', 'change']);

/**
 * Whether nothing of a text remains after a ROLLBACK that itself had no warning.
 * @param before the statements before the failed one, in order
 * @param failed the effect of the statement that failed (DDL commits even then); `nothing` if it is a syntax error
 */
export function rollbackUndoesAll(before: readonly Applied[], failed: Effect): boolean {
  let isChanged = false;
  for (const { effect, inTransaction, warnings } of before) {
    if (effect === 'rollback') {
      // It warns if it leaves changes of tables without transactions (1196).
      if (warnings > 0) return false;
      isChanged &&= inTransaction;
    } else if (isChanged || !harmless.has(effect)) {
      if (!inTransaction || !neverCommitting.has(effect)) return false;
      isChanged = true;
    }
  }
  return isChanged ? neverCommitting.has(failed) : !mayRemainInPart(failed);
}
