// The clauses of a SET, and which of them reach beyond the session.
import type { Token } from './facts.ts';
import { tokenKinds } from './lexer.ts';
import { words } from './vocabulary.ts';

/** After SET, or after `@@`: other sessions see the change, the disk keeps it, or a whole statement follows. */
const lastingWords = words('GLOBAL PERSIST PERSIST_ONLY PASSWORD DEFAULT RESOURCE STATEMENT');

/** The clauses of a SET, which commas separate. */
export function clausesOf([, ...tokens]: readonly Token[]): readonly (readonly Token[])[] {
  const clauses: Token[][] = [[]];
  for (const token of tokens) {
    if (token.text === ',' && token.depth === 0) clauses.push([]);
    else clauses.at(-1)?.push(token);
  }
  return clauses;
}

/** Whether a clause has an effect beyond its session, or leads to a whole statement. */
export function isLasting([first, second]: readonly Token[]): boolean {
  const named = first?.kind === tokenKinds.systemAt ? second : first;
  return lastingWords.has(named?.word ?? '');
}
