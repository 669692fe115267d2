// The effect of a statement on its transaction: which statements the gateway's own transactions may contain, and which ones begin, end or
// configure a transaction of a session that lives from request to request. The text does not show what a procedure does.
import type { Analysis } from './analyse.ts';
import type { Facts, Token } from './facts.ts';
import { describeDoubt, doubts, tokenKinds } from './lexer.ts';
import { clausesOf } from './set-clauses.ts';
import { toUpperAscii, words } from './vocabulary.ts';

/** The isolation levels of SQL. */
export const isolationLevels = [
  'read uncommitted',
  'read committed',
  'repeatable read',
  'serializable',
] as const;

export type Isolation = (typeof isolationLevels)[number];

/** Prefix of the gateway's own savepoints. */
const savepointPrefix = 'dbhttpd_';

/** The name of a savepoint of the gateway's. @param uuid known to no client */
export function savepointName(uuid: string): string {
  return savepointPrefix + uuid.replaceAll('-', '');
}

/** The characteristics of a transaction. */
export type TransactionCharacteristics = {
  /** Null: the session's. */
  readonly isolation: Isolation | null;
  readonly isReadOnly: boolean;
  /** Whether a snapshot is taken at once (START TRANSACTION WITH CONSISTENT SNAPSHOT). */
  readonly hasSnapshot: boolean;
};

/** The statements that begin a transaction. ROLLBACK first: START TRANSACTION would commit what the session may have begun. */
export function beginStatements({
  isolation,
  isReadOnly,
  hasSnapshot,
}: TransactionCharacteristics): readonly string[] {
  const characteristics = [
    ...(hasSnapshot ? ['WITH CONSISTENT SNAPSHOT'] : []),
    ...(isReadOnly ? ['READ ONLY'] : []),
  ].join(', ');
  return [
    'ROLLBACK',
    ...(isolation === null ? [] : [`SET TRANSACTION ISOLATION LEVEL ${isolation.toUpperCase()}`]),
    `START TRANSACTION ${characteristics}`.trimEnd(),
  ];
}

/** Statements whose first word says enough: they commit on no server, in no version. */
const plainVerbs = words('SELECT TABLE VALUES INSERT REPLACE UPDATE DELETE CALL DO SHOW');

/** Statements that describe, or run a read or write without applying it (EXPLAIN ANALYZE). Anything else is a syntax error. */
const explainingVerbs = words('EXPLAIN DESCRIBE DESC');

/** Variables that neither end a transaction nor change how the server reads a text or whose session it is. */
const harmlessVariables = words(
  `DIV_PRECISION_INCREMENT FOREIGN_KEY_CHECKS GROUP_CONCAT_MAX_LEN INNODB_LOCK_WAIT_TIMEOUT INSERT_ID LAST_INSERT_ID LC_TIME_NAMES
   LOCK_WAIT_TIMEOUT MAX_EXECUTION_TIME MAX_STATEMENT_TIME RAND_SEED1 RAND_SEED2 SQL_SAFE_UPDATES TIMESTAMP TIME_ZONE UNIQUE_CHECKS`,
);

/**
 * Why a transaction of the gateway's may not contain a statement, for people and without any of its text; null: it may. In doubt it may
 * not, and each reading of the text must be harmless.
 * @param isReadOnly whether the transaction is to write nothing
 */
export function whyNotInTransaction(
  { readings, modes }: Analysis,
  isReadOnly = false,
): string | null {
  const cleared = modes === 'escaping' ? doubts.backslash : 0;
  for (const { facts, lexer } of readings) {
    const reason = describeDoubt(lexer, cleared) ?? whyNot(facts, isReadOnly);
    if (reason !== null) return reason;
  }
  return null;
}

function whyNot(facts: Facts, isReadOnly: boolean): string | null {
  const { verb, kept } = facts;
  if (facts.executableComment) return 'an executable comment is SQL to some servers only';
  if (facts.writesFile) return 'the file that it writes would remain after a rollback';
  const notReading = isReadOnly ? whyNotReading(facts) : null;
  if (notReading !== null) return notReading;
  if (!facts.beginsWithVerb) return mayEnd;
  if (plainVerbs.has(verb))
    return facts.delayed ? 'DELAYED writes outside of the transaction' : null;
  if (explainingVerbs.has(verb)) return null;
  if (verb === 'WITH')
    return facts.main === '' ? 'the gateway does not recognise the statement after its WITH' : null;
  if (verb === 'SET') return whyNotSet(kept);
  const savepoint = savepointOf(kept);
  if (savepoint === null) return isOfTemporaryTable(facts) ? temporaryTable : mayEnd;
  return isOurs(savepoint)
    ? `names of savepoints that begin with ${savepointPrefix} are reserved for the gateway`
    : null;
}

const mayEnd = 'it might end the transaction; run it outside of one';
const temporaryTable =
  'a rollback does not undo it; use WITH, an ordinary table, or a procedure that creates and uses the temporary table';

/** CREATE or DROP of a temporary table. */
export function isOfTemporaryTable({ verb, kept }: Facts): boolean {
  if (verb !== 'DROP' && verb !== 'CREATE') return false;
  const [, second, third, fourth] = kept.map(({ word }) => word);
  const isReplaced = verb === 'CREATE' && second === 'OR' && third === 'REPLACE';
  return (isReplaced ? fourth : second) === 'TEMPORARY';
}

/** Locks are not writes: READ ONLY does not stop them. */
function whyNotReading({ verb, lockingRead, sessionCall }: Facts): string | null {
  if (verb === 'CALL') return 'the transaction is read-only, and a procedure may end it or write';
  if (lockingRead)
    return 'the transaction is read-only, and the statement locks the rows that it reads';
  return sessionCall
    ? 'the transaction is read-only, and the statement acquires or releases a lock'
    : null;
}

/** `SET @a = …, timestamp = …`: every target must be known to be harmless. */
function whyNotSet(kept: readonly Token[]): string | null {
  const isHarmless = clausesOf(kept).every((clause) =>
    isAssignment(clause[endOfTarget(clause) ?? -1]),
  );
  return isHarmless
    ? null
    : 'SET is accepted only for user variables, and for a few others that affect only answers';
}

function isAssignment(token: Token | undefined): boolean {
  return token?.text === '=' || token?.text === ':=';
}

/** Null: the target is not known to be harmless. */
function endOfTarget(clause: readonly Token[]): number | null {
  if (clause[0]?.kind === tokenKinds.userAt) return endOfUserVariable(clause);
  let at = 0;
  const isMarked = clause[at]?.kind === tokenKinds.systemAt;
  if (isMarked) at += 1;
  if (clause[at]?.word === 'SESSION' || clause[at]?.word === 'LOCAL') {
    at += 1;
    if (isMarked && clause[at]?.kind !== tokenKinds.dot) return null;
    if (isMarked) at += 1;
  }
  return harmlessVariables.has(clause[at]?.word ?? '') ? at + 1 : null;
}

/** A name may have dots in it: `@a.b`. */
function endOfUserVariable(clause: readonly Token[]): number | null {
  const end = clause.findIndex((token) => token.text === ':' || isAssignment(token));
  return end < 0 ? null : end;
}

/** The name of the savepoint that a statement sets, releases or rolls back to; null: it does none of these. */
function savepointOf(tokens: readonly Token[]): Token | null {
  const name = tokens.at(-1);
  if (name === undefined) return null;
  if (name.kind !== tokenKinds.word && name.kind !== tokenKinds.quotedName) return null;
  const before = tokens.slice(0, -1).map(({ word }) => word || '?');
  const isKnown = /^(SAVEPOINT|RELEASE SAVEPOINT|ROLLBACK( WORK)? TO( SAVEPOINT)?)$/.test(
    before.join(' '),
  );
  return isKnown ? name : null;
}

function isOurs({ text }: Token): boolean {
  return text.replaceAll('`', '').toLowerCase().startsWith(savepointPrefix);
}

/** Characteristics of a transaction; null: the statement does not set it. */
export type Characteristics = {
  readonly isolation: Isolation | null;
  readonly isReadOnly: boolean | null;
};

/** A statement that concerns transactions; `ordinary` is any other, savepoints included. */
export type TransactionStatement =
  | {
      readonly kind: 'begin';
      readonly isReadOnly: boolean | null;
      readonly withConsistentSnapshot: boolean;
    }
  | { readonly kind: 'commit' }
  | { readonly kind: 'rollback' }
  /** For the next transaction, or for all that follow in the session. */
  | {
      readonly kind: 'set';
      readonly scope: 'next' | 'session';
      readonly characteristics: Characteristics;
    }
  /** A session that lives from request to request cannot do it. `reason` is for people. */
  | { readonly kind: 'unsupported'; readonly reason: string }
  | { readonly kind: 'ordinary' };

const ordinary: TransactionStatement = { kind: 'ordinary' };

const chained: TransactionStatement = {
  kind: 'unsupported',
  reason: 'AND CHAIN and RELEASE are not supported here: send BEGIN, or nothing',
};
const distributed: TransactionStatement = {
  kind: 'unsupported',
  reason: 'XA transactions are not supported here',
};
const autocommitOff: TransactionStatement = {
  kind: 'unsupported',
  reason: 'autocommit cannot be switched off here: transactions begin with BEGIN',
};

/** Decodes a statement; one that a server would refuse is `ordinary`. */
export function decodeTransactionStatement({
  classification,
  readings: [{ facts, lexer }],
}: Analysis): TransactionStatement {
  const { kept } = facts;
  if (switchesAutocommitOff(kept)) return autocommitOff;
  if (!classification.single || facts.executableComment || lexer.doubt !== 0) return ordinary;
  const text = kept.map((token) => token.word || token.text).join(' ');
  if (text.startsWith('XA ')) return distributed;
  if (/^BEGIN( WORK)?$/.test(text)) {
    return { kind: 'begin', isReadOnly: null, withConsistentSnapshot: false };
  }
  const started = /^START TRANSACTION(?: (.+))?$/.exec(text);
  if (started !== null) return decodeStart(started[1]);
  const ended = /^(COMMIT|ROLLBACK)(?: WORK)?(?: AND( NO)? CHAIN)?(?:( NO)? RELEASE)?$/.exec(text);
  if (ended !== null) return decodeEnd(text);
  const set = /^SET (?:(SESSION|LOCAL) )?TRANSACTION (.+)$/.exec(text);
  if (set !== null) return decodeSet(set[1] === undefined ? 'next' : 'session', set[2] ?? '');
  return ordinary;
}

function decodeStart(asked: string | undefined): TransactionStatement {
  let isReadOnly: boolean | null = null;
  let withConsistentSnapshot = false;
  for (const one of asked?.split(' , ') ?? []) {
    if (one === 'READ ONLY' || one === 'READ WRITE') isReadOnly = one === 'READ ONLY';
    else if (one === 'WITH CONSISTENT SNAPSHOT') withConsistentSnapshot = true;
    else return ordinary;
  }
  return { kind: 'begin', isReadOnly, withConsistentSnapshot };
}

function decodeEnd(text: string): TransactionStatement {
  if (/ AND CHAIN/.test(text) || (/ RELEASE$/.test(text) && !/ NO RELEASE$/.test(text))) {
    return chained;
  }
  return { kind: text.startsWith('COMMIT') ? 'commit' : 'rollback' };
}

function decodeSet(scope: 'next' | 'session', asked: string): TransactionStatement {
  let isolation: Isolation | null = null;
  let isReadOnly: boolean | null = null;
  for (const one of asked.split(' , ')) {
    const level = isolationLevels.find((known) => one === `ISOLATION LEVEL ${toUpperAscii(known)}`);
    if (level !== undefined) isolation = level;
    else if (one === 'READ ONLY' || one === 'READ WRITE') isReadOnly = one === 'READ ONLY';
    else return ordinary;
  }
  return { kind: 'set', scope, characteristics: { isolation, isReadOnly } };
}

/** Each request is its own transaction: a client that expects otherwise would find its writes committed. In doubt it switches autocommit off. */
function switchesAutocommitOff(kept: readonly Token[]): boolean {
  if (kept[0]?.word !== 'SET') return false;
  return clausesOf(kept).some((clause) => {
    const set =
      /^(?:(?:SESSION|LOCAL)|@@(?:(?:SESSION|LOCAL)\.)?)?(?:AUTOCOMMIT|`AUTOCOMMIT`):?=(.+)$/.exec(
        clause.map(({ text }) => toUpperAscii(text)).join(''),
      );
    return set !== null && !/^(1|ON|TRUE|'ON'|'1')$/.test(set[1] ?? '');
  });
}
