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

/** Never throws; of a long statement that is no SET only the beginning is looked at. What a server would refuse is `ordinary`. */
export function decodeTransactionStatement(sql: string): TransactionStatement {
  if (switchesAutocommitOff(sql)) return autocommitOff;
  const text = normalize(sql);
  if (text === null) return ordinary;
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

/** Words in upper case and everything else as it stands, with spaces between them; null: it is none of these statements. */
function normalize(sql: string): string | null {
  const lexer = new Lexer(sql);
  const tokens: string[] = [];
  for (let kind = lexer.next(); kind !== tokenKinds.end; kind = lexer.next()) {
    if (kind === tokenKinds.executableComment || tokens.length === mostTokens) return null;
    const text = sql.slice(lexer.start, lexer.end);
    tokens.push(kind === tokenKinds.word ? toUpperAscii(text) : text);
    if (tokens.length === 1 && !firstWords.has(tokens[0] as string)) return null;
  }
  while (tokens.at(-1) === ';') tokens.pop();
  return lexer.doubt === 0 ? tokens.join(' ') : null;
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

/** Each request is a transaction of its own there: whoever believes otherwise would find its writes committed. In doubt it does. */
function switchesAutocommitOff(sql: string): boolean {
  return assignmentsOf(sql).some((assignment) => {
    const set =
      /^(?:(?:SESSION|LOCAL)|@@(?:(?:SESSION|LOCAL)\.)?)?(?:AUTOCOMMIT|`AUTOCOMMIT`):?=(.+)$/.exec(
        assignment,
      );
    return set !== null && !/^(1|ON|TRUE|'ON'|'1')$/.test(set[1] ?? '');
  });
}

/** What stands between the commas of a SET, in upper case and without spaces; none of any other statement. */
function assignmentsOf(sql: string): readonly string[] {
  const lexer = new Lexer(sql);
  lexer.next();
  if (toUpperAscii(sql.slice(lexer.start, lexer.end)) !== 'SET') return [];
  const found: string[] = [];
  let pieces: string[] = [];
  let depth = 0;
  for (let kind = lexer.next(); kind !== tokenKinds.end; kind = lexer.next()) {
    const text = sql.slice(lexer.start, lexer.end);
    if (kind === tokenKinds.open) depth += 1;
    else if (kind === tokenKinds.close) depth -= 1;
    const isEnd = kind === tokenKinds.semicolon || (depth === 0 && text === ',');
    if (isEnd) {
      found.push(pieces.join(''));
      pieces = [];
    } else pieces.push(toUpperAscii(text));
  }
  return [...found, pieces.join('')];
}
