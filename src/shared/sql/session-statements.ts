// Statements that only have an effect on their session: alone in a request, whose session ends with it, they do nothing.
import type { Analysis } from './analyse.ts';
import type { Facts, Token } from './facts.ts';
import { tokenKinds } from './lexer.ts';
import { clausesOf, isLasting } from './set-clauses.ts';
import { isOfTemporaryTable } from './transactions.ts';
import { words } from './vocabulary.ts';

/** The effect of a statement on its session. */
export type SessionEffect =
  | 'transaction'
  | 'distributed transaction'
  | 'table locks'
  | 'table handler'
  | 'setting'
  | 'character set'
  | 'default database'
  | 'prepared statement'
  | 'temporary table';

/** Verbs that say enough. */
const effects: ReadonlyMap<string, SessionEffect> = new Map([
  ['COMMIT', 'transaction'],
  ['ROLLBACK', 'transaction'],
  ['SAVEPOINT', 'transaction'],
  ['RELEASE', 'transaction'],
  ['LOCK', 'table locks'],
  ['UNLOCK', 'table locks'],
  ['HANDLER', 'table handler'],
  ['USE', 'default database'],
  ['PREPARE', 'prepared statement'],
  ['DEALLOCATE', 'prepared statement'],
]);

/** After XA: it concerns a transaction that the session has begun. COMMIT and ROLLBACK end one that another session has prepared. */
const branchWords = words('START BEGIN END PREPARE');
/** After BACKUP: MariaDB's locks for a backup, which end with the session. */
const backupWords = words('STAGE LOCK UNLOCK');
/** After SET: the clause concerns transactions. */
const transactionWords = words('TRANSACTION AUTOCOMMIT');
/** After SET: the clause changes the session's character set. */
const characterSetWords = words('NAMES CHARACTER CHARSET');
const scopeWords = words('SESSION LOCAL');

/** The effect of a statement on its session, if it has no other; null: it may do more. In doubt it may. */
export function sessionEffectOf({ classification, readings }: Analysis): SessionEffect | null {
  const [{ facts }] = readings;
  const isCertain = classification.single && !facts.executableComment && facts.beginsWithVerb;
  const effect = isCertain ? effectOf(facts) : null;
  if (effect === null) return null;
  return readings.every((reading) => effectOf(reading.facts) === effect) ? effect : null;
}

function effectOf(facts: Facts): SessionEffect | null {
  const { verb, kept } = facts;
  if (isOfTemporaryTable(facts)) return 'temporary table';
  const second = kept[1]?.word;
  switch (verb) {
    case 'BEGIN':
      // BEGIN NOT ATOMIC … END is a block.
      return kept.length === 1 || second === 'WORK' ? 'transaction' : null;
    case 'START':
      return second === 'TRANSACTION' ? 'transaction' : null;
    case 'XA':
      return branchWords.has(second ?? '') ? 'distributed transaction' : null;
    case 'SET':
      return effectOfSet(facts);
    case 'FLUSH':
      return keepsLock(kept) ? 'table locks' : null;
    case 'BACKUP':
      return backupWords.has(second ?? '') ? 'table locks' : null;
    case 'DROP':
      return second === 'PREPARE' ? 'prepared statement' : null;
    default:
      return effects.get(verb) ?? null;
  }
}

/** FLUSH TABLES … WITH READ LOCK or FOR EXPORT: the end of the session opens the lock that it is for. */
function keepsLock(kept: readonly Token[]): boolean {
  const [last, second, third] = kept.map(({ word }) => word).reverse();
  return (
    (last === 'EXPORT' && second === 'FOR') ||
    (last === 'LOCK' && second === 'READ' && third === 'WITH')
  );
}

/** A function in a value may write. */
function effectOfSet({ kept, unknownCall, sequence }: Facts): SessionEffect | null {
  if (unknownCall || sequence) return null;
  const clauses = clausesOf(kept);
  if (clauses.some(isLasting)) return null;
  if (clauses.some(isOfTransactions)) return 'transaction';
  return clauses.every(isOfCharacterSet) ? 'character set' : 'setting';
}

function isOfTransactions(clause: readonly Token[]): boolean {
  const named = clause.find(({ kind, word }) => kind === tokenKinds.word && !scopeWords.has(word));
  return clause[0]?.kind !== tokenKinds.userAt && transactionWords.has(named?.word ?? '');
}

function isOfCharacterSet([first]: readonly Token[]): boolean {
  return first !== undefined && characterSetWords.has(first.word);
}
