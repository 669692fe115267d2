// What is sent to MySQL for a driver's text, in which its values stand already. Pure.
// Must not know sessions, nor transactions.
import { longFrom } from '../../../shared/pieces.ts';
import { onlyAnsiQuotes } from '../../../shared/sql/classify.ts';
import { defaultEscapes, type Escapes } from '../../../shared/sql/lexer.ts';
import type { Asker } from '../long-requests.ts';
import type { Served } from '../served-sections.ts';
import { type Decided, decideThen, type StatementWish } from '../statement.ts';

/** How a session may read backslashes that is known not to have NO_BACKSLASH_ESCAPES. */
export const driverReadings: readonly Escapes[] = [defaultEscapes, ...onlyAnsiQuotes];

/** Decides one statement, at once or, where it is long, in pieces, and hands it on. */
export function decideDriverThen(
  { served, response, record }: { readonly served: Served } & Asker,
  sql: string,
  use: (decided: Decided) => void,
): void {
  const wish: StatementWish = {
    sql,
    params: null,
    paramsKey: 'params',
    readOnly: false,
    isSingle: true,
    rollbackOnError: false,
    asksServer: false,
    format: 'planetscale',
    otherEscapes: onlyAnsiQuotes,
  };
  decideThen(served, wish, sql.length > longFrom, { response, record }, use);
}
