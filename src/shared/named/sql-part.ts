// Checks one SQL statement of a named statement: its tokens, its placeholders, and whether a transaction of the gateway's may contain it.
import { type Analysis, analyse } from '../sql/analyse.ts';
import { characterClasses, classOf, doubts, isWordCode, tokenKinds } from '../sql/lexer.ts';
import { whyNotInTransaction } from '../sql/transactions.ts';
import { toUpperAscii, words } from '../sql/vocabulary.ts';
import type { Token } from './file-items.ts';
import type { ParameterType, Placeholder } from './statement.ts';
import { whyReadDifferently } from './type-reader.ts';
import { listVariants, writeVariant } from './variants.ts';

/** The types of the declared parameters; null: the declaration has a fault. */
export type DeclaredTypes = ReadonlyMap<string, ParameterType | null>;

/** A place in the text, in UTF-16 units, and a problem for people. */
export type PlacedFault = { readonly offset: number; readonly problem: string };

/** One checked SQL statement. `analyses` has one for each variant of its choices; empty: there are faults. */
export type CheckedSql = {
  readonly sql: string;
  readonly placeholders: readonly Placeholder[];
  readonly analyses: readonly Analysis[];
  readonly hasReturning: boolean;
  readonly faults: readonly PlacedFault[];
};

/** Checks the tokens of one statement. @param tokens at least one, without the semicolon at the end */
export function checkSql(
  text: string,
  tokens: readonly [Token, ...Token[]],
  types: DeclaredTypes,
): CheckedSql {
  const faults: PlacedFault[] = [];
  const [{ start }] = tokens;
  const sql = text.slice(start, tokens.at(-1)?.end);
  const placeholders: Placeholder[] = [];
  for (const [at, token] of tokens.entries()) {
    const problem = problemOfToken(text, token);
    if (problem !== null) faults.push({ offset: token.start, problem });
    // The second colon of `::` belongs to the first.
    if (!isColon(token) || text[token.start - 1] === ':') continue;
    const found = readColon(text, token.start);
    if (typeof found === 'string') faults.push({ offset: token.start, problem: found });
    else {
      const { name, end } = found;
      placeholders.push({ name, start: token.start - start, end: end - start });
      const misplaced = whyMisplaced(text, tokens, at, end, name, types);
      if (misplaced !== null) faults.push({ offset: token.start, problem: misplaced });
    }
  }
  const isSound = faults.length === 0 && placeholders.every(({ name }) => types.get(name) != null);
  const analyses = isSound ? analyseVariants(sql, placeholders, types) : [];
  const reason = analyses.map((analysis) => whyNotInTransaction(analysis)).find(isNotNull);
  if (reason != null) {
    faults.push({ offset: start, problem: `the gateway cannot run this statement: ${reason}` });
  }
  const hasReturning =
    /returning/i.test(sql) && tokens.some((token) => wordOf(text, token) === 'RETURNING');
  return { sql, placeholders, analyses, hasReturning, faults };
}

function isNotNull<Value>(value: Value | null): value is Value {
  return value !== null;
}

function isColon({ kind }: Token): boolean {
  return kind === tokenKinds.colon || kind === tokenKinds.namedPlaceholder;
}

/** In upper case; '' unless it is a word. */
function wordOf(text: string, token: Token | undefined): string {
  if (token?.kind !== tokenKinds.word) return '';
  return toUpperAscii(text.slice(token.start, token.end));
}

function problemOfToken(text: string, { kind, start, end, doubt }: Token): string | null {
  if (kind === tokenKinds.placeholder) return '`?` is not a placeholder here: write `:name`';
  if (kind === tokenKinds.executableComment)
    return 'an executable comment is SQL to some servers only';
  if (kind === tokenKinds.string) {
    const difference = whyReadDifferently(text.slice(start, end));
    if (difference !== null) return `the text ${difference}`;
  }
  if (doubt & doubts.nul) return 'there is a NUL character';
  if (doubt & doubts.dollar) return 'a name of the form $…$ is a string to some servers';
  if (doubt & doubts.bracket) return 'a [ outside of a literal quotes a name to some servers';
  if (doubt & doubts.comment) return 'a hint with quotes in it reads differently on some servers';
  return null;
}

/** The parameter behind a colon, and where it ends; or what is wrong. */
function readColon(
  text: string,
  at: number,
): { readonly name: string; readonly end: number } | string {
  if (text[at + 1] === ':') return '`::` is not an operator of MySQL: write CAST(…)';
  const before = at > 0 ? text.charCodeAt(at - 1) : 0x20;
  let end = at + 1;
  while (end < text.length && isWordCode(text.charCodeAt(end))) end += 1;
  const name = text.slice(at + 1, end);
  const isParameter = !isWordCode(before) && before !== 0x40;
  if (!isParameter || classOf(text.charCodeAt(at + 1)) !== characterClasses.letter) {
    return 'this colon does not begin a parameter: a name follows it, and no letter, digit, _, $, : or @ is before it';
  }
  return { name, end };
}

/** Why a parameter cannot be here; null: it can. */
function whyMisplaced(
  text: string,
  tokens: readonly Token[],
  at: number,
  end: number,
  name: string,
  types: DeclaredTypes,
): string | null {
  const type = types.get(name);
  if (type === undefined) return `\`:${name}\` is not declared (\`-- param ${name}: …\`)`;
  if (type === null || type.kind === 'choice') return null;
  // A colon that touches a quote is a token of its own, before the name.
  let next = at + 1;
  while ((tokens[next]?.start ?? end) < end) next += 1;
  const after = tokens[next];
  if (after?.kind === tokenKinds.open) return `\`:${name}\` is a value, which cannot be called`;
  const [before, second] = [tokens[at - 1], tokens[at - 2]];
  if (type.kind === 'list') {
    const third = tokens[at - 3]?.kind;
    const isIn =
      before?.kind === tokenKinds.open &&
      wordOf(text, second) === 'IN' &&
      third !== tokenKinds.dot &&
      third !== tokenKinds.userAt &&
      after?.kind === tokenKinds.close;
    return isIn ? null : `the list \`:${name}\` must be alone in the parentheses of IN (:${name})`;
  }
  const isKey = wordOf(text, before) === 'BY' && ['ORDER', 'GROUP'].includes(wordOf(text, second));
  const isAll =
    after === undefined ||
    after.kind === tokenKinds.close ||
    text[after.start] === ',' ||
    sortKeyEnds.has(wordOf(text, after));
  return isKey && isAll
    ? `\`:${name}\` is a value, which sorts or groups nothing: make it a choice`
    : null;
}

const sortKeyEnds = words('ASC DESC LIMIT HAVING WITH FOR LOCK ROWS RANGE UNION OFFSET FETCH INTO');

function analyseVariants(
  sql: string,
  placeholders: readonly Placeholder[],
  types: DeclaredTypes,
): readonly Analysis[] {
  return listVariants(placeholders, types).map((choices) =>
    analyse(writeVariant(sql, placeholders, choices).sql),
  );
}
