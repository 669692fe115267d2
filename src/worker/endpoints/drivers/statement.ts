// What is sent to MySQL for a driver's text, in which its values stand already. Pure.
// Must not know sessions, nor transactions.
import { onlyAnsiQuotes } from '../../../shared/sql/classify.ts';
import { defaultEscapes, type Escapes } from '../../../shared/sql/lexer.ts';
import type { Served } from '../served-sections.ts';
import { type Decided, decideStatement } from '../statement.ts';

/** How a session may read backslashes that is known not to have NO_BACKSLASH_ESCAPES. */
export const driverReadings: readonly Escapes[] = [defaultEscapes, ...onlyAnsiQuotes];

/** One statement; or why it is not run. */
export function decideDriverStatement({ config, context }: Served, sql: string): Decided {
  return decideStatement(
    config,
    {
      sql,
      params: null,
      paramsKey: 'params',
      readOnly: false,
      isSingle: true,
      rollbackOnError: false,
      asksServer: false,
      format: 'planetscale',
      otherEscapes: onlyAnsiQuotes,
    },
    context.mostStatementBytes(),
    context.catalogue(),
  );
}
