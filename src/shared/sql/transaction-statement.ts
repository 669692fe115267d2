// What a statement does to the transactions of a session that lives from request to request, from its text alone. Pure.
// Must not know sessions, nor what is held for them.
import { type Isolation, isolationLevels } from './isolation.ts';
import { Lexer } from './lexer.ts';
import { tokenKinds } from './tokens.ts';
import { toUpperAscii } from './vocabulary.ts';

/** What is asked of a transaction; null: nothing is said. */
export type Characteristics = {
  readonly isolation: Isolation | null;
  readonly isReadOnly: boolean | null;
};

/** One of the statements that concern transactions; `ordinary` is any other, savepoints included. */
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
const firstWords = new Set(['BEGIN', 'START', 'COMMIT', 'ROLLBACK', 'SET', 'XA']);
/** None of these statements is longer. */
const mostTokens = 24;

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

const autocommitIs =
  /^(?:(?:SESSION |LOCAL )|@@ (?:(?:SESSION|LOCAL) \. )?)?(?:AUTOCOMMIT|`autocommit`) :?= (.+)$/i;

/** Never throws; of a long statement only the beginning is looked at. What a server would refuse is `ordinary`. */
export function decodeTransactionStatement(sql: string): TransactionStatement {
  const tokens = normalize(sql);
  if (tokens === null) return ordinary;
  const text = tokens.join(' ');
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
  return switchesAutocommitOff(tokens) ? autocommitOff : ordinary;
}

/** Words in upper case and everything else as it stands; null: it is none of these statements. */
function normalize(sql: string): readonly string[] | null {
  const lexer = new Lexer(sql);
  const tokens: string[] = [];
  for (let kind = lexer.next(); kind !== tokenKinds.end; kind = lexer.next()) {
    if (kind === tokenKinds.executableComment || tokens.length === mostTokens) return null;
    const text = sql.slice(lexer.start, lexer.end);
    tokens.push(kind === tokenKinds.word ? toUpperAscii(text) : text);
    if (tokens.length === 1 && !firstWords.has(tokens[0] as string)) return null;
  }
  while (tokens.at(-1) === ';') tokens.pop();
  return lexer.doubt === 0 ? tokens : null;
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

/** Each request is a transaction of its own there: whoever believes otherwise would find its writes committed. */
function switchesAutocommitOff([verb, ...tokens]: readonly string[]): boolean {
  if (verb !== 'SET') return false;
  const assignments: string[][] = [[]];
  for (const token of tokens) {
    if (token === ',') assignments.push([]);
    else assignments.at(-1)?.push(token);
  }
  return assignments.some((assignment) => leavesAutocommitOff(assignment.join(' ')));
}

/** One assignment of a SET. */
function leavesAutocommitOff(assignment: string): boolean {
  const [, value] = autocommitIs.exec(assignment) ?? [];
  return value !== undefined && !/^(1|ON|TRUE|'ON'|'1')$/i.test(value);
}
