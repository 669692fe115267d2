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
 * - `commit in part`: the same, and if it fails, a part of it may remain.
 * @see https://dev.mysql.com/doc/refman/8.4/en/implicit-commit.html
 */
export type Effect = 'nothing' | 'boundary' | 'rollback' | 'change' | 'commit' | 'commit in part';

/** Verbs of statements that do nothing, unless a function or a clause in them does. */
const idleVerbs = words('SELECT VALUES TABLE SHOW DO EXPLAIN DESCRIBE DESC SET');
const settledVerbs = words('USE SAVEPOINT RELEASE');
const changingVerbs = words('INSERT UPDATE DELETE REPLACE');
const queryVerbs = words('SELECT VALUES TABLE');
/** Statements that may have committed a part of themselves when they fail: blocks, procedures, lists of objects. */
const verbsInPart = words('CALL EXECUTE DROP IF CASE FOR WHILE LOOP REPEAT');
/** After CREATE OR REPLACE, MariaDB drops one of these and then makes another. */
const dropped = words('TABLE TEMPORARY SEQUENCE DATABASE SCHEMA');
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
  const { verb, kept } = facts;
  // A server that skips the comment sees another verb.
  if (facts.executableComment && !facts.beginsWithVerb) return 'commit in part';
  if (idleVerbs.has(verb)) return effectOfIdle(facts);
  if (changingVerbs.has(verb)) return 'change';
  if (verb === 'WITH') return queryVerbs.has(facts.main) ? effectOfIdle(facts) : 'change';
  if (verb === '' || settledVerbs.has(verb)) return 'nothing';
  if (verb === 'ROLLBACK') return 'rollback';
  if (verb === 'START') return kept[1]?.word === 'TRANSACTION' ? 'boundary' : 'commit';
  if (verb === 'BEGIN' || verb === 'COMMIT') return 'boundary';
  const isInPart = verbsInPart.has(verb) || replaces(kept) || namesAccounts(verb, kept);
  return isInPart ? 'commit in part' : 'commit';
}

/** A stored function may write, and so may the statement in a SET STATEMENT … FOR. */
function effectOfIdle(facts: Facts): Effect {
  const { verb, kept, writesFile, executableComment, unknownCall, sequence } = facts;
  if (verb === 'SET' && clausesOf(kept).some(isLasting)) {
    return facts.changingWord ? 'commit in part' : 'commit';
  }
  if (writesFile || executableComment) return 'commit';
  return unknownCall || sequence ? 'change' : 'nothing';
}

function replaces([create, or, replace, what]: readonly Token[]): boolean {
  const isReplacing = create?.word === 'CREATE' && or?.word === 'OR' && replace?.word === 'REPLACE';
  return isReplacing && dropped.has(what?.word ?? '');
}

/** Whether it concerns several accounts: MariaDB, and MySQL before 8, take one after another. */
function namesAccounts(verb: string, kept: readonly Token[]): boolean {
  const before = accountVerbs.get(verb);
  const from = before === undefined ? -1 : kept.findIndex(({ word }) => before.has(word));
  return from >= 0 && kept.slice(from).some(({ text, depth }) => text === ',' && depth === 0);
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
  return isChanged ? neverCommitting.has(failed) : failed !== 'commit in part';
}
